//! Syndication: a repository's update schedule, as a description in its Identify response.
//!
//! Source: Liu et al. §6 (a data provider publishes its update schedule: updatePeriod,
//! updateFrequency and updateBase of the RSS 1.0 syndication module, in a container of the Identify
//! response). The values are interpreted elsewhere.
//!
//! # Differences from the paper
//!
//! * The paper shows no container. Ours is one element, `syndication`, in the module's own
//!   namespace. The reader accepts any element that contains one of the three values, whatever its
//!   name and its namespace declarations.

use crate::response::{Xml, is_char};
use crate::xml;

/// Namespace of the RSS 1.0 syndication module.
pub const NAMESPACE: &str = "http://purl.org/rss/1.0/modules/syndication/";

/// Longest description that is read, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;

/// An update schedule as written; a missing value has the module's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Syndication {
    /// `hourly`, `daily`, `weekly`, `monthly` or `yearly`.
    pub period: Option<String>,
    /// Updates in each period.
    pub frequency: Option<String>,
    /// Beginning of the first period, as a date and time (W3CDTF).
    pub base: Option<String>,
}

impl Syndication {
    /// Reads a description; `None` if it is of another kind, or not XML. Of several values with one
    /// name it takes the first that is not empty and that XML allows.
    pub fn read(description: &Xml) -> Option<Self> {
        let (_, leaves) = description.leaves(DESCRIPTION_BYTES_MAX)?;
        let value = |name: &str| {
            let is_sound = |(it, text): &&(String, String)| it == name && text.chars().all(is_char);
            leaves.iter().find(is_sound).map(|(_, text)| text.clone())
        };
        let found = Self {
            period: value("updatePeriod"),
            frequency: value("updateFrequency"),
            base: value("updateBase"),
        };
        (found != Self::default()).then_some(found)
    }

    /// Returns the description.
    pub fn to_xml(&self) -> Xml {
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
    fn values_with_characters_that_xml_does_not_allow_are_left_out() {
        let text = |base: &str| {
            format!("<s><updateFrequency>2</updateFrequency><updateBase>{base}</updateBase></s>")
        };
        check(&text("2026\0"), Some(["", "2", ""]));
        check(&text("2026&#1;"), Some(["", "2", ""]));
    }

    #[test]
    fn a_schedule_is_read_in_any_container() {
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
    fn other_descriptions_are_none() {
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
        fn written_values_are_read_back(period in prop::option::of("[!-~]{1,12}"),
                                   frequency in prop::option::of("[1-9][0-9]{0,8}"),
                                   base in prop::option::of("[!-~]([ -~]{0,20}[!-~])?")) {
            let written = Syndication { period, frequency, base };
            let expected = (written != Syndication::default()).then(|| written.clone());
            prop_assert_eq!(Syndication::read(&written.to_xml()), expected);
        }

        #[test]
        fn any_text_is_a_schedule_or_none(text in "\\PC{0,200}") {
            let _ = Syndication::read(&Xml(text));
        }
    }
}
