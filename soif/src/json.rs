//! Records as JSON, without loss.
//!
//! ```json
//! {"template": "FILE", "url": "http://a/", "attributes": [["Title", "Hello"], ["MD5", "…"]]}
//! ```
//!
//! Attributes are a list of pairs: an object would lose their order and repeated names.
//! A value that is not UTF-8 is `{"base64": "…"}` (RFC 4648 §4, with padding).
//!
//! Sans-I/O.

use serde_json::{Value, json};

use crate::error::JsonError;
use crate::record::Record;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the JSON form of `record`.
pub fn to_json(record: &Record) -> Value {
    let attributes: Vec<Value> = record
        .attributes()
        .iter()
        .map(|it| match std::str::from_utf8(&it.value) {
            Ok(text) => json!([it.name, text]),
            Err(_) => json!([it.name, { "base64": encode_base64(&it.value) }]),
        })
        .collect();
    json!({ "template": record.template, "url": record.url, "attributes": attributes })
}

/// Reads a record from its JSON form.
///
/// # Errors
///
/// `value` has not that form; the error names the member or attribute to correct.
pub fn from_json(value: &Value) -> Result<Record, JsonError> {
    let string = |member: &'static str| {
        let text = value.get(member).and_then(Value::as_str);
        text.ok_or(JsonError::Member { member, expected: "a string" })
    };
    let mut record = Record::new(string("template")?, string("url")?);
    let attributes = value
        .get("attributes")
        .and_then(Value::as_array)
        .ok_or(JsonError::Member { member: "attributes", expected: "an array" })?;
    for (index, attribute) in attributes.iter().enumerate() {
        let pair = attribute.as_array().map(Vec::as_slice);
        let Some([Value::String(name), value]) = pair else {
            return Err(JsonError::Attribute { index });
        };
        match (value, value.get("base64").and_then(Value::as_str)) {
            (Value::String(text), _) => record.push(name.as_str(), text.as_str()),
            (_, Some(text)) => {
                let bytes = decode_base64(text.as_bytes()).ok_or(JsonError::Base64 { index })?;
                record.push(name.as_str(), bytes);
            }
            (_, None) => return Err(JsonError::Attribute { index }),
        }
    }
    Ok(record)
}

/// Returns the base64 form of `bytes`, with padding and without line ends.
pub fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for sextet in 0..4 {
            let index = (word >> (18 - 6 * sextet)) & 63;
            out.push(if sextet <= chunk.len() {
                char::from(ALPHABET[index as usize])
            } else {
                '='
            });
        }
    }
    out
}

/// Returns the bytes of the base64 form `text`; `None` for a text that [`encode_base64`] does not
/// write, so that each value has one form.
pub fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (quads, rest) = text.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    for (at, quad) in quads.iter().enumerate() {
        let padding = quad.iter().rev().take_while(|it| **it == b'=').count();
        if padding > 2 || (padding > 0 && at + 1 != quads.len()) {
            return None;
        }
        let mut word = 0_u32;
        for digit in &quad[..4 - padding] {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            word = word << 6 | u32::from(value);
        }
        word <<= 6 * padding;
        let [_, bytes @ ..] = word.to_be_bytes();
        if bytes[3 - padding..].iter().any(|byte| *byte != 0) {
            return None;
        }
        out.extend_from_slice(&bytes[..3 - padding]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_the_rfc() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode_base64(plain.as_bytes()), coded);
            assert_eq!(decode_base64(coded.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
        for broken in ["Zg=", "Z===", "Zg==Zg==", "Zh==", "Z!=="] {
            assert_eq!(decode_base64(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn order_repeats_and_bytes_survive() {
        let mut record = Record::new("FILE", "http://a/");
        record.push("b", "1");
        record.push("a", vec![0xff, 0x00]);
        record.push("b", "2");
        let json = to_json(&record);
        assert_eq!(
            json.to_string(),
            r#"{"attributes":[["b","1"],["a",{"base64":"/wA="}],["b","2"]],"template":"FILE","url":"http://a/"}"#
        );
        assert_eq!(from_json(&json), Ok(record));
    }

    #[test]
    fn an_error_names_what_to_correct() {
        let check = |text: &str, expected: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(from_json(&value).unwrap_err().to_string(), expected);
        };
        check("[]", "\"template\" is missing or is not a string");
        check(
            r#"{"template":"FILE","url":"-","attributes":[["a","b"],["c",1]]}"#,
            "attribute 1 is not [name, value] with a string or {\"base64\": …} as value",
        );
        check(
            r#"{"template":"FILE","url":"-","attributes":[["c",{"base64":"!"}]]}"#,
            "attribute 0 is not base64",
        );
    }
}
