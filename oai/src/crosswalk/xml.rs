//! Text as XML carries it.
//!
//! Source: XML 1.0 §2.4 (markup), §2.11 (line ends), §3.3.3 (values of attributes).

use crate::response::is_char;

/// Appends `text` as the text of an element. What XML cannot carry is left out.
pub(super) fn write_text(out: &mut String, text: &str) {
    write(out, text, |it| match it {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        // A reader would make a line feed of it.
        '\r' => Some("&#13;"),
        it if is_char(it) => None,
        _ => Some(""),
    });
}

/// Appends `text` as the value of an attribute in double quotes. What XML cannot carry is left out.
pub(super) fn write_attribute(out: &mut String, text: &str) {
    write(out, text, |it| match it {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        '"' => Some("&quot;"),
        // A reader would make spaces of them.
        '\r' => Some("&#13;"),
        '\n' => Some("&#10;"),
        '\t' => Some("&#9;"),
        it if is_char(it) => None,
        _ => Some(""),
    });
}

fn write(out: &mut String, text: &str, instead: impl Fn(char) -> Option<&'static str>) {
    let mut plain = 0;
    for (at, it) in text.char_indices() {
        if let Some(instead) = instead(it) {
            out.push_str(text.get(plain..at).unwrap_or_default());
            out.push_str(instead);
            plain = at + it.len_utf8();
        }
    }
    out.push_str(text.get(plain..).unwrap_or_default());
}
