//! Notes of the reader: oddities of a response that was readable nevertheless.

use std::fmt;

/// Kind of a note. From [`Junk`](Self::Junk) on, the bytes had to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum NoteKind {
    /// The elements were recognized by their names.
    Namespace,
    DatestampForm,
    NoDatestamp,
    ResponseDate,
    TokenAttribute,
    TokenPlace,
    Repeated,
    UnknownCode,
    FaultBesideResult,
    /// The first element was taken.
    SeveralElements,
    UnknownValue,
    Junk,
    Encoding,
    Utf8,
    Character,
    Ampersand,
    Entity,
    Markup,
    Prefix,
}

impl NoteKind {
    pub(crate) fn is_repair(self) -> bool {
        Self::Junk <= self
    }

    fn text(self) -> &'static str {
        match self {
            Self::Namespace => "elements that are not in the namespace of OAI-PMH",
            Self::DatestampForm => "a datestamp that is not in the form of OAI-PMH",
            Self::NoDatestamp => "a datestamp that is missing, or not a time",
            Self::ResponseDate => "a responseDate that is missing, or not in UTC and seconds",
            Self::TokenAttribute => "an attribute of the resumptionToken that cannot be read",
            Self::TokenPlace => "a resumptionToken too many, or in the wrong place",
            Self::Repeated => "the element of the verb more than once",
            Self::UnknownCode => "an error code that OAI-PMH does not have",
            Self::FaultBesideResult => "an error beside a result",
            Self::SeveralElements => "more than one element where there should be one",
            Self::UnknownValue => "a value that Identify cannot have",
            Self::Junk => "text or markup outside of what belongs to the response (left out)",
            Self::Encoding => "an encoding other than the declared one",
            Self::Utf8 => "bytes that are not UTF-8 (replaced)",
            Self::Character => "characters that XML does not allow (replaced)",
            Self::Ampersand => "an & without a reference (escaped)",
            Self::Entity => "entities of HTML (replaced by their characters)",
            Self::Markup => "markup that is out of place (escaped or left out)",
            Self::Prefix => "a namespace prefix that is not declared (declared as usual)",
        }
    }
}

/// A note: its kind, how often it applies, and its first position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    pub(crate) kind: NoteKind,
    /// Number of times that the note applies.
    pub count: u64,
    /// First position, in bytes; for a repair, the beginning of the repaired record or page.
    pub offset: u64,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}", self.kind.text(), self.offset)?;
        if 1 < self.count {
            write!(f, " and {} more", self.count - 1)?;
        }
        Ok(())
    }
}

/// Notes: one for each [`NoteKind`].
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(pub(super) Vec<Note>);

impl Notes {
    pub(super) fn add(&mut self, kind: NoteKind, offset: u64) {
        match self.0.iter_mut().find(|it| it.kind == kind) {
            Some(note) => note.count += 1,
            None => self.0.push(Note { kind, count: 1, offset }),
        }
    }

    pub(super) fn append(&mut self, others: Self) {
        for other in others.0 {
            match self.0.iter_mut().find(|it| it.kind == other.kind) {
                Some(note) => note.count += other.count,
                None => self.0.push(other),
            }
        }
    }

    pub(super) fn has_repairs(&self) -> bool {
        self.0.iter().any(|it| it.kind.is_repair())
    }
}
