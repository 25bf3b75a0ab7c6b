//! Annotations: what people say of objects, laid over the records that were made of these.
//!
//! Source: the user's manual (manual annotations, stored apart from generated data and merged with it), and
//! IAFA templates, which archives' keepers wrote for the same end. What a
//! record generated from an object says, and what a person says of it, stay apart: a gatherer publishes
//! the two merged, and without the annotation the record is again what it was.
//!
//! A [`Statement`] takes the place of an attribute or adds lines to it. An [`Annotation`] is what one
//! place of one file says of one object, or of all whose URLs match a pattern. [`Annotations`] are those
//! of all files, in order: of two that say the same attribute, the later counts. Readers of the three
//! sorts of files are below this module, and [`sources`] reads them from the disk.
//!
//! # Differences from the paper
//!
//! * Besides SOIF there are IAFA templates and taxonomies.
//! * A value may be added to what the record says, or take it away.
//! * A file that is wrong counts as it was when it was last right.
//!
//! Sans-I/O.

mod iafa;
mod lay;
mod soif;
pub mod sources;
mod taxonomy;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ::soif::Record;
use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use lay::lay_over;
use settings::Mistake;

use crate::print::print_of;
use crate::rules;

/// Most annotations of all files together, each object of each counted.
pub const ANNOTATIONS_MAX: usize = 100_000;
/// Most patterns of all files together: each is looked at for every file.
pub const PATTERNS_MAX: usize = 1_000;
/// Longest value that an annotation may give an attribute, in bytes.
pub const VALUE_BYTES_MAX: usize = rules::VALUE_BYTES_MAX;

/// Attributes that are lists, so that a statement adds to them unless it says otherwise.
const LISTS: &[&str] = &["Keywords", "Subject", "Subject-Code", "Identifier", "URL-References"];

/// Whether a statement takes the place of what a record says, or adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It takes its place; an empty value takes the attribute away.
    Replace,
    /// Its lines are added, but for those that are there.
    Add,
}

/// What an annotation says of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The attribute.
    pub attribute: String,
    /// What becomes of what the record says.
    pub how: How,
    /// The value, or the lines to add.
    pub value: Vec<u8>,
}

impl Statement {
    /// Returns the statement that is written as the attribute's name, with `+` behind it for adding and `=`
    /// for replacing, and a value. Without a mark the attribute's nature decides.
    ///
    /// # Errors
    ///
    /// Why nobody can say that: it goes to whoever wrote it.
    pub fn new(written: &str, value: impl Into<Vec<u8>>) -> Result<Self, String> {
        let value = value.into();
        let marked = |mark| written.strip_suffix(mark).map(str::to_owned);
        let (attribute, how) = if let Some(name) = marked('+') {
            (name, How::Add)
        } else if let Some(name) = marked('=') {
            (name, How::Replace)
        } else if is_list(written) && !value.is_empty() {
            (written.to_owned(), How::Add)
        } else {
            (written.to_owned(), How::Replace)
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
        if how == How::Add && value.is_empty() {
            return Err(format!("nothing is added to {attribute}"));
        }
        Ok(Self { attribute, how, value })
    }
}

/// `Title = …`, `Keywords + …`; what is taken away is said to be.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = String::from_utf8_lossy(&self.value);
        match self.how {
            How::Replace if value.is_empty() => write!(f, "{} taken away", self.attribute),
            How::Replace => write!(f, "{} = {value:?}", self.attribute),
            How::Add => write!(f, "{} + {value:?}", self.attribute),
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

/// Whether the attribute says which object this is, or who has it.
fn is_protected(attribute: &str) -> bool {
    let begin = attribute.get(.."gatherer-".len());
    rules::is_ours(attribute) || begin.is_some_and(|it| it.eq_ignore_ascii_case("gatherer-"))
}

/// What one place of a file says of one object, or of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The line of the file at which it begins, from 1.
    pub line: usize,
    /// The object's URL; or with `is_pattern` one in which `*` stands for any part of a name, and `**` for
    /// any folders.
    pub about: String,
    /// Whether several objects are meant.
    pub is_pattern: bool,
    /// What it says, in order.
    pub statements: Arc<[Statement]>,
}

/// Reads a file of annotations; the end of its name says of what sort it is.
///
/// # Errors
///
/// Every mistake in it, in the order of the file.
pub fn read(path: &Path, bytes: &[u8]) -> Result<Vec<Annotation>, Vec<Mistake>> {
    let text = || {
        std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            vec![mistake_at(bytes, at, "is no UTF-8", "the file in UTF-8")]
        })
    };
    match Sort::of(path) {
        Some(Sort::Soif) => soif::read(bytes),
        Some(Sort::Iafa) => iafa::read(text()?),
        Some(Sort::Taxonomy) => taxonomy::read(text()?),
        None => Err(vec![mistake_at(b"", 0, "no sort of annotations", "*.soif, *.iafa or *.toml")]),
    }
}

/// The sorts of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// `*.soif`: records.
    Soif,
    /// `*.iafa`: templates.
    Iafa,
    /// `*.toml`: terms of taxonomies.
    Taxonomy,
}

impl Sort {
    /// Returns what sort of annotations the name of a file promises.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "soif" => Some(Self::Soif),
            "iafa" => Some(Self::Iafa),
            "toml" => Some(Self::Taxonomy),
            _ => None,
        }
    }
}

fn mistake_at(bytes: &[u8], at: usize, message: &str, expected: &str) -> Mistake {
    let before = bytes.get(..at).unwrap_or(bytes);
    let line = before.iter().filter(|it| **it == b'\n').count() + 1;
    let start = before.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let column = String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count();
    let (message, expected) = (message.to_owned(), expected.to_owned());
    Mistake { file: None, line, column: column + 1, message, expected }
}

/// An annotation among those of all files.
#[derive(Debug)]
pub struct Entry {
    file: Arc<Path>,
    annotation: Annotation,
    /// What members a pattern is about; `None` where it is about objects that are in no other.
    members: Option<GlobMatcher>,
    /// Fingerprint of what it says.
    print: u64,
    /// Whether a file that a pattern is about was met since [`Annotations::forget_met`].
    met: AtomicBool,
    /// Of a pattern of members, whether such a one was found since.
    found: AtomicBool,
}

impl Entry {
    /// Returns the object's URL, or the pattern.
    pub fn about(&self) -> &str {
        &self.annotation.about
    }

    /// Returns what it says, in order.
    pub fn statements(&self) -> &[Statement] {
        &self.annotation.statements
    }

    fn is_about(&self, url: &str) -> bool {
        if !self.annotation.is_pattern {
            return self.annotation.about == url;
        }
        // Where it comes to this, the pattern matches what the object is in.
        match (&self.members, url.split_once('#')) {
            (None, None) => true,
            (Some(members), Some((_, member))) => members.is_match(member),
            _ => false,
        }
    }
}

/// `FILE:LINE`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.annotation.line)
    }
}

/// The annotations of all files, in order, ready to be laid over records.
#[derive(Debug, Default)]
pub struct Annotations {
    entries: Vec<Entry>,
    /// The places of entries by the URL of their object.
    by_url: HashMap<String, Vec<usize>>,
    /// The places of entries by the URL of the file that their object is, or is in.
    by_file: HashMap<String, Vec<usize>>,
    /// Of patterns, what comes before `#`.
    patterns: GlobSet,
    /// The places of the entries with these patterns.
    pattern_places: Vec<usize>,
}

impl Annotations {
    /// Puts together the annotations of files, in the order in which they count. Patterns that are none are
    /// left out: readers have refused them.
    pub fn new(files: impl IntoIterator<Item = (Arc<Path>, Arc<[Annotation]>)>) -> Self {
        let mut all = Self::default();
        let mut builder = GlobSetBuilder::new();
        for (file, annotations) in files {
            for annotation in annotations.iter().cloned() {
                let (container, member) = split(&annotation.about);
                let place = all.entries.len();
                let mut members = None;
                if annotation.is_pattern {
                    let Ok(glob) = glob(container) else { continue };
                    members = match member.map(glob_of_members).transpose() {
                        Ok(members) => members,
                        Err(_odd) => continue,
                    };
                    builder.add(glob);
                    all.pattern_places.push(place);
                } else {
                    all.by_file.entry(container.to_owned()).or_default().push(place);
                    all.by_url.entry(annotation.about.clone()).or_default().push(place);
                }
                let print = print(&annotation);
                let file = file.clone();
                let (met, found) = <(AtomicBool, AtomicBool)>::default();
                all.entries.push(Entry { file, annotation, members, print, met, found });
            }
        }
        all.patterns = builder.build().unwrap_or_default();
        all
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns all, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns those about the object at `url`, in order.
    pub fn about<'a>(&'a self, url: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.found(self.by_url.get(url), split(url).0).filter(move |it| it.is_about(url))
    }

    /// Returns those at `places`, and those whose patterns are about the file at `url` or about what may
    /// be in it, in order.
    fn found(&self, places: Option<&Vec<usize>>, url: &str) -> impl Iterator<Item = &Entry> {
        let mut places = places.cloned().unwrap_or_default();
        if !self.pattern_places.is_empty() {
            let matched = self.patterns.matches(url);
            places.extend(matched.into_iter().filter_map(|it| self.pattern_places.get(it)));
            places.sort_unstable();
        }
        places.into_iter().filter_map(|place| self.entries.get(place))
    }

    /// Returns a fingerprint of what is said of the file at `url` and of what may be in it; 0 if nothing is.
    pub fn print_of_file(&self, url: &str) -> u64 {
        if self.entries.is_empty() {
            return 0;
        }
        let mut sum = 0;
        for it in self.found(self.by_file.get(url), url) {
            it.met.store(true, Relaxed);
            let print = if it.annotation.is_pattern || it.annotation.about != url {
                print_of(&[&it.print.to_be_bytes(), split(it.about()).1.unwrap_or("").as_bytes()])
            } else {
                it.print
            };
            sum = joined(sum, print);
        }
        sum
    }

    /// Lays over a record what is said of its object; returns a fingerprint of that, 0 if it is nothing.
    pub fn lay_over(&self, record: &mut Record) -> u64 {
        let url = record.url.clone();
        let about: Vec<&Entry> = self.about(&url).collect();
        lay_over(about.iter().flat_map(|it| it.statements()), record);
        about.iter().fold(0, |sum, it| joined(sum, it.print))
    }

    /// Forgets which patterns have met a file, and which were found to be about a member.
    pub fn forget_met(&self) {
        for it in &self.entries {
            it.met.store(false, Relaxed);
            it.found.store(false, Relaxed);
        }
    }

    /// Returns how many patterns of members have met a container, and were not found to be about a member.
    pub fn sought(&self) -> usize {
        let is_sought =
            |it: &&Entry| it.members.is_some() && it.met.load(Relaxed) && !it.found.load(Relaxed);
        self.entries.iter().filter(is_sought).count()
    }

    /// Takes note of an object at `url`, and returns how many patterns of members were found by that.
    pub fn find(&self, url: &str) -> usize {
        if !url.contains('#') {
            return 0;
        }
        let of_members = self.about(url).filter(|it| it.members.is_some());
        of_members.filter(|it| !it.found.swap(true, Relaxed)).count()
    }

    /// Returns those that are about nothing: no object has their URL, as `is_there` says, or no file was met
    /// that their pattern is about, or no member found.
    ///
    /// # Errors
    ///
    /// That of `is_there`.
    pub fn unmatched<E>(
        &self,
        mut is_there: impl FnMut(&str) -> Result<bool, E>,
    ) -> Result<Vec<&Entry>, E> {
        let mut unmatched = Vec::new();
        for it in &self.entries {
            let is_found = it.members.is_none() || it.found.load(Relaxed);
            let is_matched = if it.annotation.is_pattern {
                it.met.load(Relaxed) && is_found
            } else {
                is_there(it.about())?
            };
            if !is_matched {
                unmatched.push(it);
            }
        }
        Ok(unmatched)
    }
}

/// Returns the fingerprint of several that come one after the other; never 0 with one that is not.
fn joined(before: u64, next: u64) -> u64 {
    print_of(&[&before.to_be_bytes(), &next.to_be_bytes()]).max(1)
}

fn print(annotation: &Annotation) -> u64 {
    let mut parts: Vec<&[u8]> = Vec::new();
    for it in &*annotation.statements {
        let how: &[u8] = if it.how == How::Add { b"+" } else { b"=" };
        parts.extend([it.attribute.as_bytes(), how, &it.value]);
    }
    print_of(&parts)
}

/// Splits the URL of a member, or a pattern of such, into the container's and the member's path in it.
fn split(url: &str) -> (&str, Option<&str>) {
    url.split_once('#').map_or((url, None), |(container, member)| (container, Some(member)))
}

/// Says why a text is no pattern, if it is none.
fn no_pattern(pattern: &str) -> Option<String> {
    let (container, member) = split(pattern);
    let is_wrong = |it: &str| glob(it).err().map(|error| error.kind().to_string());
    is_wrong(container).or_else(|| member.and_then(is_wrong))
}

/// Returns the glob in which only `*` has a meaning: URLs have question marks and brackets of their own.
fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    let plain: Vec<String> = pattern.split('*').map(globset::escape).collect();
    GlobBuilder::new(&plain.join("*")).literal_separator(true).build()
}

fn glob_of_members(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    glob(pattern).map(|it| it.compile_matcher())
}

#[cfg(test)]
mod tests;
