//! The path of an entry of a tree, and where its symbolic links may lead.
//!
//! Source: ours; what no path may hold is what some file system of a member refuses, folds or gives a meaning
//! of its own: Microsoft, "Naming Files, Paths, and Namespaces"; Git's checks of paths (`verify_path`).
//!
//! Sans-I/O.

use std::cmp::Ordering;
use std::fmt;

use unicode_normalization::UnicodeNormalization as _;

/// Longest path, and longest target of a symbolic link, in bytes.
pub const PATH_BYTES_MAX: usize = 4096;
/// Longest component of a path, in bytes.
pub const COMPONENT_BYTES_MAX: usize = 255;
/// Most components of a path.
pub const DEPTH_MAX: usize = 128;

/// Names that begin so are the replicator's, whatever their case.
const OURS: &str = ".harvest";
/// What Windows takes for a device, whatever follows behind a dot. A digit from 0 to 9 or a superscript 1 to 3
/// makes one of the last two.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];

/// Where an entry is in its tree: UTF-8, components between `/`, at most [`PATH_BYTES_MAX`], [`DEPTH_MAX`] of
/// them with [`COMPONENT_BYTES_MAX`] each.
///
/// No component is empty, `.` or `..`, holds a control character, `\` or `:`, ends in a dot or a space, is
/// a device of Windows, or begins with `.harvest`.
///
/// Paths are ordered component by component, each by its bytes, a directory right before what is in it: so all
/// that is below a directory stands together, and what would be below a file stands right behind it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EntryPath(Box<str>);

/// Why text is no path of an entry, or bytes are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It is not UTF-8.
    #[error("the name {0} is not UTF-8: rename it")]
    Utf8(String),
    /// It is empty or too long.
    #[error("a path has {0} bytes, 1 to {PATH_BYTES_MAX} can be replicated")]
    Length(usize),
    /// It is in too many directories.
    #[error("a path has more than {DEPTH_MAX} components")]
    Depth,
    /// One of its components may not be.
    #[error("the name {name:?} {problem}")]
    Component {
        /// That component.
        name: Box<str>,
        /// What is wrong with it.
        problem: ComponentProblem,
    },
    /// A symbolic link leads out of the tree, or may do so.
    #[error(
        "a symbolic link leads to {0:?}: only `..` up to the top of the tree and then names may stand in it"
    )]
    Target(Box<str>),
}

/// What is wrong with a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComponentProblem {
    /// Nothing is between two slashes, or before the first or behind the last one.
    #[error("is empty")]
    Empty,
    /// `.` or `..`.
    #[error("stands for another directory")]
    Dots,
    /// Beyond [`COMPONENT_BYTES_MAX`].
    #[error("has more than {COMPONENT_BYTES_MAX} bytes")]
    Long,
    /// A control character, `\` or `:`.
    #[error("holds a control character, a backslash or a colon")]
    Character,
    /// A dot or a space at the end, which some systems drop.
    #[error("ends in a dot or a space")]
    End,
    /// What some systems take for a device.
    #[error("is that of a device on some systems")]
    Device,
    /// Begins as the replicator's own names do.
    #[error("begins with `{OURS}`, which is kept for the replicator")]
    Ours,
}

impl EntryPath {
    /// Takes the text if it is a path.
    ///
    /// # Errors
    ///
    /// It is none: refuse what it stands in, or have it renamed.
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

    /// Returns the path of what has this name in the directory `self`, or at the top if there is none.
    ///
    /// # Errors
    ///
    /// As [`EntryPath::new`], for the name.
    pub fn child(directory: Option<&Self>, name: &str) -> Result<Self, PathError> {
        check(name)?;
        directory.map_or_else(|| Self::new(name), |it| Self::new(&format!("{it}/{name}")))
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its components, from the top down; there is one at least.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Whether `other` is below it, at any depth.
    #[must_use]
    pub fn is_above(&self, other: &Self) -> bool {
        other.0.strip_prefix(&*self.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Checks that a symbolic link of this path stays in the tree: it leads up by `..` as far as the top, then
    /// down by names alone (`.` stands for nothing). As nothing is below a symbolic link, what it goes up by
    /// are directories; a `..` behind a name could begin at the far end of another link.
    ///
    /// # Errors
    ///
    /// [`PathError::Target`], or what is wrong with a name in it.
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

/// Checks a component.
fn check(name: &str) -> Result<(), PathError> {
    let is_bad = |it: char| it.is_control() || matches!(it, '\\' | ':' | '/');
    let problem = match name {
        "" => ComponentProblem::Empty,
        "." | ".." => ComponentProblem::Dots,
        name if COMPONENT_BYTES_MAX < name.len() => ComponentProblem::Long,
        name if name.contains(is_bad) => ComponentProblem::Character,
        name if name.ends_with(['.', ' ']) => ComponentProblem::End,
        name if is_device(name) => ComponentProblem::Device,
        name if name.get(..OURS.len()).is_some_and(|it| it.eq_ignore_ascii_case(OURS)) => {
            ComponentProblem::Ours
        }
        _ => return Ok(()),
    };
    Err(PathError::Component { name: name.into(), problem })
}

fn is_device(name: &str) -> bool {
    // Spaces before the dot are dropped too.
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

/// Returns what names have in common that one file system or another takes for the same: the case is folded
/// and what is composed is composed one way.
///
/// Lower, upper and lower case again is Unicode's folding but for a few letters that this takes for the same
/// too, such as `i` and the `ı` without a dot.
pub(super) fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let lower = name.nfd().flat_map(char::to_lowercase);
    lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

impl Ord for EntryPath {
    fn cmp(&self, other: &Self) -> Ordering {
        // A slash comes before whatever a name may hold.
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

    fn check_component(name: &str, expected: ComponentProblem) {
        for text in [name.to_owned(), format!("a/{name}"), format!("{name}/a")] {
            let found = EntryPath::new(&text);
            let name = name.into();
            // An empty name alone is an empty path.
            if text.is_empty() {
                assert_eq!(found, Err(PathError::Length(0)));
            } else {
                assert_eq!(
                    found,
                    Err(PathError::Component { name, problem: expected }),
                    "{text:?}"
                );
            }
        }
    }

    #[test]
    fn what_a_path_may_hold() {
        let long = "x".repeat(255);
        let deep = "d/".repeat(127) + "f";
        let console = ["console", "com", "com10", "comx", "lpt1x", "a.con", "nulls", "co", "c"];
        let others =
            ["a", "a/b", "ä", "a b", ".a", "..a", "a.b.c", "?*<>|\"", "harvest", &long, &deep];
        for text in console.into_iter().chain(others) {
            assert_eq!(EntryPath::new(text).unwrap().as_str(), text);
        }
        check_component("", ComponentProblem::Empty);
        check_component(".", ComponentProblem::Dots);
        check_component("..", ComponentProblem::Dots);
        check_component(&"x".repeat(256), ComponentProblem::Long);
        for name in ["a\\b", "c:", "a\0", "a\nb", "a\u{7f}", "a\u{85}b"] {
            check_component(name, ComponentProblem::Character);
        }
        for name in ["a.", "a ", "...", " "] {
            check_component(name, ComponentProblem::End);
        }
        for name in
            ["CON", "nul.txt", "Aux.tar.gz", "com1", "LPT9.x", "com0", "COM²", "prn .txt", "conIN$"]
        {
            check_component(name, ComponentProblem::Device);
        }
        for name in [".harvest", ".harvest-x", ".HARVEST"] {
            check_component(name, ComponentProblem::Ours);
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
    fn names_that_some_system_takes_for_the_same_fold_to_the_same() {
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
    fn a_directory_stands_right_before_what_is_in_it() {
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
        fn a_link_that_is_taken_never_leaves(depth in 0usize..4, target in "(\\.\\.|\\.|a|b)(/(\\.\\.|\\.|a|b)){0,5}") {
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
