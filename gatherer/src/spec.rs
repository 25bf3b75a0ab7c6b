//! What to gather: roots, and the maps that give their objects public URLs.
//!
//! Source: TR §3 (RootNodes) and the manual's `Local-Mapping` (URL prefix → directory).
//!
//! # Differences from the original
//!
//! * A local path becomes a `file://` URL by percent-encoding every byte that is not unreserved, so
//!   names with line feeds or bytes that are not UTF-8 have a URL of their own, and get their name
//!   back from it. Unicode is not normalized: two names that look alike are two objects.
//! * `Local-Mapping` sped up the fetching of a URL; a [`Map`] names the objects of a directory.
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use formats::path::encode;
use percent_encoding::percent_decode;
use url::Url;

/// What to do with a symbolic link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Do not follow. What a link shows inside its root is gathered under its own name; a link that
    /// leads out of the root, nowhere, or around in a circle is a problem.
    #[default]
    Skip,
    /// Gather what a link shows under the link's name too, as long as it lies inside the root, and
    /// one link deep: links below a linked directory are not followed again.
    Follow,
    /// Do not follow, but gather the link itself: its record says where it leads. What lies out of
    /// the root stays a problem.
    Record,
}

/// A tree to gather.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The tree's top, absolute; a directory or a single file.
    pub directory: PathBuf,
    /// Glob patterns, relative to the top; a file must match one of them unless there are none.
    pub include: Vec<String>,
    /// Glob patterns, relative to the top; a file or directory that matches is left out.
    pub exclude: Vec<String>,
    /// Whether to gather files and directories whose name begins with a dot. Default: false.
    pub hidden: bool,
    /// Whether to honor `.gitignore` and `.ignore` files. Default: false.
    pub gitignore: bool,
    /// Leave out files larger than this, in bytes. Default: none.
    pub file_bytes_max: Option<u64>,
    /// What to do with symbolic links.
    pub symlinks: Symlinks,
}

impl Root {
    /// Returns the root at `directory` with every setting at its default.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            include: Vec::new(),
            exclude: Vec::new(),
            hidden: false,
            gitignore: false,
            file_bytes_max: None,
            symlinks: Symlinks::Skip,
        }
    }

    /// Returns the root's own `file://` URL: its name in notes, confirmations and status.
    pub fn url(&self) -> String {
        file_url(&self.directory)
    }
}

/// Gives what lies below a directory URLs that begin with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// What a public URL begins with; ends with a slash.
    pub url_prefix: Url,
    /// The directory that the prefix stands for, absolute.
    pub directory: PathBuf,
}

/// Returns the `file://` URL of an absolute path.
pub fn file_url(path: &Path) -> String {
    format!("file://{}", encode(path.as_os_str()))
}

/// Returns the path that [`encode`] was given.
pub fn decode(encoded: &str) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(decode_bytes(encoded).into_owned()))
}

/// As [`decode`], as bytes.
pub(crate) fn decode_bytes(encoded: &str) -> Cow<'_, [u8]> {
    match memchr::memchr(b'%', encoded.as_bytes()) {
        None => Cow::Borrowed(encoded.as_bytes()),
        Some(_) => Cow::Owned(percent_decode(encoded.as_bytes()).collect()),
    }
}

/// Returns the absolute path of a `file://` URL with no host (or `localhost`), or why there is none.
///
/// # Errors
///
/// A sentence for the one who wrote the URL.
pub fn path_of(url: &str) -> Result<PathBuf, String> {
    let Some(rest) = url.strip_prefix("file://") else {
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

/// Returns the URL under which to publish the file at the absolute `path`: the longest mapped
/// directory above it decides, and without one it is a `file://` URL.
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

/// Says which roots and maps cannot stand beside each other: a tree inside another would be
/// gathered twice under one URL. Empty when all is well.
pub fn conflicts(roots: &[Root], maps: &[Map]) -> Vec<String> {
    let mut found = Vec::new();
    for (n, root) in roots.iter().enumerate() {
        for (m, other) in roots.iter().enumerate() {
            if n != m && root.directory.starts_with(&other.directory) {
                if root.directory == other.directory && m < n {
                    continue;
                }
                found.push(format!("root {} lies inside root {}", root.url(), other.url()));
            }
        }
    }
    for (n, map) in maps.iter().enumerate() {
        for other in maps.iter().skip(n + 1) {
            if map.url_prefix == other.url_prefix {
                found.push(format!("two maps have the url_prefix {}", map.url_prefix));
            }
            if map.directory == other.directory {
                found.push(format!("two maps have the directory {}", map.directory.display()));
            }
        }
    }
    found
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
    fn a_url_of_elsewhere_is_refused() {
        for url in ["http://a/", "file://host/a", "file:///a/../b", "/a"] {
            assert!(path_of(url).is_err(), "{url}");
        }
        assert_eq!(path_of("file://localhost/a//b/").unwrap(), Path::new("/a/b"));
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

    #[test]
    fn trees_inside_trees_are_conflicts() {
        let roots = [Root::new("/a"), Root::new("/a/b"), Root::new("/ab"), Root::new("/a")];
        let said = conflicts(&roots, &[]);
        assert_eq!(said.len(), 3, "{said:?}");
        let maps = [map("http://a/", "/a"), map("http://a/", "/b"), map("http://c/", "/a")];
        assert_eq!(conflicts(&[], &maps).len(), 2);
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
}
