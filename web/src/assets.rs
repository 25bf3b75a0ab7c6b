//! The style sheet and the icon, built in or an administrator's own, with strong validators.
//!
//! Pages name an asset with the hash of its bytes (`/assets/style.css?v=HASH`). Under that address
//! it never changes and is cached for a year. Without the hash it is revalidated at each request.

use std::hash::{DefaultHasher, Hasher as _};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::templates::Folder;

const EMBEDDED: &[(&str, &str, &[u8])] = &[
    ("style.css", "text/css; charset=utf-8", include_bytes!("../assets/style.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

/// `Cache-Control` for addresses with the present hash.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// `Cache-Control` for other addresses: keep the asset, but revalidate it each time.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

#[derive(Clone, Debug)]
pub(crate) struct Assets(Vec<Asset>);

#[derive(Clone, Debug)]
struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: Bytes,
    /// Hash of the bytes, in hexadecimal digits.
    hash: String,
}

impl Assets {
    /// Returns the embedded assets, each replaced by the file of its name in `folder`.
    pub(crate) fn new(folder: &Folder) -> Self {
        let all = EMBEDDED.iter().map(|(name, content_type, embedded)| {
            let own = folder.files.get(*name).map(|bytes| Bytes::copy_from_slice(bytes));
            let bytes = own.unwrap_or_else(|| Bytes::from_static(embedded));
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes);
            Asset { name, content_type, bytes, hash: format!("{:016x}", hasher.finish()) }
        });
        Self(all.collect())
    }

    /// Returns the address of an asset below `base`, which ends in a slash.
    pub(crate) fn address(&self, base: &str, name: &str) -> Option<String> {
        let asset = self.0.iter().find(|asset| asset.name == name)?;
        Some(format!("{base}assets/{name}?v={}", asset.hash))
    }

    pub(crate) fn respond(
        &self,
        name: &str,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> Option<Response<Bytes>> {
        let asset = self.0.iter().find(|asset| asset.name == name)?;
        let tag = format!("\"{}\"", asset.hash);
        let known = headers.get_all(IF_NONE_MATCH).iter().any(|value| matches(value, &tag));
        let asked = query.and_then(|query| query.strip_prefix("v="));
        let fixed = asked.is_some_and(|hash| hash == asset.hash);
        let mut response = Response::new(if known { Bytes::new() } else { asset.bytes.clone() });
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            let content_type = HeaderValue::from_static(asset.content_type);
            response.headers_mut().insert(CONTENT_TYPE, content_type);
        }
        let cache = if fixed { FOR_EVER } else { ASK_AGAIN };
        response.headers_mut().insert(CACHE_CONTROL, cache);
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(ETAG, tag);
        }
        Some(response)
    }
}

/// Returns whether an `If-None-Match` names `tag` (RFC 9110 §13.1.2: weak comparison).
fn matches(value: &HeaderValue, tag: &str) -> bool {
    let value = value.to_str().unwrap_or_default();
    value.split(',').map(str::trim).any(|it| it == "*" || it.trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(assets: &Assets, query: Option<&str>, none_match: Option<&str>) -> Response<Bytes> {
        let mut headers = HeaderMap::new();
        if let Some(value) = none_match {
            headers.insert(IF_NONE_MATCH, HeaderValue::from_str(value).unwrap());
        }
        assets.respond("style.css", query, &headers).unwrap()
    }

    #[test]
    fn an_address_with_the_hash_is_cached_for_ever() {
        let assets = Assets::new(&Folder::default());
        let address = assets.address("/a/", "style.css").unwrap();
        let query = address.strip_prefix("/a/assets/style.css?").unwrap();
        assert_eq!(ask(&assets, Some(query), None).headers()[CACHE_CONTROL], FOR_EVER);
        assert_eq!(ask(&assets, Some("v=0"), None).headers()[CACHE_CONTROL], ASK_AGAIN);
        assert_eq!(ask(&assets, None, None).headers()[CACHE_CONTROL], ASK_AGAIN);
        assert!(assets.address("/", "none").is_none());
        assert!(assets.respond("none", None, &HeaderMap::new()).is_none());
    }

    #[test]
    fn a_cached_asset_is_not_sent_again() {
        let assets = Assets::new(&Folder::default());
        let first = ask(&assets, None, None);
        assert_eq!(first.status(), 200);
        assert_eq!(first.headers()[CONTENT_TYPE], "text/css; charset=utf-8");
        let tag = first.headers()[ETAG].to_str().unwrap();
        for value in [tag, "*", &format!("\"x\", W/{tag}")] {
            let again = ask(&assets, None, Some(value));
            assert_eq!((again.status().as_u16(), again.body().len()), (304, 0), "{value}");
            assert_eq!(again.headers()[ETAG], tag);
        }
        assert_eq!(ask(&assets, None, Some("\"x\"")).status(), 200);
    }

    #[test]
    fn an_own_file_replaces_the_embedded_one() {
        let embedded = Assets::new(&Folder::default());
        let mut folder = Folder::default();
        folder.files.insert("style.css".to_owned(), b"a {}".to_vec());
        let own = Assets::new(&folder);
        assert_eq!(ask(&own, None, None).body().as_ref(), b"a {}");
        assert_ne!(own.address("/", "style.css"), embedded.address("/", "style.css"));
    }
}
