//! How many records have changed and how many there are: what a harvester estimates rates of change from.
//!
//! Source: Adly §5 (OAP(θ): the repository tells both with every response to ListRecords).
//!
//! # Differences from the paper
//!
//! * The paper has an attribute `totalElements` beside `completeListSize` on the resumption token, and a token
//!   without a value on every list that needs no parts. The first is not valid against OAI-PMH.xsd,
//!   although the paper says that the schema need not change; the second is an error to validators, and sends
//!   some harvesters into a loop. So both are written only for whom they are meant
//!   ([`Attributes`]).
//! * The same two numbers are in the headers of every response to ListRecords and ListIdentifiers, and in a
//!   description of the Identify response, which the schema leaves room for ([`Totals`]).
//! * Where nothing has changed there is no token, but the error `noRecordsMatch`: the headers say 0.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::response::Xml;

/// Request header that asks for the attributes of the paper; its value means nothing.
pub const ASK_HEADER: &str = "harvest-oap-attributes";

/// Response header: how many records the whole list has that the response is a part of.
pub const LIST_HEADER: &str = "harvest-complete-list-size";

/// Response header: how many records the repository has that are not deleted.
pub const TOTAL_HEADER: &str = "harvest-total-elements";

/// Namespace of the description.
pub const NAMESPACE: &str = "https://harvest.example/oap/1.0/";

/// Longest description that is read, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// Who gets the attributes of the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attributes {
    /// Nobody.
    Off,
    /// Who sends [`ASK_HEADER`].
    #[default]
    OnRequest,
    /// Everybody; no response with a list is valid then.
    Always,
}

impl Attributes {
    /// All, with their names in settings.
    pub const ALL: [(Self, &str); 3] =
        [(Self::Off, "off"), (Self::OnRequest, "on_request"), (Self::Always, "always")];

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, it)| *it == name).map(|(it, _)| it)
    }

    /// Whether to write them for a request that asks for them, or does not.
    pub fn apply(self, asked: bool) -> bool {
        match self {
            Self::Off => false,
            Self::OnRequest => asked,
            Self::Always => true,
        }
    }
}

/// The numbers as an Identify response has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records that are not deleted.
    pub elements: u64,
    /// Records that a list of everything has, deleted ones included; `None` where nobody counts them.
    pub list: Option<u64>,
}

impl Totals {
    /// Reads a description; `None` for one that is of something else.
    pub fn read(description: &Xml) -> Option<Self> {
        let text = Some(description.0.as_str()).filter(|it| it.len() <= DESCRIPTION_BYTES_MAX)?;
        if !text.contains(NAMESPACE) {
            return None;
        }
        let mut reader = Reader::from_str(text);
        let (mut elements, mut list) = (None, None);
        let mut name = String::new();
        loop {
            match reader.read_event().ok()? {
                Event::Start(start) => name = start.local_name().as_ref().to_owned(),
                Event::Text(text) => match (name.as_str(), text.trim().parse().ok()) {
                    ("totalElements", Some(number)) => elements = Some(number),
                    ("completeListSize", Some(number)) => list = Some(number),
                    _ => {}
                },
                Event::End(_) => name.clear(),
                Event::DocType(_) => return None,
                Event::Eof => break,
                _ => {}
            }
        }
        Some(Self { elements: elements?, list })
    }

    /// The description that says so; its schema is docs/schemas/totals.xsd.
    pub fn written(&self) -> Xml {
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
            assert_eq!(Totals::read(&totals.written()), Some(totals));
        }
    }

    #[test]
    fn the_attributes_of_the_paper_are_for_whom_they_are_meant() {
        let asked = [Attributes::Off, Attributes::OnRequest, Attributes::Always];
        assert_eq!(asked.map(|it| it.apply(true)), [false, true, true]);
        assert_eq!(asked.map(|it| it.apply(false)), [false, false, true]);
        assert_eq!(Attributes::named("on_request"), Some(Attributes::default()));
        assert_eq!(Attributes::named("On"), None);
    }
}
