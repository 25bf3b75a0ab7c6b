//! Particles: the stems of languages that write small words together with their words.
//!
//! Korean writes them behind a word (`서울에서`: in Seoul), Arabic and Hebrew before it (`الكتاب`,
//! `הספר`: the book). All that stand there are cut off, as long as a word is left, so that a word has
//! one stem with and without them. Other words may have that stem as well. So of two forms of one word,
//! one [begins or ends](joined) with the other.
//!
//! Sans-I/O.

/// Particles behind Korean words, longer ones first. Others are several of these (`에서는`).
const KOREAN: [&str; 33] = [
    "에게서",
    "입니다",
    "으로",
    "에서",
    "에게",
    "한테",
    "께서",
    "까지",
    "부터",
    "처럼",
    "보다",
    "마다",
    "조차",
    "마저",
    "밖에",
    "하고",
    "이다",
    "이며",
    "이라",
    "은",
    "는",
    "이",
    "가",
    "을",
    "를",
    "의",
    "에",
    "로",
    "와",
    "과",
    "도",
    "만",
    "들",
];
/// Fewest syllables of a Korean word before its particles.
const SYLLABLES_MIN: usize = 2;
/// Particles before Arabic words: the, and, so, in, as, to.
const ARABIC: [&str; 6] = ["ال", "و", "ف", "ب", "ك", "ل"];
/// Particles before Hebrew words: and, the, in, to, as, from, that.
const HEBREW: [&str; 7] = ["ו", "ה", "ב", "ל", "כ", "מ", "ש"];
/// Fewest letters of an Arabic or Hebrew word behind its particles.
const LETTERS_MIN: usize = 3;

/// Returns a Korean word without its particles.
pub(crate) fn korean(word: &str) -> &str {
    let rests = KOREAN.iter().filter_map(|it| word.strip_suffix(it));
    let mut rests = rests.filter(|it| it.chars().nth(SYLLABLES_MIN - 1).is_some());
    rests.next().map_or(word, korean)
}

/// Returns an Arabic word without its particles.
pub(crate) fn arabic(word: &str) -> &str {
    without(&ARABIC, word)
}

/// Returns a Hebrew word without its particles.
pub(crate) fn hebrew(word: &str) -> &str {
    without(&HEBREW, word)
}

/// Returns a word without the `particles` before it.
fn without<'a>(particles: &[&str], word: &'a str) -> &'a str {
    let rests = particles.iter().filter_map(|it| word.strip_prefix(it));
    let mut rests = rests.filter(|it| it.chars().nth(LETTERS_MIN - 1).is_some());
    rests.next().map_or(word, |rest| without(particles, rest))
}

/// Returns whether a word is Hangul, whose syllables are two letters or three.
pub(crate) fn is_hangul(word: &str) -> bool {
    word.starts_with(|c| matches!(c, '\u{ac00}'..='\u{d7a3}'))
}

/// Returns whether a word is Arabic or Hebrew, so that particles may stand before it.
pub(crate) fn is_semitic(word: &str) -> bool {
    word.starts_with(|c| matches!(c, '\u{5d0}'..='\u{5ea}' | '\u{620}'..='\u{64a}'))
}

/// Returns whether two words may be forms of one by where their letters are the same; `None` for
/// languages that write particles as words.
pub(crate) fn joined(one: &str, other: &str) -> Option<bool> {
    if is_hangul(one) {
        return Some(one.starts_with(other) || other.starts_with(one));
    }
    is_semitic(one).then(|| one.ends_with(other) || other.ends_with(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_stem_with_and_without_particles() {
        let check = |cut: fn(&str) -> &str, words: &str, expected: &str| {
            words.split(' ').for_each(|it| assert_eq!(cut(it), expected, "{it}"));
        };
        check(korean, "서울 서울은 서울에서 서울에서는 서울로부터", "서울");
        check(korean, "고양이 고양이가 고양이들의", "고양");
        check(korean, "바다 바다로 바다까지도", "바다");
        check(korean, "물이", "물이");
        check(arabic, "كتاب الكتاب وكتاب والكتاب بالكتاب للكتاب", "تاب");
        check(arabic, "بيت البيت", "بيت");
        check(hebrew, "ספר הספר בספר וכשהספר", "ספר");
        check(hebrew, "מחשב המחשב למחשב", "חשב");
    }

    #[test]
    fn one_form_begins_or_ends_with_the_other() {
        for (one, other, expected) in [
            ("서울", "서울에서", Some(true)),
            ("고양이가", "고양이", Some(true)),
            ("고양이", "고양에서", Some(false)),
            ("كتاب", "والكتاب", Some(true)),
            ("הספר", "ספר", Some(true)),
            ("מלון", "בלון", Some(false)),
            ("haus", "haus", None),
            ("книга", "книги", None),
        ] {
            assert_eq!(joined(one, other), expected, "{one} {other}");
        }
    }
}
