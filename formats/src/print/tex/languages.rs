//! Language tags for LaTeX's names of languages.
//!
//! Source: the manuals of babel (3.9, "Languages supported") and polyglossia; BCP 47.

/// Returns the BCP 47 tag of a language by its name in babel or polyglossia.
pub(super) fn tag(name: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|(_, names)| names.contains(&name)).map(|(tag, _)| *tag)
}

const LANGUAGES: &[(&str, &[&str])] = &[
    ("en", &["english"]),
    ("en-US", &["american", "USenglish", "usenglish"]),
    ("en-GB", &["british", "UKenglish", "ukenglish"]),
    ("en-AU", &["australian"]),
    ("en-CA", &["canadian"]),
    ("af", &["afrikaans"]),
    ("ar", &["arabic"]),
    ("bg", &["bulgarian"]),
    ("ca", &["catalan"]),
    ("cs", &["czech"]),
    ("cy", &["welsh"]),
    ("da", &["danish"]),
    ("de", &["german", "ngerman", "germanb"]),
    ("de-AT", &["austrian", "naustrian"]),
    ("de-CH", &["swissgerman", "nswissgerman"]),
    ("el", &["greek", "polutonikogreek"]),
    ("eo", &["esperanto"]),
    ("es", &["spanish"]),
    ("et", &["estonian"]),
    ("eu", &["basque"]),
    ("fi", &["finnish"]),
    ("fr", &["french", "francais", "frenchb", "acadian"]),
    ("ga", &["irish"]),
    ("gl", &["galician"]),
    ("he", &["hebrew"]),
    ("hr", &["croatian"]),
    ("hu", &["hungarian", "magyar"]),
    ("id", &["indonesian", "bahasa"]),
    ("is", &["icelandic"]),
    ("it", &["italian"]),
    ("ja", &["japanese"]),
    ("la", &["latin"]),
    ("lt", &["lithuanian"]),
    ("lv", &["latvian"]),
    ("nb", &["norsk", "norwegian"]),
    ("nl", &["dutch"]),
    ("nn", &["nynorsk"]),
    ("pl", &["polish"]),
    ("pt", &["portuguese", "portuges"]),
    ("pt-BR", &["brazilian", "brazil"]),
    ("ro", &["romanian"]),
    ("ru", &["russian"]),
    ("sk", &["slovak"]),
    ("sl", &["slovene", "slovenian"]),
    ("sr", &["serbian"]),
    ("sv", &["swedish"]),
    ("tr", &["turkish"]),
    ("uk", &["ukrainian"]),
    ("vi", &["vietnamese"]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_of_one_language() {
        let names: Vec<&str> = LANGUAGES.iter().flat_map(|it| it.1.iter().copied()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert_eq!(tag("ngerman"), Some("de"));
        assert_eq!(tag("klingon"), None);
    }
}
