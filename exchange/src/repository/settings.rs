//! The settings `[oai]` of a daemon, which describe it as a repository.
//!
//! Sans-I/O.

use std::time::Duration;

use oai::repository::description::{self, Branding};
use oai::repository::oap::Attributes;
use oai::repository::{Facts, PAGE_RECORDS};
use oai::response::{Format, Xml};
use oai::syndication::Syndication;
use oai::{RepositoryId, crosswalk::Dissemination};
use settings::Table;
use url::Url;

/// Maximum value of the setting `page_records`.
pub const PAGE_RECORDS_MAX: u64 = 10_000;

/// Maximum number of friends.
const LISTED_MAX: usize = 1_000;

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 1_000;

/// Settings of a daemon as a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether the daemon is a repository.
    pub enabled: bool,
    /// Name of the repository; default: that of the daemon.
    pub repository_name: Option<String>,
    /// E-mail addresses of its administrators; default: `webmaster` at its identifiers' domain.
    pub admin_emails: Vec<String>,
    /// The repository part of its identifiers; default: the stored one, or else the public host, or
    /// else one made of the daemon's id.
    pub repository_identifier: Option<RepositoryId>,
    /// Maximum number of records in a response.
    pub page_records: u64,
    /// The clients that get the attributes of Adly's paper, which the schema does not allow.
    pub oap_attributes: Attributes,
    /// Base URLs of other repositories.
    pub friends: Vec<String>,
    /// Its icon.
    pub branding: Option<Branding>,
    /// Its published update schedule; default: that of the daemon, if known.
    pub syndication: Option<Syndication>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            repository_name: None,
            admin_emails: Vec::new(),
            repository_identifier: None,
            page_records: PAGE_RECORDS,
            oap_attributes: Attributes::default(),
            friends: Vec::new(),
            branding: None,
            syndication: None,
        }
    }
}

impl Settings {
    /// Reads `[oai]`, and records mistakes.
    pub fn read(table: &Table<'_>) -> Self {
        Self {
            enabled: table.boolean("enabled", true),
            repository_name: name(table, "repository_name"),
            admin_emails: emails(table),
            repository_identifier: identifier(table),
            page_records: table
                .integer("page_records", 1..=PAGE_RECORDS_MAX)
                .unwrap_or(PAGE_RECORDS),
            oap_attributes: table
                .choice("oap_attributes", &Attributes::ALL.map(|(_, name)| name))
                .and_then(Attributes::by_name)
                .unwrap_or_default(),
            friends: friends(table),
            branding: branding(&table.table("branding")),
            syndication: syndication(&table.table("syndication")),
        }
    }
}

fn name(table: &Table<'_>, key: &str) -> Option<String> {
    let text = table.string(key)?;
    if text.trim().is_empty() || NAME_BYTES_MAX < text.len() || text.contains(char::is_control) {
        let expected = format!("1 to {NAME_BYTES_MAX} bytes without control characters");
        table.mistake(key, format!("{key:?} is {text:?}"), expected);
    }
    Some(text)
}

fn emails(table: &Table<'_>) -> Vec<String> {
    let all: Vec<String> = table.string("admin_email").into_iter().collect();
    for email in all.iter().filter(|it| !is_email(it)) {
        let message = format!("{email:?} is refused by validators of repositories");
        let expected = "an address such as \"library@example.org\", of two letters or more before \
                        the @ and a domain name after it";
        table.mistake("admin_email", message, expected);
    }
    all
}

/// Returns whether validators of OAI-PMH repositories accept the e-mail address.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let fits = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&it);
    let is_label = |it: &str| {
        !it.is_empty()
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
            && !it.starts_with('-')
            && !it.ends_with('-')
    };
    let tld = domain.rsplit('.').next().unwrap_or_default();
    2 <= local.len()
        && local.bytes().all(fits)
        && domain.contains('.')
        && domain.split('.').all(is_label)
        && 2 <= tld.len()
        && tld.bytes().all(|it| it.is_ascii_alphabetic())
}

fn identifier(table: &Table<'_>) -> Option<RepositoryId> {
    let text = table.string("repository_identifier")?;
    let read = RepositoryId::parse(&text);
    if read.is_none() {
        let message = format!("\"repository_identifier\" is {text:?}");
        let expected = "a domain name such as \"archive.example.org\"; not an IP address, and not \
                        localhost";
        table.mistake("repository_identifier", message, expected);
    }
    read
}

fn friends(table: &Table<'_>) -> Vec<String> {
    let all = table.strings("friends");
    for (i, text) in all.iter().enumerate() {
        let is_web = is_web(text);
        if !is_web || LISTED_MAX <= i {
            let message = format!("{text:?} is not a base URL, or is one too many");
            let expected = format!("at most {LISTED_MAX} http:// or https:// URLs");
            table.mistake_in("friends", i, message, expected);
        }
    }
    all
}

fn is_web(text: &str) -> bool {
    let plain = !text.contains(|it: char| it.is_whitespace() || it.is_control());
    plain && Url::parse(text).is_ok_and(|it| matches!(it.scheme(), "http" | "https"))
}

fn branding(table: &Table<'_>) -> Option<Branding> {
    let url = |key: &str| {
        let text = table.string(key)?;
        if !is_web(&text) {
            let message = format!("{key:?} is {text:?}");
            table.mistake(key, message, "an http:// or https:// URL");
        }
        Some(text)
    };
    let (icon, link, title) = (url("icon"), url("link"), name(table, "title"));
    if !table.is_present() {
        return None;
    }
    table.require("icon", "\"https://library.example/icon.png\"");
    Some(Branding { icon: icon?, link, title })
}

fn syndication(table: &Table<'_>) -> Option<Syndication> {
    const PERIODS: [&str; 5] = ["hourly", "daily", "weekly", "monthly", "yearly"];
    let period = table.choice("period", &PERIODS).map(str::to_owned);
    let frequency = table.integer("frequency", 1..=u64::from(u32::MAX)).map(|it| it.to_string());
    let base = table.string("base");
    if let Some(text) = &base
        && oai::Datestamp::lenient(text).is_none()
    {
        let message = format!("\"base\" is {text:?}");
        table.mistake("base", message, "a time such as \"2026-01-31T12:00:00Z\"");
    }
    table.is_present().then_some(Syndication { period, frequency, base })
}

/// Returns a schedule with one update in each `interval`; `None` if neither an hour, a day nor a
/// week is a whole number of intervals.
pub fn schedule(interval: Duration) -> Option<Syndication> {
    const PERIODS: [(&str, u64); 3] =
        [("hourly", 3_600), ("daily", 86_400), ("weekly", 7 * 86_400)];
    let secs = interval.as_secs();
    let fits = |(_, period): &&(&str, u64)| {
        secs != 0 && interval.subsec_nanos() == 0 && secs <= *period && period % secs == 0
    };
    let (name, period) = PERIODS.iter().find(fits)?;
    Some(Syndication {
        period: Some((*name).to_owned()),
        frequency: Some((period / secs).to_string()),
        base: None,
    })
}

/// The facts about a daemon that its repository needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Daemon {
    /// Its name.
    pub name: String,
    /// Its id: 16 hex digits.
    pub id: String,
    /// The daemon's public URL, if the settings give one; ends in a slash.
    pub base_url: Option<Url>,
    /// Its update schedule, if the times are fixed.
    pub syndication: Option<Syndication>,
}

/// Returns the default repository part of identifiers; `None` if the daemon's id is invalid.
pub(super) fn default_id(daemon: &Daemon) -> Option<RepositoryId> {
    let host = || RepositoryId::parse(daemon.base_url.as_ref()?.host_str()?);
    host().or_else(|| RepositoryId::parse(&format!("harvest-{}.invalid", daemon.id)))
}

/// Returns the facts of the repository `id` for a request to `base_url`.
pub(super) fn facts(
    settings: &Settings,
    daemon: &Daemon,
    id: RepositoryId,
    base_url: String,
) -> Facts {
    let mut admin_emails = settings.admin_emails.clone();
    if admin_emails.is_empty() {
        admin_emails.push(format!("webmaster@{id}"));
    }
    let format = |it: Dissemination| Format {
        prefix: it.prefix().to_owned(),
        schema: it.schema(&base_url),
        namespace: it.namespace().to_owned(),
    };
    let syndication = settings.syndication.as_ref().or(daemon.syndication.as_ref());
    let descriptions: Vec<Xml> = [
        description::friends(&settings.friends),
        settings.branding.as_ref().map(Branding::to_xml),
        syndication.map(|it| {
            let namespace = oai::syndication::NAMESPACE;
            description::with_schema(&it.to_xml(), namespace, &base_url, "syndication.xsd")
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    let formats = Dissemination::ALL.map(format).to_vec();
    Facts {
        name: settings.repository_name.clone().unwrap_or_else(|| daemon.name.clone()),
        id,
        base_url,
        admin_emails,
        formats,
        descriptions,
        page_records: settings.page_records,
    }
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    fn read(text: &str) -> Result<Settings, Vec<String>> {
        let text = format!("[oai]\n{text}");
        let document = Document::parse(&text).unwrap();
        let settings = Settings::read(&document.root().table("oai"));
        let shown = |it: Vec<settings::Mistake>| it.iter().map(ToString::to_string).collect();
        document.finish().map(|()| settings).map_err(shown)
    }

    #[track_caller]
    fn refused(text: &str, part: &str) {
        let mistakes = read(text).unwrap_err();
        assert!(mistakes.len() == 1 && mistakes[0].contains(part), "{mistakes:?}");
    }

    #[test]
    fn everything_has_a_default_and_a_name() {
        assert_eq!(read(""), Ok(Settings::default()));
        let read = read(
            "enabled = false\nrepository_name = 'N'\nadmin_email = 'it@example.org'\n\
             repository_identifier = 'A.example.org'\npage_records = 100\n\
             oap_attributes = 'always'\nfriends = ['http://b/oai']\n[oai.branding]\n\
             icon = 'http://a/i.png'\ntitle = 'T'\n[oai.syndication]\nperiod = 'daily'\n\
             frequency = 2\nbase = '2026-01-31T12:00+00:00'\n",
        );
        let expected = Settings {
            enabled: false,
            repository_name: Some("N".to_owned()),
            admin_emails: vec!["it@example.org".to_owned()],
            repository_identifier: RepositoryId::parse("a.example.org"),
            page_records: 100,
            oap_attributes: Attributes::Always,
            friends: vec!["http://b/oai".to_owned()],
            branding: Some(Branding {
                icon: "http://a/i.png".to_owned(),
                link: None,
                title: Some("T".to_owned()),
            }),
            syndication: Some(Syndication {
                period: Some("daily".to_owned()),
                frequency: Some("2".to_owned()),
                base: Some("2026-01-31T12:00+00:00".to_owned()),
            }),
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn values_that_validators_refuse_are_mistakes() {
        for email in ["a@x.org", "admin@localhost", "admin", "a b@x.org", "ab@x.1", "ab@-x.org"] {
            refused(&format!("admin_email = '{email}'"), "an address such as");
        }
        for id in ["localhost", "127.0.0.1", "1.org", "a b.org"] {
            refused(&format!("repository_identifier = '{id}'"), "a domain name such as");
        }
        refused("page_records = 0", "from 1 to 10000");
        refused("oap_attributes = 'on'", "\"on_request\"");
        refused("friends = ['ftp://x/']", "not a base URL");
        refused("branding = { title = 'x' }", "\"icon\" is missing");
        refused("branding = { icon = 'x' }", "http:// or https:// URL");
        refused("syndication = { period = 'often' }", "\"hourly\"");
        refused("syndication = { base = 'noon' }", "a time such as");
        refused("emails = []", "unknown key");
    }

    #[test]
    fn an_interval_that_divides_a_period_is_a_schedule() {
        let check = |secs: u64, expected: Option<(&str, &str)>| {
            let found = schedule(Duration::from_secs(secs));
            let found = found.map(|it| (it.period.unwrap(), it.frequency.unwrap()));
            let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
            assert_eq!(found, expected, "{secs}");
        };
        check(60, Some(("hourly", "60")));
        check(3_600, Some(("hourly", "1")));
        check(7_200, Some(("daily", "12")));
        check(2 * 86_400, None);
        check(7 * 86_400, Some(("weekly", "1")));
        check(11, None);
        check(0, None);
    }

    #[test]
    fn a_repository_without_settings_has_valid_defaults() {
        let daemon = |base_url: Option<&str>| Daemon {
            name: "D".to_owned(),
            id: "0123456789abcdef".to_owned(),
            base_url: base_url.map(|it| Url::parse(it).unwrap()),
            syndication: None,
        };
        for (base_url, id) in [
            (None, "harvest-0123456789abcdef.invalid"),
            (Some("http://127.0.0.1:8500/"), "harvest-0123456789abcdef.invalid"),
            (Some("https://Library.example/harvest/"), "library.example"),
        ] {
            let daemon = daemon(base_url);
            let made = default_id(&daemon).unwrap();
            let facts = facts(&Settings::default(), &daemon, made, "u".to_owned());
            assert_eq!(facts.id.name(), id);
            assert_eq!(facts.admin_emails, [format!("webmaster@{id}")]);
            assert!(is_email(&facts.admin_emails[0]));
            assert_eq!(facts.name, "D");
        }
    }
}
