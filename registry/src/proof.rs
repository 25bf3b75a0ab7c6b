//! Proofs: whether a description that was read at an announced address is that of the daemon which it names.
//!
//! Nothing of an announcement is believed but where to look. What is found there counts if its key has signed it, the
//! key is the one that its id is made of (or that was approved for the id), it names the address at which it was found,
//! it is of now, and it is not older than one that was seen before.
//!
//! An announcement that is sent again makes the registry look once more, and no more than that. The number of the last
//! description is in memory: written is that of the last record, once an hour at least. So after a restart an older one
//! may count again. The daemon itself has signed it within the hour, and it counts only where it says that it is: who
//! takes that place on the network can show what the daemon said an hour ago, until it announces itself again. In the same
//! way a goodbye that did not arrive can be said later; the next announcement makes up for it.
//!
//! Source: RFC 8032 (Ed25519); ours.
//!
//! Sans-I/O.

use daemon::announce::Announcement;
use daemon::describe::Description;
use exchange::servers::ServerKind;
use net::identity;
use serde::{Deserialize, Serialize};

/// Longest description that is read, in bytes.
pub const BYTES_MAX: u64 = 256 << 10;
/// How far the clock of a daemon may be off, in milliseconds: an hour.
const OFF_MS_MAX: u64 = 3_600_000;

/// What is known of a daemon's id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The key that counts for the id.
    pub key: String,
    /// The highest number of a message that was signed with it.
    pub sequence: u64,
}

/// Why a proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is no description at the address.
    #[error("what is at its /.well-known/harvest is no description of a Harvest daemon")]
    NoDescription,
    /// The description is of another daemon.
    #[error("the daemon at this address has the id {found}")]
    OtherId {
        /// Its id.
        found: String,
    },
    /// The description names another address, or none.
    #[error("the daemon says that it is at {found}")]
    OtherAddress {
        /// The address in it.
        found: String,
    },
    /// The signature is not by the key.
    #[error("its description is not signed by its key")]
    Signature,
    /// The id is not made of the key, and nobody has approved the key.
    #[error("its id is not made of its key: an administrator of the registry has to approve it")]
    Key,
    /// The id is known with another key.
    #[error(
        "its id is known with another key: an administrator of the registry has to approve the new one"
    )]
    OtherKey,
    /// A later one was seen.
    #[error("its description is older than one that was seen before")]
    Old,
    /// It is of another time.
    #[error("its clock is off by more than an hour")]
    Clock,
    /// It is of no kind that is listed.
    #[error("{found:?} is no kind of server")]
    Kind {
        /// The kind in it.
        found: String,
    },
}

/// Reads what was found at an announced address, and checks it. `pin` is what is known of the id, and `now_ms` the time.
///
/// # Errors
///
/// Why it does not count; the message is for the daemon's administrator.
pub fn check(
    (body, signature): (&[u8], &str),
    announcement: &Announcement,
    pin: Option<&Pin>,
    now_ms: u64,
) -> Result<(ServerKind, Description), Fault> {
    let description: Description =
        serde_json::from_slice(body).map_err(|_not_json| Fault::NoDescription)?;
    if description.id != announcement.id {
        return Err(Fault::OtherId { found: shown(&description.id) });
    }
    if description.facts.base_url.as_ref() != Some(&announcement.base_url) {
        let found = description.facts.base_url.as_ref().map_or("no address", url::Url::as_str);
        return Err(Fault::OtherAddress { found: shown(found) });
    }
    if !identity::verify(&description.key, body, signature) {
        return Err(Fault::Signature);
    }
    match pin {
        Some(pin) if pin.key != description.key => return Err(Fault::OtherKey),
        Some(_) => {}
        None if identity::id_of(&description.key) != description.id => return Err(Fault::Key),
        None => {}
    }
    if OFF_MS_MAX < now_ms.abs_diff(description.time_ms) {
        return Err(Fault::Clock);
    }
    // The same one is sent for some seconds.
    if pin.is_some_and(|it| description.sequence < it.sequence) {
        return Err(Fault::Old);
    }
    let kind = ServerKind::by_name(&description.kind);
    let kind = kind.ok_or_else(|| Fault::Kind { found: shown(&description.kind) })?;
    Ok((kind, description))
}

/// Returns a foreign text for messages.
fn shown(text: &str) -> String {
    let plain = text.chars().map(|it| if it.is_control() { ' ' } else { it });
    plain.take(200).collect()
}

#[cfg(test)]
mod tests {
    use daemon::describe::Facts;
    use net::identity::Identity;
    use url::Url;

    use super::*;

    const NOW_MS: u64 = 1_700_000_000_000;

    fn identity(n: u8) -> Identity {
        Identity::of(&[n; 32]).unwrap()
    }

    fn description(identity: &Identity) -> Description {
        let base_url = Some(Url::parse("http://h:8501/").unwrap());
        Description {
            id: identity.id(),
            key: identity.key().to_owned(),
            kind: "broker".to_owned(),
            facts: Facts { base_url, ..Facts::default() },
            time_ms: NOW_MS,
            sequence: 7,
            ..Description::default()
        }
    }

    fn announcement(id: &str) -> Announcement {
        Announcement { id: id.to_owned(), base_url: Url::parse("http://h:8501/").unwrap() }
    }

    /// Checks what comes of a description that is changed before it is signed, of an announcement of the first daemon.
    fn checked(
        pin: Option<&Pin>,
        change: impl FnOnce(&mut Description),
    ) -> Result<ServerKind, Fault> {
        let own = identity(1);
        let mut it = description(&own);
        change(&mut it);
        let body = serde_json::to_vec(&it).unwrap();
        let signature = own.sign(&body);
        check((&body, &signature), &announcement(&own.id()), pin, NOW_MS).map(|it| it.0)
    }

    #[test]
    fn only_the_daemon_itself_proves_what_it_is() {
        assert_eq!(checked(None, |_| ()), Ok(ServerKind::Broker));
        let (own, other) = (identity(1), identity(2));
        let other_id = Fault::OtherId { found: other.id() };
        assert_eq!(checked(None, |it| it.id = other.id()), Err(other_id));
        let at = |url: &str| Url::parse(url).ok();
        let elsewhere = Fault::OtherAddress { found: "http://victim/".to_owned() };
        assert_eq!(checked(None, |it| it.facts.base_url = at("http://victim/")), Err(elsewhere));
        let nowhere = Fault::OtherAddress { found: "no address".to_owned() };
        assert_eq!(checked(None, |it| it.facts.base_url = None), Err(nowhere));
        assert_eq!(checked(None, |it| it.key = other.key().to_owned()), Err(Fault::Signature));
        let kind = Fault::Kind { found: "robot".to_owned() };
        assert_eq!(checked(None, |it| it.kind = "robot".to_owned()), Err(kind));
        for off in [OFF_MS_MAX + 1, u64::MAX - NOW_MS] {
            assert_eq!(checked(None, |it| it.time_ms = NOW_MS + off), Err(Fault::Clock));
        }
        assert_eq!(checked(None, |it| it.time_ms = 0), Err(Fault::Clock));
        let pin = |key: &Identity, sequence| Pin { key: key.key().to_owned(), sequence };
        assert_eq!(checked(Some(&pin(&own, 7)), |_| ()), Ok(ServerKind::Broker));
        assert_eq!(checked(Some(&pin(&own, 8)), |_| ()), Err(Fault::Old));
        assert_eq!(checked(Some(&pin(&other, 0)), |_| ()), Err(Fault::OtherKey));
    }

    #[test]
    fn bytes_that_were_changed_or_are_none_do_not_count() {
        let own = identity(1);
        let body = serde_json::to_vec(&description(&own)).unwrap();
        let signature = own.sign(&body);
        let check = |body: &[u8], signature: &str| {
            check((body, signature), &announcement(&own.id()), None, NOW_MS).map(|it| it.0)
        };
        let changed = String::from_utf8(body.clone()).unwrap().replace("broker", "cache");
        assert_eq!(check(changed.as_bytes(), &signature), Err(Fault::Signature));
        assert_eq!(check(&body, ""), Err(Fault::Signature));
        assert_eq!(check(b"<html>", &signature), Err(Fault::NoDescription));
        // Spaces are bytes, too.
        assert_eq!(check(&[&body[..], b" "].concat(), &signature), Err(Fault::Signature));
    }

    #[test]
    fn a_new_key_counts_once_it_is_approved() {
        // The id stays with the daemon when it gets another key.
        let (first, second) = (identity(1), identity(2));
        let it = Description { id: first.id(), ..description(&second) };
        let body = serde_json::to_vec(&it).unwrap();
        let signature = second.sign(&body);
        let check = |pin: Option<&Pin>| {
            check((&body, &signature), &announcement(&first.id()), pin, NOW_MS).map(|it| it.0)
        };
        assert_eq!(check(None), Err(Fault::Key));
        let approved = Pin { key: second.key().to_owned(), sequence: 0 };
        assert_eq!(check(Some(&approved)), Ok(ServerKind::Broker));
    }
}
