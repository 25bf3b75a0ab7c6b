//! Record counts for OAP: the numbers of changed records and of all records, from which a harvester
//! estimates change rates.
//!
//! Source: Adly §5 (OAP(θ): the repository sends both numbers with every response to ListRecords).
//!
//! # Differences from the paper
//!
//! * The paper has an attribute `totalElements` in addition to `completeListSize` on the resumption
//!   token, and a token without a value on every list of one part. The attribute is not valid
//!   against OAI-PMH.xsd, although the paper says that the schema need not change. Validators
//!   report such a token as an error, and some harvesters get into a loop by it. So attribute and
//!   token are written only for clients that want them ([`Attributes`]).
//! * The same two numbers are in the headers of every response to ListRecords and ListIdentifiers,
//!   and in a description of the Identify response, where the schema allows it ([`Totals`]).
//! * If nothing has changed, the answer is the error `noRecordsMatch` without a token: the headers
//!   say 0.

use crate::response::Xml;

/// Request header that asks for the attributes of the paper; its value is ignored.
pub const ASK_HEADER: &str = "harvest-oap-attributes";

/// Response header: number of records of the whole list.
pub const LIST_HEADER: &str = "harvest-complete-list-size";

/// Response header: number of the repository's live records.
pub const TOTAL_HEADER: &str = "harvest-total-elements";

/// Namespace of the description.
pub const NAMESPACE: &str = "https://harvest.example/oap/1.0/";

/// Longest description that is read, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// The clients that get the attributes of the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attributes {
    /// No clients.
    Off,
    /// Clients that send [`ASK_HEADER`].
    #[default]
    OnRequest,
    /// All clients; then no response with a list is valid.
    Always,
}

impl Attributes {
    /// All values, with their names in settings.
    pub const ALL: [(Self, &str); 3] =
        [(Self::Off, "off"), (Self::OnRequest, "on_request"), (Self::Always, "always")];

    /// Returns the value with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, it)| *it == name).map(|(it, _)| it)
    }

    /// Returns whether to write the attributes; `asked`: the request asks for them.
    pub fn apply(self, asked: bool) -> bool {
        match self {
            Self::Off => false,
            Self::OnRequest => asked,
            Self::Always => true,
        }
    }
}

/// The numbers of an Identify response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Live records.
    pub elements: u64,
    /// All records, deleted ones included; `None` if they are not counted.
    pub list: Option<u64>,
}

impl Totals {
    /// Reads a description; `None` for another kind.
    pub fn read(description: &Xml) -> Option<Self> {
        if !description.0.contains(NAMESPACE) {
            return None;
        }
        let (_, leaves) = description.leaves(DESCRIPTION_BYTES_MAX)?;
        let last = |name: &str| {
            leaves.iter().rev().find_map(|(it, text)| text.parse().ok().filter(|_| it == name))
        };
        Some(Self { elements: last("totalElements")?, list: last("completeListSize") })
    }

    /// Returns the description; its schema is docs/schemas/totals.xsd.
    pub fn to_xml(&self) -> Xml {
        let list = self
            .list
            .map_or_else(String::new, |it| format!("<completeListSize>{it}</completeListSize>"));
        Xml(format!(
            "<totals xmlns=\"{NAMESPACE}\"><totalElements>{}</totalElements>{list}</totals>",
            self.elements
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(u64, Option<u64>)>) {
        let found = Totals::read(&Xml(text.to_owned()));
        assert_eq!(found.map(|it| (it.elements, it.list)), expected, "{text}");
    }

    #[test]
    fn the_numbers_are_read_from_their_own_description() {
        check(
            "<t:totals xmlns:t=\"https://harvest.example/oap/1.0/\"><!-- c -->\n\
             <t:completeListSize> 12 </t:completeListSize><t:totalElements>9</t:totalElements>\
             </t:totals>",
            Some((9, Some(12))),
        );
        check("<totals xmlns=\"other\"><totalElements>9</totalElements></totals>", None);
        check("<totals xmlns=\"https://harvest.example/oap/1.0/\"><totalElements>", None);
        check("<totals xmlns=\"https://harvest.example/oap/1.0/\"/>", None);
        for list in [None, Some(u64::MAX)] {
            let totals = Totals { elements: 7, list };
            assert_eq!(Totals::read(&totals.to_xml()), Some(totals));
        }
    }

    #[test]
    fn the_attributes_of_the_paper_follow_the_setting() {
        let asked = [Attributes::Off, Attributes::OnRequest, Attributes::Always];
        assert_eq!(asked.map(|it| it.apply(true)), [false, true, true]);
        assert_eq!(asked.map(|it| it.apply(false)), [false, false, true]);
        assert_eq!(Attributes::by_name("on_request"), Some(Attributes::default()));
        assert_eq!(Attributes::by_name("On"), None);
    }
}
