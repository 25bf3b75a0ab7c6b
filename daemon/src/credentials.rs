//! Credentials of a request: a token, in one of HTTP's two forms.
//!
//! Source: RFC 6750 §2.1 (`Bearer`), RFC 7617 (`Basic`), RFC 4648 §4 (Base64).
//!
//! Sans-I/O.

use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName};

/// Returns the bearer token of a request; `None` if it has none.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = credentials(headers, &AUTHORIZATION)?;
    scheme.eq_ignore_ascii_case(b"bearer").then_some(token)
}

/// Returns the password of a request, whatever the user name; `None` if it has none.
pub(crate) fn password(headers: &HeaderMap) -> Option<Vec<u8>> {
    password_in(headers, &AUTHORIZATION)
}

/// Returns the token that a request shows to a proxy, as a bearer token or as the password of any
/// name (RFC 9110 §11.7.1); `None` if it shows none.
pub fn proxy_token(headers: &HeaderMap) -> Option<Vec<u8>> {
    let (scheme, token) = credentials(headers, &PROXY_AUTHORIZATION)?;
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer");
    is_bearer.then(|| token.to_vec()).or_else(|| password_in(headers, &PROXY_AUTHORIZATION))
}

fn password_in(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let (scheme, pair) = credentials(headers, name)?;
    let pair = scheme.eq_ignore_ascii_case(b"basic").then(|| from_base64(pair))??;
    split_once_at(&pair, b':').map(|(_name, password)| password.to_vec())
}

/// Returns scheme and credentials of a header; `None` unless there is exactly one.
fn credentials<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<(&'a [u8], &'a [u8])> {
    let mut values = headers.get_all(name).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, credentials) = split_once_at(value.as_bytes(), b' ')?;
    Some((scheme, credentials.trim_ascii()))
}

/// Decodes Base64 (RFC 4648 §4), padded or not; `None` if it is malformed.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::with_capacity(text.len()));
    for &digit in text.trim_ascii_end().iter().filter(|it| **it != b'=') {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if 8 <= count {
            count -= 8;
            bytes.extend(u8::try_from(bits >> count & 0xFF));
        }
    }
    Some(bytes)
}

/// Splits at a byte; the standard library does so for text only.
fn split_once_at(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|it| *it == byte)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_padded_or_not() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(from_base64(text.as_bytes()).as_deref(), expected.map(str::as_bytes));
        };
        check("", Some(""));
        check("YTpi", Some("a:b"));
        check("YTpiYw==", Some("a:bc"));
        check("YTpiYw", Some("a:bc"));
        check("Pz8/Pj4+", Some("???>>>"));
        check("YT_i", None);
    }
}
