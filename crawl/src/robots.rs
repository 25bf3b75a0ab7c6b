//! The robots exclusion protocol: the rules of a robots.txt, and what is known of a host's.
//!
//! Source: RFC 9309; Crawl-delay and Sitemap lines are customs beside it (§2.2.4).
//!
//! Sans-I/O.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::percent;

mod known;
mod lines;
mod pattern;
#[cfg(test)]
mod tests;

pub use known::{Answer, Decision, FETCH_MS, Known, LOST_MS, REDIRECTS, RETRY_MS, State};

/// Product token of this program, in robots.txt and `X-Robots-Tag` (RFC 9309 §2.2.1).
pub const PRODUCT: &str = "Harvest";

/// Number of bytes of a robots.txt that are read; the line on which they end is left out
/// (RFC 9309 §2.5).
pub const BYTES_MAX: usize = 500 * 1024;

/// Longest delay that a site can ask for by Crawl-delay, in milliseconds.
pub const CRAWL_DELAY_MS_MAX: u64 = 60 * 60 * 1000;

/// Maximum number of Sitemap lines that are kept.
pub const SITEMAPS_MAX: usize = 1_000;

/// The lines of a robots.txt that bind one product.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    rules: Vec<Rule>,
    crawl_delay_ms: Option<u64>,
    sitemaps: Vec<String>,
}

/// An Allow or Disallow line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Number of the line, from 1. Each of CR, LF and CR LF ends a line.
    pub line: u32,
    /// Whether it allows.
    pub allow: bool,
    /// Path pattern in normal form.
    pattern: Box<str>,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.allow { "Allow" } else { "Disallow" };
        write!(f, "line {}, {name}: {}", self.line, self.pattern)
    }
}

impl Rules {
    /// Reads a robots.txt for the product with a token. Any bytes are one: lines that say nothing
    /// known are skipped. Groups that name the token (ignoring case) are merged; if there is none,
    /// those of `*` are.
    ///
    /// Missing colons and some common misspellings are understood, as large crawlers do. Only
    /// Allow and Disallow lines end the list of names of a group, as the RFC has it.
    pub fn parse(body: &[u8], product: &str) -> Self {
        let mut groups = Groups::new(product);
        let mut sitemaps = Vec::new();
        for (number, name, value) in lines::fields(body) {
            match name {
                lines::Name::UserAgent => groups.name(value),
                lines::Name::Rule { allow } => groups.rule(number, allow, value),
                lines::Name::CrawlDelay => groups.crawl_delay(value),
                lines::Name::Sitemap => {
                    let loc = String::from_utf8_lossy(value);
                    if sitemaps.len() < SITEMAPS_MAX && !loc.is_empty() {
                        sitemaps.push(loc.into_owned());
                    }
                }
            }
        }
        let group = if groups.is_named { groups.own } else { groups.all };
        Self { rules: group.rules, crawl_delay_ms: group.crawl_delay_ms, sitemaps }
    }

    /// Returns the rule that decides about a URL: the one with the longest pattern that matches,
    /// and of several the one that allows (RFC 9309 §2.2.2). `None`: no rule matches, so the URL is
    /// allowed.
    pub fn rule(&self, url: &Url) -> Option<&Rule> {
        let path = normal_path(url);
        let matching = self.rules.iter().filter(|it| pattern::matches(&it.pattern, &path));
        // Of equal ones the last is the maximum: turned round, the first line is named.
        matching.rev().max_by_key(|it| (it.pattern.len(), it.allow))
    }

    /// Returns the asked delay between two requests, in milliseconds, at most
    /// [`CRAWL_DELAY_MS_MAX`]. If there are several lines, the longest counts.
    pub fn crawl_delay_ms(&self) -> Option<u64> {
        self.crawl_delay_ms
    }

    /// Returns the values of Sitemap lines, in order. They may be no URLs.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }
}

/// The two groups that matter: of the product, and of everybody.
#[derive(Debug, Default)]
struct Groups<'a> {
    product: &'a str,
    own: Rules,
    all: Rules,
    /// Some group names the product.
    is_named: bool,
    /// The present group names the product; everybody.
    names: (bool, bool),
    /// The present group has a rule, so that another name begins a group.
    has_rule: bool,
}

impl<'a> Groups<'a> {
    fn new(product: &'a str) -> Self {
        Self { product, ..Self::default() }
    }

    fn name(&mut self, value: &[u8]) {
        if self.has_rule {
            (self.names, self.has_rule) = ((false, false), false);
        }
        let is_letter = |it: &u8| it.is_ascii_alphabetic() || matches!(it, b'-' | b'_');
        let end = value.iter().position(|it| !is_letter(it)).unwrap_or(value.len());
        let token = value.get(..end).unwrap_or_default();
        if !token.is_empty() && token.eq_ignore_ascii_case(self.product.as_bytes()) {
            (self.is_named, self.names.0) = (true, true);
        }
        if matches!(value, [b'*'] | [b'*', b' ' | b'\t', ..]) {
            self.names.1 = true;
        }
    }

    fn present(&mut self) -> impl Iterator<Item = &mut Rules> {
        let (own, all) = self.names;
        [(own, &mut self.own), (all, &mut self.all)]
            .into_iter()
            .filter_map(|(is_meant, rules)| is_meant.then_some(rules))
    }

    fn rule(&mut self, line: u32, allow: bool, value: &[u8]) {
        self.has_rule = true;
        // An empty pattern matches nothing (RFC 9309 §2.2.2: a pattern begins with `/`).
        if value.is_empty() {
            return;
        }
        let rule = Rule { line, allow, pattern: pattern::normal(value) };
        self.present().for_each(|it| it.rules.push(rule.clone()));
    }

    fn crawl_delay(&mut self, value: &[u8]) {
        let secs = std::str::from_utf8(value).ok().and_then(|it| it.parse::<f64>().ok());
        let Some(secs) = secs.filter(|it| 0.0 <= *it) else { return };
        let most = std::time::Duration::from_millis(CRAWL_DELAY_MS_MAX);
        let delay = std::time::Duration::try_from_secs_f64(secs).map_or(most, |it| it.min(most));
        let ms = u64::try_from(delay.as_millis()).unwrap_or(CRAWL_DELAY_MS_MAX);
        self.present().for_each(|it| it.crawl_delay_ms = it.crawl_delay_ms.max(Some(ms)));
    }
}

/// Returns path and query in normal form. Characters that are special in patterns are encoded, as
/// the pattern must have them if it means them (RFC 9309 §2.2.3).
fn normal_path(url: &Url) -> String {
    let mut out = String::with_capacity(url.as_str().len());
    let special = |byte| matches!(byte, b'*' | b'$');
    percent::normalize(url.path().as_bytes(), special, &mut out);
    if let Some(query) = url.query() {
        out.push('?');
        percent::normalize(query.as_bytes(), special, &mut out);
    }
    out
}
