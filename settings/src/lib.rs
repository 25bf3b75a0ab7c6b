//! Settings files: TOML read with positions. *Every* mistake of a file is reported at once, with
//! its line, its column and the expected value.
//!
//! A daemon asks a [`Table`] for each value it knows. A missing or wrong value records a
//! [`Mistake`] and gives a default, so reading goes on. [`Document::finish`] then adds every
//! unknown key, with the nearest known name, and returns all mistakes in the order of the file.
//!
//! # Differences from serde
//!
//! * serde stops at the first mistake; an administrator who corrects a file needs the whole list.
//! * Times, sizes and addresses are written with their units (`"30 days"`, `"64 MiB"`).
//!
//! Sans-I/O.

mod table;
mod units;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

pub use table::{Table, refuse_repeated_secrets, refuse_repeats};
pub use units::{nearest, parse_bytes, parse_duration};

/// A mistake in a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The file with the mistake; `None` if it is the settings file itself, not one that it names.
    pub file: Option<PathBuf>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The fault, with the key or the text.
    pub message: String,
    /// The right value; empty if the message is sufficient.
    pub expected: String,
}

impl Mistake {
    /// Returns the mistake as one line that names its own file, else `path`:
    /// `FILE:LINE:COL: message; expected …`.
    pub fn with_file(&self, path: &Path) -> String {
        format!("{}:{self}", self.file.as_deref().unwrap_or(path).display())
    }
}

/// `LINE:COL: message; expected …`
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        if self.expected.is_empty() { Ok(()) } else { write!(f, "; expected {}", self.expected) }
    }
}

/// A settings file that is valid TOML, whose values are still to be read.
#[derive(Debug)]
pub struct Document<'t> {
    lines: LineIndex<'t>,
    root: DeTable<'t>,
    state: RefCell<ReadState>,
}

/// The result of the reading so far.
#[derive(Debug, Default)]
struct ReadState {
    /// The mistakes, each with its byte offset, by which they are sorted.
    mistakes: Vec<(usize, Mistake)>,
    /// The keys that were asked for, present or not, by the path of their table.
    known: BTreeMap<String, BTreeSet<String>>,
}

impl<'t> Document<'t> {
    /// Reads `text` as TOML.
    ///
    /// # Errors
    ///
    /// Syntax errors and keys that are set twice, at most one for each line, in the order of the
    /// file; show them all.
    pub fn parse(text: &'t str) -> Result<Self, Vec<Mistake>> {
        let lines = LineIndex::of(text);
        let (root, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            return Ok(Self { lines, root: root.into_inner(), state: RefCell::default() });
        }
        let mut mistakes: Vec<_> = errors.iter().map(|error| lines.syntax_mistake(error)).collect();
        mistakes.sort_by_key(|(offset, _)| *offset);
        // After an error the parser may report the rest of the same line: one message per line.
        mistakes.dedup_by_key(|(_, mistake)| mistake.line);
        Err(mistakes.into_iter().map(|(_, mistake)| mistake).collect())
    }

    /// Returns the table of the keys before any `[header]`.
    pub fn root(&self) -> Table<'_> {
        Table::new(self, Some(&self.root), String::new(), 0..0)
    }

    /// Ends the reading: call it after all values were read.
    ///
    /// # Errors
    ///
    /// All mistakes in the order of the file: those of the reads, and every unknown key, with the
    /// nearest known name.
    pub fn finish(&self) -> Result<(), Vec<Mistake>> {
        self.refuse_unknown(&self.root, "");
        let mut mistakes = std::mem::take(&mut self.state.borrow_mut().mistakes);
        mistakes.sort_by_key(|(offset, _)| *offset);
        mistakes.dedup();
        if mistakes.is_empty() {
            Ok(())
        } else {
            Err(mistakes.into_iter().map(|(_, mistake)| mistake).collect())
        }
    }

    fn record(&self, offset: usize, message: impl Into<String>, expected: impl Into<String>) {
        let mistake = self.lines.mistake(offset, message.into(), expected.into());
        self.state.borrow_mut().mistakes.push((offset, mistake));
    }

    fn know(&self, table: &str, key: &str) {
        let known = &mut self.state.borrow_mut().known;
        known.entry(table.to_owned()).or_default().insert(key.to_owned());
    }

    /// Records every unknown key in `table` and below it. An unknown table is one mistake, whatever
    /// it holds.
    fn refuse_unknown(&self, table: &DeTable<'_>, path: &str) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let known = self.state.borrow().known.get(path).cloned().unwrap_or_default();
            if !known.contains(name) {
                let location =
                    if path.is_empty() { String::new() } else { format!(" in [{path}]") };
                let message = format!("unknown key {name:?}{location}");
                self.record(key.span().start, message, expected_instead(name, &known));
                continue;
            }
            match value.get_ref() {
                DeValue::Table(inner) => self.refuse_unknown_below(inner, &join(path, name)),
                DeValue::Array(items) => {
                    for (i, item) in items.iter().enumerate() {
                        if let DeValue::Table(inner) = item.get_ref() {
                            self.refuse_unknown_below(inner, &item_path(path, name, i));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Does the same for a table that was read as one. If it was read as a plain value, that
    /// mistake is recorded already.
    fn refuse_unknown_below(&self, table: &DeTable<'_>, path: &str) {
        if self.state.borrow().known.contains_key(path) {
            self.refuse_unknown(table, path);
        }
    }
}

fn expected_instead(name: &str, known: &BTreeSet<String>) -> String {
    if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
        return format!("{near:?}");
    }
    let names: Vec<_> = known.iter().map(String::as_str).collect();
    match names.as_slice() {
        [] => "no keys here".to_owned(),
        [name] => format!("only {name:?}"),
        names => format!("one of {}", names.join(", ")),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Returns the path of the `i`th `[[key]]`; people count from 1.
fn item_path(path: &str, key: &str, i: usize) -> String {
    format!("{} {}", join(path, key), i + 1)
}

/// The starts of lines, to turn byte offsets into lines and columns.
#[derive(Debug)]
struct LineIndex<'t> {
    text: &'t str,
    /// Offset of each line's first byte, ascending.
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    fn of(text: &'t str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// Returns the line of an offset, from 1.
    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    fn mistake(&self, offset: usize, message: String, expected: String) -> Mistake {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line(offset);
        let start = line.checked_sub(1).and_then(|i| self.starts.get(i)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        Mistake { file: None, line, column, message, expected }
    }

    fn syntax_mistake(&self, error: &toml::de::Error) -> (usize, Mistake) {
        let span: Range<usize> = error.span().unwrap_or(0..0);
        let text = error.message();
        let (message, expected) = if text == "duplicate key" {
            let key = self.text.get(span.clone()).unwrap_or_default();
            (format!("{key:?} is set twice"), "each key once".to_owned())
        } else if let Some((message, expected)) = text.split_once(", expected ") {
            let expected = match expected {
                "nothing" => "the end of the line",
                "literal string" => "a value; texts stand in quotes",
                other => other,
            };
            (message.to_owned(), expected.to_owned())
        } else {
            (text.to_owned(), String::new())
        };
        (span.start, self.mistake(span.start, message, expected))
    }
}

#[cfg(test)]
mod tests;
