//! Records of servers: what a registry says of a daemon, as SOIF.
//!
//! A record is made of the daemon's own signed description, and is an object of that daemon: its gatherer is the daemon
//! itself, and its version the number of the description. So all registries that hear of a daemon have the same object,
//! the newest of them wins, and what one withdraws is withdrawn everywhere.
//!
//! Source: TR §3 (mandatory and recommended attributes of system components); the names of the original's attributes.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use collection::{Epoch, GATHERER_ID, ORIGIN_VERSION, Oid, Version};
use daemon::describe::{Description, Facts};
use serde::{Deserialize, Serialize};
use soif::Record;
use soif::digest::Md5;
use url::Url;

/// Maximum number of lines of a list: object types, languages, what is gathered.
const LINES_MAX: usize = 200;
/// Longest text, in characters.
const CHARS_MAX: usize = 500;

/// The attributes that change from hour to hour, and alone are no news.
const VOLATILE: [&str; 8] = [
    ORIGIN_VERSION,
    "Update-Time",
    "Last-Modification-Time",
    "Objects",
    "Object-Types",
    "Object-Languages",
    "Freshness",
    "Load",
];

/// The attributes that a record of a server has to have, and those that it should have.
pub const MANDATORY: [&str; 6] =
    ["Type", "Title", "Host", "Port", "Software-Version", "Update-Time"];
/// See [`MANDATORY`].
pub const RECOMMENDED: [&str; 5] =
    ["Administrator", "Location", "Object-Types", "Refresh-Rate", "Time-to-Live"];

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    /// It summarizes data.
    Gatherer,
    /// It collects and answers.
    Broker,
    /// It carries objects.
    Cache,
    /// It copies trees and collections.
    Replicator,
    /// It lists servers: a broker of them.
    Registry,
}

impl ServerKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Gatherer, Self::Broker, Self::Cache, Self::Replicator, Self::Registry];

    /// Returns its name in descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gatherer => "gatherer",
            Self::Broker => "broker",
            Self::Cache => "cache",
            Self::Replicator => "replicator",
            Self::Registry => "registry",
        }
    }

    /// Returns the kind of this name; `None`: there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the value of `Type`, by which searches find it.
    pub const fn r#type(self) -> &'static str {
        match self {
            Self::Gatherer => "Gatherer",
            Self::Broker => "Broker",
            Self::Cache => "Cache",
            Self::Replicator => "Replicator",
            Self::Registry => "Registry",
        }
    }

    /// Returns the template of its record. To the original a registry is a broker.
    const fn template(self) -> &'static str {
        match self {
            Self::Gatherer => "GATHERER",
            Self::Broker | Self::Registry => "BROKER",
            Self::Cache => "CACHE",
            Self::Replicator => "REPLICATOR",
        }
    }
}

/// A server, as its record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: ServerKind,
    /// Its name for people.
    pub name: String,
    /// Its address.
    pub url: Url,
    /// Number of its objects.
    pub objects: u64,
    /// Of a gatherer: the URLs that its objects begin with, and its repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gathers: Vec<String>,
    /// The time of the description, in Unix seconds.
    pub updated: u64,
}

/// Returns the version of a description, as that of an object.
pub fn version(sequence: u64) -> Version {
    Version { epoch: Epoch(1), serial: sequence }
}

/// Returns the object of a server with this id at this address.
pub fn oid(id: &str, url: &Url) -> Oid {
    Oid::new(id, url.as_str())
}

/// Returns the record of a described server at its address. `every_secs` is the time between its announcements, and
/// `ttl_secs` how long it stays listed without them.
pub fn record(
    description: &Description,
    (kind, url): (ServerKind, &Url),
    (every_secs, ttl_secs): (u64, u64),
) -> Record {
    let Facts { name, administrator, location, gathers, objects, types, languages, .. } =
        &description.facts;
    let mut record = Record::new(kind.template(), url.as_str());
    let mut push = |name: &str, value: String| {
        if !value.is_empty() {
            record.push(name, value);
        }
    };
    let name = line(name);
    let name = if name.is_empty() { url.host_str().unwrap_or_default().to_owned() } else { name };
    push(GATHERER_ID, description.id.clone());
    push(ORIGIN_VERSION, version(description.sequence).to_string());
    push("Type", kind.r#type().to_owned());
    push("Title", name.clone());
    push("Gatherer-Name", name);
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    push("Host", host.to_owned());
    push("Port", port.to_string());
    if kind == ServerKind::Gatherer {
        push("Gatherer-Host", host.to_owned());
        push("Gatherer-Port", port.to_string());
        push("Gatherer-Version", line(&description.software));
    }
    push("Administrator", line(administrator.as_deref().unwrap_or_default()));
    push("Location", line(location.as_deref().unwrap_or_default()));
    push("Software-Version", line(&format!("Harvest {}", description.software)));
    push("Key", description.key.clone());
    push("Gathers", lines(gathers.iter().map(String::as_str)));
    push("Objects", objects.to_string());
    push("Object-Types", most(types));
    push("Object-Languages", most(languages));
    let rounded = |it: Option<f64>| {
        it.filter(|it| it.is_finite()).map(|it| format!("{it:.2}")).unwrap_or_default()
    };
    push("Freshness", rounded(description.facts.freshness));
    push("Load", rounded(description.load));
    let seconds = (description.time_ms / 1_000).to_string();
    push("Update-Time", seconds.clone());
    push("Last-Modification-Time", seconds);
    push("Refresh-Rate", every_secs.to_string());
    push("Time-to-Live", ttl_secs.to_string());
    record
}

/// Reads the record of a server; `None`: it is of something else.
pub fn server(record: &Record) -> Option<Server> {
    let text = |name| record.text(name).unwrap_or_default().into_owned();
    let r#type = text("Type");
    let kind = ServerKind::ALL.into_iter().find(|it| it.r#type() == r#type)?;
    if record.template != kind.template() {
        return None;
    }
    let url = Url::parse(&record.url).ok().filter(|it| matches!(it.scheme(), "http" | "https"))?;
    Some(Server {
        id: text(GATHERER_ID),
        kind,
        name: text("Title"),
        url,
        objects: record.number("Objects").unwrap_or_default(),
        gathers: text("Gathers").lines().map(str::to_owned).collect(),
        updated: record.number("Update-Time").unwrap_or_default(),
    })
}

/// Returns whether whoever gathers what begins with `gathers` has all of a site.
pub fn covers(gathers: &str, site: &Url) -> bool {
    let Ok(gathers) = Url::parse(gathers) else { return false };
    let scheme =
        |it: &Url| if it.scheme() == "https" { "http".to_owned() } else { it.scheme().to_owned() };
    let is_web = scheme(site) == "http";
    let port = |it: &Url| if is_web { it.port() } else { it.port_or_known_default() };
    let folder = gathers.path().rsplit_once('/').map_or("/", |it| it.0);
    scheme(&gathers) == scheme(site)
        && gathers.host_str() == site.host_str()
        && port(&gathers) == port(site)
        && site.path().strip_prefix(folder).is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

/// Returns the digest of what in a record lasts: of all but figures that change from hour to hour.
pub fn lasting(record: &Record) -> Md5 {
    let mut lasting = Record::new(&*record.template, &*record.url);
    for it in record.attributes().iter().filter(|it| !VOLATILE.contains(&&*it.name)) {
        lasting.push(&*it.name, &*it.value);
    }
    let mut bytes = Vec::new();
    soif::write_record(&mut bytes, &lasting);
    Md5::of(&bytes)
}

/// Returns the names of the attributes that a record of a server lacks, of those that it has to have and of those that it
/// should have; `None`: it is of something else.
pub fn lacking(record: &Record) -> Option<[Vec<&'static str>; 2]> {
    let is_server = ServerKind::ALL.iter().any(|it| it.template() == record.template);
    let lacks = |names: &[&'static str]| {
        names.iter().copied().filter(|it| record.get(it).is_none()).collect()
    };
    is_server.then(|| [lacks(&MANDATORY), lacks(&RECOMMENDED)])
}

/// Returns a foreign text in one line.
fn line(text: &str) -> String {
    let text: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    text.trim().chars().take(CHARS_MAX).collect()
}

fn lines<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = all.map(line).filter(|it| !it.is_empty()).take(LINES_MAX).collect();
    all.join("\n")
}

/// Returns the names with the highest counts, the highest first.
fn most(counts: &BTreeMap<String, u64>) -> String {
    let mut all: Vec<(&String, &u64)> = counts.iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    lines(all.into_iter().map(|(name, _)| &**name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> Description {
        let facts = Facts {
            name: "Docs\n<b>".to_owned(),
            administrator: Some("mailto:a@example.org".to_owned()),
            gathers: vec!["https://example.org/".to_owned(), String::new()],
            objects: 12,
            types: BTreeMap::from([("HTML".to_owned(), 9), ("PDF".to_owned(), 3)]),
            freshness: Some(f64::NAN),
            ..Facts::default()
        };
        Description {
            id: "00000000000000aa".to_owned(),
            kind: "broker".to_owned(),
            software: "0.1.0".to_owned(),
            facts,
            load: Some(0.123_4),
            time_ms: 1_700_000_000_123,
            sequence: 7,
            ..Description::default()
        }
    }

    #[test]
    fn a_record_says_what_a_description_says() {
        let url = Url::parse("http://h:8501/").unwrap();
        for kind in ServerKind::ALL {
            assert_eq!(ServerKind::by_name(kind.name()), Some(kind));
            let made = record(&description(), (kind, &url), (300, 604_800));
            let read = server(&made).unwrap();
            assert_eq!((&*read.id, read.kind, &*read.name), ("00000000000000aa", kind, "Docs <b>"));
            assert_eq!((&read.url, read.objects, read.updated), (&url, 12, 1_700_000_000));
            assert_eq!(read.gathers, ["https://example.org/"]);
            assert_eq!(made.text("Object-Types").unwrap(), "HTML\nPDF");
            assert_eq!(made.text("Load").unwrap(), "0.12");
            assert_eq!(made.get("Freshness"), None);
            assert_eq!(Oid::of(&made), Some(oid("00000000000000aa", &url)));
            assert_eq!(lacking(&made).unwrap(), [vec![], vec!["Location"]]);
        }
        assert!(server(&Record::new("FILE", "http://h/")).is_none());
        assert!(lacking(&Record::new("FILE", "http://h/")).is_none());
    }

    #[test]
    fn a_site_is_covered_by_what_is_around_it() {
        for (gathers, site, expected) in [
            ("https://a.org/", "https://a.org/", true),
            ("https://a.org/", "http://a.org/docs/x.html", true),
            ("https://a.org/docs/", "https://a.org/docs/", true),
            ("https://a.org/docs/", "https://a.org/", false),
            ("https://a.org/doc/", "https://a.org/docs/", false),
            ("https://a.org:8443/", "https://a.org/", false),
            ("https://b.org/", "https://a.org/", false),
            ("ftp://a.org/", "ftp://a.org:21/pub/", true),
            ("ftp://a.org/", "https://a.org/", false),
            ("no address", "https://a.org/", false),
        ] {
            assert_eq!(covers(gathers, &Url::parse(site).unwrap()), expected, "{gathers} {site}");
        }
    }

    #[test]
    fn figures_are_no_news() {
        let url = Url::parse("http://h:8501/").unwrap();
        let make =
            |description: &Description| record(description, (ServerKind::Broker, &url), (1, 2));
        let old = make(&description());
        let mut later = description();
        (later.sequence, later.time_ms, later.facts.objects, later.load) = (8, 1, 99, None);
        assert_eq!(lasting(&old), lasting(&make(&later)));
        later.facts.location = Some("Boulder".to_owned());
        assert_ne!(lasting(&old), lasting(&make(&later)));
    }
}
