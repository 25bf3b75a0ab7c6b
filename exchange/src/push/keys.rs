//! Tokens and secrets of subscriptions, derived from one secret. Nothing else has to be stored, and
//! after a restart the tokens and secrets are the same as before.
//!
//! Sans-I/O.

use url::Url;

use super::signature::{Method, Secret, sign};

/// Hex digits of a token: 128 bits.
const TOKEN_DIGITS: usize = 32;

/// Derives the secrets of subscriptions from one stored secret.
#[derive(Clone, Debug)]
pub struct Keys(Secret);

impl Keys {
    /// Returns the keys derived from `seed`, which must be secret; `None` if it is empty or longer
    /// than a [`Secret`] may be.
    pub fn new(seed: impl Into<String>) -> Option<Self> {
        Secret::new(seed).map(Self)
    }

    /// Returns the token in the callback of a source at `url`.
    pub fn token(&self, source: &str, url: &Url) -> String {
        let mut token = self.derive("callback", source, url);
        token.truncate(TOKEN_DIGITS);
        token
    }

    /// Returns the secret with which the source's hub signs. If the source names another hub later,
    /// that hub gets the same secret, because it speaks for the same source.
    pub fn secret(&self, source: &str, url: &Url) -> Option<Secret> {
        Secret::new(self.derive("secret", source, url))
    }

    /// Derives hex digits. Digits for one purpose, source or URL reveal nothing about any others.
    fn derive(&self, purpose: &str, source: &str, url: &Url) -> String {
        // The purpose and the URL have no line end, so the text is unambiguous.
        let text = format!("{purpose}\n{url}\n{source}");
        let signed = sign(&self.0, Method::Sha256, text.as_bytes());
        signed.split_once('=').map_or(String::new(), |(_, digits)| digits.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_its_own_stable_keys() {
        let [one, other] = ["http://a/", "http://b/"].map(|it| Url::parse(it).unwrap());
        let keys = Keys::new("seed").unwrap();
        // printf 'callback\nhttp://a/\nx' | openssl dgst -sha256 -hmac seed
        let token = keys.token("x", &one);
        assert_eq!(token, "73e6ad9bb05af66f03781bf022c009c6");
        assert_eq!(keys.token("x", &one), Keys::new("seed").unwrap().token("x", &one));
        let secrets = [keys.secret("x", &one), keys.secret("x", &other), keys.secret("y", &one)];
        let texts: Vec<&str> = secrets.iter().flatten().map(Secret::text).collect();
        assert!(texts.len() == 3 && texts[0] != texts[1] && texts[0] != texts[2], "{texts:?}");
        assert!(!texts[0].contains(&token));
        assert_ne!(keys.token("x", &one), Keys::new("weed").unwrap().token("x", &one));
        assert!(Keys::new("").is_none());
    }
}
