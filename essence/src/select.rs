//! Candidate selection: the choice of objects to summarize.
//!
//! Source: TR §4 ("candidate selection"), the stop list and allow list of the user's manual, and
//! Essence's rule that object code next to its source says nothing new.
//!
//! An object is left out by its name or its size, or because its source exists, before it is read.
//! It is left out by its type as soon as the type is known. A stopped type leaves out everything
//! that the object holds, too. An object that is left out has no record, and its earlier record is
//! deleted.
//!
//! # Differences from the paper
//!
//! * Nothing is left out by default. The original's stop list had binaries, objects and backups,
//!   but people look for these by name.
//! * Stop list and allow list may be used together: the stop list wins.
//! * Packed files and archives whose types are not on the allow list are still opened, since their
//!   members may be on it. They only get no records of their own.
//! * The site names the pairs of source and product itself.
//!
//! Sans-I/O.

use std::collections::BTreeSet;
use std::path::Path;

use formats::Type;
use globset::GlobSet;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::glob;

/// Reason why an object is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LeftOut {
    /// Its type is on the stop list.
    StoppedType,
    /// There is an allow list, and its type is not on it.
    TypeNotAllowed,
    /// Its name is on the stop list.
    StoppedName,
    /// There is an allow list, and its name is not on it.
    NameNotAllowed,
    /// It has fewer bytes than the smallest allowed size.
    TooSmall,
    /// It has more bytes than the largest allowed size.
    TooLarge,
    /// Its source exists in the same folder.
    HasSource,
}

impl LeftOut {
    /// Returns the name under which the reason is counted, in kebab case.
    pub fn name(self) -> &'static str {
        match self {
            Self::StoppedType => "stopped-type",
            Self::TypeNotAllowed => "type-not-allowed",
            Self::StoppedName => "stopped-name",
            Self::NameNotAllowed => "name-not-allowed",
            Self::TooSmall => "too-small",
            Self::TooLarge => "too-large",
            Self::HasSource => "has-source",
        }
    }
}

/// Files that are made from other files in the same folder, both given by patterns of names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFor {
    /// Name of the product, with one `*` or none.
    pub made: String,
    /// Names of its possible sources, with a `*` if the product's has one.
    pub from: Vec<String>,
}

/// Settings of the selection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectionSettings {
    /// Types that are left out.
    pub stop_types: BTreeSet<Type>,
    /// The only types that are taken; if empty, all types.
    pub allow_types: BTreeSet<Type>,
    /// Glob patterns of names that are left out, with the syntax of a root's patterns.
    pub stop_names: Vec<String>,
    /// Patterns of the only names that are taken; if empty, all names.
    pub allow_names: Vec<String>,
    /// Minimum size, in bytes.
    pub size_min: u64,
    /// Maximum size, in bytes; `None` for no limit.
    pub size_max: Option<u64>,
    /// Products that are left out if their source exists.
    pub source_for: Vec<SourceFor>,
}

/// Selection with compiled patterns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "SelectionSettings", try_from = "SelectionSettings")]
pub struct Selection {
    settings: SelectionSettings,
    stop_names: GlobSet,
    /// Allowed names; `None` if all are allowed.
    allow_names: Option<GlobSet>,
}

impl From<Selection> for SelectionSettings {
    fn from(it: Selection) -> Self {
        it.settings
    }
}

impl TryFrom<SelectionSettings> for Selection {
    type Error = Error;

    fn try_from(it: SelectionSettings) -> Result<Self, Error> {
        Self::new(&it)
    }
}

impl Selection {
    /// Compiles the settings.
    ///
    /// # Errors
    ///
    /// Returns the first pattern that is not a glob: the settings have to be corrected.
    pub fn new(settings: &SelectionSettings) -> Result<Self, Error> {
        let globs = |patterns: &[String]| {
            glob::globs(patterns).map_err(|(pattern, message)| Error::Pattern { pattern, message })
        };
        let allowed = &settings.allow_names;
        Ok(Self {
            stop_names: globs(&settings.stop_names)?,
            allow_names: if allowed.is_empty() { None } else { Some(globs(allowed)?) },
            settings: settings.clone(),
        })
    }

    /// Returns why the object at `path` (relative to its root or container) with `size` bytes is
    /// left out, regardless of its type; `None` if it may be taken.
    pub fn by_name(&self, path: &Path, size: u64) -> Option<LeftOut> {
        if self.stop_names.is_match(path) {
            Some(LeftOut::StoppedName)
        } else if self.allow_names.as_ref().is_some_and(|it| !it.is_match(path)) {
            Some(LeftOut::NameNotAllowed)
        } else if size < self.settings.size_min {
            Some(LeftOut::TooSmall)
        } else if self.settings.size_max.is_some_and(|most| most < size) {
            Some(LeftOut::TooLarge)
        } else {
            None
        }
    }

    /// Returns why objects of this type are left out with everything that they hold; `None` if they
    /// are not.
    pub fn stops(&self, r#type: Type) -> Option<LeftOut> {
        self.settings.stop_types.contains(&r#type).then_some(LeftOut::StoppedType)
    }

    /// Returns why objects of this type have no records; `None` if they have records.
    pub fn by_type(&self, r#type: Type) -> Option<LeftOut> {
        let allowed = &self.settings.allow_types;
        let not_allowed = !allowed.is_empty() && !allowed.contains(&r#type);
        self.stops(r#type).or_else(|| not_allowed.then_some(LeftOut::TypeNotAllowed))
    }

    /// Returns the names of the possible sources of the file called `name`, in the same folder.
    pub fn sources_of(&self, name: &[u8]) -> Vec<Vec<u8>> {
        self.pairs().filter_map(|(made, from)| renamed(name, made, from)).collect()
    }

    /// Returns the names of the files that are made from the file called `name`, in the same
    /// folder.
    pub fn made_of(&self, name: &[u8]) -> Vec<Vec<u8>> {
        self.pairs().filter_map(|(made, from)| renamed(name, from, made)).collect()
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.settings.source_for.iter();
        pairs.flat_map(|pair| pair.from.iter().map(move |from| (&*pair.made, &**from)))
    }
}

/// Applies to `name` the renaming from the pattern `from` to the pattern `to`; `None` if `from`
/// does not match.
fn renamed(name: &[u8], from: &str, to: &str) -> Option<Vec<u8>> {
    let Some((before, after)) = from.split_once('*') else {
        // If only `to` has a star, there is no text to replace the star.
        return (name == from.as_bytes() && !to.contains('*')).then(|| to.as_bytes().to_vec());
    };
    let stem = name.strip_prefix(before.as_bytes())?.strip_suffix(after.as_bytes())?;
    let (before, after) = to.split_once('*')?;
    (!stem.is_empty()).then(|| [before.as_bytes(), stem, after.as_bytes()].concat())
}

/// Returns the mistake in a pair of names; `None` if there is none.
pub fn mistake(made: &str, from: &str) -> Option<String> {
    let is_bad = |name: &str| {
        name.is_empty()
            || name.contains(['/', '?', '[', '{', '\\'])
            || 1 < name.matches('*').count()
    };
    if let Some(bad) = [made, from].into_iter().find(|it| is_bad(it)) {
        return Some(format!("{bad:?} is no name with at most one * in it"));
    }
    if made.contains('*') != from.contains('*') {
        return Some(format!("only one of {made:?} and {from:?} has a *"));
    }
    (made == from).then(|| format!("{made:?} would be made of itself"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn nothing_is_left_out_by_default() {
        let selection = Selection::new(&SelectionSettings::default()).unwrap();
        for r#type in Type::ALL {
            assert_eq!(selection.by_type(*r#type), None);
        }
        assert_eq!(selection.by_name(Path::new("a.o"), 0), None);
        assert_eq!(selection.by_name(Path::new("a~"), u64::MAX), None);
        assert!(selection.sources_of(b"a.o").is_empty());
    }

    #[test]
    fn objects_are_left_out_by_name_and_size() {
        let settings = SelectionSettings {
            stop_names: texts(&["*.tmp", "/build"]),
            allow_names: texts(&["*.html", "*.tmp", "docs/"]),
            size_min: 2,
            size_max: Some(9),
            ..SelectionSettings::default()
        };
        let selection = Selection::new(&settings).unwrap();
        for (path, size, expected) in [
            ("a/b.html", 2, None),
            ("docs/b.txt", 9, None),
            ("docs/b.tmp", 5, Some(LeftOut::StoppedName)),
            ("build/b.html", 5, Some(LeftOut::StoppedName)),
            ("x/build/b.html", 5, None),
            ("a/b.txt", 5, Some(LeftOut::NameNotAllowed)),
            ("b.html", 1, Some(LeftOut::TooSmall)),
            ("b.html", 10, Some(LeftOut::TooLarge)),
        ] {
            assert_eq!(selection.by_name(Path::new(path), size), expected, "{path}");
        }
        let bad = SelectionSettings { stop_names: texts(&["a["]), ..SelectionSettings::default() };
        assert!(Selection::new(&bad).unwrap_err().to_string().contains("\"a[\""));
    }

    #[test]
    fn the_stop_list_of_types_wins() {
        let settings = SelectionSettings {
            stop_types: [Type::Object, Type::Html].into(),
            allow_types: [Type::Html, Type::Pdf].into(),
            ..SelectionSettings::default()
        };
        let selection = Selection::new(&settings).unwrap();
        assert_eq!(selection.by_type(Type::Html), Some(LeftOut::StoppedType));
        assert_eq!(selection.by_type(Type::Pdf), None);
        assert_eq!(selection.by_type(Type::Tar), Some(LeftOut::TypeNotAllowed));
        assert_eq!(selection.stops(Type::Tar), None);
    }

    #[test]
    fn sources_and_products_have_the_same_stem() {
        let pair = |made: &str, from: &[&str]| SourceFor { made: made.into(), from: texts(from) };
        let source_for = vec![
            pair("*.o", &["*.c", "*.cc"]),
            pair("lib*.html", &["*.md"]),
            pair("parser.c", &["parser.y"]),
        ];
        let selection =
            Selection::new(&SelectionSettings { source_for, ..SelectionSettings::default() })
                .unwrap();
        let text = |names: Vec<Vec<u8>>| {
            names.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(text(selection.sources_of(b"a.b.o")), ["a.b.c", "a.b.cc"]);
        assert_eq!(text(selection.sources_of(b"libx.html")), ["x.md"]);
        assert_eq!(text(selection.sources_of(b"parser.c")), ["parser.y"]);
        assert!(selection.sources_of(b".o").is_empty());
        assert!(selection.sources_of(b"lib.html").is_empty());
        assert_eq!(text(selection.made_of(b"x.md")), ["libx.html"]);
        assert_eq!(text(selection.made_of(b"parser.c")), ["parser.o"]);
        assert_eq!(text(selection.made_of(b"\xff.c")), ["\u{fffd}.o"]);
    }

    #[test]
    fn pairs_that_make_no_sense_are_mistakes() {
        assert_eq!(mistake("*.o", "*.c"), None);
        assert_eq!(mistake("parser.c", "parser.y"), None);
        for (made, from) in
            [("*.o", "x.c"), ("*.*", "*.c"), ("a/*.o", "*.c"), ("*.o", ""), ("*.c", "*.c")]
        {
            assert!(mistake(made, from).is_some(), "{made} {from}");
        }
    }
}
