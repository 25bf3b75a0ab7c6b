//! The encodings of TeX fonts, for DVI and for the PostScript that dvips makes of it.
//!
//! Source: The TeXbook, appendix F (OT1, OML, OMS and the typewriter font); "LaTeX font encodings"
//! (encguide) §2.1 (T1) and §2.2 (TS1); `8r.enc` of psnfss.
//!
//! A DVI file names its fonts, but not their encodings. The encodings follow from the names, which
//! have been the same since 1982.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Text in Knuth's Computer Modern.
    Ot1,
    /// The same without ligatures: typewriter fonts.
    Ot1Typewriter,
    /// Text with all letters of Europe (Cork).
    T1,
    /// Symbols for text.
    Ts1,
    /// Mathematical italic.
    Oml,
    /// Mathematical symbols.
    Oms,
    /// PostScript fonts as dvips re-encodes them, and Latin-1.
    Base,
    /// No letters: large delimiters, drawings.
    Pictures,
}

/// Returns the encoding of a font by its name in TeX or PostScript.
pub(crate) fn encoding(name: &str) -> Encoding {
    let name = name.rsplit('+').next().unwrap_or(name).to_ascii_lowercase();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|it| name.starts_with(it));
    // Berry's names end with their encoding and width: `ptmr8t`, `phvb8tn`.
    let berry = name.trim_end_matches(['n', 'x', 'w']);
    let typewriter = name.contains("tt");
    if starts(&["cmex", "lasy", "msam", "lcircle", "line", "linew", "circle", "manfnt"]) {
        Encoding::Pictures
    } else if starts(&["cmmi", "cmmib", "rm-lmmi", "lmmi", "eurm", "eurb", "txmi", "pxmi"]) {
        Encoding::Oml
    } else if starts(&["cmsy", "cmbsy", "lmsy", "eusm", "txsy", "pxsy"]) {
        Encoding::Oms
    } else if starts(&["tc", "ts1-", "ts-"]) || berry.ends_with("8c") {
        Encoding::Ts1
    } else if starts(&[
        "ec", "t1-", "sfrm", "sfb", "sfti", "sftt", "sfcc", "sfsx", "cs-", "t1x", "t1p",
    ]) || berry.ends_with("8t")
        || berry.ends_with("8z")
    {
        Encoding::T1
    } else if berry.ends_with("8r")
        || berry.ends_with("8a")
        || starts(&["times", "helvetica", "courier", "palatino", "nimbus"])
    {
        Encoding::Base
    } else if typewriter && starts(&["cm", "lm", "rm-", "pl"]) {
        Encoding::Ot1Typewriter
    } else {
        Encoding::Ot1
    }
}

/// Returns the characters of a code in an encoding; "" if it is no text.
pub(crate) fn characters(encoding: Encoding, code: u8) -> &'static str {
    let special = match encoding {
        Encoding::Ot1 => ot1(code),
        Encoding::Ot1Typewriter => typewriter(code),
        Encoding::T1 => t1(code),
        Encoding::Ts1 => ts1(code),
        Encoding::Oml => oml(code),
        Encoding::Oms => oms(code),
        Encoding::Base => base(code),
        Encoding::Pictures => Some(""),
    };
    special.unwrap_or_else(|| ascii(code))
}

/// Returns the entry for a code in a table that begins at the code `first`.
fn entry(table: &'static [&'static str], code: u8, first: u8) -> Option<&'static str> {
    table.get(usize::from(code.checked_sub(first)?)).copied()
}

fn ot1(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00..=0x20 => return entry(OT1_LOW, code, 0),
        0x22 => "”",
        0x27 => "’",
        0x3c => "¡",
        0x3e => "¿",
        0x5c => "“",
        0x5e => "\u{302}",
        0x5f => "\u{307}",
        0x60 => "‘",
        0x7b => "–",
        0x7c => "—",
        0x7d => "\u{30b}",
        0x7e => "\u{303}",
        0x7f => "\u{308}",
        _ => return None,
    })
}

fn typewriter(code: u8) -> Option<&'static str> {
    match code {
        0x00..=0x0a | 0x10..=0x1f => entry(OT1_LOW, code, 0),
        0x0b..=0x0f => entry(&["↑", "↓", "'", "¡", "¿"], code, 0x0b),
        0x27 => Some("’"),
        0x60 => Some("‘"),
        0x7f => Some("\u{308}"),
        _ => None,
    }
}

fn t1(code: u8) -> Option<&'static str> {
    match code {
        0x00..=0x1f => entry(T1_LOW, code, 0),
        0x27 => Some("’"),
        0x60 => Some("‘"),
        0x7f => Some("-"),
        _ => entry(T1_HIGH, code, 0x80),
    }
}

fn ts1(code: u8) -> Option<&'static str> {
    match code {
        0x27 => Some("'"),
        0x2a => Some("*"),
        0x30..=0x39 => None,
        0x88 => Some("•"),
        0x97 => Some("™"),
        0xa0..=0xff => latin1(code),
        _ => Some(""),
    }
}

fn oml(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00..=0x2f => return entry(OML_LOW, code, 0),
        0x3a => ".",
        0x3b => ",",
        0x3c => "<",
        0x3d => "/",
        0x3e => ">",
        0x3f | 0x40 | 0x5b..=0x60 | 0x7d..=0x7f => "",
        0x7b => "i",
        0x7c => "j",
        _ => return None,
    })
}

fn oms(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00..=0x03 => return entry(&["-", "·", "×", "*"], code, 0),
        0x06 => "±",
        0x0f => "•",
        0x14 => "≤",
        0x15 => "≥",
        0x21 => "→",
        0x31 => "∞",
        0x32 => "∈",
        0x41..=0x5a => return None,
        0x66 => "{",
        0x67 => "}",
        0x6a => "|",
        0x78 => "§",
        0x79 => "†",
        0x7a => "‡",
        0x7b => "¶",
        _ => "",
    })
}

fn base(code: u8) -> Option<&'static str> {
    match code {
        0x02 => Some("fi"),
        0x03 => Some("fl"),
        0x00..=0x1f => Some(""),
        0x27 => Some("’"),
        0x60 => Some("‘"),
        0x7f..=0x9f => entry(WINDOWS, code, 0x80).or(Some("")),
        0xa0..=0xff => latin1(code),
        _ => None,
    }
}

const ASCII: &str = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`\
                     abcdefghijklmnopqrstuvwxyz{|}~";
const LATIN1: &str = "\u{a0}¡¢£¤¥¦§¨©ª«¬\u{ad}®¯°±²³´µ¶·¸¹º»¼½¾¿ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖ×ØÙÚÛÜÝÞß\
                      àáâãäåæçèéêëìíîïðñòóôõö÷øùúûüýþÿ";

fn ascii(code: u8) -> &'static str {
    let at = usize::from(code).wrapping_sub(0x20);
    ASCII.get(at..at.saturating_add(1)).unwrap_or_default()
}

fn latin1(code: u8) -> Option<&'static str> {
    // A soft hyphen in a font is a hyphen that is shown.
    if code == 0xad {
        return Some("-");
    }
    let at = 2 * usize::from(code).checked_sub(0xa0)?;
    LATIN1.get(at..at + 2)
}

/// Windows-1252 from 0x80 on.
const WINDOWS: &[&str] = &[
    "€", "", "", "", "„", "…", "†", "‡", "", "", "", "", "Œ", "", "", "", "", "‘", "’", "“", "”",
    "•", "–", "—", "", "™", "š", "", "œ", "", "ž",
];

/// OT1 up to 0x20. Accents, which come before their letter, are combining characters here.
const OT1_LOW: &[&str] = &[
    "Γ", "Δ", "Θ", "Λ", "Ξ", "Π", "Σ", "Υ", "Φ", "Ψ", "Ω", "ff", "fi", "fl", "ffi", "ffl", "ı",
    "ȷ", "\u{300}", "\u{301}", "\u{30c}", "\u{306}", "\u{304}", "\u{30a}", "", "ß", "æ", "œ", "ø",
    "Æ", "Œ", "Ø", "",
];

const OML_LOW: &[&str] = &[
    "Γ", "Δ", "Θ", "Λ", "Ξ", "Π", "Σ", "Υ", "Φ", "Ψ", "Ω", "α", "β", "γ", "δ", "ε", "ζ", "η", "θ",
    "ι", "κ", "λ", "μ", "ν", "ξ", "π", "ρ", "σ", "τ", "υ", "φ", "χ", "ψ", "ω", "ε", "ϑ", "ϖ", "ϱ",
    "ς", "φ", "", "", "", "", "", "", "", "",
];

const T1_LOW: &[&str] = &[
    "\u{300}", "\u{301}", "\u{302}", "\u{303}", "\u{308}", "\u{30b}", "\u{30a}", "\u{30c}",
    "\u{306}", "\u{304}", "\u{307}", "\u{327}", "\u{328}", "‚", "‹", "›", "“", "”", "„", "«", "»",
    "–", "—", "", "", "ı", "ȷ", "ff", "fi", "fl", "ffi", "ffl",
];

const T1_HIGH: &[&str] = &[
    "Ă", "Ą", "Ć", "Č", "Ď", "Ě", "Ę", "Ğ", "Ĺ", "Ľ", "Ł", "Ń", "Ň", "Ŋ", "Ő", "Ŕ", "Ř", "Ś", "Š",
    "Ş", "Ť", "Ţ", "Ű", "Ů", "Ÿ", "Ź", "Ž", "Ż", "Ĳ", "İ", "đ", "§", "ă", "ą", "ć", "č", "ď", "ě",
    "ę", "ğ", "ĺ", "ľ", "ł", "ń", "ň", "ŋ", "ő", "ŕ", "ř", "ś", "š", "ş", "ť", "ţ", "ű", "ů", "ÿ",
    "ź", "ž", "ż", "ĳ", "¡", "¿", "£", "À", "Á", "Â", "Ã", "Ä", "Å", "Æ", "Ç", "È", "É", "Ê", "Ë",
    "Ì", "Í", "Î", "Ï", "Ð", "Ñ", "Ò", "Ó", "Ô", "Õ", "Ö", "Œ", "Ø", "Ù", "Ú", "Û", "Ü", "Ý", "Þ",
    "SS", "à", "á", "â", "ã", "ä", "å", "æ", "ç", "è", "é", "ê", "ë", "ì", "í", "î", "ï", "ð", "ñ",
    "ò", "ó", "ô", "õ", "ö", "œ", "ø", "ù", "ú", "û", "ü", "ý", "þ", "ß",
];

/// Returns the approximate width of a character in Computer Modern, in units of the font's size.
pub(crate) fn width(encoding: Encoding, code: u8) -> f64 {
    if encoding == Encoding::Ot1Typewriter {
        return 0.525;
    }
    match code {
        b'i' | b'l' | b'.' | b',' | b'\'' | b'`' | b':' | b';' | b'!' | b'j' => 0.28,
        b'f' | b't' | b'r' | b's' | b'I' | b'(' | b')' | b'[' | b']' | b'-' => 0.38,
        b'c' | b'e' | b'z' => 0.44,
        b'm' | b'M' | b'W' | b'%' => 0.85,
        b'w' | b'A'..=b'Z' | b'+' | b'=' | b'<' | b'>' => 0.73,
        0x0b | 0x0c | 0x0d | 0x1b..=0x1d if encoding != Encoding::Oml => 0.57,
        0x0e | 0x0f | 0x1e | 0x1f if encoding != Encoding::Oml => 0.83,
        0xc0..=0xdf => 0.7,
        _ => 0.52,
    }
}

/// Returns `base` with the combining `accent` as one character, if there is one.
pub(crate) fn accented(accent: char, base: char) -> Option<char> {
    let base = match base {
        'ı' => 'i',
        'ȷ' => 'j',
        other => other,
    };
    let (_, bases, made) = ACCENTED.iter().find(|it| it.0 == accent)?;
    let at = bases.chars().position(|it| it == base)?;
    made.chars().nth(at)
}

const ACCENTED: &[(char, &str, &str)] = &[
    ('\u{300}', "AEIOUaeiouNn", "ÀÈÌÒÙàèìòùǸǹ"),
    ('\u{301}', "AEIOUYaeiouyCcLlNnRrSsZz", "ÁÉÍÓÚÝáéíóúýĆćĹĺŃńŔŕŚśŹź"),
    ('\u{302}', "AEIOUaeiouCcGgHhJjSsWwYy", "ÂÊÎÔÛâêîôûĈĉĜĝĤĥĴĵŜŝŴŵŶŷ"),
    ('\u{303}', "ANOanoIiUu", "ÃÑÕãñõĨĩŨũ"),
    ('\u{304}', "AEIOUaeiou", "ĀĒĪŌŪāēīōū"),
    ('\u{306}', "AaEeGgIiOoUu", "ĂăĔĕĞğĬĭŎŏŬŭ"),
    ('\u{307}', "CcEeGgIZz", "ĊċĖėĠġİŻż"),
    ('\u{308}', "AEIOUaeiouyY", "ÄËÏÖÜäëïöüÿŸ"),
    ('\u{30a}', "AaUu", "ÅåŮů"),
    ('\u{30b}', "OoUu", "ŐőŰű"),
    ('\u{30c}', "CcDdEeNnRrSsTtZzGg", "ČčĎďĚěŇňŘřŠšŤťŽžǦǧ"),
    ('\u{327}', "CcSsTt", "ÇçŞşŢţ"),
    ('\u{328}', "AaEe", "ĄąĘę"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(font: &str, codes: &[u8], expected: &str) {
        let text: String = codes.iter().map(|it| characters(encoding(font), *it)).collect();
        assert_eq!(text, expected, "{font}");
    }

    #[test]
    fn codes_of_fonts() {
        check("cmr10", b"\x0bice\x0ect\\quoted\"a{b|", "fficeffict“quoted”a–b—");
        check("ABCDEF+CMR10", b"\x1a", "æ");
        check("cmtt10", b"{a|b}\\<>\"", "{a|b}\\<>\"");
        check("ecrm1000", b"na\xefve\x1bon \x10\xc4\xff\xdf", "naïveffon “ÄßSS");
        check("rm-lmr10", b"\x0c", "fi");
        check("ptmr8t", b"\x1c\xe4", "fiä");
        check("ptmr7t", b"\x0c", "fi");
        check("ptmr8r", b"\xe4\x96", "ä–");
        check("cmmi10", b"x\x0by;", "xαy,");
        check("cmsy10", b"\x0f\x14A", "•≤A");
        check("cmex10", b"abc", "");
        check("tcrm1000", b"\xa9\x88", "©•");
        check("ptmr8c", b"\xa9", "©");
    }

    #[test]
    fn accents_join_their_letters() {
        assert_eq!(accented('\u{308}', 'o'), Some('ö'));
        assert_eq!(accented('\u{301}', 'ı'), Some('í'));
        assert_eq!(accented('\u{301}', '1'), None);
        for (_, bases, made) in ACCENTED {
            assert_eq!(bases.chars().count(), made.chars().count(), "{bases}");
        }
        assert_eq!((OT1_LOW.len(), T1_LOW.len(), T1_HIGH.len(), OML_LOW.len()), (33, 32, 128, 48));
    }
}
