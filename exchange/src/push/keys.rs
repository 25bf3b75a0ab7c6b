//! What a subscriber and its hubs know of each other: made anew from one secret whenever it is needed, so
//! that nothing has to be kept, and a restart subscribes under the same names as before.
//!
//! Sans-I/O.

use url::Url;

use super::signature::{Method, Secret, sign};

/// Hex digits of a token: 128 bits.
const TOKEN_DIGITS: usize = 32;

/// Makes the secrets of subscriptions from one that is kept.
#[derive(Clone, Debug)]
pub struct Keys(Secret);

impl Keys {
    /// Those that `seed` makes, which nobody else must know; `None` if it is empty or longer than a secret.
    pub fn new(seed: impl Into<String>) -> Option<Self> {
        Secret::new(seed).map(Self)
    }

    /// What the callback of a source at `url` is known by.
    pub fn token(&self, source: &str, url: &Url) -> String {
        let mut token = self.made("callback", source, url);
        token.truncate(TOKEN_DIGITS);
        token
    }

    /// What its hub is to sign with. Another hub that the source names later gets the same: of that source
    /// it may speak as well.
    pub fn secret(&self, source: &str, url: &Url) -> Option<Secret> {
        Secret::new(self.made("secret", source, url))
    }

    /// Hex digits that tell nothing of each other.
    fn made(&self, what: &str, source: &str, url: &Url) -> String {
        // Neither a URL nor what stands before it has a line end; a name has none after the first.
        let text = format!("{what}\n{url}\n{source}");
        let signed = sign(&self.0, Method::Sha256, text.as_bytes());
        signed.split_once('=').map_or(String::new(), |(_, digits)| digits.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_its_own_and_keeps_it() {
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
