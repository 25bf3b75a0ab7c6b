//! The language of a text: as the document declares it, else as its letters show it.
//!
//! Source: BCP 47 for tags (a language, a script, a region), with ISO 639-1 where it has the language. The
//! detector is whatlang: scripts, alphabets and trigrams (W. B. Cavnar, J. M. Trenkle, "N-Gram-Based Text
//! Categorization", 1994).
//!
//! # Differences from the sources
//!
//! * A declaration that is no language (`und`, `zxx`, `mul`, a programming language) counts as none.
//! * The detector sees a sample, and its answer counts only if it takes it for reliable and the sample is prose.
//! * Most texts are English, and the detector takes as long as half of all other work on a small file. So a
//!   sample with as many of the commonest English words as only English has is English, and the detector is not
//!   asked: for about six in ten English manual pages and files of `/usr/share/doc`.

use std::borrow::Cow;

use oai::crosswalk;

use crate::{Draft, Input, Type};

/// Maximum number of pieces of a sample, which lie at equal distances.
const PIECES_MAX: usize = 4;
/// Longest piece of a sample, in bytes.
const PIECE_BYTES_MAX: usize = 400;
/// Fewest letters of a text whose language is detected. Of a script in which a letter is a word, a third will do.
const LETTERS_MIN: usize = 100;
/// Longest declaration that is read, in bytes.
const DECLARED_BYTES_MAX: usize = 200;
/// Words of English that no other language has so often.
const ENGLISH: &[&str] = &[
    "the", "of", "and", "to", "that", "with", "this", "for", "are", "be", "you", "from", "can",
    "if", "which", "not", "or", "it", "when", "has", "was", "other", "any", "all",
];
/// One word in so many must be one of these, in English.
const ENGLISH_WORDS_EACH: usize = 8;

/// Gives the language that a draft declares the spelling of all records, or else adds the one that is detected; and
/// adds what says it.
pub(crate) fn settle(input: &Input<'_>, draft: &mut Draft<'_>) {
    let others = &mut draft.others;
    let at = others.iter().position(|(name, _)| name == "Language").unwrap_or(others.len());
    let declared = others.get(at).map_or_else(String::new, |(_, value)| declared(value));
    others.retain(|(name, _)| name != "Language");
    let (language, source) = if !declared.is_empty() {
        (declared, "declared")
    } else if input.settings.detail.language
        && is_read_by_people(input.r#type)
        && let Some(found) = detected(&draft.body)
    {
        (found.into_owned(), "detected")
    } else {
        return;
    };
    let both = [("Language", language.as_str()), ("Language-Source", source)];
    let both = both.map(|(name, value)| (name.to_owned(), value.to_owned()));
    others.splice(at..at, both).for_each(drop);
}

/// Returns the tags of languages that a document declares, a line each; empty if it declares none.
fn declared(written: &str) -> String {
    let written =
        written.get(..written.floor_char_boundary(DECLARED_BYTES_MAX)).unwrap_or_default();
    let mut tags: Vec<String> = Vec::new();
    for tag in written.split(['\n', ',', ';']).filter_map(|it| tag(it.trim())) {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags.join("\n")
}

/// Returns the tag of a language by a tag, a locale (`de_AT.UTF-8`), a code or an English name.
fn tag(written: &str) -> Option<String> {
    let written = written.split(['.', '@']).next()?;
    let language = crosswalk::language_tag(written)?;
    if matches!(&*language, "und" | "zxx" | "mul" | "mis") {
        return None;
    }
    let mut tag = language.into_owned();
    for part in written.split(['-', '_']).skip(1).take(2) {
        match part.len() {
            4 if part.bytes().all(|it| it.is_ascii_alphabetic()) => {
                let (first, rest) = part.split_at(1);
                tag.extend(["-", &first.to_ascii_uppercase(), &rest.to_ascii_lowercase()]);
            }
            2 if part.bytes().all(|it| it.is_ascii_alphabetic()) => {
                tag.extend(["-", &part.to_ascii_uppercase()]);
            }
            _ => break,
        }
    }
    Some(tag)
}

/// Returns the tag of the language that a text is in; `None` if that is not certain.
fn detected(text: &str) -> Option<Cow<'static, str>> {
    let sample = sample(text);
    if !is_prose(&sample) {
        return None;
    }
    if is_english(&sample) {
        return Some(Cow::Borrowed("en"));
    }
    let found = whatlang::detect(&sample).filter(whatlang::Info::is_reliable)?;
    match found.lang() {
        // The codes of one language of a group, which the group's two letters mean, too.
        whatlang::Lang::Cmn => Some(Cow::Borrowed("zh")),
        whatlang::Lang::Pes => Some(Cow::Borrowed("fa")),
        other => crosswalk::language_tag(other.code()),
    }
}

/// Returns pieces of the text from its beginning to its end, each of whole words.
fn sample(text: &str) -> String {
    let step = text.len().div_ceil(PIECES_MAX).max(PIECE_BYTES_MAX);
    let mut sample = String::with_capacity(PIECES_MAX * (PIECE_BYTES_MAX + 1));
    for at in (0..text.len()).step_by(step) {
        let (start, end) =
            (text.ceil_char_boundary(at), text.floor_char_boundary(at + PIECE_BYTES_MAX));
        let piece = text.get(start..end).unwrap_or_default();
        // The first word of a later piece may have begun before it.
        let cut = if at == 0 { 0 } else { piece.find(char::is_whitespace).unwrap_or_default() };
        sample.push_str(piece.get(cut..).unwrap_or_default());
        sample.push(' ');
    }
    sample
}

/// Returns whether a sample has enough letters, and more of them than of other signs.
fn is_prose(sample: &str) -> bool {
    let (mut letters, mut others) = (0_usize, 0_usize);
    for char in sample.chars() {
        match char {
            // Three bytes or more: mostly the scripts in which a letter is a syllable or a word.
            '\u{1100}'.. if char.is_alphabetic() => letters += 3,
            _ if char.is_alphabetic() => letters += 1,
            _ if !char.is_whitespace() => others += 1,
            _ => {}
        }
    }
    LETTERS_MIN <= letters && others <= letters
}

fn is_english(sample: &str) -> bool {
    let (mut common, mut words) = (0_usize, 0_usize);
    // Single letters are mostly parts of code and names.
    let runs = sample.split(|it: char| !it.is_alphabetic()).filter(|it| 1 < it.len());
    for word in runs {
        words += 1;
        common += usize::from(ENGLISH.iter().any(|it| word.eq_ignore_ascii_case(it)));
    }
    0 < common && words <= common * ENGLISH_WORDS_EACH
}

/// Returns whether objects of this type are texts that people read, not programs, settings or tables.
fn is_read_by_people(r#type: Type) -> bool {
    let is_data = matches!(
        r#type,
        Type::Source(_)
            | Type::Makefile
            | Type::Configuration
            | Type::DotFile
            | Type::Data
            | Type::Csv
            | Type::Excel
            | Type::Json
            | Type::Patch
            | Type::Rcs
            | Type::Sccs
            | Type::SymbolicLink
            | Type::WaisSource
            | Type::Directory
    );
    !is_data && r#type.has_text()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::render;

    #[test]
    fn declarations_have_one_spelling() {
        for (written, expected) in [
            ("en", "en"),
            ("EN_us", "en-US"),
            ("eng", "en"),
            ("German", "de"),
            ("de_AT.UTF-8", "de-AT"),
            ("zh-hans-cn", "zh-Hans-CN"),
            ("sr-Latn", "sr-Latn"),
            ("de, en;de", "de\nen"),
            ("grc", "grc"),
            ("und", ""),
            ("C", ""),
            ("javascript", ""),
            ("", ""),
        ] {
            assert_eq!(declared(written), expected, "{written}");
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(detected(text).unwrap_or_default(), expected, "{text}");
    }

    #[test]
    fn languages_are_detected_in_prose() {
        check(
            "A site that wants to be found is crawled by everybody who wants to index it. Every crawler fetches \
             every object whole, again and again, and throws most of it away.",
            "en",
        );
        check(
            "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen \
             begabt und sollen einander im Geiste der Brüderlichkeit begegnen.",
            "de",
        );
        check(
            "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et \
             de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
            "fr",
        );
        check(
            "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и \
             совестью и должны поступать в отношении друг друга в духе братства.",
            "ru",
        );
        check(
            "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
            "zh",
        );
        check(
            "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられている。",
            "ja",
        );
    }

    #[test]
    fn what_is_not_certain_is_left_out() {
        check("", "");
        check("Kurz und gut.", "");
        check(&"0x12 0x34 a[7] = {1, 2, 3}; ".repeat(40), "");
        check(&"x ".repeat(400), "");
    }

    #[test]
    fn a_declaration_wins() {
        let text = "Alle Menschen sind frei und gleich an Würde und Rechten geboren. ".repeat(4);
        let page = |lang: &str| format!("<html{lang}><title>T</title><p>{text}");
        let seen = |page: &str| {
            let rendered = render("p.html", Type::Html, page.as_bytes());
            let lines = rendered.lines().filter(|it| it.starts_with("Language"));
            lines.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(seen(&page(" lang=EN-gb")), "Language: en-GB; Language-Source: declared");
        assert_eq!(seen(&page(" lang=und")), "Language: de; Language-Source: detected");
        assert_eq!(seen(&page("")), "Language: de; Language-Source: detected");
        let source = render("p.c", Type::Source(crate::Language::C), text.as_bytes());
        assert!(!source.contains("Language:"), "{source}");
    }

    proptest! {
        #[test]
        fn any_text_has_a_language_or_none(text in "\\PC{0,400}") {
            let _ = (declared(&text), detected(&text));
            let _ = detected(&text.repeat(20));
        }
    }
}
