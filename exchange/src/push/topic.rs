//! Topics: which URLs a hub tells of, and what a page says of its own.
//!
//! A daemon's own topics are its feed and its ListRecords, under the name that its settings give it
//! (`base_url`), or else under the one by which it is asked. Of others' topics it tells if they lie below
//! one of its publishers.
//!
//! Sans-I/O.

use url::{Url, form_urlencoded};

use super::link;
use super::settings::{Settings, Teller};

/// What a daemon serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// `/feed`.
    Feed,
    /// `/oai` with ListRecords.
    Records,
}

/// A topic, by who publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The daemon itself.
    Own(Served),
    /// One of the publishers.
    Others,
}

/// Which URLs a hub tells of.
#[derive(Clone, Debug)]
pub struct Topics {
    base_url: Option<Url>,
    settings: Settings,
}

impl Topics {
    /// Those of a daemon that others reach at `base_url`.
    pub fn new(base_url: Option<Url>, settings: Settings) -> Self {
        Self { base_url, settings }
    }

    /// What `topic` is, if it is told of. `host`: the name that the daemon is asked by; where that is not
    /// known, as after a restart, any will do.
    pub fn find(&self, topic: &str, host: Option<&str>) -> Option<Topic> {
        let url = Url::parse(topic).ok()?;
        if self.settings.teller == Teller::Own
            && let Some(served) = self.own(&url, host)
        {
            return Some(Topic::Own(served));
        }
        let is_below = |prefix: &Url| url.as_str().starts_with(prefix.as_str());
        self.settings.publishers.iter().any(is_below).then_some(Topic::Others)
    }

    fn own(&self, url: &Url, host: Option<&str>) -> Option<Served> {
        let base = match &self.base_url {
            Some(base_url) => base_url.clone(),
            None => {
                let mut base = url.clone();
                base.set_path("/");
                base.set_query(None);
                let asked = host.and_then(|it| Url::parse(&format!("http://{it}/")).ok());
                let differs = asked
                    .is_some_and(|it| (it.host_str(), it.port()) != (base.host_str(), base.port()));
                if differs {
                    return None;
                }
                base
            }
        };
        let path = url.as_str().strip_prefix(base.as_str())?;
        match path.split_once('?') {
            None if path == "feed" => Some(Served::Feed),
            Some(("oai", query)) => is_list_records(query).then_some(Served::Records),
            _ => None,
        }
    }

    /// What the `Link` header of a page says; `None` where nobody tells of it. `query`: that of the request,
    /// which says what a list of records is of. A feed's page is at `depth` folders below the daemon's root.
    pub fn link(&self, served: Served, query: &str, depth: usize) -> Option<String> {
        let up = "../".repeat(depth);
        let place = |path: &str| match &self.base_url {
            Some(base_url) => base_url.join(path).map_or_else(|_| path.to_owned(), String::from),
            None => format!("{up}{path}"),
        };
        let hub = match &self.settings.teller {
            Teller::Nobody => return None,
            Teller::Own => place("hub"),
            Teller::Other(hub) => hub.to_string(),
        };
        let topic = match served {
            Served::Feed => place("feed"),
            Served::Records => place(&records(query)),
        };
        Some(link::written(&hub, &topic))
    }

    /// The daemon's own topics under the name that its settings give it: what it tells another hub of.
    pub fn published(&self) -> Vec<String> {
        let Some(base_url) = &self.base_url else { return Vec::new() };
        let paths = ["feed".to_owned(), records("")];
        paths.iter().filter_map(|it| Some(base_url.join(it).ok()?.to_string())).collect()
    }
}

/// The list of records that a request is a part of, from its beginning.
fn records(query: &str) -> String {
    let value = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(it, _)| it == name).map(|(_, value)| value.into_owned())
    };
    let mut list = form_urlencoded::Serializer::new("oai?verb=ListRecords".to_owned());
    let prefix = value("metadataPrefix").unwrap_or_else(|| "oai_dc".to_owned());
    list.append_pair("metadataPrefix", &prefix);
    if let Some(set) = value("set") {
        list.append_pair("set", &set);
    }
    list.finish()
}

fn is_list_records(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| name == "verb" && value == "ListRecords")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(base_url: Option<&str>) -> Topics {
        let base_url = base_url.map(|it| Url::parse(it).unwrap());
        let publishers = vec![Url::parse("http://other:8500/").unwrap()];
        let settings = Settings { teller: Teller::Own, publishers, ..Settings::default() };
        Topics::new(base_url, settings)
    }

    const FEED: Option<Topic> = Some(Topic::Own(Served::Feed));
    const RECORDS: Option<Topic> = Some(Topic::Own(Served::Records));

    #[test]
    fn a_daemon_knows_its_own_by_its_name() {
        let named = topics(Some("https://h/a/"));
        for (topic, expected) in [
            ("https://h/a/feed", FEED),
            ("https://h/a/oai?verb=ListRecords&metadataPrefix=soif", RECORDS),
            ("https://h/a/oai?verb=Identify", None),
            ("https://h/a/feed?since=1", None),
            ("https://h/feed", None),
            ("http://h/a/feed", None),
            ("http://other:8500/feed", Some(Topic::Others)),
            ("http://other:8500/x?y=z", Some(Topic::Others)),
            ("http://other:85/feed", None),
            ("feed", None),
        ] {
            assert_eq!(named.find(topic, Some("x")), expected, "{topic}");
        }
    }

    #[test]
    fn without_a_name_it_is_the_one_it_is_asked_by() {
        let nameless = topics(None);
        for (topic, host, expected) in [
            ("http://h:8500/feed", Some("h:8500"), FEED),
            ("http://h/feed", Some("h:80"), FEED),
            ("http://h:8500/feed", None, FEED),
            ("http://h:8500/oai?verb=ListRecords", Some("h:8500"), RECORDS),
            ("http://h:8500/feed", Some("h"), None),
            ("http://x:8500/feed", Some("h:8500"), None),
            ("http://h:8500/a/feed", Some("h:8500"), None),
        ] {
            assert_eq!(nameless.find(topic, host), expected, "{topic} by {host:?}");
        }
    }

    #[test]
    fn who_has_no_hub_tells_of_nothing_of_its_own() {
        let settings =
            Settings { publishers: topics(None).settings.publishers, ..Default::default() };
        let topics = Topics::new(None, settings);
        assert_eq!(topics.find("http://h/feed", Some("h")), None);
        assert_eq!(topics.find("http://other:8500/feed", Some("h")), Some(Topic::Others));
        assert_eq!(topics.link(Served::Feed, "", 0), None);
    }

    #[test]
    fn what_a_page_says_leads_to_what_the_hub_knows() {
        for (base_url, page, depth) in [
            (Some("https://h/a/"), "http://inside:1/feed?since=1", 0),
            (None, "http://h:8500/feed?since=1", 0),
            (None, "http://h:8500/snapshot/x", 1),
            (None, "http://h:8500/oai?verb=Identify", 0),
        ] {
            let topics = topics(base_url);
            let page = Url::parse(page).unwrap();
            for (served, query, expected) in [
                (Served::Feed, "", "feed"),
                (Served::Records, "", "oai?verb=ListRecords&metadataPrefix=oai_dc"),
                (
                    Served::Records,
                    "verb=ListRecords&set=a%3Ab&metadataPrefix=soif&from=2026-01-01",
                    "oai?verb=ListRecords&metadataPrefix=soif&set=a%3Ab",
                ),
            ] {
                let line = topics.link(served, query, depth).unwrap();
                let found = link::read([line.as_str()], &page);
                let topic = found.topic.unwrap().to_string();
                let root = base_url.unwrap_or("http://h:8500/");
                assert_eq!(topic, format!("{root}{expected}"), "{page}");
                assert_eq!(found.hub.unwrap().as_str(), format!("{root}hub"), "{page}");
                assert_eq!(topics.find(&topic, Some("h:8500")), Some(Topic::Own(served)));
            }
        }
    }

    #[test]
    fn another_hub_is_named_and_told() {
        let hub = Url::parse("http://hub/").unwrap();
        let settings = Settings { teller: Teller::Other(hub), ..Settings::default() };
        let topics = Topics::new(Url::parse("http://h/").ok(), settings);
        let line = topics.link(Served::Feed, "", 0).unwrap();
        assert_eq!(line, "<http://hub/>; rel=\"hub\", <http://h/feed>; rel=\"self\"");
        assert_eq!(topics.find("http://h/feed", Some("h")), None, "that is for the other");
        let records = "http://h/oai?verb=ListRecords&metadataPrefix=oai_dc";
        assert_eq!(topics.published(), ["http://h/feed", records]);
    }
}
