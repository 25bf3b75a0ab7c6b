//! The URLs of files: `file://` URLs, and public URLs that maps define.
//!
//! Source: the manual's `Local-Mapping` (URL prefix → directory).
//!
//! # Differences from the original
//!
//! * A local path becomes a `file://` URL by percent-encoding every byte that is not unreserved. So
//!   names with line feeds or bytes that are not UTF-8 have their own URLs, which can be converted
//!   back to the names. Unicode is not normalized: two names that look alike are two objects.
//! * `Local-Mapping` made the fetching of a URL faster; a [`Map`] gives public URLs to the objects
//!   in a directory.
//!
//! Sans-I/O.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use formats::path::encode;
use percent_encoding::percent_decode;
use url::Url;

/// Beginning of the URL of a file.
const FILE: &str = "file://";

/// Map from a directory to a prefix of URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Beginning of the public URLs; a slash is added if it does not end with one.
    pub url_prefix: Url,
    /// Absolute path of the directory that the prefix stands for.
    pub directory: PathBuf,
}

/// Returns the `file://` URL of an absolute path.
pub fn file_url(path: &Path) -> String {
    [FILE, &encode(path.as_os_str())].concat()
}

/// Returns the path from a URL that [`file_url`] has made.
pub fn file_path(url: &str) -> PathBuf {
    decode(url.strip_prefix(FILE).unwrap_or(url))
}

fn decode(encoded: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(percent_decode(encoded.as_bytes()).collect()))
}

/// Returns a URL and the URLs of all folders above it, from the lowest to the highest.
pub(crate) fn upwards(url: &str) -> impl Iterator<Item = &str> {
    let path = url.find("://").map_or(0, |at| at + "://".len());
    let top = url.get(path..).and_then(|it| it.find('/')).map_or(url.len(), |at| path + at + 1);
    std::iter::successors(Some(url), move |below| {
        let above = below.rfind('/').filter(|_| top < below.len())?;
        url.get(..above.max(top))
    })
}

/// Returns the absolute path of a `file://` URL without a host (or with `localhost`).
///
/// # Errors
///
/// Returns why there is no such path, as a sentence for the author of the URL.
pub fn path_of(url: &str) -> Result<PathBuf, String> {
    let Some(rest) = url.strip_prefix(FILE) else {
        return Err(format!("{url:?} is not a file:// URL"));
    };
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return Err(format!("{url:?} names a host; only local trees (file:///…) can be gathered"));
    }
    let path = decode(rest);
    if path.components().any(|part| matches!(part, std::path::Component::ParentDir)) {
        return Err(format!("{url:?} contains \"..\""));
    }
    Ok(path.components().collect())
}

/// Returns the public URL of the file at the absolute `path`, by the longest mapped directory above
/// it; if no directory is mapped, a `file://` URL.
pub fn public_url(maps: &[Map], path: &Path) -> String {
    let best = maps
        .iter()
        .filter_map(|map| Some((map, path.strip_prefix(&map.directory).ok()?)))
        .max_by_key(|(map, _)| map.directory.as_os_str().len());
    match best {
        None => file_url(path),
        Some((map, below)) => {
            let prefix = map.url_prefix.as_str();
            let slash = if prefix.ends_with('/') { "" } else { "/" };
            format!("{prefix}{slash}{}", encode(below.as_os_str()))
        }
    }
}

/// Returns the path of the file that has the public URL `url`, and the directory of the map that says so; `None`
/// if it is below no map, or is no name of a file: with a query, a slash at the end, or `..` or a slash in a name.
pub(crate) fn mapped_path<'m>(maps: &'m [Map], url: &Url) -> Option<(PathBuf, &'m Path)> {
    let text = url.as_str();
    let below = |map: &Map| {
        let prefix = map.url_prefix.as_str();
        text.strip_prefix(prefix.strip_suffix('/').unwrap_or(prefix))?.strip_prefix('/')
    };
    let found = maps.iter().filter_map(|map| Some((map, below(map)?)));
    let (map, below) = found.min_by_key(|(_, below)| below.len())?;
    if url.query().is_some() || url.fragment().is_some() {
        return None;
    }
    let mut path = map.directory.clone();
    for name in below.split('/') {
        let name: Vec<u8> = percent_decode(name.as_bytes()).collect();
        if matches!(&*name, b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0) {
            return None;
        }
        path.push(OsString::from_vec(name));
    }
    Some((path, &map.directory))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use proptest::prelude::*;

    use super::*;

    fn map(url_prefix: &str, directory: &str) -> Map {
        Map { url_prefix: Url::parse(url_prefix).unwrap(), directory: directory.into() }
    }

    #[track_caller]
    fn check(path: &[u8], expected: &str) {
        let path = Path::new(OsStr::from_bytes(path));
        assert_eq!(file_url(path), expected);
        assert_eq!(path_of(expected).unwrap(), path);
        assert_eq!(file_path(expected), path);
    }

    #[test]
    fn odd_names_have_urls() {
        check(b"/srv/docs/a.txt", "file:///srv/docs/a.txt");
        check(b"/a\nb", "file:///a%0Ab");
        check(b"/\xff\xfe", "file:///%FF%FE");
        check(b"/50% #1?.txt", "file:///50%25%20%231%3F.txt");
        check("/\u{e9}".as_bytes(), "file:///%C3%A9");
        check("/e\u{301}".as_bytes(), "file:///e%CC%81");
        check(b"/-rf", "file:///-rf");
    }

    #[test]
    fn urls_of_other_hosts_are_refused() {
        for url in ["http://a/", "file://host/a", "file:///a/../b", "/a"] {
            assert!(path_of(url).is_err(), "{url}");
        }
        assert_eq!(path_of("file://localhost/a//b/").unwrap(), Path::new("/a/b"));
    }

    #[test]
    fn urls_above_a_url_are_listed_upwards() {
        for (url, expected) in [
            ("file:///a/b", &["file:///a/b", "file:///a", "file:///"][..]),
            ("file:///a/", &["file:///a/", "file:///a", "file:///"]),
            ("file:///", &["file:///"]),
            ("https://h.example/a", &["https://h.example/a", "https://h.example/"]),
            ("https://h.example", &["https://h.example"]),
        ] {
            assert_eq!(upwards(url).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_longest_directory_names_the_object() {
        let maps = [
            map("https://a.example/", "/srv"),
            map("https://a.example/papers/", "/srv/docs/papers"),
            map("https://b.example/x", "/opt"),
        ];
        for (path, expected) in [
            ("/srv/docs/papers/1.pdf", "https://a.example/papers/1.pdf"),
            ("/srv/docs/a b.txt", "https://a.example/docs/a%20b.txt"),
            ("/srvx/a", "file:///srvx/a"),
            ("/opt/y", "https://b.example/x/y"),
        ] {
            assert_eq!(public_url(&maps, Path::new(path)), expected);
        }
    }

    proptest! {
        #[test]
        fn encoding_loses_nothing(bytes in proptest::collection::vec(1u8..=255, 0..64)) {
            let encoded = encode(OsStr::from_bytes(&bytes));
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic()));
            let decoded = decode(&encoded);
            prop_assert_eq!(decoded.as_os_str().as_bytes(), &bytes[..]);
        }
    }

    #[test]
    fn public_urls_lead_back_to_files_below_their_directory_alone() {
        let maps = [map("https://h.example/", "/srv"), map("https://h.example/docs/", "/docs")];
        let check = |url: &str, expected: Option<&str>| {
            let url = Url::parse(url).unwrap();
            let found = mapped_path(&maps, &url).map(|it| it.0);
            assert_eq!(found, expected.map(PathBuf::from), "{url}");
        };
        check("https://h.example/a/b%20c.txt", Some("/srv/a/b c.txt"));
        check("https://h.example/docs/a", Some("/docs/a"));
        check("https://h.example/docsx", Some("/srv/docsx"));
        for wrong in
            ["/", "/a/", "/a?b", "/a%2fb", "/a%00", "/%2e%2e%2fetc/passwd", "/docs/..%2f..%2fetc"]
        {
            check(&format!("https://h.example{wrong}"), None);
        }
        check("http://h.example/a", None);
        check("https://h.example.org/a", None);
    }
}
