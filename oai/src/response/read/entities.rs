//! Entities of HTML, which repositories use although no DTD declares them.
//!
//! Source: HTML 4.01 §24.

/// Entities of the characters from U+00A0 to U+00FF, in order.
const LATIN: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
    "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
    "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
    "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute",
    "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute",
    "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
    "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde",
    "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave", "uacute", "ucirc",
    "uuml", "yacute", "thorn", "yuml",
];

/// Entities of the characters from U+0391 to U+03A9, in order; one character is not assigned.
const GREEK_CAPITALS: [&str; 25] = [
    "Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta", "Eta", "Theta", "Iota", "Kappa",
    "Lambda", "Mu", "Nu", "Xi", "Omicron", "Pi", "Rho", "", "Sigma", "Tau", "Upsilon", "Phi",
    "Chi", "Psi", "Omega",
];

/// Entities of the characters from U+03B1 to U+03C9, in order.
const GREEK: [&str; 25] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "omicron", "pi", "rho", "sigmaf", "sigma", "tau", "upsilon", "phi",
    "chi", "psi", "omega",
];

/// All other entities, by name, without those of XML.
const OTHERS: [(&str, char); 103] = [
    ("Dagger", '\u{2021}'),
    ("OElig", '\u{152}'),
    ("Prime", '\u{2033}'),
    ("Scaron", '\u{160}'),
    ("Yuml", '\u{178}'),
    ("alefsym", '\u{2135}'),
    ("and", '\u{2227}'),
    ("ang", '\u{2220}'),
    ("asymp", '\u{2248}'),
    ("bdquo", '\u{201e}'),
    ("bull", '\u{2022}'),
    ("cap", '\u{2229}'),
    ("circ", '\u{2c6}'),
    ("clubs", '\u{2663}'),
    ("cong", '\u{2245}'),
    ("crarr", '\u{21b5}'),
    ("cup", '\u{222a}'),
    ("dArr", '\u{21d3}'),
    ("dagger", '\u{2020}'),
    ("darr", '\u{2193}'),
    ("diams", '\u{2666}'),
    ("empty", '\u{2205}'),
    ("emsp", '\u{2003}'),
    ("ensp", '\u{2002}'),
    ("equiv", '\u{2261}'),
    ("euro", '\u{20ac}'),
    ("exist", '\u{2203}'),
    ("fnof", '\u{192}'),
    ("forall", '\u{2200}'),
    ("frasl", '\u{2044}'),
    ("ge", '\u{2265}'),
    ("hArr", '\u{21d4}'),
    ("harr", '\u{2194}'),
    ("hearts", '\u{2665}'),
    ("hellip", '\u{2026}'),
    ("image", '\u{2111}'),
    ("infin", '\u{221e}'),
    ("int", '\u{222b}'),
    ("isin", '\u{2208}'),
    ("lArr", '\u{21d0}'),
    ("lang", '\u{2329}'),
    ("larr", '\u{2190}'),
    ("lceil", '\u{2308}'),
    ("ldquo", '\u{201c}'),
    ("le", '\u{2264}'),
    ("lfloor", '\u{230a}'),
    ("lowast", '\u{2217}'),
    ("loz", '\u{25ca}'),
    ("lrm", '\u{200e}'),
    ("lsaquo", '\u{2039}'),
    ("lsquo", '\u{2018}'),
    ("mdash", '\u{2014}'),
    ("minus", '\u{2212}'),
    ("nabla", '\u{2207}'),
    ("ndash", '\u{2013}'),
    ("ne", '\u{2260}'),
    ("ni", '\u{220b}'),
    ("notin", '\u{2209}'),
    ("nsub", '\u{2284}'),
    ("oelig", '\u{153}'),
    ("oline", '\u{203e}'),
    ("oplus", '\u{2295}'),
    ("or", '\u{2228}'),
    ("otimes", '\u{2297}'),
    ("part", '\u{2202}'),
    ("permil", '\u{2030}'),
    ("perp", '\u{22a5}'),
    ("piv", '\u{3d6}'),
    ("prime", '\u{2032}'),
    ("prod", '\u{220f}'),
    ("prop", '\u{221d}'),
    ("rArr", '\u{21d2}'),
    ("radic", '\u{221a}'),
    ("rang", '\u{232a}'),
    ("rarr", '\u{2192}'),
    ("rceil", '\u{2309}'),
    ("rdquo", '\u{201d}'),
    ("real", '\u{211c}'),
    ("rfloor", '\u{230b}'),
    ("rlm", '\u{200f}'),
    ("rsaquo", '\u{203a}'),
    ("rsquo", '\u{2019}'),
    ("sbquo", '\u{201a}'),
    ("scaron", '\u{161}'),
    ("sdot", '\u{22c5}'),
    ("sim", '\u{223c}'),
    ("spades", '\u{2660}'),
    ("sub", '\u{2282}'),
    ("sube", '\u{2286}'),
    ("sum", '\u{2211}'),
    ("sup", '\u{2283}'),
    ("supe", '\u{2287}'),
    ("there4", '\u{2234}'),
    ("thetasym", '\u{3d1}'),
    ("thinsp", '\u{2009}'),
    ("tilde", '\u{2dc}'),
    ("trade", '\u{2122}'),
    ("uArr", '\u{21d1}'),
    ("uarr", '\u{2191}'),
    ("upsih", '\u{3d2}'),
    ("weierp", '\u{2118}'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// Returns the character of an HTML entity; `None` for the entities of XML.
pub(super) fn entity(name: &str) -> Option<char> {
    if let Ok(at) = OTHERS.binary_search_by_key(&name, |it| it.0) {
        return OTHERS.get(at).map(|it| it.1);
    }
    let ranges: [(u32, &[&str]); 3] = [(0xa0, &LATIN), (0x391, &GREEK_CAPITALS), (0x3b1, &GREEK)];
    ranges.into_iter().filter(|_| !name.is_empty()).find_map(|(first, names)| {
        let position = names.iter().position(|it| *it == name)?;
        char::from_u32(first + u32::try_from(position).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_have_their_characters() {
        assert_eq!(entity("nbsp"), Some('\u{a0}'));
        assert_eq!(entity("eacute"), Some('\u{e9}'));
        assert_eq!(entity("yuml"), Some('\u{ff}'));
        assert_eq!(entity("ndash"), Some('\u{2013}'));
        assert_eq!(entity("zwnj"), Some('\u{200c}'));
        assert_eq!(entity("Alpha"), Some('Α'));
        assert_eq!(entity("Sigma"), Some('Σ'));
        assert_eq!(entity("Omega"), Some('Ω'));
        assert_eq!(entity("sigmaf"), Some('ς'));
        assert_eq!(entity("omega"), Some('ω'));
        for name in ["", "amp", "eacut", "Nbsp"] {
            assert_eq!(entity(name), None, "{name}");
        }
        assert!(OTHERS.is_sorted_by_key(|it| it.0));
    }
}
