//! A repository as a source: its settings for harvesting.
//!
//! A broker's `[[source]]` of `kind = "oai"` and a gatherer's `[[root]]` with `access = "oai"` have
//! the same keys and bounds. Sans-I/O.

use std::sync::Arc;
use std::time::Duration;

use net::client::Credentials;
use net::tls::ClientFiles;
use oai::Datestamp;
use oai::harvest;
use settings::Table;
use url::Url;

use crate::harvester::{Access, PAGE_BYTES_MAX};
use daemon::Token;

/// Maximum number of metadata formats, or sets, of one repository.
pub const NAMES_MAX: usize = 1_000;

/// Longest delay between requests.
const DELAY_MAX: Duration = Duration::from_secs(3_600);

/// Longest overlap, and longest time between full harvests (ten years).
const SPAN_MAX: Duration = Duration::from_secs(3_653 * 86_400);

/// Maximum number of days of a window (a hundred years).
const WINDOW_DAYS_MAX: u64 = 36_525;

/// Settings for the harvest of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oai {
    /// Metadata formats, the most wanted first.
    pub prefixes: Vec<String>,
    /// Sets, harvested one after the other; none for the whole repository.
    pub sets: Vec<String>,
    /// Earliest datestamp of harvested records.
    pub from: Option<Datestamp>,
    /// Whether records also keep their original metadata.
    pub keep_original: bool,
    /// Pause between an answer and the next request.
    pub delay: Duration,
    /// Time by which a harvest begins before the end of the last one.
    pub overlap: Duration,
    /// See [`harvest::Settings::full_every_secs`]; zero for never.
    pub full_every: Duration,
    /// Length of a full harvest's first window, in days; 0 for all dates at once.
    pub window_days: u32,
    /// Largest response, compressed or decompressed, in bytes.
    pub page_bytes_max: u64,
}

impl Default for Oai {
    /// Returns settings for the whole repository in `oai_dc`, with the defaults of
    /// [`oai::harvest`].
    fn default() -> Self {
        Self {
            prefixes: vec![harvest::OAI_DC.to_owned()],
            sets: Vec::new(),
            from: None,
            keep_original: false,
            delay: Duration::ZERO,
            overlap: Duration::from_secs(harvest::OVERLAP_SECS.unsigned_abs()),
            full_every: Duration::from_secs(harvest::FULL_EVERY_SECS),
            window_days: harvest::WINDOW_DAYS,
            page_bytes_max: PAGE_BYTES_MAX,
        }
    }
}

impl Oai {
    /// Reads a table, and records mistakes.
    pub fn read(table: &Table<'_>) -> Self {
        let default = Self::default();
        let within = |key, max| table.duration_within(key, Duration::ZERO..=max);
        let prefixes = names(table, "prefix", "prefixes");
        let window_days = table.integer("window_days", 0..=WINDOW_DAYS_MAX);
        let window_days = window_days.and_then(|it| u32::try_from(it).ok());
        Self {
            prefixes: if prefixes.is_empty() { default.prefixes } else { prefixes },
            sets: names(table, "set", "sets"),
            from: from(table),
            keep_original: table.boolean("keep_original", default.keep_original),
            delay: within("delay", DELAY_MAX).unwrap_or(default.delay),
            overlap: within("overlap", SPAN_MAX).unwrap_or(default.overlap),
            full_every: within("full_every", SPAN_MAX).unwrap_or(default.full_every),
            window_days: window_days.unwrap_or(default.window_days),
            page_bytes_max: table.bytes("page_bytes_max").unwrap_or(default.page_bytes_max),
        }
    }

    /// Returns the settings of a harvest from `base_url`, without delay, because the client keeps
    /// the delay for each host: see [`net::pace::Hosts`].
    pub fn settings(&self, base_url: &str) -> harvest::Settings {
        harvest::Settings {
            prefixes: self.prefixes.clone(),
            sets: self.sets.clone(),
            from: self.from,
            delay_ms: 0,
            overlap_secs: i64::try_from(self.overlap.as_secs()).unwrap_or(i64::MAX),
            window_days: self.window_days,
            full_every_secs: self.full_every.as_secs(),
            ..harvest::Settings::new(base_url)
        }
    }

    /// Returns the access with these credentials; `allow_private` also allows private networks.
    pub fn access(&self, credentials: Credentials, allow_private: bool) -> Access {
        Access {
            credentials,
            allow_private,
            page_bytes_max: self.page_bytes_max,
            ..Access::default()
        }
    }
}

/// Reads the base URL, which stays as written because no path is joined to it.
pub fn base_url(table: &Table<'_>) -> Option<Url> {
    let url = table.url("url")?;
    let Some(problem) = problem_of(&url) else { return Some(url) };
    let expected = "the repository's base URL, such as \"https://host/oai\"";
    let shown = without_user(&url);
    table.mistake("url", format!("the URL {shown} is not a base URL: it {problem}"), expected);
    None
}

/// Returns the URL without the name and password of a user, for messages.
pub(crate) fn without_user(url: &Url) -> Url {
    let mut shown = url.clone();
    // A URL that cannot have a name and password has none to remove.
    let _ = (shown.set_username(""), shown.set_password(None));
    shown
}

/// Returns the base URL of a repository; `None` for other text.
pub fn base_url_of(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|it| problem_of(it).is_none())
}

/// Returns the reason why the URL is not a base URL; `None` if it is one.
fn problem_of(url: &Url) -> Option<&'static str> {
    if !matches!(url.scheme(), "http" | "https") {
        Some("is not of a web server")
    } else if url.fragment().is_some() {
        Some("has a part after #")
    } else if !url.username().is_empty() || url.password().is_some() {
        Some("holds a user name; use `token`")
    } else if url.query_pairs().any(|(name, _)| name == "verb") {
        Some("is a request, with a verb")
    } else {
        None
    }
}

/// Returns the credentials for a source.
pub fn credentials(token: Option<&Token>, certificate: Option<&ClientFiles>) -> Credentials {
    Credentials {
        token: token.map(|it| it.secret().to_owned()),
        certificate: certificate.cloned().map(Arc::new),
        ..Credentials::default()
    }
}

/// Reads one name from the key `one`, or a list of names from the key `several`.
fn names(table: &Table<'_>, one: &str, several: &str) -> Vec<String> {
    let expected = "a name without white space";
    let is_wrong = |it: &String| it.is_empty() || it.contains(char::is_whitespace);
    let names = table.strings(several);
    for (i, wrong) in names.iter().enumerate().filter(|(_, it)| is_wrong(it)) {
        table.mistake_in(several, i, format!("{wrong:?} is not a name"), expected);
    }
    if NAMES_MAX < names.len() {
        table.mistake(several, format!("more than {NAMES_MAX} of them"), "several sources");
    }
    let Some(name) = table.string(one) else { return names };
    if table.has(several) {
        let message = format!("both {one:?} and {several:?} are there");
        table.mistake(one, message, format!("{several:?} alone"));
    }
    if is_wrong(&name) {
        table.mistake(one, format!("{name:?} is not a name"), expected);
    }
    vec![name]
}

fn from(table: &Table<'_>) -> Option<Datestamp> {
    let text = table.string("from")?;
    let found = Datestamp::parse(&text);
    if found.is_none() {
        let expected = "a date such as \"2026-01-31\", or a time such as \"2026-01-31T12:00:00Z\"";
        table.mistake("from", format!("\"from\" is {text:?}, which is not a date"), expected);
    }
    found
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    fn read(text: &str) -> Result<(Option<Url>, Oai, Option<Token>), String> {
        let document = Document::parse(text).unwrap();
        let root = document.root();
        let read = (base_url(&root), Oai::read(&root), Token::read(&root));
        let shown = |it: Vec<settings::Mistake>| it[0].to_string();
        document.finish().map(|()| read).map_err(shown)
    }

    #[test]
    fn everything_has_a_default_and_a_name() {
        let url = "url = 'https://h.org/oai?x=1'\n";
        let base = Url::parse("https://h.org/oai?x=1").ok();
        assert_eq!(read(url), Ok((base.clone(), Oai::default(), None)));
        let all = "prefix = 'soif'\nsets = ['a:b', 'c']\nfrom = '2026-01-31'\n\
                   keep_original = true\ndelay = '500 ms'\noverlap = '2 h'\nfull_every = '7 days'\n\
                   window_days = 30\npage_bytes_max = '8 MiB'\ntoken = 't'\n";
        let expected = Oai {
            prefixes: vec!["soif".to_owned()],
            sets: vec!["a:b".to_owned(), "c".to_owned()],
            from: Datestamp::parse("2026-01-31"),
            keep_original: true,
            delay: Duration::from_millis(500),
            overlap: Duration::from_secs(7_200),
            full_every: Duration::from_secs(7 * 86_400),
            window_days: 30,
            page_bytes_max: 8 << 20,
        };
        let token = Some(Token::new("t"));
        assert_eq!(read(&format!("{url}{all}")), Ok((base, expected.clone(), token.clone())));
        let settings = expected.settings("http://b/");
        assert_eq!((settings.delay_ms, settings.overlap_secs), (0, 7_200));
        let access = expected.access(credentials(token.as_ref(), None), false);
        assert_eq!(
            (access.credentials.token.as_deref(), access.page_bytes_max),
            (Some("t"), 8 << 20)
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (lines, part) in [
            ("url = 'ftp://h/oai'", "not a base URL: it is not of a web server"),
            ("url = 'http://u:p@h/oai'", "holds a user name"),
            ("url = 'http://h/oai?verb=Identify'", "is a request"),
            ("url = 'http://h/oai#x'", "after #"),
            ("set = 'a'\nsets = ['b']", "both \"set\" and \"sets\""),
            ("set = ''", "\"\" is not a name"),
            ("prefixes = ['a', 'b c']", "1:18: \"b c\" is not a name"),
            ("from = 'May'", "\"from\" is \"May\""),
            ("token = 'a b'", "not one word"),
            ("delay = '2 h'", "delay"),
        ] {
            let mistake = read(lines).unwrap_err();
            assert!(mistake.contains(part), "{lines}: {mistake}");
        }
        assert_eq!(base_url_of("oai"), None);
        let mistake = read("url = 'http://u:secret@h/oai'").unwrap_err();
        assert!(mistake.contains("http://h/oai") && !mistake.contains("secret"), "{mistake}");
    }

    #[test]
    fn a_token_is_not_logged() {
        assert_eq!(format!("{:?}", Token::new("secret")), "Token(…)");
    }
}
