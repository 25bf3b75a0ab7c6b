//! Signatures of notifications: an HMAC of the body under a secret that the subscriber has chosen.
//!
//! Source: WebSub §7 (`X-Hub-Signature: METHOD=HEX`), RFC 2104 (as implemented by ring).
//!
//! # Differences from the standard
//!
//! * SHA-1 signatures, which the standard still allows, are neither made nor accepted.
//! * Unsigned notifications are refused: the standard makes the secret optional, and our
//!   subscribers always give one.
//!
//! Sans-I/O.

use std::fmt;

use ring::hmac;
use serde::{Deserialize, Serialize};

/// The header of the signature.
pub const HEADER: &str = "x-hub-signature";

/// Longest secret, in bytes (WebSub §5.1: less than 200).
pub const SECRET_BYTES_MAX: usize = 199;

/// A secret that a subscriber and its hub share. Its debug output does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Returns the secret with that text; `None` if it is empty or too long.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (1..=SECRET_BYTES_MAX).contains(&text.len()).then_some(Self(text))
    }

    /// Returns its text, for the request to the hub.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The digest of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `sha256`
    Sha256,
    /// `sha384`
    Sha384,
    /// `sha512`
    Sha512,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    /// Returns its name in the header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    fn algorithm(self) -> hmac::Algorithm {
        match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }
}

/// The reason why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It has no signature.
    #[error("it is not signed")]
    Unsigned,
    /// Its signature has an unknown form.
    #[error("its signature is not sha256=…, sha384=… or sha512=… and hex digits")]
    Malformed,
    /// Its signature is not that of the body under the secret.
    #[error("its signature does not match the secret")]
    Forged,
}

/// Returns the header's value for `body`.
pub fn sign(secret: &Secret, method: Method, body: &[u8]) -> String {
    let key = hmac::Key::new(method.algorithm(), secret.0.as_bytes());
    format!("{}={}", method.name(), hex(hmac::sign(&key, body).as_ref()))
}

/// Checks that `header` is the signature of `body`, in constant time.
///
/// # Errors
///
/// [`Refused`]: do not trust the body.
pub fn verify(secret: &Secret, header: Option<&str>, body: &[u8]) -> Result<(), Refused> {
    let header = header.ok_or(Refused::Unsigned)?.trim();
    let (name, digits) = header.split_once('=').ok_or(Refused::Malformed)?;
    let method = Method::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name));
    let method = method.ok_or(Refused::Malformed)?;
    let given = unhex(digits).ok_or(Refused::Malformed)?;
    let key = hmac::Key::new(method.algorithm(), secret.0.as_bytes());
    hmac::verify(&key, body, &given).map_err(|_unspecified| Refused::Forged)
}

/// Returns lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads hex digits, at most as many as the longest digest has; `None` if they are invalid.
fn unhex(digits: &str) -> Option<Vec<u8>> {
    let sound = digits.len().is_multiple_of(2) && digits.bytes().all(|it| it.is_ascii_hexdigit());
    if !sound || 128 < digits.len() {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks test case 2 of RFC 4231 (§4.3).
    #[test]
    fn signatures_are_those_of_the_standard() {
        let (secret, body) = (Secret::new("Jefe").unwrap(), b"what do ya want for nothing?");
        for (method, expected) in [
            (
                Method::Sha256,
                "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                Method::Sha384,
                "sha384=af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
                 8e2240ca5e69e2c78b3239ecfab21649",
            ),
            (
                Method::Sha512,
                "sha512=164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
                 9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
        ] {
            assert_eq!(sign(&secret, method, body), expected);
            assert_eq!(verify(&secret, Some(&expected.to_uppercase()), body), Ok(()));
        }
    }

    #[test]
    fn wrong_signatures_are_refused() {
        let (secret, body) = (Secret::new("s").unwrap(), b"body");
        let sound = sign(&secret, Method::Sha256, body);
        let of_another = sign(&Secret::new("t").unwrap(), Method::Sha256, body);
        let of_less = sign(&secret, Method::Sha256, b"bod");
        for (header, expected) in [
            (None, Refused::Unsigned),
            (Some(""), Refused::Malformed),
            (Some("sha256="), Refused::Forged),
            (Some("sha1=da39a3ee5e6b4b0d3255bfef95601890afd80709"), Refused::Malformed),
            (Some("sha256=0g"), Refused::Malformed),
            (Some(&sound[..sound.len() - 1]), Refused::Malformed),
            (Some(&sound[..sound.len() - 2]), Refused::Forged),
            (Some(&sound.replace("sha256", "sha512")), Refused::Forged),
            (Some(&of_another), Refused::Forged),
            (Some(&of_less), Refused::Forged),
        ] {
            assert_eq!(verify(&secret, header, body), Err(expected), "{header:?}");
        }
        assert_eq!(verify(&secret, Some(&sound), body), Ok(()));
    }

    #[test]
    fn a_secret_is_bounded_and_not_shown() {
        assert_eq!(Secret::new(""), None);
        assert_eq!(Secret::new("s".repeat(200)), None);
        let secret = Secret::new("s".repeat(199)).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }

    proptest! {
        #[test]
        fn a_change_of_any_bit_is_detected(body in prop::collection::vec(any::<u8>(), 1..60),
                                       at in any::<prop::sample::Index>(), bit in 0..8_u8,
                                       method in prop::sample::select(&Method::ALL)) {
            let secret = Secret::new("s").unwrap();
            let header = sign(&secret, method, &body);
            prop_assert_eq!(verify(&secret, Some(&header), &body), Ok(()));
            let mut other = body.clone();
            other[at.index(body.len())] ^= 1 << bit;
            prop_assert_eq!(verify(&secret, Some(&header), &other), Err(Refused::Forged));
        }

        #[test]
        fn any_header_is_a_signature_or_not(header in "\\PC{0,60}|sha256=[0-9a-f]{0,200}") {
            prop_assert!(verify(&Secret::new("s").unwrap(), Some(&header), b"").is_err());
        }
    }
}
