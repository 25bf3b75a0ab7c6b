//! Paths of entries of a tree, and the targets that symbolic links may have.
//!
//! Source: ours. Names that the file system of some member refuses, folds or treats as special are
//! refused here: Microsoft, "Naming Files, Paths, and Namespaces"; Git's checks of paths
//! (`verify_path`).
//!
//! Sans-I/O.

use std::cmp::Ordering;
use std::fmt;

use unicode_normalization::UnicodeNormalization as _;

/// Maximum length of a path, and of the target of a symbolic link, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;
/// Maximum length of a component of a path, in bytes.
pub const COMPONENT_BYTES_MAX: usize = 255;
/// Maximum number of components of a path.
pub const DEPTH_MAX: usize = 128;

/// Prefix of the replicator's own names, in any case.
const OURS: &str = ".harvest";
/// Names of devices on Windows, with any extension. A digit from 0 to 9 or a superscript 1 to 3
/// follows the numbered ones.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// The path of an entry in its tree: UTF-8, at most [`PATH_BYTES_MAX`], with at most [`DEPTH_MAX`]
/// components of [`COMPONENT_BYTES_MAX`] between `/`.
///
/// No component is empty, `.` or `..`, holds a control character, `\` or `:`, ends in a dot or a
/// space, is a device of Windows, or begins with `.harvest`.
///
/// Paths are ordered component by component, each by its bytes, and a directory comes right before
/// its entries. So all paths below a directory come together, and a path below a file would come
/// right after the file.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EntryPath(Box<str>);

/// The reason why text or bytes are not the path of an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is not UTF-8.
    #[error("the name {0} is not UTF-8: rename it")]
    Utf8(String),
    /// The path is empty or too long.
    #[error("a path has {0} bytes, 1 to {PATH_BYTES_MAX} can be replicated")]
    Length(usize),
    /// The path has too many components.
    #[error("a path has more than {DEPTH_MAX} components")]
    Depth,
    /// A component of the path is not allowed, for this reason.
    #[error("the name {0:?} {1}")]
    Component(Box<str>, &'static str),
    /// A symbolic link leads out of the tree, or may do so.
    #[error(
        "a symbolic link leads to {0:?}: a target has only `..` up to the top of the tree, then names"
    )]
    Target(Box<str>),
}

impl EntryPath {
    /// Makes a path from the text.
    ///
    /// # Errors
    ///
    /// The text is not a path: refuse the manifest, or have the file renamed.
    pub fn new(text: &str) -> Result<Self, PathError> {
        if text.is_empty() || PATH_BYTES_MAX < text.len() {
            return Err(PathError::Length(text.len()));
        }
        for (depth, name) in text.split('/').enumerate() {
            if depth == DEPTH_MAX {
                return Err(PathError::Depth);
            }
            check(name)?;
        }
        Ok(Self(text.into()))
    }

    /// Returns the path of the entry `name` in `directory`; `None` is the top of the tree.
    pub fn child(directory: Option<&Self>, name: &str) -> Result<Self, PathError> {
        check(name)?;
        directory.map_or_else(|| Self::new(name), |it| Self::new(&format!("{it}/{name}")))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the components from the top down, at least one.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns whether `other` is below this path, at any depth.
    pub fn is_above(&self, other: &Self) -> bool {
        other.0.strip_prefix(&*self.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Checks that the target of a symbolic link at this path stays in the tree: it goes up by
    /// `..`, at most to the top, then down by names only (`.` is skipped). The folders above a link
    /// are real directories, but a name in the target may be another link, and a `..` after it
    /// would start at the target of that link.
    pub fn check_target(&self, target: &str) -> Result<(), PathError> {
        if target.is_empty() || PATH_BYTES_MAX < target.len() {
            return Err(PathError::Length(target.len()));
        }
        let mut above = self.components().count() - 1;
        let mut down = false;
        for name in target.split('/') {
            match name {
                "." => {}
                ".." if !down && above != 0 => above -= 1,
                "" | ".." => return Err(PathError::Target(target.into())),
                name => {
                    check(name)?;
                    down = true;
                }
            }
        }
        Ok(())
    }
}

fn check(name: &str) -> Result<(), PathError> {
    let is_bad = |it: char| it.is_control() || matches!(it, '\\' | ':' | '/');
    let problem = match name {
        "" => "is empty",
        "." | ".." => "stands for another directory",
        name if COMPONENT_BYTES_MAX < name.len() => "has more than 255 bytes",
        name if name.contains(is_bad) => "holds a control character, a backslash or a colon",
        // Some systems drop dots and spaces at the end of a name.
        name if name.ends_with(['.', ' ']) => "ends in a dot or a space",
        name if is_device(name) => "is that of a device on some systems",
        name if name.get(..OURS.len()).is_some_and(|it| it.eq_ignore_ascii_case(OURS)) => {
            "begins with `.harvest`, which is kept for the replicator"
        }
        _ => return Ok(()),
    };
    Err(PathError::Component(name.into(), problem))
}

fn is_device(name: &str) -> bool {
    // Windows drops spaces before the dot too.
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ');
    let is_numbered = |device: &str| {
        let start = stem.get(..device.len());
        let mut rest = stem.chars().skip(device.len());
        start.is_some_and(|it| it.eq_ignore_ascii_case(device))
            && rest.next().is_some_and(|it| matches!(it, '0'..='9' | '¹' | '²' | '³'))
            && rest.next().is_none()
    };
    DEVICES.iter().any(|it| stem.eq_ignore_ascii_case(it))
        || NUMBERED_DEVICES.into_iter().any(is_numbered)
}

/// Returns the folded form of a name: names with equal forms are the same on some file system. Case
/// is folded and composition normalized.
///
/// Conversion to lower, upper and again lower case gives Unicode's case folding, except that it
/// also merges a few letters, such as `i` and the dotless `ı`.
pub(super) fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let lower = name.nfd().flat_map(char::to_lowercase);
    lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

impl Ord for EntryPath {
    fn cmp(&self, other: &Self) -> Ordering {
        // A slash sorts before any character of a name.
        let key = |it: u8| if it == b'/' { 0 } else { it };
        self.0.bytes().map(key).cmp(other.0.bytes().map(key))
    }
}

impl PartialOrd for EntryPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> EntryPath {
        EntryPath::new(text).unwrap()
    }

    fn check_component(name: &str, expected: &'static str) {
        for text in [name.to_owned(), format!("a/{name}"), format!("{name}/a")] {
            let found = EntryPath::new(&text);
            let name = name.into();
            // An empty name is an empty path if it is the only one.
            if text.is_empty() {
                assert_eq!(found, Err(PathError::Length(0)));
            } else {
                assert_eq!(found, Err(PathError::Component(name, expected)), "{text:?}");
            }
        }
    }

    #[test]
    fn components_are_checked() {
        let long = "x".repeat(255);
        let deep = "d/".repeat(127) + "f";
        let console = ["console", "com", "com10", "comx", "lpt1x", "a.con", "nulls", "co", "c"];
        let others =
            ["a", "a/b", "ä", "a b", ".a", "..a", "a.b.c", "?*<>|\"", "harvest", &long, &deep];
        for text in console.into_iter().chain(others) {
            assert_eq!(EntryPath::new(text).unwrap().as_str(), text);
        }
        check_component("", "is empty");
        check_component(".", "stands for another directory");
        check_component("..", "stands for another directory");
        check_component(&"x".repeat(256), "has more than 255 bytes");
        for name in ["a\\b", "c:", "a\0", "a\nb", "a\u{7f}", "a\u{85}b"] {
            check_component(name, "holds a control character, a backslash or a colon");
        }
        for name in ["a.", "a ", "...", " "] {
            check_component(name, "ends in a dot or a space");
        }
        for name in
            ["CON", "nul.txt", "Aux.tar.gz", "com1", "LPT9.x", "com0", "COM²", "prn .txt", "conIN$"]
        {
            check_component(name, "is that of a device on some systems");
        }
        for name in [".harvest", ".harvest-x", ".HARVEST"] {
            check_component(name, "begins with `.harvest`, which is kept for the replicator");
        }
        assert_eq!(EntryPath::new(&("d/".repeat(128) + "f")), Err(PathError::Depth));
        assert_eq!(EntryPath::new(&"x/".repeat(2049)), Err(PathError::Length(4098)));
    }

    #[test]
    fn links_stay_in_their_tree() {
        let good = [
            ("l", "a"),
            ("l", "a/b"),
            ("l", "./a"),
            ("l", "."),
            ("d/l", ".."),
            ("d/l", "../a"),
            ("d/e/l", "../../a/b"),
            ("d/e/l", ".././../a"),
            ("d/l", "l"),
        ];
        for (link, target) in good {
            assert_eq!(path(link).check_target(target), Ok(()), "{link} -> {target}");
        }
        let bad = [
            ("l", ".."),
            ("l", "/a"),
            ("l", "/"),
            ("d/l", "../.."),
            ("l", "a/.."),
            ("d/l", "a/../b"),
            ("l", "a//b"),
            ("l", "a/"),
            ("l", ""),
            ("l", "a\0"),
            ("l", "CON"),
            ("d/e/l", "../a/../b"),
        ];
        for (link, target) in bad {
            assert!(path(link).check_target(target).is_err(), "{link} -> {target}");
        }
    }

    #[test]
    fn names_that_are_the_same_on_some_system_fold_to_the_same() {
        let same = [
            ("README", "readme"),
            ("é", "e\u{301}"),
            ("É", "e\u{301}"),
            ("straße", "STRASSE"),
            ("Σίσυφος", "σίσυφοσ"),
            ("\u{212a}", "k"),
            ("\u{212b}", "å"),
            ("ﬁ", "FI"),
            ("\u{1e9e}", "ss"),
        ];
        for (one, other) in same {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        for (one, other) in [("a", "b"), ("a", "ä"), ("e", "é"), ("1", "²")] {
            assert_ne!(fold(one), fold(other), "{one} {other}");
        }
    }

    #[test]
    fn a_directory_comes_right_before_its_entries() {
        let mut paths = ["a!", "a/b!", "a/b/c", "a", "a/b", "b", "a b", "ab"].map(path);
        paths.sort();
        assert_eq!(
            paths.iter().map(EntryPath::as_str).collect::<Vec<_>>(),
            ["a", "a/b", "a/b/c", "a/b!", "a b", "a!", "ab", "b"],
        );
        assert!(path("a").is_above(&path("a/b/c")));
        assert!(!path("a").is_above(&path("a")) && !path("a").is_above(&path("ab/c")));
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_components(one in "[ab!]{1,2}(/[ab!]{1,2}){0,3}", other in "[ab!]{1,2}(/[ab!]{1,2}){0,3}") {
            let (one, other) = (path(&one), path(&other));
            prop_assert_eq!(one.cmp(&other), one.components().cmp(other.components()));
        }

        #[test]
        fn folding_twice_changes_nothing(name in "\\PC{1,12}") {
            prop_assert_eq!(fold(&fold(&name)), fold(&name));
        }

        #[test]
        fn an_accepted_link_stays_in_its_tree(depth in 0usize..4, target in "(\\.\\.|\\.|a|b)(/(\\.\\.|\\.|a|b)){0,5}") {
            let link = path(&("d/".repeat(depth) + "l"));
            if link.check_target(&target).is_ok() {
                let mut at = i64::try_from(depth).unwrap();
                for name in target.split('/') {
                    at += match name { ".." => -1, "." => 0, _ => 1 };
                    prop_assert!(0 <= at);
                }
            }
        }
    }
}
