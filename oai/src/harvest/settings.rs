//! What is harvested, and how much a repository may ask of its harvester.
//!
//! Source: OAI-PMH §2.7 (selective harvesting), §3.5 (flow control).

use soif::digest::Md5;

use crate::datestamp::Datestamp;

/// The format that every repository has.
pub const OAI_DC: &str = "oai_dc";

/// How far a harvest reaches back behind where the last one ended, in seconds, where the settings do
/// not say (12 h). A repository stamps a change before others can see it, some hand out lists that are
/// made by the minute, and some stamp in local time: west of Greenwich that is up to 11 hours behind
/// the time of their responses.
pub const OVERLAP_SECS: i64 = 12 * 3_600;

/// The dates that the first request of a full harvest spans, in days, where the settings do not say.
pub const WINDOW_DAYS: u32 = 365;

/// How often a repository that tells of no deletions is harvested in full, in seconds, where the
/// settings do not say (30 days).
pub const FULL_EVERY_SECS: u64 = 30 * 86_400;

/// Longest pause that a repository may ask for, in seconds, where the settings do not say.
pub const PAUSE_SECS_MAX: u64 = 600;

/// Most requests of one harvest, where the settings do not say.
pub const REQUESTS_MAX: u64 = 1_000_000;

/// Most records of one harvest, and of one list, where the settings do not say.
pub const RECORDS_MAX: u64 = 100_000_000;

/// What is harvested, and within which bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Address of the repository. A checkpoint of another is no use.
    pub base_url: String,
    /// Metadata formats, the most wanted first; of a repository with none of them, `oai_dc`.
    pub prefixes: Vec<String>,
    /// Sets, one harvested after the other; none for the whole repository.
    pub sets: Vec<String>,
    /// Nothing that changed last before.
    pub from: Option<Datestamp>,
    /// How far a harvest reaches back behind where the last one ended, in seconds; not below 0.
    pub overlap_secs: i64,
    /// The dates that the first request of a full harvest spans, in days; 0 for all at once.
    pub window_days: u32,
    /// How often a repository that tells of no deletions is harvested in full, in seconds; 0 for
    /// never.
    pub full_every_secs: u64,
    /// Pause between an answer and the next request, in milliseconds.
    pub delay_ms: u64,
    /// Longest pause that a repository may ask for, in seconds.
    pub pause_secs_max: u64,
    /// Most requests of one harvest.
    pub requests_max: u64,
    /// Most records of one harvest, and of one list over as many harvests as it takes.
    pub records_max: u64,
}

impl Settings {
    /// All of a repository in `oai_dc`.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            prefixes: vec![OAI_DC.to_owned()],
            sets: Vec::new(),
            from: None,
            overlap_secs: OVERLAP_SECS,
            window_days: WINDOW_DAYS,
            full_every_secs: FULL_EVERY_SECS,
            delay_ms: 0,
            pause_secs_max: PAUSE_SECS_MAX,
            requests_max: REQUESTS_MAX,
            records_max: RECORDS_MAX,
        }
    }

    /// A number for what is selected: with another one, all is harvested anew.
    pub(super) fn selection(&self) -> u64 {
        let from = self.from.map(|it| it.to_string()).unwrap_or_default();
        let mut text = format!("{}\n{from}\n{}\n", self.base_url, self.prefixes.join(" "));
        for set in &self.sets {
            text.push_str(set);
            text.push('\n');
        }
        short_sum(text.as_bytes())
    }
}

/// The first eight bytes of the MD5 sum, as a number: the same on every machine and in every release.
pub(super) fn short_sum(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*Md5::of(bytes).0.first_chunk().unwrap_or(&[0; 8]))
}
