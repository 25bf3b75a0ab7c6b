//! Linked data of a page: attributes from `<script type="application/ld+json">`.
//!
//! Source: JSON-LD 1.1 (W3C) with the vocabulary of search engines: <https://schema.org>. The tables in
//! `markup` say which keys become which attributes.
//!
//! # Differences from the specification
//!
//! * Contexts are not read: all keys are taken for those of schema.org.
//! * Of the things that a page describes, one stands for the page: the first with a headline, else the
//!   first work, else the first page.

use serde_json::{Map, Value};

use super::super::Draft;
use super::super::markup::{Action, Attribute, Tables};
use super::builder::DraftBuilder;
use crate::limit::{Cut, Limit};
use crate::object::ProblemKind;

type Thing = Map<String, Value>;

/// The linked data of one page: its size so far and its problems.
#[derive(Debug, Default)]
pub(super) struct LinkedData {
    bytes: usize,
    is_broken: bool,
    cuts: Vec<Cut>,
}

impl LinkedData {
    /// Reads a piece of linked data into the builder.
    pub(super) fn read(&mut self, text: &str, tables: &Tables, builder: &mut DraftBuilder<'_, '_>) {
        self.bytes += text.len();
        let sizes = [(Limit::LinkedDataPiece, text.len()), (Limit::LinkedData, self.bytes)];
        if let Some((limit, _)) = sizes.iter().find(|(limit, bytes)| limit.bound() < *bytes) {
            self.cuts.push(limit.cut());
            return;
        }
        let Ok(value) = serde_json::from_str::<Value>(text.trim()) else {
            self.is_broken = true;
            return;
        };
        let mut things = Vec::new();
        collect(&value, &mut things);
        self.count(things.len());
        // Of equal weights, the first thing.
        let best = things
            .iter()
            .take(Limit::LinkedThings.bound())
            .rev()
            .max_by_key(|it| weight(it))
            .filter(|it| 0 < weight(it));
        let Some(thing) = best else { return };
        for key in tables.keys() {
            let Action::Attribute(attribute) = key.rule.action else { continue };
            let mut values = Vec::new();
            let [first, rest @ ..] = &*key.path else { continue };
            if let Some(value) = thing.get(&**first) {
                find(value, rest, &things, &mut values);
            }
            self.count(values.len());
            for value in values.into_iter().take(Limit::LinkedThings.bound()) {
                match attribute {
                    Attribute::References => builder.links.add_text(value.trim()),
                    _ => builder.values.add(&key.rule, &value),
                }
            }
        }
    }

    /// Notes that there are more things, or more values of a key, than are read.
    fn count(&mut self, count: usize) {
        if Limit::LinkedThings.bound() < count {
            self.cuts.push(Limit::LinkedThings.cut());
        }
    }

    /// Says what was not read.
    pub(super) fn report(self, draft: &mut Draft<'_>) {
        self.cuts.into_iter().for_each(|it| draft.cut(it));
        if self.is_broken {
            draft.problem(ProblemKind::Broken, "has linked data that is not JSON");
        }
    }
}

/// Collects the things at the top level, in order.
fn collect<'v>(value: &'v Value, things: &mut Vec<&'v Thing>) {
    if Limit::LinkedThings.bound() < things.len() {
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|it| collect(it, things)),
        Value::Object(thing) => match thing.get("@graph") {
            Some(graph) => collect(graph, things),
            None => things.push(thing),
        },
        _ => {}
    }
}

/// Returns the rank of a thing as the page's subject: 0 (none) to 3 (has a headline).
fn weight(thing: &Thing) -> u8 {
    let types = thing.get("@type").map_or(&[][..], |it| match it {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    });
    let mut types = types.iter().filter_map(Value::as_str);
    if thing.contains_key("headline") {
        return 3;
    }
    let kinds = types.by_ref().map(|it| match it {
        // Works. A thing with a headline ranks higher.
        "Article" | "Blog" | "BlogPosting" | "Book" | "Chapter" | "Course" | "CreativeWork"
        | "Dataset" | "DigitalDocument" | "Event" | "HowTo" | "LearningResource" | "Map"
        | "MusicAlbum" | "NewsArticle" | "Periodical" | "Product" | "PublicationIssue"
        | "Recipe" | "Report" | "ScholarlyArticle" | "SoftwareSourceCode" | "TechArticle"
        | "Thesis" | "VideoObject" => 2,
        "PresentationDigitalDocument" => 2,
        "SoftwareApplication" => 2,
        it if it.ends_with("Page") => 1,
        _ => 0,
    });
    kinds.max().unwrap_or(0)
}

/// Adds the values at the end of a path to `texts`.
fn find(value: &Value, path: &[Box<str>], things: &[&Thing], texts: &mut Vec<String>) {
    if Limit::LinkedThings.bound() < texts.len() {
        return;
    }
    match (value, path) {
        (Value::Array(items), _) => items.iter().for_each(|it| find(it, path, things, texts)),
        (Value::Object(thing), [first, rest @ ..]) => {
            if let Some(value) = thing.get(&**first) {
                find(value, rest, things, texts);
            }
        }
        (Value::Object(thing), []) => texts.extend(name_of(thing, things)),
        (Value::String(text), []) => texts.push(text.clone()),
        (Value::Number(number), []) => texts.push(number.to_string()),
        _ => {}
    }
}

/// Returns the name or value of a thing, or of the thing that its id refers to; else the id.
fn name_of(thing: &Thing, things: &[&Thing]) -> Option<String> {
    let text = |thing: &Thing, key: &str| thing.get(key).and_then(Value::as_str).map(str::to_owned);
    let own = |thing: &Thing| {
        let keys = ["name", "@value", "value", "headline", "url"];
        keys.iter().find_map(|key| text(thing, key)).or_else(|| {
            let given = text(thing, "givenName").unwrap_or_default();
            Some(format!("{given} {}", text(thing, "familyName")?))
        })
    };
    let id = || text(thing, "@id");
    let other =
        |id: &String| things.iter().find(|it| it.get("@id").and_then(Value::as_str) == Some(id));
    own(thing).or_else(|| other(&id()?).and_then(|it| own(it))).or_else(id)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::render;
    use crate::Type;

    #[track_caller]
    fn check(data: &str, expected: &str) {
        let page = format!("<script type='application/ld+json'>{data}</script><p>Text");
        let expected = format!("{expected}\nPartial-Text: Text");
        let seen = render("p.html", Type::Html, page.as_bytes());
        let (lines, problems): (Vec<&str>, Vec<&str>) =
            seen.lines().partition(|it| !it.starts_with('!'));
        assert_eq!(lines.join("\n"), expected);
        assert_eq!(problems, [""; 0]);
    }

    #[test]
    fn an_article() {
        check(
            r#"{"@context": "https://schema.org", "@type": "ScholarlyArticle", "headline": "A paper",
             "author": [{"@type": "Person", "name": "Ann Lee"}, "Bo Wu",
                        {"givenName": "Cy", "familyName": "Ash"}],
             "datePublished": "2020-01-31", "description": "Says it.", "keywords": ["k", "l"],
             "identifier": {"@type": "PropertyValue", "propertyID": "doi", "value": "10.1/x"},
             "publisher": {"name": "P"}, "license": "http://l.example/by", "inLanguage": "en"}"#,
            "Title: A paper\nAuthor: Ann Lee | Bo Wu | Cy Ash\nDescription: Says it.\n\
             Identifier: doi:10.1/x\nLanguage: en\nLanguage-Source: declared\nDate: 2020-01-31\nDate-Source: markup\nPublisher: P\n\
             License: http://l.example/by",
        );
    }

    #[test]
    fn the_work_of_a_graph_stands_for_the_page() {
        check(
            r##"{"@graph": [{"@type": "WebSite", "name": "The site"}, {"@type": "WebPage", "name": "W"},
             {"@type": ["Thing", "BlogPosting"], "name": "Post", "author": {"@id": "#ann"}},
             {"@type": "Person", "@id": "#ann", "name": "Ann"}]}"##,
            "Title: Post\nAuthor: Ann",
        );
        check(r#"[{"@type": "Organization", "name": "Us"}]"#, "Title: p.html");
    }

    #[test]
    fn unreadable_data_is_a_problem() {
        let check = |data: &str, expected: &str| {
            let page = format!("<script type='application/ld+json'>{data}</script>");
            let seen = render("p.html", Type::Html, page.as_bytes());
            assert!(seen.ends_with(&format!("! {expected}")), "{seen}");
        };
        check("{", "broken: has linked data that is not JSON");
        check(&"[".repeat(100_000), "broken: has linked data that is not JSON");
        let long = format!("[{}0]", "0,".repeat(200_000));
        check(
            &long,
            "limit: has more than 262144 bytes in a piece of linked data; the rest was left out",
        );
    }
}
