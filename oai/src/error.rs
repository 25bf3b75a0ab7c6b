//! Protocol errors: the codes and messages with which a repository refuses a request.
//!
//! Source: OAI-PMH §3.6 (error and exception conditions).

use std::fmt;

/// An error code of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// An argument is illegal, missing or repeated, or its value is invalid.
    BadArgument,
    /// The token is not the repository's, or no longer valid.
    BadResumptionToken,
    /// The verb is missing, repeated or none of the six.
    BadVerb,
    /// The item is not available in that format.
    CannotDisseminateFormat,
    /// There is no such item.
    IdDoesNotExist,
    /// No record fits the selection. This is also the answer if nothing is new.
    NoRecordsMatch,
    /// The item has no metadata formats.
    NoMetadataFormats,
    /// The repository has no sets.
    NoSetHierarchy,
}

impl Code {
    /// All codes, by name.
    pub const ALL: [Self; 8] = [
        Self::BadArgument,
        Self::BadResumptionToken,
        Self::BadVerb,
        Self::CannotDisseminateFormat,
        Self::IdDoesNotExist,
        Self::NoMetadataFormats,
        Self::NoRecordsMatch,
        Self::NoSetHierarchy,
    ];

    /// Returns its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadArgument => "badArgument",
            Self::BadResumptionToken => "badResumptionToken",
            Self::BadVerb => "badVerb",
            Self::CannotDisseminateFormat => "cannotDisseminateFormat",
            Self::IdDoesNotExist => "idDoesNotExist",
            Self::NoMetadataFormats => "noMetadataFormats",
            Self::NoRecordsMatch => "noRecordsMatch",
            Self::NoSetHierarchy => "noSetHierarchy",
        }
    }

    /// Returns the code with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// An error that a repository answers with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// The code of the error.
    pub code: Code,
    /// The message for people; may be empty.
    pub message: String,
}

impl Fault {
    /// Returns an error with its message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => f.write_str(self.code.name()),
            message => write!(f, "{}: {message}", self.code.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_their_names() {
        for code in Code::ALL {
            assert_eq!(Code::by_name(code.name()), Some(code));
        }
        assert_eq!(Code::by_name("badargument"), None);
        let names: Vec<&str> = Code::ALL.iter().map(|it| it.name()).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
