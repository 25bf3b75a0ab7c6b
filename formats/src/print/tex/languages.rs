//! Language tags for LaTeX's names of languages.
//!
//! Source: the manuals of babel (3.9, "Languages supported") and polyglossia; BCP 47.

use crate::names::NameTable;

/// Returns the BCP 47 tag of a language by its name in babel or polyglossia.
pub(super) fn tag(name: &str) -> Option<&'static str> {
    LANGUAGES.get(name)
}

static LANGUAGES: NameTable = NameTable::of(NAMES);

/// Names and tags.
const NAMES: &str = "english:en american:en-US USenglish:en-US usenglish:en-US british:en-GB \
    UKenglish:en-GB ukenglish:en-GB australian:en-AU canadian:en-CA afrikaans:af arabic:ar \
    bulgarian:bg catalan:ca czech:cs welsh:cy danish:da german:de ngerman:de germanb:de \
    austrian:de-AT naustrian:de-AT swissgerman:de-CH nswissgerman:de-CH greek:el \
    polutonikogreek:el esperanto:eo spanish:es estonian:et basque:eu finnish:fi french:fr \
    francais:fr frenchb:fr acadian:fr irish:ga galician:gl hebrew:he croatian:hr hungarian:hu \
    magyar:hu indonesian:id bahasa:id icelandic:is italian:it japanese:ja latin:la lithuanian:lt \
    latvian:lv norsk:nb norwegian:nb dutch:nl nynorsk:nn polish:pl portuguese:pt portuges:pt \
    brazilian:pt-BR brazil:pt-BR romanian:ro russian:ru slovak:sk slovene:sl slovenian:sl \
    serbian:sr swedish:sv turkish:tr ukrainian:uk vietnamese:vi";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::names::pairs;

    #[test]
    fn every_name_is_of_one_language() {
        let names: Vec<&str> = pairs(NAMES).map(|(name, _)| name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert_eq!(tag("ngerman"), Some("de"));
        assert_eq!(tag("klingon"), None);
    }
}
