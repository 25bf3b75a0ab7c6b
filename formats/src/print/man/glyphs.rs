//! The special characters of troff, by name.
//!
//! Source: groff_char(7). Characters with a usual spelling in ASCII are spelled so, since users search for
//! that.

use super::super::tex_fonts::accented;
use crate::names::NameTable;

/// Adds the character `name`; an unknown one prints nothing.
pub(super) fn push(name: &str, plain: &mut String) {
    if let Some(text) = GLYPHS.get(name) {
        plain.push_str(text);
        return;
    }
    let mut chars = name.chars();
    match (chars.next(), chars.as_str()) {
        // `u0065_0301`: a letter and its accent.
        (Some('u'), codes) if 4 <= codes.len() => {
            let code = |it: &str| u32::from_str_radix(it, 16).ok().and_then(char::from_u32);
            let mut codes = codes.split('_').map_while(code).filter(|it| !it.is_control());
            let Some(letter) = codes.next() else { return };
            let made = codes.next().map(|accent| accented(accent, letter));
            plain.push(made.flatten().unwrap_or(letter));
        }
        (Some(accent), letter) => {
            let mut letters = letter.chars();
            let (Some(letter), None) = (letters.next(), letters.next()) else { return };
            plain.extend(greek_or_accented(accent, letter));
        }
        (None, _) => {}
    }
}

fn greek_or_accented(accent: char, letter: char) -> Option<char> {
    if accent == '*' {
        let small = letter.to_ascii_lowercase();
        let (_, greek) = LATIN.chars().zip(GREEK.chars()).find(|(latin, _)| *latin == small)?;
        let is_small = small == letter;
        return if is_small { Some(greek) } else { greek.to_uppercase().next() };
    }
    let (_, combining) = ACCENTS.chars().zip(COMBINING).find(|(it, _)| *it == accent)?;
    accented(combining, letter)
}

/// The Latin letters that stand for those of `GREEK`, in the same order.
const LATIN: &str = "abgdezyhiklmncoprstufxqw";
const GREEK: &str = "αβγδεζηθικλμνξοπρστυφχψω";

/// The first characters of the names of accented letters, in the order of `COMBINING`.
const ACCENTS: &str = "`'^~-:ov,";
const COMBINING: [char; 9] = [
    '\u{300}', '\u{301}', '\u{302}', '\u{303}', '\u{304}', '\u{308}', '\u{30a}', '\u{30c}',
    '\u{327}',
];

/// Glyphs: their names and the printed text.
static GLYPHS: NameTable = NameTable::of(
    "aq:' Aq:' cq:' oq:' fm:' dq:\" lq:\" rq:\" L\":\" R\":\" sd:\" em:- en:- hy:- mi:- -:- \
     --:- bu:* **:* co:(C) rg:(R) R:(R) tm:(TM) Tm:(TM) ha:^ a^:^ ti:~ a~:~ ap:~ ga:` aa:´ \
     rs:\\ sl:/ ba:| br:| or:| bv:| ul:_ ru:_ lB:[ rB:] lC:{ rC:} la:< ra:> at:@ sh:# Do:$ \
     pl:+ eq:= +-:+/- t+-:+/- ->:-> <-:<- <>:<-> <=:<= >=:>= !=:!= mu:x tmu:x ff:ff fi:fi \
     fl:fl Fi:ffi Fl:ffl Fo:« Fc:» fo:‹ fc:› Bq:„ bq:‚ r!:¡ r?:¿ sc:§ ps:¶ dg:† dd:‡ de:° pc:· \
     no:¬ tno:¬ di:÷ tdi:÷ 12:½ 14:¼ 34:¾ S1:¹ S2:² S3:³ Of:ª Om:º ct:¢ Po:£ Ye:¥ Eu:€ eu:€ \
     mc:µ if:∞ ~~:≈ ==:≡ ss:ß AE:Æ ae:æ OE:Œ oe:œ -D:Ð Sd:ð TP:Þ Tp:þ /O:Ø /o:ø /L:Ł /l:ł .i:ı \
     ts:ς",
);
