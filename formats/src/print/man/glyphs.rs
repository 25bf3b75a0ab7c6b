//! The special characters of troff, by name.
//!
//! Source: groff_char(7). Characters with a usual spelling in ASCII are spelled so, since users search for
//! that.

use super::super::tex_fonts::accented;

/// Adds the character `name`; an unknown one prints nothing.
pub(super) fn push(name: &str, plain: &mut String) {
    let known = GLYPHS.iter().find(|(_, names)| names.contains(&name));
    if let Some((text, _)) = known {
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
    let (_, combining) = ACCENTS.iter().find(|it| it.0 == accent)?;
    accented(*combining, letter)
}

/// The Latin letters that stand for Greek ones, and the latter, in the same order.
const LATIN: &str = "abgdezyhiklmncoprstufxqw";
const GREEK: &str = "αβγδεζηθικλμνξοπρστυφχψω";

/// The first character of an accented letter's name, and the combining accent.
const ACCENTS: &[(char, char)] = &[
    ('`', '\u{300}'),
    ('\'', '\u{301}'),
    ('^', '\u{302}'),
    ('~', '\u{303}'),
    ('-', '\u{304}'),
    (':', '\u{308}'),
    ('o', '\u{30a}'),
    ('v', '\u{30c}'),
    (',', '\u{327}'),
];

/// The printed text, and its names.
const GLYPHS: &[(&str, &[&str])] = &[
    ("'", &["aq", "Aq", "cq", "oq", "fm"]),
    ("\"", &["dq", "lq", "rq", "L\"", "R\"", "sd"]),
    ("-", &["em", "en", "hy", "mi", "-", "--"]),
    ("*", &["bu", "**"]),
    ("(C)", &["co"]),
    ("(R)", &["rg", "R"]),
    ("(TM)", &["tm", "Tm"]),
    ("^", &["ha", "a^"]),
    ("~", &["ti", "a~", "ap"]),
    ("`", &["ga"]),
    ("´", &["aa"]),
    ("\\", &["rs"]),
    ("/", &["sl"]),
    ("|", &["ba", "br", "or", "bv"]),
    ("_", &["ul", "ru"]),
    ("[", &["lB"]),
    ("]", &["rB"]),
    ("{", &["lC"]),
    ("}", &["rC"]),
    ("<", &["la"]),
    (">", &["ra"]),
    ("@", &["at"]),
    ("#", &["sh"]),
    ("$", &["Do"]),
    ("+", &["pl"]),
    ("=", &["eq"]),
    ("+/-", &["+-", "t+-"]),
    ("->", &["->"]),
    ("<-", &["<-"]),
    ("<->", &["<>"]),
    ("<=", &["<="]),
    (">=", &[">="]),
    ("!=", &["!="]),
    ("x", &["mu", "tmu"]),
    ("ff", &["ff"]),
    ("fi", &["fi"]),
    ("fl", &["fl"]),
    ("ffi", &["Fi"]),
    ("ffl", &["Fl"]),
    ("«", &["Fo"]),
    ("»", &["Fc"]),
    ("‹", &["fo"]),
    ("›", &["fc"]),
    ("„", &["Bq"]),
    ("‚", &["bq"]),
    ("¡", &["r!"]),
    ("¿", &["r?"]),
    ("§", &["sc"]),
    ("¶", &["ps"]),
    ("†", &["dg"]),
    ("‡", &["dd"]),
    ("°", &["de"]),
    ("·", &["pc"]),
    ("¬", &["no", "tno"]),
    ("÷", &["di", "tdi"]),
    ("½", &["12"]),
    ("¼", &["14"]),
    ("¾", &["34"]),
    ("¹", &["S1"]),
    ("²", &["S2"]),
    ("³", &["S3"]),
    ("ª", &["Of"]),
    ("º", &["Om"]),
    ("¢", &["ct"]),
    ("£", &["Po"]),
    ("¥", &["Ye"]),
    ("€", &["Eu", "eu"]),
    ("µ", &["mc"]),
    ("∞", &["if"]),
    ("≈", &["~~"]),
    ("≡", &["=="]),
    ("ß", &["ss"]),
    ("Æ", &["AE"]),
    ("æ", &["ae"]),
    ("Œ", &["OE"]),
    ("œ", &["oe"]),
    ("Ð", &["-D"]),
    ("ð", &["Sd"]),
    ("Þ", &["TP"]),
    ("þ", &["Tp"]),
    ("Ø", &["/O"]),
    ("ø", &["/o"]),
    ("Ł", &["/L"]),
    ("ł", &["/l"]),
    ("ı", &[".i"]),
    ("ς", &["ts"]),
];
