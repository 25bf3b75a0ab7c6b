//! SOIF as XML: a whole record, whatever bytes it contains.
//!
//! Source: `docs/schemas/soif.xsd`, which is ours.
//!
//! ```xml
//! <soif xmlns="https://harvest.example/soif/1.0/" template="FILE" url="http://a/">
//!   <attribute name="Title">Hello</attribute>
//!   <attribute name="Icon" encoding="base64">AAEC</attribute>
//! </soif>
//! ```
//!
//! A value is text if XML can carry it, and base64 otherwise (bytes that are not UTF-8, control
//! characters). Names and URLs that XML cannot carry are in `nameBase64`, `urlBase64` and
//! `templateBase64` likewise. Order and repeated attributes are kept.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use soif::Record;

use super::tree::Element;
use super::{Problem, ProblemKind};
use crate::response::{Xml, is_char};
use crate::xml;

/// Namespace of the elements.
pub(super) const NAMESPACE: &str = "https://harvest.example/soif/1.0/";
/// The schema, which our repositories serve.
pub const SCHEMA_XSD: &str = include_str!("../../../docs/schemas/soif.xsd");

/// Maximum length of the name of an attribute or template type, in bytes. These three are the
/// limits of a SOIF reader, with room for percent-encoding in the URL and for some attributes of
/// ours.
const NAME_BYTES_MAX: usize = 1_024;
/// Maximum length of a URL, in bytes.
const URL_BYTES_MAX: usize = 16 * 1_024;
/// Maximum number of attributes.
const ATTRIBUTES_MAX: usize = 65_000;

/// Writes a record; `schema` is the address of its schema.
pub(super) fn write(record: &Record, schema: &str) -> Xml {
    let mut out = String::with_capacity(1_024);
    out.push_str("<soif");
    xml::push_attribute(&mut out, "xmlns", NAMESPACE);
    xml::push_attribute(&mut out, "xmlns:xsi", xml::INSTANCE);
    xml::push_attribute(&mut out, "xsi:schemaLocation", &format!("{NAMESPACE} {schema}"));
    write_named(&mut out, "template", &record.template);
    write_named(&mut out, "url", &record.url);
    out.push('>');
    for attribute in record.attributes() {
        out.push_str("<attribute");
        write_named(&mut out, "name", &attribute.name);
        match std::str::from_utf8(&attribute.value) {
            Ok(text) if text.chars().all(is_char) => {
                out.push('>');
                xml::push_text(&mut out, text);
            }
            _ => {
                out.push_str(" encoding=\"base64\">");
                out.push_str(&BASE64_STANDARD.encode(&attribute.value));
            }
        }
        out.push_str("</attribute>");
    }
    out.push_str("</soif>");
    Xml(out)
}

fn write_named(out: &mut String, name: &str, value: &str) {
    if value.chars().all(is_char) {
        xml::push_attribute(out, name, value);
    } else {
        xml::push_attribute(out, &format!("{name}Base64"), &BASE64_STANDARD.encode(value));
    }
}

/// Reads a record. Unreadable parts are left out, with a problem.
pub(super) fn read(root: Element<'_, '_>, problems: &mut Vec<Problem>) -> Record {
    let template =
        read_named(root, "template", NAME_BYTES_MAX).unwrap_or_else(|| "FILE".to_owned());
    let url = read_named(root, "url", URL_BYTES_MAX).unwrap_or_else(|| soif::NO_URL.to_owned());
    let mut record = Record::new(template, url);
    let mut broken = 0_usize;
    for (number, attribute) in root.all("attribute").enumerate() {
        let name = read_named(attribute, "name", NAME_BYTES_MAX);
        let name = name.filter(|it| !it.is_empty() && number < ATTRIBUTES_MAX);
        let Some(name) = name else {
            broken += 1;
            continue;
        };
        match attribute.attribute("encoding") {
            "" => record.push(name, attribute.text()),
            "base64" => match bytes(attribute.text()) {
                Some(bytes) => record.push(name, bytes),
                None => broken += 1,
            },
            _ => broken += 1,
        }
    }
    if 0 < broken {
        let message = format!(
            "{broken} of its SOIF attributes have no name, a value that is not base64, or are too many"
        );
        problems.push(Problem::new(ProblemKind::Broken, message));
    }
    record
}

fn read_named(element: Element<'_, '_>, name: &str, bytes_max: usize) -> Option<String> {
    let text = match element.raw_attribute(name) {
        Some(text) => text.to_owned(),
        None => String::from_utf8(bytes(element.raw_attribute(&format!("{name}Base64"))?)?).ok()?,
    };
    (text.len() <= bytes_max).then_some(text)
}

/// Decodes base64, and ignores white space in it; returns `None` if it is invalid.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let plain: Vec<u8> = text.bytes().filter(|it| !it.is_ascii_whitespace()).collect();
    BASE64_STANDARD.decode(plain).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tree::Tree;
    use super::*;

    fn back(xml: &Xml) -> (Record, usize) {
        let tree = Tree::read(&xml.0);
        assert_eq!(tree.flaw(), None, "{}", xml.0);
        let mut problems = Vec::new();
        let record = read(tree.root().unwrap(), &mut problems);
        (record, problems.len())
    }

    #[test]
    fn text_stays_readable_and_bytes_are_encoded() {
        let mut record = Record::new("FILE", "http://a/?x=1&y=\"2\"");
        record.push("Title", "a < b & c\r\n\td ]]>");
        record.push("Icon", vec![0, 0xff]);
        record.push("Title", "");
        let xml = write(&record, "http://h/soif.xsd");
        let inner = xml.0.split_once("soif.xsd\"").unwrap().1;
        assert_eq!(
            inner,
            " template=\"FILE\" url=\"http://a/?x=1&amp;y=&quot;2&quot;\">\
             <attribute name=\"Title\">a &lt; b &amp; c&#13;\n\td ]]&gt;</attribute>\
             <attribute name=\"Icon\" encoding=\"base64\">AP8=</attribute>\
             <attribute name=\"Title\"></attribute></soif>"
        );
        assert_eq!(back(&xml), (record, 0));
    }

    #[test]
    fn foreign_layout_is_read_and_broken_attributes_are_left_out() {
        let text = format!(
            "<s:soif xmlns:s=\"{NAMESPACE}\" url=\"u:v\">\n <s:attribute name=\"a\" encoding=\"base64\">\n\
             A A E\n C </s:attribute><s:attribute>x</s:attribute><s:attribute name=\"b\" \
             encoding=\"base64\">!</s:attribute><s:attribute name=\"c\" encoding=\"gzip\"/>\n</s:soif>"
        );
        let (record, problems) = back(&Xml(text));
        let mut expected = Record::new("FILE", "u:v");
        expected.push("a", vec![0, 1, 2]);
        assert_eq!((record, problems), (expected, 1));
    }

    proptest! {
        #[test]
        fn any_record_comes_back(template in ".{1,8}|[\\x00-\\x20\u{fffe}]{1,4}", url in ".{0,30}|[\\x00-\\x20\u{ffff}]{1,4}",
                                 attributes in prop::collection::vec(
                                     (".{1,12}|[\\x00-\\x20]{1,3}",
                                      prop_oneof![prop::collection::vec(any::<u8>(), 0..40),
                                                  "[ \\t\\r\\n<>&\"a-z]{0,40}".prop_map(String::into_bytes)]), 0..8)) {
            let mut record = Record::new(template, url);
            for (name, value) in attributes {
                record.push(name, value);
            }
            prop_assert_eq!(back(&write(&record, "http://h/?a&b")), (record, 0));
        }
    }
}
