//! The settings `[push]` of a daemon.
//!
//! ```toml
//! base_url = "https://library.example/harvest/"
//!
//! [push]
//! hub = "self"                              # or the URL of another hub, which gets the changes
//! # publishers = ["http://host:8500/"]      this hub also serves topics below these URLs
//! # token = "a word"                        shown by publishers here, and by us to another hub
//! # allow_private = false                   whether callbacks may be in private networks
//! # subscriptions_max = 1000
//! ```
//!
//! Sans-I/O.

use settings::Table;
use url::Url;

use super::hub::Limits;
use super::signature::{SECRET_BYTES_MAX, Secret};
use crate::source::without_user;

/// Maximum number of prefixes of foreign topics.
const PUBLISHERS_MAX: usize = 1_000;

/// The setting of the public address, as messages show it.
const BASE_URL: &str = "base_url = \"http://host:port/\" above [push]";

/// Maximum value of the setting `subscriptions_max`.
const SUBSCRIPTIONS_MAX: u64 = 10_000;

/// The hub for a daemon's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HubChoice {
    /// No hub.
    #[default]
    Nobody,
    /// The daemon's own hub.
    Own,
    /// Another hub, which gets the changes.
    Other(Url),
}

/// Settings of push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The hub for the daemon's changes.
    pub hub: HubChoice,
    /// URL prefixes of foreign topics that the daemon's hub serves.
    pub publishers: Vec<Url>,
    /// The token that publishers show to the hub, and the daemon to the other hub.
    pub token: Option<Secret>,
    /// Whether callbacks, and the other hub, may be in private networks or on this machine.
    pub allow_private: bool,
    /// Limits of the daemon's hub.
    pub limits: Limits,
}

impl Settings {
    /// Reads `[push]`; `base_url` is the daemon's public address.
    pub fn read(table: &Table<'_>, base_url: Option<&Url>) -> Self {
        let mut settings =
            Self { allow_private: table.boolean("allow_private", false), ..Self::default() };
        let is_own = table.string("hub").as_deref() == Some("self");
        settings.hub = match is_own {
            true => HubChoice::Own,
            false => table.url("hub").map_or(HubChoice::Nobody, HubChoice::Other),
        };
        if let (HubChoice::Other(hub), None) = (&settings.hub, base_url) {
            let hub = without_user(hub);
            let message = format!("the hub {hub} needs the public address of this daemon");
            table.mistake("hub", message, BASE_URL);
        }
        if table.has("publishers") && base_url.is_none() {
            let message = "a hub with publishers needs a public address";
            table.mistake("publishers", message, BASE_URL);
        }
        if let Some(text) = table.string("token") {
            let is_word = text.bytes().all(|it| it.is_ascii_graphic());
            settings.token = Secret::new(text).filter(|_| is_word);
            if settings.token.is_none() {
                let expected =
                    format!("1 to {SECRET_BYTES_MAX} characters, visible ASCII without spaces");
                table.mistake("token", "the token is not one word", expected);
            }
        }
        for (n, text) in table.strings("publishers").iter().enumerate() {
            match Url::parse(text).ok().filter(|it| matches!(it.scheme(), "http" | "https")) {
                Some(url) if n < PUBLISHERS_MAX => settings.publishers.push(url),
                Some(_) => {
                    let message = format!("more than {PUBLISHERS_MAX} publishers");
                    table.mistake_in("publishers", n, message, "a prefix that several share");
                    break;
                }
                None => table.mistake_in(
                    "publishers",
                    n,
                    format!("{text:?} is not the URL of a web server"),
                    "the URL that a publisher's topics begin with, such as \"http://host:8500/\"",
                ),
            }
        }
        let most = table.integer("subscriptions_max", 1..=SUBSCRIPTIONS_MAX);
        if let Some(most) = most.and_then(|it| usize::try_from(it).ok()) {
            settings.limits.subscriptions_max = most;
        }
        settings
    }

    /// Returns whether this daemon is a hub: for its own changes, or for those of publishers.
    pub fn has_hub(&self) -> bool {
        self.hub == HubChoice::Own || !self.publishers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    #[track_caller]
    fn read(text: &str, expected: &str) -> Settings {
        let document = Document::parse(text).unwrap();
        let root = document.root();
        let base_url = root.base_url("base_url");
        let settings = Settings::read(&root.table("push"), base_url.as_ref());
        let mistakes_text = match document.finish() {
            Ok(()) => String::new(),
            Err(mistakes) => {
                mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            }
        };
        assert_eq!(mistakes_text, expected);
        settings
    }

    #[test]
    fn the_default_has_no_hub() {
        assert_eq!(read("", ""), Settings::default());
        assert!(!Settings::default().has_hub());
        assert!(read("[push]\nhub = 'self'", "").has_hub());
    }

    #[test]
    fn everything_can_be_set() {
        let text = "base_url = 'http://s/'\n[push]\nhub = 'https://hub.example/hub'\n\
                    publishers = ['http://a:8500/', 'http://b/']\nallow_private = true\n\
                    subscriptions_max = 5\ntoken = 'let-me'";
        let settings = read(text, "");
        let url = |text: &str| Url::parse(text).unwrap();
        assert_eq!(settings.hub, HubChoice::Other(url("https://hub.example/hub")));
        assert_eq!(settings.publishers, [url("http://a:8500/"), url("http://b/")]);
        assert_eq!(settings.token, Secret::new("let-me"));
        assert!(!format!("{settings:?}").contains("let-me"), "it is not logged");
        assert_eq!((settings.allow_private, settings.limits.subscriptions_max), (true, 5));
    }

    #[test]
    fn mistakes_are_named() {
        read(
            "[push]\nhub = 'http://hub/'\npublishers = ['self']\nsubscriptions_max = 0\ntoken = 'a b'",
            "2:7: the hub http://hub/ needs the public address of this daemon; expected base_url = \"http://host:port/\" above [push]\n\
             3:14: a hub with publishers needs a public address; expected base_url = \"http://host:port/\" above [push]\n\
             3:15: \"self\" is not the URL of a web server; expected the URL that a publisher's topics begin with, such as \"http://host:8500/\"\n\
             4:21: \"subscriptions_max\" is 0; expected a whole number from 1 to 10000\n\
             5:9: the token is not one word; expected 1 to 199 characters, visible ASCII without spaces",
        );
    }
}
