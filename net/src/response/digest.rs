//! Digests of content: what an answer says of its body, and whether the body is so.
//!
//! Source: RFC 9530 (`Repr-Digest`), RFC 3230 and RFC 5843 (`Digest`). SHA-256 is preferred; weaker
//! algorithms than it do not count.
//!
//! Sans-I/O.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use ring::digest::{Algorithm, Context, SHA256, SHA512};

/// The fields with digests, the preferred one first.
const FIELDS: [&str; 2] = ["repr-digest", "digest"];

/// The algorithms, as both fields name them, the preferred one first.
const ALGORITHMS: [(&str, &Algorithm); 2] = [("sha-256", &SHA256), ("sha-512", &SHA512)];

/// A digest of the content of a whole object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    algorithm: &'static Algorithm,
    value: Vec<u8>,
}

impl Digest {
    /// Returns the digest of an answer's headers; `None`: they have none that can be relied on.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let of = |(name, algorithm): (&str, &'static Algorithm)| {
            let fields = FIELDS.iter().flat_map(|it| headers.get_all(*it));
            let mut members = fields.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
            members.find_map(|member| {
                let (named, value) = member.trim().split_once('=')?;
                let value = value.split(';').next()?.trim();
                // Structured fields have bytes between colons (RFC 8941 §3.3.5).
                let value = value.strip_prefix(':').map_or(Some(value), |it| it.strip_suffix(':'));
                let value = STANDARD.decode(value?).ok()?;
                let is_right = value.len() == algorithm.output_len();
                (named.eq_ignore_ascii_case(name) && is_right).then_some(Self { algorithm, value })
            })
        };
        ALGORITHMS.into_iter().find_map(of)
    }

    /// Returns the check of a body, which gets it piece by piece.
    pub fn check(self) -> Check {
        Check { context: Context::new(self.algorithm), value: self.value }
    }
}

/// The check of a body.
#[derive(Clone)]
pub struct Check {
    context: Context,
    value: Vec<u8>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check").field("value", &self.value).finish_non_exhaustive()
    }
}

impl Check {
    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        self.context.update(piece);
    }

    /// Returns whether the body is the one that was meant, after its last piece.
    pub fn is_right(self) -> bool {
        self.context.finish().as_ref() == self.value
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    /// The digests of "hello world", from the examples of RFC 9530 and by sha256sum.
    const SHA_256: &str = "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=";
    const SHA_512: &str =
        "MJ7MSJwS1utMxA9QyQLytNDtd+5RGnx6m808qG1M2G+YndNbxf9JlnDaNCVbRbDP2DDoH2Bdz33FVC6TrpzXbw==";

    fn check(lines: &[(&str, String)], expected: Option<bool>) {
        let line = |(name, value): &(&str, String)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = lines.iter().map(line).collect();
        let seen = Digest::of(&headers).map(|it| {
            let mut check = it.check();
            ["hello ", "world"].iter().for_each(|it| check.feed(it.as_bytes()));
            check.is_right()
        });
        assert_eq!(seen, expected, "{lines:?}");
    }

    #[test]
    fn a_body_is_checked_by_the_best_digest() {
        let wrong = STANDARD.encode([7; 32]);
        check(&[("repr-digest", format!("sha-256=:{SHA_256}:"))], Some(true));
        check(&[("repr-digest", format!("md5=:AAAA:, sha-512=:{SHA_512}:;a"))], Some(true));
        check(&[("digest", format!("MD5=AAAA==,SHA-256={SHA_256}"))], Some(true));
        check(&[("digest", format!("sha-256={wrong}"))], Some(false));
        let both = format!("sha-512=:{SHA_512}:, sha-256=:{wrong}:");
        check(&[("repr-digest", both)], Some(false));
        for none in ["", "sha-256=:AAAA:", "sha-256=!", "sha=AAAA", "sha-256"] {
            check(&[("digest", none.to_owned())], None);
        }
    }
}
