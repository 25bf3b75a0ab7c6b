//! Settings of a harvest: its selection, and the limits on what a repository may cost.
//!
//! Source: OAI-PMH §2.7 (selective harvesting), §3.5 (flow control).

use soif::digest::Md5;

use crate::datestamp::Datestamp;

/// The format that every repository has.
pub const OAI_DC: &str = "oai_dc";

/// Default overlap: the time by which a harvest begins before the end of the last one, in seconds
/// (12 h). A repository stamps a change before others can see it, and some serve lists that are
/// minutes old. Some write datestamps in local time, which west of Greenwich is up to 11 hours
/// behind their response dates.
pub const OVERLAP_SECS: i64 = 12 * 3_600;

/// Default length of a full harvest's first window, in days.
pub const WINDOW_DAYS: u32 = 365;

/// Default of [`Settings::full_every_secs`] (30 days).
pub const FULL_EVERY_SECS: u64 = 30 * 86_400;

/// Default limit of the pause that a repository may ask for, in seconds.
pub const PAUSE_SECS_MAX: u64 = 600;

/// Default limit of the number of requests of one harvest.
pub const REQUESTS_MAX: u64 = 1_000_000;

/// Default limit of the number of records of one harvest, and of one list.
pub const RECORDS_MAX: u64 = 100_000_000;

/// The selection and the limits of a harvest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Address of the repository. A checkpoint of another address is not used.
    pub base_url: String,
    /// Metadata formats, the most wanted first; a repository with none of them gives `oai_dc`,
    /// unless the harvest is strict.
    pub prefixes: Vec<String>,
    /// Sets, harvested one after the other; none for the whole repository.
    pub sets: Vec<String>,
    /// Earliest datestamp of harvested records.
    pub from: Option<Datestamp>,
    /// Latest datestamp of harvested records.
    pub until: Option<Datestamp>,
    /// Whether a harvest fails if the repository lists a wanted set or format nowhere. Otherwise it
    /// warns, and takes `oai_dc` instead of the format.
    pub strict: bool,
    /// Time by which a harvest begins before the end of the last one, in seconds; not below 0.
    pub overlap_secs: i64,
    /// Length of a full harvest's first window, in days; 0 for all dates at once.
    pub window_days: u32,
    /// Time in seconds until all is harvested again: from the last full harvest if the repository
    /// reports no deletions, from the last harvest if it forgets them. 0 for never.
    pub full_every_secs: u64,
    /// Pause between an answer and the next request, in milliseconds.
    pub delay_ms: u64,
    /// Longest pause that a repository may ask for, in seconds.
    pub pause_secs_max: u64,
    /// Maximum number of requests of one harvest.
    pub requests_max: u64,
    /// Maximum number of records of one harvest, and of one list over as many harvests as it takes.
    pub records_max: u64,
}

impl Settings {
    /// Returns the settings for a whole repository in `oai_dc`.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            prefixes: vec![OAI_DC.to_owned()],
            sets: Vec::new(),
            from: None,
            until: None,
            strict: false,
            overlap_secs: OVERLAP_SECS,
            window_days: WINDOW_DAYS,
            full_every_secs: FULL_EVERY_SECS,
            delay_ms: 0,
            pause_secs_max: PAUSE_SECS_MAX,
            requests_max: REQUESTS_MAX,
            records_max: RECORDS_MAX,
        }
    }

    /// Returns a checksum of the selection. A new one causes a full harvest.
    pub(super) fn selection(&self) -> u64 {
        let from = self.from.map(|it| it.to_string()).unwrap_or_default();
        let mut text = format!("{}\n{from}\n{}\n", self.base_url, self.prefixes.join(" "));
        for set in &self.sets {
            text.push_str(set);
            text.push('\n');
        }
        if let Some(until) = self.until {
            text.push_str(&format!("until {until}\n"));
        }
        short_sum(text.as_bytes())
    }
}

/// Returns the first eight bytes of the MD5 as a number, equal on all machines and in all releases.
pub(super) fn short_sum(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*Md5::of(bytes).0.first_chunk().unwrap_or(&[0; 8]))
}
