//! A JSON scanner for long lists: elements are parsed one by one, so the list is never a tree in memory, and
//! a broken element affects no other.
//!
//! Source: RFC 8259. The scanner finds the ends of values; the parser decides whether they are valid.

use serde_json::Value;

use super::{EntryFields, Reading};
use crate::json::tokens::string_end;
use crate::limit::Limit;

/// Returns the elements of the array that `text` starts with, each as written; none if there is no array.
pub(crate) fn elements(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start().strip_prefix('[').unwrap_or_default();
    std::iter::from_fn(move || {
        // In a broken list, a colon separates elements, too.
        rest = rest.trim_start_matches(|it: char| it.is_whitespace() || matches!(it, ',' | ':'));
        if rest.is_empty() || rest.starts_with([']', '}']) {
            return None;
        }
        let (value, after) = rest.split_at(value_end(rest));
        rest = after;
        Some(value.trim_end())
    })
}

/// Returns the members of the object that `text` starts with: name and value as written, the name without
/// its quotes; none if there is no object.
pub(crate) fn members(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text.trim_start().strip_prefix('{').unwrap_or_default();
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|it: char| it.is_whitespace() || it == ',');
        if !rest.starts_with('"') {
            return None;
        }
        let (name, after) = rest.split_at(value_end(rest));
        let after = after.trim_start_matches(|it: char| it.is_whitespace() || it == ':');
        let (value, after) = after.split_at(value_end(after));
        rest = after;
        Some((name.trim_end().trim_matches('"'), value.trim_end()))
    })
}

/// Returns the value of the first member of that name.
pub(crate) fn member<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    members(text).find(|(it, _)| *it == name).map(|(_, value)| value)
}

/// Hands out the elements of `list`; without a list, the value `alone` for the `whole` file. `thing` returns
/// key and fields of a value; a value without fields is broken.
pub(crate) fn hand_out(
    whole: &str,
    (list, alone): (Option<&str>, &str),
    reading: &mut Reading<'_>,
    thing: impl Fn(&Value) -> (String, EntryFields),
) {
    let thing = |it: Value| Some(thing(&it)).filter(|(_, fields)| !fields.is_empty());
    let Some(list) = list else {
        return read_alone(whole, alone, reading, |it| thing(it).map(|it| it.1));
    };
    for (at, element) in elements(list).enumerate() {
        let goes_on = match parse(element).and_then(thing) {
            None if Limit::Entry.bound() < element.len() => {
                reading.too_long(Limit::Entry, element.as_bytes())
            }
            Some((key, fields)) => reading.entry(&key, element.as_bytes(), fields),
            None => reading.broken("", || format!("is element {}", at + 1)),
        };
        if !goes_on {
            return;
        }
    }
}

/// Returns the end of the value that `text` starts with: after its closing bracket, or before the
/// next comma, colon or closing bracket.
fn value_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1),
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth == 0 => return at,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b':' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Parses an element of a list, unless it is longer than [`Limit::Entry`].
pub(crate) fn parse(text: &str) -> Option<Value> {
    if text.len() <= Limit::Entry.bound() { serde_json::from_str(text).ok() } else { None }
}

/// Hands out the one thing that the `whole` file describes, in the part `text` of it, unless that is longer
/// than [`Limit::Thing`]: as a tree in memory it takes up to 120 times as much.
pub(crate) fn read_alone(
    whole: &str,
    text: &str,
    reading: &mut Reading<'_>,
    fields: impl Fn(Value) -> Option<EntryFields>,
) {
    if Limit::Thing.bound() < text.len() {
        reading.too_long(Limit::Thing, text.as_bytes());
    } else {
        reading.alone(whole.as_bytes(), serde_json::from_str(text).ok().and_then(fields));
    }
}

/// Returns the text of a string or a number; empty for other values.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Returns the elements of a list; null has none, any other value is its own only element.
pub(crate) fn each(value: &Value) -> &[Value] {
    match value {
        Value::Array(list) => list,
        Value::Null => &[],
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            std::slice::from_ref(value)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Type;
    use crate::testing::render;

    #[test]
    fn elements_and_members_are_split() {
        let seen: Vec<&str> = elements(r#" [ {"a":[1,"]"]} , "x,\"y" ,3, [4] ] tail"#).collect();
        assert_eq!(seen, [r#"{"a":[1,"]"]}"#, r#""x,\"y""#, "3", "[4]"]);
        let seen: Vec<(&str, &str)> = members(r#"{"a": 1, "b" : {"c":[","]}, "d":"}"}"#).collect();
        assert_eq!(seen, [("a", "1"), ("b", r#"{"c":[","]}"#), ("d", r#""}""#)]);
        assert_eq!(elements("{}").count() + members("[]").count() + elements("").count(), 0);
        assert_eq!(elements("[1,").collect::<Vec<_>>(), ["1"]);
    }

    #[test]
    fn a_thing_is_parsed_up_to_a_mebibyte() {
        for (most, is_said) in [(1000 * 1000, false), (1100 * 1000, true)] {
            let words = "word ".repeat(most / 5);
            let thing = format!("{{\"@type\": \"Book\", \"name\": \"{words}\"}}");
            let seen = render("t.jsonld", Type::JsonLd, thing.as_bytes());
            assert_eq!(seen.contains("bytes about one thing"), is_said);
        }
    }

    #[test]
    fn deep_and_unfinished_values_end() {
        for text in [
            "[".repeat(500_000),
            "{\"a\":".repeat(200_000),
            "[,".repeat(200_000),
            "[\"\\".to_owned(),
        ] {
            let mut count = 0;
            for it in elements(&text) {
                count += 1;
                parse(it);
            }
            assert!(count <= 200_000);
            assert!(members(&text).count() <= 1);
        }
    }

    proptest! {
        #[test]
        fn written_json_is_split_into_its_values(list in prop::collection::vec("\\PC{0,12}", 0..6)) {
            let written = serde_json::to_string(&list).unwrap();
            let seen: Vec<String> = elements(&written).map(|it| text(&parse(it).unwrap())).collect();
            prop_assert_eq!(&seen, &list);
            let object = format!("{{\"k\":{written}}}");
            prop_assert_eq!(member(&object, "k"), Some(written.as_str()));
        }

        #[test]
        fn any_text_ends(text in "[\\[\\]{}\",:\\\\a1 é]{0,60}") {
            elements(&text).for_each(drop);
            members(&text).for_each(drop);
        }
    }
}
