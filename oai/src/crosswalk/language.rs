//! Languages, normalized to the three letters of ISO 639-3.
//!
//! Source: ISO 639-1; ISO 639-2 (MARC uses its bibliographic codes, such as `ger`); ISO 639-3; RFC
//! 5646 for tags such as `en-US`, whose region is dropped.

use std::borrow::Cow;

/// Codes of ISO 639-1 with those of ISO 639-3, sorted by the former.
const CODES: &[&str] = &[
    "aa aar", "ab abk", "ae ave", "af afr", "ak aka", "am amh", "an arg", "ar ara", "as asm",
    "av ava", "ay aym", "az aze", "ba bak", "be bel", "bg bul", "bi bis", "bm bam", "bn ben",
    "bo bod", "br bre", "bs bos", "ca cat", "ce che", "ch cha", "co cos", "cr cre", "cs ces",
    "cu chu", "cv chv", "cy cym", "da dan", "de deu", "dv div", "dz dzo", "ee ewe", "el ell",
    "en eng", "eo epo", "es spa", "et est", "eu eus", "fa fas", "ff ful", "fi fin", "fj fij",
    "fo fao", "fr fra", "fy fry", "ga gle", "gd gla", "gl glg", "gn grn", "gu guj", "gv glv",
    "ha hau", "he heb", "hi hin", "ho hmo", "hr hrv", "ht hat", "hu hun", "hy hye", "hz her",
    "ia ina", "id ind", "ie ile", "ig ibo", "ii iii", "ik ipk", "io ido", "is isl", "it ita",
    "iu iku", "ja jpn", "jv jav", "ka kat", "kg kon", "ki kik", "kj kua", "kk kaz", "kl kal",
    "km khm", "kn kan", "ko kor", "kr kau", "ks kas", "ku kur", "kv kom", "kw cor", "ky kir",
    "la lat", "lb ltz", "lg lug", "li lim", "ln lin", "lo lao", "lt lit", "lu lub", "lv lav",
    "mg mlg", "mh mah", "mi mri", "mk mkd", "ml mal", "mn mon", "mr mar", "ms msa", "mt mlt",
    "my mya", "na nau", "nb nob", "nd nde", "ne nep", "ng ndo", "nl nld", "nn nno", "no nor",
    "nr nbl", "nv nav", "ny nya", "oc oci", "oj oji", "om orm", "or ori", "os oss", "pa pan",
    "pi pli", "pl pol", "ps pus", "pt por", "qu que", "rm roh", "rn run", "ro ron", "ru rus",
    "rw kin", "sa san", "sc srd", "sd snd", "se sme", "sg sag", "sh hbs", "si sin", "sk slk",
    "sl slv", "sm smo", "sn sna", "so som", "sq sqi", "sr srp", "ss ssw", "st sot", "su sun",
    "sv swe", "sw swa", "ta tam", "te tel", "tg tgk", "th tha", "ti tir", "tk tuk", "tl tgl",
    "tn tsn", "to ton", "tr tur", "ts tso", "tt tat", "tw twi", "ty tah", "ug uig", "uk ukr",
    "ur urd", "uz uzb", "ve ven", "vi vie", "vo vol", "wa wln", "wo wol", "xh xho", "yi yid",
    "yo yor", "za zha", "zh zho", "zu zul",
];

/// The bibliographic codes of ISO 639-2 that differ from those of ISO 639-3.
const BIBLIOGRAPHIC: &[&str] = &[
    "alb sqi", "arm hye", "baq eus", "bur mya", "chi zho", "cze ces", "dut nld", "fre fra",
    "geo kat", "ger deu", "gre ell", "ice isl", "mac mkd", "mao mri", "may msa", "per fas",
    "rum ron", "slo slk", "tib bod", "wel cym",
];

/// Language names that repositories write instead of a code.
const NAMES: &[&str] = &[
    "arabic ara",
    "bulgarian bul",
    "catalan cat",
    "català cat",
    "chinese zho",
    "croatian hrv",
    "czech ces",
    "danish dan",
    "deutsch deu",
    "dutch nld",
    "english eng",
    "español spa",
    "estonian est",
    "finnish fin",
    "français fra",
    "french fra",
    "german deu",
    "greek ell",
    "hebrew heb",
    "hindi hin",
    "hungarian hun",
    "icelandic isl",
    "indonesian ind",
    "irish gle",
    "italian ita",
    "italiano ita",
    "japanese jpn",
    "korean kor",
    "latin lat",
    "latvian lav",
    "lithuanian lit",
    "nederlands nld",
    "norwegian nor",
    "persian fas",
    "polish pol",
    "polski pol",
    "portuguese por",
    "português por",
    "romanian ron",
    "russian rus",
    "serbian srp",
    "slovak slk",
    "slovenian slv",
    "spanish spa",
    "svenska swe",
    "swedish swe",
    "turkish tur",
    "ukrainian ukr",
    "vietnamese vie",
    "welsh cym",
];

/// Returns the three letters of the language; `None` if it is unknown. Any three letters are a
/// code.
pub(super) fn normal(text: &str) -> Option<Cow<'_, str>> {
    // Most values are codes already.
    if text.len() == 3 && text.bytes().all(|it| it.is_ascii_lowercase()) {
        return Some(looked_up(BIBLIOGRAPHIC, text).map_or(Cow::Borrowed(text), Cow::Borrowed));
    }
    let lower = text.trim().to_lowercase();
    if let Some(code) = looked_up(NAMES, &lower) {
        return Some(Cow::Borrowed(code));
    }
    let mut parts = lower.split(['-', '_']);
    let primary = parts.next()?;
    // `en-US` and `en_US` are tags; `English - American` is not.
    let is_tag =
        |it: &str| (1..=8).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_alphanumeric());
    if !parts.all(is_tag) {
        return None;
    }
    match primary.len() {
        2 => looked_up(CODES, primary).map(Cow::Borrowed),
        3 if primary.bytes().all(|it| it.is_ascii_lowercase()) => {
            let code = looked_up(BIBLIOGRAPHIC, primary);
            Some(code.map_or_else(|| Cow::Owned(primary.to_owned()), Cow::Borrowed))
        }
        _ => None,
    }
}

/// Returns the tag (BCP 47, without a region) of a language code, tag or name: two letters if ISO
/// 639-1 has them. `None` if the language is unknown.
pub fn tag(text: &str) -> Option<Cow<'_, str>> {
    let three = normal(text)?;
    let mut codes = CODES.iter().filter_map(|it| it.split_once(' '));
    let two = codes.find(|(_, code)| *code == three).map(|(two, _)| Cow::Borrowed(two));
    two.or(Some(three))
}

/// Returns the code behind `key`, if the table has it.
fn looked_up(table: &'static [&str], key: &str) -> Option<&'static str> {
    let split = |it: &&'static str| it.rsplit_once(' ').unwrap_or_default();
    let at = table.binary_search_by_key(&key, |it| split(it).0).ok()?;
    table.get(at).map(|it| split(it).1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tables_are_in_order_and_their_codes_have_three_letters() {
        let split = |it: &&'static str| it.rsplit_once(' ').unwrap();
        for table in [CODES, BIBLIOGRAPHIC, NAMES] {
            assert!(table.is_sorted_by(|a, b| split(a).0 < split(b).0));
            assert!(table.iter().all(|it| split(it).1.len() == 3));
        }
        // ISO 639-1 has had 184 codes in all, in addition to the withdrawn "sh".
        assert!((180..=185).contains(&CODES.len()), "{}", CODES.len());
        assert_eq!(BIBLIOGRAPHIC.len(), 20, "as many have two codes in ISO 639-2");
    }

    #[test]
    fn a_language_has_one_spelling() {
        for (text, expected) in [
            ("en", Some("eng")),
            ("eng", Some("eng")),
            ("EN-us", Some("eng")),
            ("pt_BR", Some("por")),
            ("ger", Some("deu")),
            ("GER", Some("deu")),
            ("deu", Some("deu")),
            ("zh-Hans-CN", Some("zho")),
            ("Français", Some("fra")),
            ("English", Some("eng")),
            ("und", Some("und")),
            ("qq", None),
            ("Klingon", None),
            ("English - American", None),
            ("", None),
        ] {
            assert_eq!(normal(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_tag_is_the_shortest_code() {
        for (text, expected) in [
            ("ger", Some("de")),
            ("eng", Some("en")),
            ("en-US", Some("en")),
            ("Français", Some("fr")),
            ("grc", Some("grc")),
            ("", None),
        ] {
            assert_eq!(tag(text).as_deref(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn normalizing_twice_changes_nothing(text in "\\PC{0,12}|[a-zA-Z]{2,3}([-_][a-zA-Z]{2,4})?") {
            if let Some(first) = normal(&text) {
                let again = normal(&first).map(Cow::into_owned);
                prop_assert_eq!(again.as_deref(), Some(&*first));
            }
        }
    }
}
