//! The lines of a robots.txt: names and values, with the numbers of their lines.
//!
//! Sans-I/O.

use super::BYTES_MAX;

/// The name of a line that says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    UserAgent,
    Rule { allow: bool },
    CrawlDelay,
    Sitemap,
}

/// Names in lower case. Misspellings are those that large crawlers understand, since a site that
/// writes one does not want to be crawled.
const NAMES: [(&str, Name); 15] = [
    ("user-agent", Name::UserAgent),
    ("useragent", Name::UserAgent),
    ("user agent", Name::UserAgent),
    ("allow", Name::Rule { allow: true }),
    ("disallow", Name::Rule { allow: false }),
    ("dissallow", Name::Rule { allow: false }),
    ("dissalow", Name::Rule { allow: false }),
    ("disalow", Name::Rule { allow: false }),
    ("diasllow", Name::Rule { allow: false }),
    ("disallaw", Name::Rule { allow: false }),
    ("crawl-delay", Name::CrawlDelay),
    ("crawldelay", Name::CrawlDelay),
    ("crawl delay", Name::CrawlDelay),
    ("sitemap", Name::Sitemap),
    ("site-map", Name::Sitemap),
];

/// Returns number (from 1), name and value of each known line, without comments and white space.
pub(super) fn fields(body: &[u8]) -> impl Iterator<Item = (u32, Name, &[u8])> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut numbers = 1..;
    lines(body).filter_map(move |line| {
        let number = numbers.next()?;
        let (name, value) = split(line)?;
        Some((number, name, value))
    })
}

/// Returns the lines within the limit; a line that goes on beyond it is left out.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_cut = BYTES_MAX < body.len();
    let mut rest = body.get(..BYTES_MAX).unwrap_or(body);
    std::iter::from_fn(move || {
        let Some(end) = rest.iter().position(|it| matches!(it, b'\r' | b'\n')) else {
            let last = std::mem::take(&mut rest);
            return (!is_cut && !last.is_empty()).then_some(last);
        };
        let (line, after) = rest.split_at(end);
        let length = if after.starts_with(b"\r\n") { 2 } else { 1 };
        rest = after.get(length..).unwrap_or_default();
        Some(line)
    })
}

fn split(line: &[u8]) -> Option<(Name, &[u8])> {
    let line = line.split(|it| *it == b'#').next()?.trim_ascii();
    let (name, value) = if let Some(colon) = line.iter().position(|it| *it == b':') {
        (line.get(..colon)?, line.get(colon + 1..)?)
    } else {
        // Without a colon there must be two words.
        let space = line.iter().position(u8::is_ascii_whitespace)?;
        let value = line.get(space..)?;
        if value.trim_ascii().iter().any(u8::is_ascii_whitespace) {
            return None;
        }
        (line.get(..space)?, value)
    };
    let name = name.trim_ascii();
    let known = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))?;
    Some((known.1, value.trim_ascii()))
}
