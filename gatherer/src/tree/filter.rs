//! The filter of a root's files: patterns, hidden names, sizes.
//!
//! A pattern is a [glob](essence::glob) that is matched with the path below the root's top. A name
//! that is not UTF-8 is matched by its bytes.
//!
//! # Differences from the original
//!
//! The original's filters are ordered `Allow`/`Deny` lists of regular expressions. Here a file is
//! gathered if an `include` pattern matches it (or there are none) and no `exclude` pattern does:
//! their order does not matter.
//!
//! Sans-I/O.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use essence::glob::globs;
use globset::GlobSet;

use crate::error::Error;
use crate::spec::Tree;

/// Reason why a file or directory is left out, in kebab case.
pub type LeftOut = &'static str;

/// A root's compiled patterns and limits.
#[derive(Clone, Debug)]
pub struct Filter {
    include: Option<GlobSet>,
    exclude: GlobSet,
    hidden: bool,
    file_bytes_max: Option<u64>,
}

impl Filter {
    /// Returns the filter of a root.
    ///
    /// # Errors
    ///
    /// Returns the first pattern that is not a glob: the settings have to be corrected.
    pub fn new(tree: &Tree) -> Result<Self, Error> {
        let include = if tree.include.is_empty() { None } else { Some(set(tree, &tree.include)?) };
        Ok(Self {
            include,
            exclude: set(tree, &tree.exclude)?,
            hidden: tree.hidden,
            file_bytes_max: tree.file_bytes_max,
        })
    }

    /// Returns why nothing below the directory at `below` (a path relative to the top) is gathered;
    /// `None` if something may be gathered.
    pub fn leaves_out_directory(&self, below: &Path) -> Option<LeftOut> {
        if !self.hidden && is_hidden(below) {
            return Some("hidden");
        }
        let excluded = !self.exclude.is_empty() && self.exclude.is_match(below);
        excluded.then_some("excluded")
    }

    /// Returns why the file at `below` with `size` bytes is not gathered; `None` if it is gathered.
    pub fn leaves_out(&self, below: &Path, size: u64) -> Option<LeftOut> {
        self.leaves_out_directory(below).or_else(|| self.leaves_out_file(below, size))
    }

    /// Does the same as [`Filter::leaves_out`] for files that pass
    /// [`Filter::leaves_out_directory`].
    pub fn leaves_out_file(&self, below: &Path, size: u64) -> Option<LeftOut> {
        if self.include.as_ref().is_some_and(|include| !include.is_match(below)) {
            return Some("not-included");
        }
        self.file_bytes_max.is_some_and(|most| most < size).then_some("too-large")
    }
}

fn is_hidden(below: &Path) -> bool {
    let bytes = below.as_os_str().as_bytes();
    // This runs for every file of every pass: searching for dots is faster than splitting the path.
    memchr::memchr_iter(b'.', bytes).any(|at| {
        let (before, from) = bytes.split_at_checked(at).unwrap_or_default();
        let starts_name = before.last().is_none_or(|it| *it == b'/');
        let name = from.split(|it| *it == b'/').next().unwrap_or_default();
        starts_name && name != b"." && name != b".."
    })
}

fn set(tree: &Tree, patterns: &[String]) -> Result<GlobSet, Error> {
    globs(patterns).map_err(|(pattern, message)| Error::Pattern {
        root: tree.url(),
        pattern,
        message,
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[track_caller]
    fn check(include: &[&str], exclude: &[&str], path: &str, expected: Option<LeftOut>) {
        let root = Tree {
            include: include.iter().map(ToString::to_string).collect(),
            exclude: exclude.iter().map(ToString::to_string).collect(),
            file_bytes_max: Some(10),
            ..Tree::new("/r")
        };
        let filter = Filter::new(&root).unwrap();
        assert_eq!(filter.leaves_out(Path::new(path), 10), expected, "{path}");
    }

    #[test]
    fn patterns_match_names_at_any_depth_and_paths_from_the_top() {
        check(&[], &[], "a/b.txt", None);
        check(&["*.txt"], &[], "a/b.txt", None);
        check(&["*.txt"], &[], "a/b.txt.gz", Some("not-included"));
        check(&["docs"], &[], "docs/a/b", None);
        check(&["docs/"], &[], "x/docs/a/b", None);
        check(&["/docs"], &[], "x/docs/a/b", Some("not-included"));
        check(&["docs/*.md"], &[], "docs/a.md", None);
        check(&["docs/*.md"], &[], "docs/x/a.md", Some("not-included"));
        check(&["docs/**/*.md"], &[], "docs/x/y/a.md", None);
        check(&[], &["node_modules/"], "a/node_modules/b/c.js", Some("excluded"));
        check(&["*.c"], &["test_*"], "src/test_a.c", Some("excluded"));
        check(&["{a,b}[0-9]"], &[], "a7", None);
    }

    #[test]
    fn hidden_and_large_files_are_left_out_by_settings() {
        check(&[], &[], ".git/config", Some("hidden"));
        check(&[], &[], "a/.b/c", Some("hidden"));
        let filter = Filter::new(&Tree { hidden: true, ..Tree::new("/r") }).unwrap();
        assert_eq!(filter.leaves_out(Path::new(".git/config"), u64::MAX), None);
        check(&[], &[], "a/b.c/d..e/../f./.", None);
        check(&[], &[], "a/..b", Some("hidden"));
        let filter = Filter::new(&Tree { file_bytes_max: Some(9), ..Tree::new("/r") }).unwrap();
        assert_eq!(filter.leaves_out(Path::new("a"), 10), Some("too-large"));
    }

    #[test]
    fn a_name_that_is_not_utf8_is_matched_by_its_bytes() {
        let root = Tree { exclude: vec!["*.tmp".into()], ..Tree::new("/r") };
        let filter = Filter::new(&root).unwrap();
        let name = Path::new(OsStr::from_bytes(b"\xff.tmp"));
        assert_eq!(filter.leaves_out(name, 0), Some("excluded"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let root = Tree { exclude: vec!["a[".into()], ..Tree::new("/r") };
        let shown = Filter::new(&root).unwrap_err().to_string();
        assert!(shown.contains("\"a[\"") && shown.contains("file:///r"), "{shown}");
    }
}
