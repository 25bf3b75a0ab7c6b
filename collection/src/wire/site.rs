//! The proof that a feed is its owner's own: the owner's signature of the URL at which it serves.
//!
//! Whoever copies the proof serves at another URL, and a consumer compares it with the one that it
//! has asked. On each machine `localhost` is another one, so that it proves nothing.
//!
//! Source: docs/collection.md, "Whose feed it is".
//!
//! Sans-I/O.

use net::host::{self, HostPort};
use net::identity::{self, Identity};
use url::Url;

/// Returns the proof that the feed at `base` is this identity's own: the URL and its signature.
#[must_use]
pub fn proof_of_site(identity: &Identity, base: &Url) -> String {
    let base = host::join(base, "");
    format!("{base} {}", identity.sign(&text(base.as_str())))
}

/// Returns whether the URL leads to the same server wherever it is asked.
pub(crate) fn is_provable(base: &Url) -> bool {
    let host = base.host_str().and_then(HostPort::parse);
    host.is_some_and(|it| !it.is_loopback())
}

/// Returns whether this proof shows that the feed below `asked` is that of the key's owner.
pub(crate) fn is_shown(key: &str, proof: &str, asked: &Url) -> bool {
    let Some((base, signature)) = proof.split_once(' ') else { return false };
    base == host::join(asked, "").as_str() && identity::verify(key, &text(base), signature)
}

/// Returns what is signed; nothing else that an identity signs begins like it.
fn text(base: &str) -> Vec<u8> {
    format!("harvest feed at {base}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(secret: u8) -> Identity {
        Identity::of(&[secret; 32]).unwrap()
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn check(base: &str, asked: &str, expected: bool) {
        let owner = identity(1);
        let proof = proof_of_site(&owner, &url(base));
        assert_eq!(is_shown(owner.key(), &proof, &url(asked)), expected, "{base} {asked}");
    }

    #[test]
    fn a_proof_is_for_one_url() {
        let base = "https://gatherer.example/x/";
        check(base, base, true);
        check("https://Gatherer.Example:443/x", base, true);
        check(base, "https://gatherer.example:443/x", true);
        check("http://gatherer.example", "http://gatherer.example:80/", true);
        for other in [
            "http://gatherer.example/x/",
            "https://other.example/x/",
            "https://gatherer.example:444/x/",
            "https://gatherer.example/",
            "https://gatherer.example/x/y/",
            "https://u@gatherer.example/x/",
        ] {
            check(base, other, false);
        }
    }

    #[test]
    fn a_proof_is_of_one_key() {
        let (owner, other, base) = (identity(1), identity(2), url("http://h:8500/"));
        let proof = proof_of_site(&owner, &base);
        assert!(is_shown(owner.key(), &proof, &base));
        assert!(!is_shown(other.key(), &proof, &base));
        // A signature of something else, and none.
        let signature = owner.sign(base.as_str().as_bytes());
        for wrong in [format!("{base} {signature}"), base.to_string(), String::new()] {
            assert!(!is_shown(owner.key(), &wrong, &base), "{wrong}");
        }
    }

    #[test]
    fn a_url_of_every_machine_proves_nothing() {
        for (base, expected) in [
            ("http://gatherer.example/", true),
            ("http://192.0.2.7:8500/", true),
            ("http://localhost:8500/", false),
            ("http://127.0.0.1:8500/", false),
            ("http://[::1]:8500/", false),
        ] {
            assert_eq!(is_provable(&url(base)), expected, "{base}");
        }
    }
}
