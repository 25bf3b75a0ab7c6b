//! Character references: `&eacute;`, `&#233;` and `&#xE9;` replaced by their characters.
//!
//! Source: the HTML standard, §13.2.5.72 to §13.2.5.80 (character reference states).
//!
//! # Differences from the standard
//!
//! * The few names that stand for two characters stay as written.
//! * XML requires the `;`; its references are read as in HTML all the same.

use std::borrow::Cow;

/// Longest name of a character, in bytes.
const NAME_BYTES_MAX: usize = 31;

/// Names that need no `;`, since they are older than that rule; sorted.
const LEGACY: [&str; 106] = [
    "AElig", "AMP", "Aacute", "Acirc", "Agrave", "Aring", "Atilde", "Auml", "COPY", "Ccedil",
    "ETH", "Eacute", "Ecirc", "Egrave", "Euml", "GT", "Iacute", "Icirc", "Igrave", "Iuml", "LT",
    "Ntilde", "Oacute", "Ocirc", "Ograve", "Oslash", "Otilde", "Ouml", "QUOT", "REG", "THORN",
    "Uacute", "Ucirc", "Ugrave", "Uuml", "Yacute", "aacute", "acirc", "acute", "aelig", "agrave",
    "amp", "aring", "atilde", "auml", "brvbar", "ccedil", "cedil", "cent", "copy", "curren", "deg",
    "divide", "eacute", "ecirc", "egrave", "eth", "euml", "frac12", "frac14", "frac34", "gt",
    "iacute", "icirc", "iexcl", "igrave", "iquest", "iuml", "laquo", "lt", "macr", "micro",
    "middot", "nbsp", "not", "ntilde", "oacute", "ocirc", "ograve", "ordf", "ordm", "oslash",
    "otilde", "ouml", "para", "plusmn", "pound", "quot", "raquo", "reg", "sect", "shy", "sup1",
    "sup2", "sup3", "szlig", "thorn", "times", "uacute", "ucirc", "ugrave", "uml", "uuml",
    "yacute", "yen", "yuml",
];
/// Longest name in `LEGACY`, in bytes.
const LEGACY_BYTES_MAX: usize = 6;

/// Replaces the character references in text; all else stays unchanged.
pub(super) fn in_text(text: &str) -> Cow<'_, str> {
    replaced(text, false)
}

/// Replaces the character references in the value of an attribute, where `?a=1&copy=2` has none.
pub(super) fn in_attribute(text: &str) -> Cow<'_, str> {
    replaced(text, true)
}

fn replaced(text: &str, in_attribute: bool) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'&', text.as_bytes()) else { return Cow::Borrowed(text) };
    let (before, mut rest) = text.split_at(first);
    let mut plain = String::with_capacity(text.len());
    plain.push_str(before);
    while let Some(from) = rest.strip_prefix('&') {
        let read = match from.strip_prefix('#') {
            Some(code) => numeric(code, &mut plain),
            None => by_name(from, in_attribute, &mut plain),
        };
        rest = read.unwrap_or_else(|| {
            plain.push('&');
            from
        });
        let next = memchr::memchr(b'&', rest.as_bytes()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(next);
        plain.push_str(text);
        rest = after;
    }
    Cow::Owned(plain)
}

/// Adds the character whose code follows `&#`; returns the text after the reference.
fn numeric<'t>(text: &'t str, plain: &mut String) -> Option<&'t str> {
    let (digits, radix) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let end = digits.bytes().position(|it| !char::from(it).is_digit(radix));
    let (digits, after) = digits.split_at(end.unwrap_or(digits.len()));
    if digits.is_empty() {
        return None;
    }
    // A number with too many digits is not a character either.
    match u32::from_str_radix(digits, radix).unwrap_or(u32::MAX) {
        // As in browsers, these codes mean Windows-1252, whatever the page's charset.
        code @ 0x80..=0x9f => {
            let byte = [u8::try_from(code).unwrap_or_default()];
            plain.push_str(&encoding_rs::WINDOWS_1252.decode_without_bom_handling(&byte).0);
        }
        0 => plain.push(char::REPLACEMENT_CHARACTER),
        code => plain.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
    Some(after.strip_prefix(';').unwrap_or(after))
}

/// Adds the character whose name follows `&`; returns the text after the reference.
fn by_name<'t>(text: &'t str, in_attribute: bool, plain: &mut String) -> Option<&'t str> {
    let end = text.bytes().take(NAME_BYTES_MAX + 1).position(|it| !it.is_ascii_alphanumeric());
    let (name, after) = text.split_at(end.unwrap_or(text.len()));
    if let Some(after) = after.strip_prefix(';').filter(|_| push(name, plain)) {
        return Some(after);
    }
    if in_attribute {
        // In a URL, a name before a letter, a digit or `=` is that of a field.
        let is_whole = LEGACY.binary_search(&name).is_ok() && !after.starts_with('=');
        return (is_whole && push(name, plain)).then_some(after);
    }
    let lengths = (2..=name.len().min(LEGACY_BYTES_MAX)).rev();
    let mut names = lengths.filter_map(|length| text.split_at_checked(length));
    let (name, after) = names.find(|(name, _)| LEGACY.binary_search(name).is_ok())?;
    push(name, plain).then_some(after)
}

/// Adds the character of this name; returns whether the name is known.
fn push(name: &str, plain: &mut String) -> bool {
    match name {
        "lt" | "LT" => plain.push('<'),
        "gt" | "GT" => plain.push('>'),
        "amp" | "AMP" => plain.push('&'),
        "quot" | "QUOT" => plain.push('"'),
        "nbsp" => plain.push('\u{a0}'),
        _ => {
            let (start, whole) = (plain.len(), format!("&{name};"));
            mail_parser::decoders::html::add_html_token(plain, whole.as_bytes(), false);
            // The decoder copies an unknown name to the output.
            if plain.get(start..) == Some(&*whole) {
                plain.truncate(start);
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(in_text(text), expected);
    }

    #[test]
    fn references_become_characters() {
        check("plain", "plain");
        check("&lt;&gt;&amp;&quot;&auml;&hellip;&#228;&#xE4;", "<>&\"ä…ää");
        check("&nosuch; &amp &; &#; &#x; AT&T &&amp;", "&nosuch; & &; &#; &#x; AT&T &&");
        check("ä&ä;ä", "ä&ä;ä");
        check(&"&a".repeat(50), &"&a".repeat(50));
    }

    #[test]
    fn codes_are_repaired_as_browsers_do() {
        check("Windows&#146;s &#151; &#x92;&#X97; &#x80;", "Windows’s — ’— €");
        check(
            "&#0;&#x0; &#1114112; &#99999999999; &#xD800;",
            "\u{fffd}\u{fffd} \u{fffd} \u{fffd} \u{fffd}",
        );
    }

    #[test]
    fn legacy_names_need_no_semicolon() {
        check("caf&eacute au lait&nbsp", "café au lait\u{a0}");
        check("&copy 1995, &#65 &#x42C &#67", "© 1995, A \u{42c} C");
        check("&notit; &notin; &notin", "¬it; ∉ ¬in");
        check("&hellip &alpha", "&hellip &alpha");
    }

    #[test]
    fn fields_of_urls_are_not_references() {
        let check = |text: &str, expected: &str| assert_eq!(in_attribute(text), expected);
        check("?a=1&copy=2&reg=3&lang=en&sect1", "?a=1&copy=2&reg=3&lang=en&sect1");
        check("?a=1&amp;copy=2&#38;b &copy; &eacute", "?a=1&copy=2&b © é");
    }

    #[test]
    fn legacy_names_are_sorted_and_known() {
        assert!(LEGACY.is_sorted());
        for name in LEGACY {
            assert_eq!(in_text(&format!("&{name} ")).chars().count(), 2, "{name}");
        }
    }
}
