//! A root that is no tree but an OAI-PMH repository, to be harvested: `access = "oai"`.
//!
//! Source: the manual's RootNodes (`URL Access=types Delay=seconds …`); OAI-PMH §2.7 (what can be
//! selected).
//!
//! # Differences from the original
//!
//! * `Access` names one way to reach a root, and each has settings of its own.
//! * What is harvested belongs to the repository: its records have the `Gatherer-Id` that every
//!   harvester gives them (`oai::crosswalk`), so that two gatherers of one repository do not bring
//!   every record twice.
//!
//! Sans-I/O.

use std::time::Duration;

use oai::Datestamp;
use url::Url;
use web::settings::Table;

/// How often a repository is harvested, unless told otherwise.
pub const INTERVAL: Duration = Duration::from_secs(24 * 3_600);

/// Longest pause between two requests.
const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// Most sets, and most formats, of one root.
const CHOICES_MAX: usize = 100;

/// A repository to harvest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its base URL: its name in notes, confirmations and status.
    pub base_url: Url,
    /// Metadata formats, the most wanted first.
    pub prefixes: Vec<String>,
    /// Sets, one harvested after the other; none for the whole repository.
    pub sets: Vec<String>,
    /// Nothing that changed last before.
    pub from: Option<Datestamp>,
    /// How long after a harvest the next one begins.
    pub interval: Duration,
    /// Pause between an answer and the next request.
    pub delay: Duration,
    /// Whether records keep the metadata as they were harvested (`Original-Metadata`).
    pub keep_original: bool,
}

impl Repository {
    /// Returns the repository at `base_url` with every setting at its default.
    pub fn new(base_url: Url) -> Self {
        Self {
            base_url,
            prefixes: vec![oai::harvest::OAI_DC.to_owned()],
            sets: Vec::new(),
            from: None,
            interval: INTERVAL,
            delay: Duration::ZERO,
            keep_original: false,
        }
    }

    /// Returns what a base URL may be: of the web, without user, query and fragment; `None` for other text.
    pub fn base_url_of(text: &str) -> Option<Url> {
        let url = Url::parse(text).ok()?;
        let is_of_web = matches!(url.scheme(), "http" | "https");
        let is_bare = url.query().is_none() && url.fragment().is_none();
        (is_of_web && is_bare && url.username().is_empty()).then_some(url)
    }

    /// Returns the base URL as text.
    pub fn url(&self) -> &str {
        self.base_url.as_str()
    }

    /// Reads a `[[root]]` with `access = "oai"`, recording what is wrong with it.
    pub(crate) fn read(table: &Table<'_>, interval_max: Duration) -> Option<Self> {
        table.require("url", "\"https://archive.example.org/oai\"");
        let defaults = Self::new(Url::parse("http://localhost/").ok()?);
        let words = |key: &str, expected: &str| {
            let words = table.strings(key);
            let is_word = |it: &str| !it.is_empty() && !it.contains(char::is_whitespace);
            for (i, word) in words.iter().enumerate().filter(|(_, it)| !is_word(it)) {
                table.mistake_in(key, i, format!("{word:?} is none"), expected);
            }
            if CHOICES_MAX < words.len() {
                table.mistake(key, format!("there are {}", words.len()), "at most 100");
            }
            words
        };
        let prefixes = words("prefixes", "a metadata prefix, such as \"oai_dc\"");
        let sets = words("sets", "the spec of a set, as ListSets names it");
        let from = table.string("from");
        let stamp = from.as_deref().and_then(Datestamp::parse);
        if let Some(text) = from.filter(|_| stamp.is_none()) {
            table.mistake("from", format!("{text:?} is no date"), "\"2020-01-31\"");
        }
        let shortest = Duration::from_secs(1);
        let interval = table.duration_within("interval", shortest..=interval_max);
        let delay = table.duration_within("delay", Duration::ZERO..=DELAY_MAX);
        let read = Self {
            prefixes: if prefixes.is_empty() { defaults.prefixes } else { prefixes },
            sets,
            from: stamp,
            interval: interval.unwrap_or(INTERVAL),
            delay: delay.unwrap_or_default(),
            keep_original: table.boolean("keep_original", false),
            base_url: table.url("url")?,
        };
        if Self::base_url_of(read.url()).is_none() {
            let expected = "an http:// or https:// URL without user, \"?\" and \"#\"";
            table.mistake("url", format!("{} is no base URL", read.url()), expected);
            return None;
        }
        Some(read)
    }
}
