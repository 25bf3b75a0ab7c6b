//! Webhooks: the address that is told of what comes into a view and of what leaves it, and what it is told.
//!
//! A message is JSON, signed as notifications of WebSub are: `X-Hub-Signature: sha256=HEX`, an HMAC of the body under
//! the secret of the settings.
//!
//! Source: ours; WebSub §7 for the signature.
//!
//! Sans-I/O.

use collection::{Change, Oid, Scanned, Subset};
use exchange::push::signature::{SECRET_BYTES_MAX, Secret};
use query::record::oid_text;
use serde::{Deserialize, Serialize};
use settings::Table;
use url::Url;

use crate::page::shortened;

/// Maximum number of webhooks.
pub const WEBHOOKS_MAX: usize = 100;
/// Maximum number of objects of a message. What is beyond follows in the next one.
pub const OBJECTS_MAX: usize = 100;
/// Longest title and type, in characters.
const CHARS_MAX: usize = 300;
/// Smallest length of a secret, in bytes.
const SECRET_BYTES_MIN: usize = 16;

/// A webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The address to which messages are posted.
    pub url: Url,
    /// The secret under which they are signed.
    pub secret: Secret,
}

impl Webhook {
    /// Reads the `webhook` and `webhook_secret` of a view, and reports mistakes.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        let (url, text) = (table.url("webhook"), table.string("webhook_secret"));
        let is_web = |it: &Url| matches!(it.scheme(), "http" | "https") && it.has_host();
        if let Some(url) = url.as_ref().filter(|it| !is_web(it)) {
            let message = format!("{url} is not of a web server");
            table.mistake("webhook", message, "an http:// or https:// URL");
        }
        let is_long = |it: &String| SECRET_BYTES_MIN <= it.len();
        let secret = text.clone().filter(is_long).and_then(Secret::new);
        match (&url, &secret) {
            (Some(_), None) => {
                let message = match text {
                    Some(_) => "the secret is too short or too long",
                    None => "messages are signed, and there is no secret",
                };
                let expected = format!(
                    "webhook_secret = \"…\" of {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} characters: `openssl rand -hex 32`"
                );
                table.mistake("webhook_secret", message, expected);
            }
            (None, _) if text.is_some() => {
                table.mistake("webhook_secret", "there is no webhook", "webhook = \"https://…\"");
            }
            _ => {}
        }
        Some(Self { url: url?, secret: secret? })
    }
}

/// What a webhook is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The name of the view.
    pub view: String,
    /// Its name for people.
    pub title: String,
    /// The version of the broker's collection up to which this and all messages before tell of changes: a message that
    /// comes twice has it twice.
    pub to: String,
    /// Whether some that left are missing here, since the receiver was away for longer than deletions are kept.
    pub incomplete: bool,
    /// Objects in the view that are new in it, or have changed.
    pub changed: Vec<Told>,
    /// Objects that are not in the view any more.
    pub left: Vec<Told>,
    /// Whether there is more to tell, by the next message.
    pub more: bool,
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Its id, as in `/object?oid=`.
    pub oid: String,
    /// Its URL.
    pub url: String,
    /// Its title; empty if it has none, or left.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Its type; empty if it has none, or left.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub r#type: String,
}

/// Which changes a message tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Their serials.
    pub(super) serials: Vec<u64>,
    /// The serial up to which all is told then.
    pub(super) to: u64,
    /// Whether there is more up to where was asked.
    pub(super) more: bool,
}

/// Returns the changes that are to be told next of those after `since`, up to `to`.
pub(super) fn part(subset: &Subset, since: u64, to: u64) -> Part {
    let mut serials = subset.changes(since, to, OBJECTS_MAX + 1);
    let more = OBJECTS_MAX < serials.len();
    serials.truncate(OBJECTS_MAX);
    let to = serials.last().copied().filter(|_| more).unwrap_or(to);
    Part { serials, to, more }
}

impl Message {
    /// Adds a change of those of a [`Part`].
    pub(super) fn add(&mut self, scanned: &Scanned, subset: &Subset) {
        let Some(oid) = scanned.change.oid() else { return };
        match &scanned.change {
            Change::Update(record) if subset.members.contains(scanned.serial) => {
                let text =
                    |name| shortened(record.text(name).unwrap_or_default().trim(), CHARS_MAX);
                let (title, r#type) = (text("Title"), text("Type"));
                self.changed.push(Told { title, r#type, ..object(&oid) });
            }
            // One that changed after it left may be there by both changes.
            _ if subset.left.contains(scanned.serial) || subset.leaves.contains(scanned.serial) => {
                let told = object(&oid);
                if !self.left.contains(&told) {
                    self.left.push(told);
                }
            }
            _ => {}
        }
    }
}

fn object(oid: &Oid) -> Told {
    let id = oid_text(&oid.gatherer, &oid.url);
    Told { oid: id, url: oid.url.clone(), ..Told::default() }
}

/// How far a webhook was told: the name of the view's extent, and the serial. It is a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    pub(super) of: String,
    pub(super) serial: u64,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use collection::{GATHERER_ID, Stamp};
    use settings::Document;
    use soif::Record;

    use super::*;

    #[test]
    fn all_is_told_in_parts_and_once() {
        let mut subset = Subset::default();
        Arc::make_mut(&mut subset.members).extend((1..=300).filter(|it| it % 3 != 0));
        Arc::make_mut(&mut subset.left).extend((1..=300).filter(|it| it % 3 == 0));
        let (mut since, mut told) = (20, Vec::new());
        loop {
            let part = part(&subset, since, 290);
            assert!(part.serials.len() <= OBJECTS_MAX && since <= part.to);
            (since, _) = (part.to, told.extend(part.serials));
            if !part.more {
                break;
            }
        }
        assert_eq!((since, told), (290, (21..=290).collect()));
        assert_eq!(part(&subset, 290, 290), Part { serials: vec![], to: 290, more: false });
    }

    #[test]
    fn a_message_says_what_changed_and_what_left() {
        let mut record = Record::new("FILE", "http://h/a");
        record.push(GATHERER_ID, "g");
        record.push("Title", "x".repeat(1_000));
        let mut subset = Subset::default();
        Arc::make_mut(&mut subset.members).insert(3);
        Arc::make_mut(&mut subset.left).extend([4, 5]);
        let changes = [
            (3, Change::Update(record.clone())),
            (4, Change::Update(record.clone())),
            (5, Change::Delete(Oid::new("g", "http://h/b"))),
            // It has not been in the view.
            (6, Change::Update(record)),
        ];
        let mut message = Message::default();
        for (serial, change) in changes {
            message.add(&Scanned { serial, stamp: Stamp(1), change }, &subset);
        }
        let urls = |told: &[Told]| told.iter().map(|it| it.url.clone()).collect::<Vec<_>>();
        assert_eq!(urls(&message.changed), ["http://h/a"]);
        assert_eq!(urls(&message.left), ["http://h/a", "http://h/b"]);
        assert!(message.changed[0].title.chars().count() <= CHARS_MAX + 1);
    }

    #[test]
    fn mistakes_are_named() {
        let read = |text: &str| {
            let document = Document::parse(text).unwrap();
            let webhook = Webhook::read(&document.root());
            let mistakes = document.finish();
            mistakes.map(|()| webhook).map_err(|them| them[0].to_string())
        };
        let secret = "webhook_secret = \"0123456789abcdef\"\n";
        let url = "webhook = \"https://example.org/hook\"\n";
        assert!(read(&format!("{url}{secret}")).unwrap().is_some() && read("").unwrap().is_none());
        for (text, part) in [
            (url.to_owned(), "there is no secret"),
            (secret.to_owned(), "there is no webhook"),
            (format!("{url}webhook_secret = \"short\""), "too short"),
            (format!("webhook = \"file:///etc/passwd\"\n{secret}"), "not of a web server"),
        ] {
            let said = read(&text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
