//! A strict XML reader for the tests of charts: one root, every tag closed, every attribute quoted
//! and unique, every character and reference allowed. It panics at anything else and says where.

use std::collections::BTreeMap;

/// An element; elements are in the order of their start tags.
#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The text directly in it.
    pub(crate) text: String,
    /// The classes of the elements around it and its own.
    pub(crate) classes: Vec<String>,
}

impl Element {
    pub(crate) fn number(&self, name: &str) -> f64 {
        let value = &self.attributes[name];
        value.parse().unwrap_or_else(|_| panic!("{name}={value:?} is no number"))
    }

    pub(crate) fn is_in(&self, class: &str) -> bool {
        self.classes.iter().any(|it| it == class)
    }
}

pub(crate) fn parse(text: &str) -> Vec<Element> {
    let allowed =
        |c: char| !(c.is_control() && !"\n\t\r".contains(c) || "\u{fffe}\u{ffff}".contains(c));
    assert!(text.chars().all(allowed), "a character that XML forbids");
    let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
    let mut rest = text.strip_prefix(declaration).unwrap_or(text).trim();
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix("</") {
            let (name, tail) = tail.split_once('>').expect("an end tag ends");
            let closed = open.pop().expect("an end tag has a start tag");
            assert_eq!(elements[closed].name, name, "the end tag of another element");
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix('<') {
            assert!(!open.is_empty() || elements.is_empty(), "a second root: {rest:.60}");
            let (element, is_open, tail) = start(tail);
            elements.push(element);
            let index = elements.len() - 1;
            let around = open.last().map_or(Vec::new(), |it| elements[*it].classes.clone());
            elements[index].classes.splice(0..0, around);
            if is_open {
                open.push(index);
            }
            rest = tail;
        } else {
            let end = rest.find('<').expect("text after the root");
            let inside = *open.last().expect("text outside the root");
            elements[inside].text += &unescaped(&rest[..end]);
            rest = &rest[end..];
        }
    }
    assert!(open.is_empty(), "elements that do not end: {open:?}");
    assert!(!elements.is_empty(), "no root");
    elements
}

fn start(mut rest: &str) -> (Element, bool, &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ':';
    let name;
    (name, rest) = rest.split_at(rest.find(|c| !is_name(c)).expect("a start tag ends"));
    assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()), "a name: {name:?}");
    let mut attributes = BTreeMap::new();
    loop {
        let inner = rest.trim_start();
        if let Some(tail) = inner.strip_prefix("/>") {
            return (element(name, attributes), false, tail);
        }
        if let Some(tail) = inner.strip_prefix('>') {
            return (element(name, attributes), true, tail);
        }
        assert!(inner.len() < rest.len(), "a space before an attribute: {rest:.60}");
        let (key, tail) = inner.split_once("=\"").expect("an attribute has a value");
        assert!(key.chars().all(is_name) && !key.is_empty(), "an attribute's name: {key:?}");
        let (value, tail) = tail.split_once('"').expect("a value ends");
        assert!(!value.contains('<'), "a value with a tag: {value:?}");
        let before = attributes.insert(key.to_owned(), unescaped(value));
        assert!(before.is_none(), "{key} twice");
        rest = tail;
    }
}

fn element(name: &str, attributes: BTreeMap<String, String>) -> Element {
    let classes = attributes.get("class").map_or("", |it| it.as_str());
    let classes = classes.split(' ').map(str::to_owned).collect();
    Element { name: name.to_owned(), attributes, text: String::new(), classes }
}

fn unescaped(text: &str) -> String {
    let mut pieces = text.split('&');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (reference, tail) = piece.split_once(';').expect("a reference ends");
        out.push(match reference {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            other => panic!("&{other}; is not known"),
        });
        out += tail;
    }
    out
}
