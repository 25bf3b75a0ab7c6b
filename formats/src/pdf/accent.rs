//! Accented letters, composed of a letter and an accent.
//!
//! Source: TeX's text fonts in the OT1 encoding have no accented letters. The accent is drawn first and then
//! the letter, or the other way around for accents below. Readers see one letter.

/// Accents in the forms of fonts, each with its letters: base, result, base, result, …
const COMPOSED: &[(&[char], &str)] = &[
    (&['´', '\u{301}', '\''], "aáeéiíoóuúyýcćnńsśzźlĺrŕgǵAÁEÉIÍOÓUÚYÝCĆNŃSŚZŹLĹRŔ"),
    (&['`', '\u{300}'], "aàeèiìoòuùnǹAÀEÈIÌOÒUÙNǸ"),
    (&['ˆ', '^', '\u{302}'], "aâeêiîoôuûcĉgĝhĥjĵsŝwŵyŷAÂEÊIÎOÔUÛCĈGĜHĤJĴSŜWŴYŶ"),
    (&['¨', '\u{308}'], "aäeëiïoöuüyÿAÄEËIÏOÖUÜYŸ"),
    (&['˜', '~', '\u{303}'], "aãnñoõiĩuũAÃNÑOÕIĨUŨ"),
    (&['¯', 'ˉ', '\u{304}'], "aāeēiīoōuūAĀEĒIĪOŌUŪ"),
    (&['˘', '\u{306}'], "aăeĕgğiĭoŏuŭAĂEĔGĞIĬOŎUŬ"),
    (&['˙', '\u{307}'], "cċeėgġzżIİCĊEĖGĠZŻ"),
    (&['˚', '°', '\u{30a}'], "aåuůAÅUŮ"),
    (&['˝', '\u{30b}'], "oőuűOŐUŰ"),
    (&['ˇ', '\u{30c}'], "cčdďeěnňrřsštťzžgǧCČDĎEĚNŇRŘSŠTŤZŽGǦ"),
    (&['¸', '\u{327}'], "cçsştţgģkķlļnņrŗCÇSŞTŢGĢKĶLĻNŅRŖ"),
    (&['˛', '\u{328}'], "aąeęiįuųAĄEĘIĮUŲ"),
];

/// Returns whether `char` may be the accent of a letter drawn at the same position.
pub(super) fn is_accent(char: char) -> bool {
    matches!(char, '`' | '^' | '~' | '\'' | '¨' | '¯' | '´' | '¸' | '°' | 'ˆ'..='˝' | '\u{300}'..='\u{328}')
}

/// Returns the one letter for `base` and `accent`, if there is one.
pub(super) fn compose(base: char, accent: char) -> Option<char> {
    let base = match base {
        'ı' => 'i',
        'ȷ' => 'j',
        other => other,
    };
    let (_, letters) = COMPOSED.iter().find(|(names, _)| names.contains(&accent))?;
    let mut letters = letters.chars();
    while let (Some(from), Some(to)) = (letters.next(), letters.next()) {
        if from == base {
            return Some(to);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_letters() {
        assert_eq!(compose('u', '¨'), Some('ü'));
        assert_eq!(compose('ı', '´'), Some('í'));
        assert_eq!(compose('c', '¸'), Some('ç'));
        assert_eq!(compose('S', 'ˇ'), Some('Š'));
        assert_eq!(compose('q', '¨'), None);
        assert_eq!(compose('u', 'x'), None);
    }

    #[test]
    fn the_table_is_pairs_of_letters() {
        for (accents, letters) in COMPOSED {
            assert!(accents.iter().all(|it| is_accent(*it)), "{accents:?}");
            assert!(letters.chars().count().is_multiple_of(2), "{letters}");
            let mut letters = letters.chars();
            while let (Some(from), Some(to)) = (letters.next(), letters.next()) {
                assert!(from.is_ascii_alphabetic() && !to.is_ascii(), "{from}{to}");
            }
        }
    }
}
