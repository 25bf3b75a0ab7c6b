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

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::error::JsonError;
use crate::record::Record;

/// Returns the JSON form of `record`.
pub fn to_json(record: &Record) -> Value {
    let attributes: Vec<Value> = record
        .attributes()
        .iter()
        .map(|it| match std::str::from_utf8(&it.value) {
            Ok(text) => json!([it.name, text]),
            Err(_) => json!([it.name, { "base64": BASE64_STANDARD.encode(&it.value) }]),
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
                let bytes = BASE64_STANDARD.decode(text);
                record.push(name.as_str(), bytes.map_err(|_error| JsonError::Base64 { index })?);
            }
            (_, None) => return Err(JsonError::Attribute { index }),
        }
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value has one form: padding must be whole, and unused bits zero.
    #[test]
    fn base64_of_another_form_is_refused() {
        for text in ["Zg=", "Z===", "Zg==Zg==", "Zh==", "Z!==", "Zg", "Zg==\n"] {
            let json = json!({ "template": "FILE", "url": "-", "attributes": [["a", { "base64": text }]] });
            assert_eq!(from_json(&json), Err(JsonError::Base64 { index: 0 }), "{text}");
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
