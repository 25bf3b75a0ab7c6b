//! Annotations: people's statements about objects, laid over the objects' records.
//!
//! Source: the user's manual (manual annotations, stored apart from generated data and merged with
//! it), and IAFA templates, which keepers of archives wrote for the same purpose. When an
//! annotation is removed, the record is again as it was generated.
//!
//! A [`Statement`] replaces an attribute or adds lines to it. An [`Annotation`] is a group of
//! statements in a file about one object, or about all objects whose URLs match a pattern.
//! [`Annotations`] holds those of all files, in order. Statements about one attribute are applied
//! in this order: a later replacement overrides the earlier ones.
//!
//! # Differences from the paper
//!
//! * In addition to SOIF there are IAFA templates and taxonomies.
//! * A statement may add to the record's value, or remove the attribute.
//! * If a file has mistakes, its last valid content is used.
//!
//! Sans-I/O.

mod iafa;
mod lay;
mod soif;
pub mod sources;
mod taxonomy;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ::soif::Record;
use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use lay::lay_over;
use settings::Mistake;

use crate::fingerprint::fingerprint_of;
use crate::rules;

/// Maximum number of annotations in all files together. A term or template about several objects
/// makes one annotation for each.
pub const ANNOTATIONS_MAX: usize = 100_000;
/// Maximum number of patterns in all files together. Each is matched with every gathered file.
pub const PATTERNS_MAX: usize = 1_000;
/// Maximum length of a value that an annotation may give an attribute, in bytes.
pub const VALUE_BYTES_MAX: usize = rules::VALUE_BYTES_MAX;

/// Attributes that are lists: by default a statement adds to them.
const LISTS: &[&str] = &["Keywords", "Subject", "Subject-Code", "Identifier", "URL-References"];

/// Effect of a statement on the record's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The value is replaced; an empty value removes the attribute.
    Replace,
    /// Lines are added, except empty ones and those that are there already.
    Add,
}

/// Statement of an annotation about one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The attribute.
    pub attribute: String,
    /// Effect on the record's value.
    pub effect: Effect,
    /// The value, or the lines to add.
    pub value: Vec<u8>,
}

impl Statement {
    /// Reads a statement: the attribute's name, followed by `+` for adding or `=` for replacing,
    /// and a value. Without such a mark, a value is added to attributes that are lists; it replaces
    /// others, and an empty value removes any attribute.
    ///
    /// # Errors
    ///
    /// Returns the reason why the statement is not valid, in words for its author.
    pub fn new(written: &str, value: impl Into<Vec<u8>>) -> Result<Self, String> {
        let value = value.into();
        let marked = |mark| written.strip_suffix(mark).map(str::to_owned);
        let (attribute, effect) = if let Some(name) = marked('+') {
            (name, Effect::Add)
        } else if let Some(name) = marked('=') {
            (name, Effect::Replace)
        } else if is_list(written) && !value.is_empty() {
            (written.to_owned(), Effect::Add)
        } else {
            (written.to_owned(), Effect::Replace)
        };
        if !is_name(&attribute) {
            return Err(format!("{attribute:?} is no name of an attribute"));
        }
        if is_protected(&attribute) {
            return Err(format!("{attribute} says which object this is, and cannot be changed"));
        }
        if VALUE_BYTES_MAX < value.len() {
            return Err(format!("{attribute} is longer than {VALUE_BYTES_MAX} bytes"));
        }
        if effect == Effect::Add && value.is_empty() {
            return Err(format!("nothing is added to {attribute}"));
        }
        Ok(Self { attribute, effect, value })
    }
}

/// Writes `Title = …`, `Keywords + …`, or `Title taken away`.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = String::from_utf8_lossy(&self.value);
        match self.effect {
            Effect::Replace if value.is_empty() => write!(f, "{} taken away", self.attribute),
            Effect::Replace => write!(f, "{} = {value:?}", self.attribute),
            Effect::Add => write!(f, "{} + {value:?}", self.attribute),
        }
    }
}

fn is_list(attribute: &str) -> bool {
    LISTS.iter().any(|it| it.eq_ignore_ascii_case(attribute))
}

fn is_name(attribute: &str) -> bool {
    let is_part = |it: u8| b' ' < it && !matches!(it, b'{' | b'}' | b'+' | b'=' | 0x7f);
    !attribute.is_empty() && !attribute.starts_with('@') && attribute.bytes().all(is_part)
}

/// Returns whether the attribute identifies the object or its gatherer.
fn is_protected(attribute: &str) -> bool {
    let begin = attribute.get(.."gatherer-".len());
    rules::is_identity(attribute) || begin.is_some_and(|it| it.eq_ignore_ascii_case("gatherer-"))
}

/// Statements of a file about one object, or about all objects that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Line of the file where the annotation begins, from 1.
    pub line: usize,
    /// The object's URL. With `is_pattern`, a URL where `*` matches any part of a name, and `**`
    /// any folders.
    pub about: String,
    /// Whether `about` is a pattern.
    pub is_pattern: bool,
    /// The statements, in order.
    pub statements: Arc<[Statement]>,
}

/// Reads a file of annotations, whose format is given by the extension of its name.
///
/// # Errors
///
/// Returns the mistakes that were found; damaged SOIF and very many mistakes may hide others.
pub fn read(path: &Path, bytes: &[u8]) -> Result<Vec<Annotation>, Vec<Mistake>> {
    let text = || {
        std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            vec![mistake_at(bytes, at, "is no UTF-8", "the file in UTF-8")]
        })
    };
    match path.extension().and_then(OsStr::to_str) {
        Some("soif") => soif::read(bytes),
        Some("iafa") => iafa::read(text()?),
        Some("toml") => taxonomy::read(text()?),
        _ => Err(vec![mistake_at(b"", 0, "no sort of annotations", "*.soif, *.iafa or *.toml")]),
    }
}

/// Returns whether this is the name of a file of annotations.
pub fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|it| ["soif", "iafa", "toml"].iter().any(|known| it == *known))
}

fn mistake_at(bytes: &[u8], at: usize, message: &str, expected: &str) -> Mistake {
    let before = bytes.get(..at).unwrap_or(bytes);
    let line = before.iter().filter(|it| **it == b'\n').count() + 1;
    let start = before.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let column = String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count();
    let (message, expected) = (message.to_owned(), expected.to_owned());
    Mistake { file: None, line, column: column + 1, message, expected }
}

/// Annotation with its file and its matches.
#[derive(Debug)]
pub struct Entry {
    file: Arc<Path>,
    annotation: Annotation,
    /// Pattern of members; `None` if `about` is no pattern, or matches no members of containers.
    members: Option<GlobMatcher>,
    fingerprint: u64,
    /// Whether the annotation's pattern has matched a file since [`Annotations::reset_matches`].
    has_file: AtomicBool,
    /// Whether the annotation's pattern of members has matched a member since that call.
    has_member: AtomicBool,
}

impl Entry {
    /// Returns the object's URL or the pattern.
    pub fn about(&self) -> &str {
        &self.annotation.about
    }

    /// Returns the statements, in order.
    pub fn statements(&self) -> &[Statement] {
        &self.annotation.statements
    }

    fn is_about(&self, url: &str) -> bool {
        if !self.annotation.is_pattern {
            return self.annotation.about == url;
        }
        // The callers have already matched the pattern with the object's file.
        match (&self.members, url.split_once('#')) {
            (None, None) => true,
            (Some(members), Some((_, member))) => members.is_match(member),
            _ => false,
        }
    }
}

/// Writes `FILE:LINE`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.annotation.line)
    }
}

/// The annotations of all files, in order, ready to be laid over records.
#[derive(Debug, Default)]
pub struct Annotations {
    entries: Vec<Entry>,
    /// Positions of entries by the URL of their object.
    by_url: HashMap<String, Vec<usize>>,
    /// Positions of entries by the URL of the file that is or contains their object.
    by_file: HashMap<String, Vec<usize>>,
    /// Patterns, each up to its `#` (if any).
    patterns: GlobSet,
    /// Positions of the entries with these patterns, in the same order.
    pattern_positions: Vec<usize>,
}

impl Annotations {
    /// Joins the annotations of files; later files take precedence. Leaves out invalid patterns,
    /// which the readers have refused already.
    pub fn new(files: impl IntoIterator<Item = (Arc<Path>, Arc<[Annotation]>)>) -> Self {
        let mut all = Self::default();
        let mut builder = GlobSetBuilder::new();
        for (file, annotations) in files {
            for annotation in annotations.iter().cloned() {
                let (container, member) = split(&annotation.about);
                let position = all.entries.len();
                let mut members = None;
                if annotation.is_pattern {
                    let Ok(glob) = glob(container) else { continue };
                    members = match member.map(glob_of_members).transpose() {
                        Ok(members) => members,
                        Err(_odd) => continue,
                    };
                    builder.add(glob);
                    all.pattern_positions.push(position);
                } else {
                    all.by_file.entry(container.to_owned()).or_default().push(position);
                    all.by_url.entry(annotation.about.clone()).or_default().push(position);
                }
                let (has_file, has_member) = <(AtomicBool, AtomicBool)>::default();
                all.entries.push(Entry {
                    file: file.clone(),
                    fingerprint: fingerprint(&annotation),
                    annotation,
                    members,
                    has_file,
                    has_member,
                });
            }
        }
        all.patterns = builder.build().unwrap_or_default();
        all
    }

    /// Returns whether there are no annotations.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of annotations.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the annotations about the object at `url`, in order.
    pub fn about<'a>(&'a self, url: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.matching(self.by_url.get(url), split(url).0).filter(move |it| it.is_about(url))
    }

    /// Returns the entries at `positions`, and those whose patterns match the file at `url` or may
    /// match its members, in order.
    fn matching(&self, positions: Option<&Vec<usize>>, url: &str) -> impl Iterator<Item = &Entry> {
        let mut positions = positions.cloned().unwrap_or_default();
        if !self.pattern_positions.is_empty() {
            let matched = self.patterns.matches(url);
            positions.extend(matched.into_iter().filter_map(|it| self.pattern_positions.get(it)));
            positions.sort_unstable();
        }
        positions.into_iter().filter_map(|position| self.entries.get(position))
    }

    /// Returns a fingerprint of the annotations about the file at `url` and its members; 0 if there
    /// are none. Notes which patterns match the file.
    pub fn fingerprint_of_file(&self, url: &str) -> u64 {
        if self.entries.is_empty() {
            return 0;
        }
        let mut sum = 0;
        for it in self.matching(self.by_file.get(url), url) {
            it.has_file.store(true, Relaxed);
            let own = it.fingerprint;
            let fingerprint = if it.annotation.is_pattern || it.annotation.about != url {
                let member = split(it.about()).1.unwrap_or("");
                fingerprint_of(&[&own.to_be_bytes(), member.as_bytes()])
            } else {
                own
            };
            sum = chained(sum, fingerprint);
        }
        sum
    }

    /// Lays the annotations about a record's object over the record. Returns their fingerprint; 0
    /// if there are none.
    pub fn lay_over(&self, record: &mut Record) -> u64 {
        let url = record.url.clone();
        let about: Vec<&Entry> = self.about(&url).collect();
        lay_over(about.iter().flat_map(|it| it.statements()), record);
        about.iter().fold(0, |sum, it| chained(sum, it.fingerprint))
    }

    /// Forgets which patterns have matched a file or a member.
    pub fn reset_matches(&self) {
        for it in &self.entries {
            it.has_file.store(false, Relaxed);
            it.has_member.store(false, Relaxed);
        }
    }

    /// Returns the number of patterns of members that have matched a container, but no member yet.
    pub fn pending_members(&self) -> usize {
        let is_pending = |it: &&Entry| {
            it.members.is_some() && it.has_file.load(Relaxed) && !it.has_member.load(Relaxed)
        };
        self.entries.iter().filter(is_pending).count()
    }

    /// Notes that the object at `url` exists. Returns how many patterns of members have matched
    /// their first member by it.
    pub fn note_member(&self, url: &str) -> usize {
        if !url.contains('#') {
            return 0;
        }
        let of_members = self.about(url).filter(|it| it.members.is_some());
        of_members.filter(|it| !it.has_member.swap(true, Relaxed)).count()
    }

    /// Returns the annotations without an object: those whose URL has no object according to
    /// `exists`, and those whose pattern has matched no file, or no member.
    ///
    /// # Errors
    ///
    /// Returns the error of `exists`.
    pub fn unmatched<E>(
        &self,
        mut exists: impl FnMut(&str) -> Result<bool, E>,
    ) -> Result<Vec<&Entry>, E> {
        let mut unmatched = Vec::new();
        for it in &self.entries {
            let has_member = it.members.is_none() || it.has_member.load(Relaxed);
            let is_matched = if it.annotation.is_pattern {
                it.has_file.load(Relaxed) && has_member
            } else {
                exists(it.about())?
            };
            if !is_matched {
                unmatched.push(it);
            }
        }
        Ok(unmatched)
    }
}

/// Combines the fingerprints `before` and `next` into one; never 0.
fn chained(before: u64, next: u64) -> u64 {
    fingerprint_of(&[&before.to_be_bytes(), &next.to_be_bytes()]).max(1)
}

fn fingerprint(annotation: &Annotation) -> u64 {
    let mut parts: Vec<&[u8]> = Vec::new();
    for it in &*annotation.statements {
        let effect: &[u8] = if it.effect == Effect::Add { b"+" } else { b"=" };
        parts.extend([it.attribute.as_bytes(), effect, &it.value]);
    }
    fingerprint_of(&parts)
}

/// Splits the URL of a member, or a pattern of members, into the container's URL and the path in
/// it.
fn split(url: &str) -> (&str, Option<&str>) {
    url.split_once('#').map_or((url, None), |(container, member)| (container, Some(member)))
}

fn pattern_mistake(pattern: &str) -> Option<String> {
    let (container, member) = split(pattern);
    let is_wrong = |it: &str| glob(it).err().map(|error| error.kind().to_string());
    is_wrong(container).or_else(|| member.and_then(is_wrong))
}

/// Compiles a glob where only `*` is special: URLs contain question marks and brackets.
fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    let plain: Vec<String> = pattern.split('*').map(globset::escape).collect();
    GlobBuilder::new(&plain.join("*")).literal_separator(true).build()
}

fn glob_of_members(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    glob(pattern).map(|it| it.compile_matcher())
}

#[cfg(test)]
mod tests;
