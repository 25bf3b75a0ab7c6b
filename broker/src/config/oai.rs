//! `[[source]]` of `kind = "oai"`: how a repository is harvested.
//!
//! Sans-I/O.

use std::time::Duration;

use oai::Datestamp;
use url::Url;
use web::settings::Table;

use crate::source::Oai;

/// Most metadata formats, or sets, of one source.
pub const NAMES_MAX: usize = 1_000;

/// Longest delay between requests.
const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// Longest overlap, and longest time between full harvests (ten years).
const SPAN_MAX: Duration = Duration::from_secs(3_653 * 86_400);

/// Most days of a window (a hundred years).
const WINDOW_DAYS_MAX: u64 = 36_525;

/// Reads what a `[[source]]` says of how it is harvested.
pub(super) fn read(table: &Table<'_>) -> Oai {
    let default = Oai::default();
    let within = |key, max| table.duration_within(key, Duration::ZERO..=max);
    let prefixes = names(table, "prefix", "prefixes");
    let window_days = table.integer("window_days", 0..=WINDOW_DAYS_MAX);
    let window_days = window_days.and_then(|it| u32::try_from(it).ok());
    if table.boolean("follow", false) {
        let message = "an OAI-PMH repository cannot be asked to hold its answer";
        table.mistake("follow", message, "false: the schedule keeps it fresh");
    }
    Oai {
        prefixes: if prefixes.is_empty() { default.prefixes } else { prefixes },
        sets: names(table, "set", "sets"),
        from: from(table),
        keep_original: table.boolean("keep_original", default.keep_original),
        delay: within("delay", DELAY_MAX).unwrap_or(default.delay),
        overlap: within("overlap", SPAN_MAX).unwrap_or(default.overlap),
        full_every: within("full_every", SPAN_MAX).unwrap_or(default.full_every),
        window_days: window_days.unwrap_or(default.window_days),
        page_bytes_max: table.bytes("page_bytes_max").unwrap_or(default.page_bytes_max),
        announced: table.boolean("announced", default.announced),
    }
}

/// Reads the base URL: nothing is joined to it, so that it stays as it is written.
pub(super) fn base_url(table: &Table<'_>) -> Option<Url> {
    let url = table.url("url")?;
    let problem = if !matches!(url.scheme(), "http" | "https") {
        "is not of a web server"
    } else if url.fragment().is_some() {
        "has a part after #"
    } else if !url.username().is_empty() || url.password().is_some() {
        "holds a user name; use `token`"
    } else {
        return Some(url);
    };
    let expected = "the repository's base URL, such as \"https://host/oai\"";
    table.mistake("url", format!("the URL {url} {problem}"), expected);
    None
}

/// Reads one name or a list of them.
fn names(table: &Table<'_>, one: &str, several: &str) -> Vec<String> {
    let mut names = table.strings(several);
    if let Some(name) = table.string(one) {
        if table.has(several) {
            let message = format!("both {one:?} and {several:?} are there");
            table.mistake(one, message, format!("{several:?} alone"));
        }
        names = vec![name];
    }
    let key = if table.has(several) { several } else { one };
    let wrong = names.iter().find(|it| it.is_empty() || it.contains(char::is_whitespace));
    if let Some(wrong) = wrong {
        table.mistake(key, format!("{wrong:?} is no name of one"), "a name without white space");
    }
    if NAMES_MAX < names.len() {
        table.mistake(key, format!("more than {NAMES_MAX} of them"), "several sources");
    }
    names
}

fn from(table: &Table<'_>) -> Option<Datestamp> {
    let text = table.string("from")?;
    let found = Datestamp::parse(&text);
    if found.is_none() {
        let expected = "a date such as \"2026-01-31\", or a time such as \"2026-01-31T12:00:00Z\"";
        table.mistake("from", format!("\"from\" is {text:?}"), expected);
    }
    found
}
