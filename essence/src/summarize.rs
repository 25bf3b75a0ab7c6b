//! Summarizing by type: one object in, one record out.
//!
//! Source: TR §4. [`formats`] has the built-in summarizers. A summarizer that the site has declared
//! ([`quick`](crate::quick)) replaces the built-in one or is laid over it.
//!
//! Sans-I/O.

use std::sync::Arc;

use formats::object::{Object, Summary};
use formats::{Draft, Input, Type};
use serde::{Deserialize, Serialize};

use crate::quick::Declared;
use crate::typing::Recognizer;

/// Settings for a site's summaries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Recognizer of types, with the names of the site's own.
    pub typing: Arc<Recognizer>,
    /// Summarizers that the site has declared.
    pub declared: Declared,
    /// Settings of the formats: how much is read of each format and written to records.
    pub formats: formats::Settings,
}

impl Settings {
    pub(crate) fn input<'a>(
        &'a self,
        object: &'a Object,
        r#type: Type,
        cancelled: &'a dyn Fn() -> bool,
    ) -> Input<'a> {
        Input { object, r#type, settings: &self.formats, cancelled }
    }

    /// Returns the draft of an object by the summarizer of its type, declared or built in.
    pub(crate) fn draft<'a>(&self, input: &Input<'a>) -> Draft<'a> {
        self.declared.draft(input, formats::draft)
    }

    pub(crate) fn finish(&self, input: &Input<'_>, draft: Draft<'_>) -> Summary {
        let is_declared = |attribute: &str| self.declared.has(input.r#type, attribute);
        formats::summary(input, draft, self.typing.name(input.r#type), &is_declared)
    }
}

/// Summarizes `object` by its type, and returns a record with its content attributes. For a type
/// without a summarizer, returns a record made from the name.
pub fn summarize(
    object: &Object,
    r#type: Type,
    settings: &Settings,
    cancelled: &dyn Fn() -> bool,
) -> Summary {
    let input = settings.input(object, r#type, cancelled);
    settings.finish(&input, settings.draft(&input))
}

#[cfg(test)]
mod tests {
    use formats::Detail;

    use super::*;

    #[test]
    fn identifiers_and_declared_attributes_are_in_records_of_every_detail() {
        let declared = "[[summarizer]]\ntype = 'Mail'\nbeside = true\n\
                        [[summarizer.attribute]]\nname = 'Invoice'\nmatch = 'invoice (\\d+)'\n";
        let declared = Declared::read(&[("q".into(), declared.to_owned())], None).unwrap();
        let id = format!("{}@h.example", "x".repeat(120));
        let mail = format!(
            "From: Ann <a@h.example>\nTo: {}@h.example\nMessage-ID: <{id}>\nSubject: S\n\ninvoice 17\n",
            "b".repeat(120)
        );
        for detail in [Detail::NAMES, Detail::TERSE, Detail::BRIEF] {
            let formats = formats::Settings { detail, ..formats::Settings::default() };
            let settings = Settings { declared: declared.clone(), formats, ..Settings::default() };
            let object = Object::whole("http://h.example/a.eml", mail.as_bytes().to_vec());
            let record = summarize(&object, Type::Mail, &settings, &|| false).record;
            assert_eq!(record.text("Message-Id").as_deref(), Some(&*id), "{detail:?}");
            assert_eq!(record.text("Invoice").as_deref(), Some("17"), "{detail:?}");
            assert_eq!(record.get("To"), None, "{detail:?}");
        }
    }
}
