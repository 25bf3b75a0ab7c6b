//! When a repository says to be updated: a description within its Identify response.
//!
//! Source: Liu et al. §6 (a data provider publishes its update schedule: updatePeriod, updateFrequency and
//! updateBase of the RSS 1.0 syndication module, in a container of the Identify response). What the values
//! mean is not this crate's to say.
//!
//! # Differences from the paper
//!
//! * The paper shows no container. Ours is one element, `syndication`, in the module's own namespace; any
//!   element is read that has one of the three in it, whatever it is called and declared as.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::response::Xml;
use crate::xml;

/// Namespace of the RSS 1.0 syndication module.
pub const NAMESPACE: &str = "http://purl.org/rss/1.0/modules/syndication/";

/// Longest description that is read, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// An update schedule, as it is written; what is missing has the module's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Syndication {
    /// `hourly`, `daily`, `weekly`, `monthly` or `yearly`.
    pub period: Option<String>,
    /// How many times in each period.
    pub frequency: Option<String>,
    /// From when on that is counted, as a date and time (W3CDTF).
    pub base: Option<String>,
}

impl Syndication {
    /// Reads a description; `None` for one that is of something else, or no XML.
    pub fn read(description: &Xml) -> Option<Self> {
        let text = Some(description.0.as_str()).filter(|it| it.len() <= DESCRIPTION_BYTES_MAX)?;
        let mut reader = Reader::from_str(text);
        let mut found = Self::default();
        let mut value: Option<(Field, String)> = None;
        loop {
            match reader.read_event().ok()? {
                Event::Start(start) => {
                    value = Field::named(start.local_name().as_ref()).map(|it| (it, String::new()));
                }
                Event::Text(text) => {
                    if let Some((_, value)) = &mut value {
                        value.push_str(&text.xml_content(XmlVersion::Implicit1_0));
                    }
                }
                Event::CData(text) => {
                    if let Some((_, value)) = &mut value {
                        value.push_str(&text.xml_content(XmlVersion::Implicit1_0));
                    }
                }
                Event::GeneralRef(reference) => {
                    if let Some((_, value)) = &mut value {
                        match reference.resolve_char_ref().ok()? {
                            Some(char) => value.push(char),
                            // No others: there is no DTD to declare them.
                            None => value.push_str(resolve_xml_entity(&reference.xml10_content())?),
                        }
                    }
                }
                Event::End(_) => {
                    if let Some((field, value)) = value.take() {
                        found.put(field, value.trim());
                    }
                }
                Event::DocType(_) => return None,
                Event::Eof => break,
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
        }
        (found != Self::default()).then_some(found)
    }

    /// The description that says so.
    pub fn written(&self) -> Xml {
        let fields = [
            ("updatePeriod", &self.period),
            ("updateFrequency", &self.frequency),
            ("updateBase", &self.base),
        ];
        let mut text = format!("<syndication xmlns=\"{NAMESPACE}\">");
        for (name, value) in fields {
            if let Some(value) = value {
                xml::push_element(&mut text, name, value);
            }
        }
        text.push_str("</syndication>");
        Xml(text)
    }

    /// The first of each counts; an empty one is none.
    fn put(&mut self, field: Field, value: &str) {
        let place = match field {
            Field::Period => &mut self.period,
            Field::Frequency => &mut self.frequency,
            Field::Base => &mut self.base,
        };
        if place.is_none() && !value.is_empty() {
            *place = Some(value.to_owned());
        }
    }
}

/// What of a schedule an element has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Period,
    Frequency,
    Base,
}

impl Field {
    fn named(name: &str) -> Option<Self> {
        match name {
            "updatePeriod" => Some(Self::Period),
            "updateFrequency" => Some(Self::Frequency),
            "updateBase" => Some(Self::Base),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<[&str; 3]>) {
        let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let expected = expected.map(|[period, frequency, base]| Syndication {
            period: value(period),
            frequency: value(frequency),
            base: value(base),
        });
        assert_eq!(Syndication::read(&Xml(text.to_owned())), expected, "{text}");
    }

    #[test]
    fn a_schedule_is_read_in_whatever_container() {
        check(
            "<syndication xmlns=\"http://purl.org/rss/1.0/modules/syndication/\">\
             <updatePeriod>daily</updatePeriod><updateFrequency> 2 </updateFrequency>\
             <updateBase>2026-01-31T12:00+00:00</updateBase></syndication>",
            Some(["daily", "2", "2026-01-31T12:00+00:00"]),
        );
        check(
            "<x:y xmlns:x=\"u\" xmlns:sy=\"v\"><!-- c --><sy:updatePeriod><![CDATA[weekly]]>\
             </sy:updatePeriod><sy:updatePeriod>daily</sy:updatePeriod><sy:updateBase/></x:y>",
            Some(["weekly", "", ""]),
        );
    }

    #[test]
    fn what_is_of_something_else_is_none() {
        for text in [
            "",
            "no XML",
            "<friends><baseURL>http://a/</baseURL></friends>",
            "<syndication><updatePeriod></updatePeriod></syndication>",
            "<syndication><updatePeriod>daily</wrong></syndication>",
            "<!DOCTYPE x [<!ENTITY p \"daily\">]><x><updatePeriod>&p;</updatePeriod></x>",
            "<x><updatePeriod>&p;</updatePeriod></x>",
        ] {
            check(text, None);
        }
        let long = format!("<x><updatePeriod>{}</updatePeriod></x>", "y".repeat(20_000));
        check(&long, None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(period in prop::option::of("[!-~]{1,12}"),
                                   frequency in prop::option::of("[1-9][0-9]{0,8}"),
                                   base in prop::option::of("[!-~]([ -~]{0,20}[!-~])?")) {
            let written = Syndication { period, frequency, base };
            let expected = (written != Syndication::default()).then(|| written.clone());
            prop_assert_eq!(Syndication::read(&written.written()), expected);
        }

        #[test]
        fn any_text_is_a_schedule_or_none(text in "\\PC{0,200}") {
            let _ = Syndication::read(&Xml(text));
        }
    }
}
