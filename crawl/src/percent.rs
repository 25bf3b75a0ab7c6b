//! Percent-encoding in its normal form, for comparing.
//!
//! Source: RFC 3986 §6.2.2.1 (hexadecimal digits in upper case), §6.2.2.2 (unreserved characters
//! are not encoded).
//!
//! Sans-I/O.

/// Appends text in normal form: encoded unreserved characters are decoded, other encoded octets get
/// digits in upper case, and octets that `must_encode` names, controls, spaces and octets above
/// ASCII are encoded. A `%` without two hexadecimal digits is encoded, too: what is decoded after it
/// could look like its digits.
pub(crate) fn normalize(bytes: &[u8], must_encode: impl Fn(u8) -> bool, out: &mut String) {
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%'
            && let [high, low, after @ ..] = after
            && let Some(octet) = octet(*high, *low)
        {
            rest = after;
            if is_unreserved(octet) { out.push(char::from(octet)) } else { encode(octet, out) }
        } else if byte.is_ascii_graphic() && *byte != b'%' && !must_encode(*byte) {
            out.push(char::from(*byte));
        } else {
            encode(*byte, out);
        }
    }
}

fn encode(octet: u8, out: &mut String) {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    out.push('%');
    out.push(DIGITS[usize::from(octet >> 4)]);
    out.push(DIGITS[usize::from(octet & 15)]);
}

fn octet(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// RFC 3986 §2.3.
fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_have_one_form() {
        for (text, expected) in [
            ("/a%7eb", "/a~b"),
            ("/%62%61%7A", "/baz"),
            ("/%e3%83%84", "/%E3%83%84"),
            ("/ツ é", "/%E3%83%84%20%C3%A9"),
            ("/%2f%3F%2a", "/%2F%3F%2A"),
            ("/100%", "/100%25"),
            ("/%4", "/%254"),
            ("/%zz%%41", "/%25zz%25A"),
            ("/%a%30", "/%25a0"),
            ("/a*b", "/a%2Ab"),
        ] {
            let mut out = String::new();
            normalize(text.as_bytes(), |byte| byte == b'*', &mut out);
            assert_eq!(out, expected, "{text}");
        }
    }
}
