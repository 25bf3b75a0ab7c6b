//! Topics: the URLs that a hub serves, and the links of a page to its own topic.
//!
//! A daemon's own topics are its feed and its ListRecords, at its public address (`base_url`), or
//! else at the requested host. Foreign topics are served if their URL begins with one of the
//! publishers in the settings.
//!
//! Sans-I/O.

use url::{Url, form_urlencoded};

use super::link;
use super::settings::{HubChoice, Settings};

/// A daemon's own topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTopic {
    /// `/feed`.
    Feed,
    /// `/oai` with ListRecords.
    Records,
}

/// A topic, classified by its publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The daemon itself.
    Own(OwnTopic),
    /// A publisher in the settings.
    Others,
}

/// The topics that a hub serves.
#[derive(Clone, Debug)]
pub struct Topics {
    base_url: Option<Url>,
    settings: Settings,
}

impl Topics {
    /// Returns the topics of a daemon; `base_url` is its public address.
    pub fn new(base_url: Option<Url>, settings: Settings) -> Self {
        Self { base_url, settings }
    }

    /// Returns the kind of `topic`; `None` if it is not served. `host` is the requested host.
    /// `None`, as after a restart, accepts every host.
    pub fn find(&self, topic: &str, host: Option<&str>) -> Option<Topic> {
        let url = Url::parse(topic).ok()?;
        if self.settings.hub == HubChoice::Own
            && let Some(served) = self.own(&url, host)
        {
            return Some(Topic::Own(served));
        }
        let is_below = |prefix: &Url| url.as_str().starts_with(prefix.as_str());
        self.settings.publishers.iter().any(is_below).then_some(Topic::Others)
    }

    fn own(&self, url: &Url, host: Option<&str>) -> Option<OwnTopic> {
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
            None if path == "feed" => Some(OwnTopic::Feed),
            Some(("oai", query)) => is_list_records(query).then_some(OwnTopic::Records),
            _ => None,
        }
    }

    /// Returns the `Link` header of a page; `None` without a hub. `query` is that of the request,
    /// and selects a list of records. The page is `depth` folders below the daemon's root.
    pub fn link(&self, served: OwnTopic, query: &str, depth: usize) -> Option<String> {
        let up = "../".repeat(depth);
        let address = |path: &str| match &self.base_url {
            Some(base_url) => base_url.join(path).map_or_else(|_| path.to_owned(), String::from),
            None => format!("{up}{path}"),
        };
        let hub = match &self.settings.hub {
            HubChoice::Nobody => return None,
            HubChoice::Own => address("hub"),
            HubChoice::Other(hub) => hub.to_string(),
        };
        let topic = match served {
            OwnTopic::Feed => address("feed"),
            OwnTopic::Records => address(&records(query)),
        };
        Some(link::header_value(&hub, &topic))
    }

    /// Returns the own topics to announce to another hub; none without a public address.
    pub fn published(&self) -> Vec<String> {
        let Some(base_url) = &self.base_url else { return Vec::new() };
        let paths = ["feed".to_owned(), records("")];
        paths.iter().filter_map(|it| Some(base_url.join(it).ok()?.to_string())).collect()
    }
}

/// Returns the relative URL of the list of records to which the request `query` belongs.
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
        let settings = Settings { hub: HubChoice::Own, publishers, ..Settings::default() };
        Topics::new(base_url, settings)
    }

    const FEED: Option<Topic> = Some(Topic::Own(OwnTopic::Feed));
    const RECORDS: Option<Topic> = Some(Topic::Own(OwnTopic::Records));

    #[test]
    fn own_topics_are_recognized_by_the_public_address() {
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
    fn without_a_public_address_the_requested_host_counts() {
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
    fn without_a_hub_own_topics_are_not_served() {
        let settings =
            Settings { publishers: topics(None).settings.publishers, ..Default::default() };
        let topics = Topics::new(None, settings);
        assert_eq!(topics.find("http://h/feed", Some("h")), None);
        assert_eq!(topics.find("http://other:8500/feed", Some("h")), Some(Topic::Others));
        assert_eq!(topics.link(OwnTopic::Feed, "", 0), None);
    }

    #[test]
    fn the_links_of_a_page_lead_to_a_served_topic() {
        for (base_url, page, depth) in [
            (Some("https://h/a/"), "http://inside:1/feed?since=1", 0),
            (None, "http://h:8500/feed?since=1", 0),
            (None, "http://h:8500/snapshot/x", 1),
            (None, "http://h:8500/oai?verb=Identify", 0),
        ] {
            let topics = topics(base_url);
            let page = Url::parse(page).unwrap();
            for (served, query, expected) in [
                (OwnTopic::Feed, "", "feed"),
                (OwnTopic::Records, "", "oai?verb=ListRecords&metadataPrefix=oai_dc"),
                (
                    OwnTopic::Records,
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
    fn another_hub_is_named_in_the_links() {
        let hub = Url::parse("http://hub/").unwrap();
        let settings = Settings { hub: HubChoice::Other(hub), ..Settings::default() };
        let topics = Topics::new(Url::parse("http://h/").ok(), settings);
        let line = topics.link(OwnTopic::Feed, "", 0).unwrap();
        assert_eq!(line, "<http://hub/>; rel=\"hub\", <http://h/feed>; rel=\"self\"");
        assert_eq!(topics.find("http://h/feed", Some("h")), None, "that is for the other");
        let records = "http://h/oai?verb=ListRecords&metadataPrefix=oai_dc";
        assert_eq!(topics.published(), ["http://h/feed", records]);
    }
}
