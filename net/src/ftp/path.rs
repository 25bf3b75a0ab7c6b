//! Paths of FTP URLs.
//!
//! A path is relative to the folder that the server shows after login; one that begins with `%2F`
//! is absolute.
//!
//! Source: RFC 1738 §3.2.
//!
//! Sans-I/O.

use url::Url;

use crate::fetch::unescaped;

/// Longest path that is sent, in bytes.
const PATH_BYTES_MAX: usize = 4 * 1024;

/// The object that a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its path, without CR, LF and NUL; empty for the folder after login.
    pub path: Vec<u8>,
    /// Whether the URL says that it is a folder: by `;type=d`, or by its last slash.
    pub is_folder: bool,
}

impl Target {
    /// Returns the object of an `ftp` or `ftps` URL. `;type=a` and `;type=i` are accepted, and
    /// files are sent as they are either way.
    ///
    /// # Errors
    ///
    /// The fault: a path with CR, LF or NUL, one that is too long, or another type.
    pub fn of(url: &Url) -> Result<Self, String> {
        let path = url.path();
        let (path, is_folder) = match path.rsplit_once(";type=") {
            None => (path, path.is_empty() || path.ends_with('/') || path.ends_with("%2F")),
            Some((path, "d" | "D")) => (path, true),
            Some((path, "a" | "A" | "i" | "I")) => (path, false),
            Some((_, other)) => return Err(format!("{other:?} is none of the types a, i and d")),
        };
        let path = unescaped(path.strip_prefix('/').unwrap_or(path));
        if PATH_BYTES_MAX < path.len() || !is_sendable(&path) {
            return Err("the path has CR, LF or NUL, or more than 4,096 bytes".to_owned());
        }
        let path = path.strip_suffix(b"/").filter(|it| !it.is_empty()).unwrap_or(&path);
        Ok(Self { path: path.to_vec(), is_folder })
    }

    /// Returns the absolute path; `home` is the folder after login.
    pub(super) fn below(&self, home: &[u8]) -> Vec<u8> {
        if self.path.starts_with(b"/") {
            return self.path.clone();
        }
        let home = home.strip_suffix(b"/").unwrap_or(home);
        match self.path.as_slice() {
            b"" if home.is_empty() => b"/".to_vec(),
            b"" => home.to_vec(),
            path => [home, b"/", path].concat(),
        }
    }
}

/// Returns whether an argument of a command is one line.
pub(super) fn is_sendable(argument: &[u8]) -> bool {
    !argument.iter().any(|it| matches!(it, b'\r' | b'\n' | 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, home: &str, expected: &[u8], is_folder: bool) {
        let target = Target::of(&Url::parse(url).unwrap()).unwrap();
        assert_eq!(target.below(home.as_bytes()), expected, "{url}");
        assert_eq!(target.is_folder, is_folder, "{url}");
    }

    #[test]
    fn paths_are_below_the_home_folder_or_absolute() {
        check("ftp://h", "/", b"/", true);
        check("ftp://h/", "/home/u", b"/home/u", true);
        check("ftp://h/a%20b/caf%e9.txt", "/", b"/a b/caf\xe9.txt", false);
        check("ftp://h/a/b/;type=d", "/x/", b"/x/a/b", true);
        check("ftp://h/a;type=i", "/x", b"/x/a", false);
        check("ftp://h/%2Fetc/motd", "/x", b"/etc/motd", false);
        check("ftp://h/%2F", "/x", b"/", true);
        check("ftp://h/a;b/", "/", b"/a;b", true);
    }

    #[test]
    fn what_would_be_another_command_is_refused() {
        for bad in ["a%0d%0aDELE%20b", "a%0a", "a%00", "a;type=x"] {
            let url = Url::parse(&format!("ftp://h/{bad}")).unwrap();
            assert!(Target::of(&url).is_err(), "{bad}");
        }
    }
}
