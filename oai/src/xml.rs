//! Escapes for writing text as XML.
//!
//! Source: XML 1.0 §2.2 (characters), §2.4 (markup), §2.11 (line ends), §3.3.3 (values of
//! attributes).
//!
//! Characters that XML cannot carry even when escaped are left out: control characters, U+FFFE and
//! U+FFFF.

/// Namespace of `schemaLocation`.
pub(crate) const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Appends `value` as the text of an element.
pub(crate) fn push_text(out: &mut String, value: &str) {
    push(out, value, in_text);
}

/// Appends `value` as the value of an attribute in double quotes.
pub(crate) fn push_value(out: &mut String, value: &str) {
    push(out, value, |letter| match letter {
        b'"' => Some("&quot;"),
        // A reader would turn these characters into spaces.
        b'\t' => Some("&#9;"),
        b'\n' => Some("&#10;"),
        letter => in_text(letter),
    });
}

/// Appends ` name="value"`.
pub(crate) fn push_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    push_value(out, value);
    out.push('"');
}

/// Appends an element that holds text alone.
pub(crate) fn push_element(out: &mut String, name: &str, value: &str) {
    for part in ["<", name, ">"] {
        out.push_str(part);
    }
    push_text(out, value);
    for part in ["</", name, ">"] {
        out.push_str(part);
    }
}

/// Appends text that is XML already, without the characters that XML must not have.
pub(crate) fn push_markup(out: &mut String, value: &str) {
    push(out, value, |_letter| None);
}

fn in_text(letter: u8) -> Option<&'static str> {
    match letter {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        // A reader would turn a carriage return into a line feed.
        b'\r' => Some("&#13;"),
        _ => None,
    }
}

/// Appends `value`; an ASCII character is replaced by what `escape` returns for it.
fn push(out: &mut String, value: &str, escape: impl Fn(u8) -> Option<&'static str>) {
    let bytes = value.as_bytes();
    let mut plain = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (instead, length) = match byte {
            0..=8 | 11 | 12 | 14..=31 => (Some(""), 1),
            0xef if matches!(bytes.get(at + 1..at + 3), Some([0xbf, 0xbe | 0xbf])) => (Some(""), 3),
            byte => (escape(byte), 1),
        };
        if let Some(instead) = instead {
            out.push_str(value.get(plain..at).unwrap_or_default());
            out.push_str(instead);
            plain = at + length;
        }
        at += length;
    }
    out.push_str(value.get(plain..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::response::is_char;

    fn pushed(value: &str, push: impl Fn(&mut String, &str)) -> String {
        let mut out = String::new();
        push(&mut out, value);
        out
    }

    #[test]
    fn text_attributes_and_markup_have_their_escapes() {
        let value = "a&\"<b>'\r\n\t\u{1}\u{ffff}é";
        assert_eq!(pushed(value, push_text), "a&amp;\"&lt;b&gt;'&#13;\n\té");
        assert_eq!(pushed(value, push_value), "a&amp;&quot;&lt;b&gt;'&#13;&#10;&#9;é");
        assert_eq!(pushed(value, push_markup), "a&\"<b>'\r\n\té");
        let element = pushed("<", |out, it| push_element(out, "e", it));
        assert_eq!(element, "<e>&lt;</e>");
        assert_eq!(pushed("<", |out, it| push_attribute(out, "a", it)), " a=\"&lt;\"");
    }

    proptest! {
        #[test]
        fn only_what_xml_cannot_carry_is_left_out(
            value in "(?s)(.|[\\x00-\\x1f\u{fffd}\u{fffe}\u{ffff}]){0,40}"
        ) {
            let expected: String = value.chars().filter(|it| is_char(*it)).collect();
            prop_assert_eq!(pushed(&value, push_markup), expected);
        }
    }
}
