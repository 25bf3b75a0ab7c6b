//! The sets of our repository: records by gatherer, by type and by view.
//!
//! Source: OAI-PMH §2.6 (sets; the levels in their names are separated by colons).
//!
//! | set | has |
//! |---|---|
//! | `gatherer` | all records |
//! | `gatherer:ID` | records of one gatherer |
//! | `type` | records with a type |
//! | `type:NAME` | records of one type |
//! | `view` | all records |
//! | `view:NAME` | records of one view |
//!
//! A byte that a level must not contain is written as `~` and two hex digits.

use std::fmt;

use crate::escape;

/// First level of the sets by gatherer.
const GATHERER: &str = "gatherer";

/// First level of the sets by type.
const TYPE: &str = "type";

/// First level of the sets by view.
const VIEW: &str = "view";

/// A set. Sets are ordered as listed: a set comes before those below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SetSpec {
    /// All records.
    Gatherers,
    /// Records of the gatherer with this id.
    Gatherer(String),
    /// All records with a type.
    Types,
    /// Records of this type.
    Type(String),
    /// All records, whatever views they are in.
    Views,
    /// Records of the view with this name.
    View(String),
}

impl SetSpec {
    /// Reads the name of a set; `None` if it is not one of ours.
    pub fn read(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let found = match (kind, name) {
            (GATHERER, None) => Self::Gatherers,
            (GATHERER, Some(name)) => Self::Gatherer(decoded(name)?),
            (TYPE, None) => Self::Types,
            (TYPE, Some(name)) => Self::Type(decoded(name)?),
            (VIEW, None) => Self::Views,
            (VIEW, Some(name)) => Self::View(decoded(name)?),
            _ => return None,
        };
        (found.to_string() == text).then_some(found)
    }

    /// Returns its name for people.
    pub fn name(&self) -> String {
        match self {
            Self::Gatherers => "By gatherer".to_owned(),
            Self::Gatherer(id) => format!("Gathered by {id}"),
            Self::Types => "By type".to_owned(),
            Self::Type(name) => format!("Of type {name}"),
            Self::Views => "By view".to_owned(),
            Self::View(name) => format!("In the view {name}"),
        }
    }
}

impl fmt::Display for SetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::Gatherers => return f.write_str(GATHERER),
            Self::Types => return f.write_str(TYPE),
            Self::Views => return f.write_str(VIEW),
            Self::Gatherer(id) => (GATHERER, id),
            Self::Type(name) => (TYPE, name),
            Self::View(name) => (VIEW, name),
        };
        write!(f, "{kind}:")?;
        escape::write(f, name, '~', |it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
    }
}

/// Returns whether a response may contain `text` as the name of a set.
pub(super) fn is_spec(text: &str) -> bool {
    text.split(':').all(is_name)
}

/// Returns whether `text` may be a level of a set's name, or a metadata prefix.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&it);
    !text.is_empty() && text.bytes().all(fits)
}

fn decoded(name: &str) -> Option<String> {
    escape::read(name, '~').filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<SetSpec>) {
        assert_eq!(SetSpec::read(text), expected, "{text}");
    }

    #[test]
    fn sets_are_named_by_gatherer_type_and_view() {
        check("gatherer", Some(SetSpec::Gatherers));
        check("gatherer:0123456789abcdef", Some(SetSpec::Gatherer("0123456789abcdef".to_owned())));
        check("type", Some(SetSpec::Types));
        check("type:C~2B~2B", Some(SetSpec::Type("C++".to_owned())));
        check("view:old-maps", Some(SetSpec::View("old-maps".to_owned())));
    }

    #[test]
    fn other_names_are_not_our_sets() {
        for text in [
            "", "x", "type:", "type:C++", "type:~4", "type:~41", "type:~2b", "type:a:b", "type:~ff",
        ] {
            check(text, None);
        }
        assert!(is_spec("a:b.c-d_e!~*'()") && !is_spec("a::b") && !is_spec("a b") && !is_spec(""));
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(name in "\\PC{1,20}", of_type in any::<bool>()) {
            let set = if of_type { SetSpec::Type(name) } else { SetSpec::Gatherer(name) };
            prop_assert!(is_spec(&set.to_string()));
            prop_assert_eq!(SetSpec::read(&set.to_string()), Some(set));
        }

        #[test]
        fn any_text_is_a_set_or_none(text in "\\PC{0,30}") {
            let _ = SetSpec::read(&text);
        }
    }
}
