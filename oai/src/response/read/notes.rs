//! What a reader noticed in a response that was read all the same.

use std::fmt;

/// What was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Elements are not in the protocol's namespace, and were taken by their names.
    Namespace,
    /// A datestamp is a time, but not written as the protocol has it.
    DatestampForm,
    /// A datestamp is missing, or no time.
    NoDatestamp,
    /// The responseDate is missing, no time, or not in seconds.
    ResponseDate,
    /// A number or date of a token could not be read.
    TokenAttribute,
    /// There is more than one token, or it is not where it belongs.
    TokenPlace,
    /// The element of the verb is there more than once.
    Repeated,
    /// An error has no code of the protocol.
    UnknownCode,
    /// There are errors beside a result.
    FaultBesideResult,
    /// A container holds more than one element; the first was taken.
    SeveralElements,
    /// A value of an Identify response is none of those that it may have.
    UnknownValue,
    /// Repaired: something stood before the response, behind it or between its records.
    Junk,
    /// Repaired: the encoding is not the one that was declared.
    Encoding,
    /// Repaired: bytes that are no UTF-8.
    Utf8,
    /// Repaired: characters that XML does not have, as such or by reference.
    Character,
    /// Repaired: `&` that begins no reference.
    Ampersand,
    /// Repaired: references to entities of HTML.
    Entity,
    /// Repaired: `<` that begins no tag, `]]>`, a comment, an XML declaration in the midst.
    Markup,
    /// Repaired: a prefix that is well known, but not declared.
    Prefix,
}

impl What {
    /// Whether the bytes had to be changed.
    pub fn is_repair(self) -> bool {
        Self::Junk <= self
    }

    fn text(self) -> &'static str {
        match self {
            Self::Namespace => "elements that are not in the namespace of OAI-PMH",
            Self::DatestampForm => "a datestamp that is not written as OAI-PMH has it",
            Self::NoDatestamp => "a datestamp that is missing, or no time",
            Self::ResponseDate => "a responseDate that is missing, or not in UTC and seconds",
            Self::TokenAttribute => "an attribute of the resumptionToken that cannot be read",
            Self::TokenPlace => "a resumptionToken too many, or out of its place",
            Self::Repeated => "the element of the verb more than once",
            Self::UnknownCode => "an error code that OAI-PMH does not have",
            Self::FaultBesideResult => "an error beside a result",
            Self::SeveralElements => "more than one element where there should be one",
            Self::UnknownValue => "a value that Identify cannot have",
            Self::Junk => "text or markup outside of what belongs to the response (left out)",
            Self::Encoding => "an encoding other than the declared one",
            Self::Utf8 => "bytes that are no UTF-8 (replaced)",
            Self::Character => "characters that XML does not allow (replaced)",
            Self::Ampersand => "an & that begins no reference (escaped)",
            Self::Entity => "entities of HTML (replaced by their characters)",
            Self::Markup => "markup that is out of place (escaped or left out)",
            Self::Prefix => "a namespace prefix that is not declared (declared as usual)",
        }
    }
}

/// What was noticed, how often, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// What.
    pub what: What,
    /// How often.
    pub count: u64,
    /// Where first, in bytes; of a repair, where the record or page begins that it was made in.
    pub offset: u64,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at byte {}", self.what.text(), self.offset)?;
        if 1 < self.count {
            write!(f, " and {} more", self.count - 1)?;
        }
        Ok(())
    }
}

/// Notes: one for each [`What`].
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Vec<Note>);

impl Notes {
    pub(super) fn add(&mut self, what: What, offset: u64) {
        match self.0.iter_mut().find(|it| it.what == what) {
            Some(note) => note.count += 1,
            None => self.0.push(Note { what, count: 1, offset }),
        }
    }

    pub(super) fn append(&mut self, others: Self) {
        for other in others.0 {
            match self.0.iter_mut().find(|it| it.what == other.what) {
                Some(note) => note.count += other.count,
                None => self.0.push(other),
            }
        }
    }

    pub(super) fn has_repairs(&self) -> bool {
        self.0.iter().any(|it| it.what.is_repair())
    }

    pub(super) fn into_vec(self) -> Vec<Note> {
        self.0
    }
}
