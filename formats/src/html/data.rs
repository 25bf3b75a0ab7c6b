//! Linked data in a page: what `<script type="application/ld+json">` says about it.
//!
//! Source: JSON-LD 1.1 (W3C), as search engines have pages use it: <https://schema.org>. Which keys become
//! which attributes, the tables in `markup` say.
//!
//! # Differences from the specification
//!
//! * Contexts are not read: keys are taken for schema.org's.
//! * Of the things that a page describes, one is taken for the page: the first that has a headline, else
//!   the first that is a work, else the first that is a page.
//!
//! Sans-I/O.

use serde_json::{Map, Value};

use super::super::markup::{Action, Attribute, Tables};
use super::sheet::Sheet;
use crate::object::ProblemKind;

/// How much linked data of a page is parsed, in bytes.
const DATA_BYTES_MAX: usize = 1024 * 1024;
/// Longest piece of linked data, in bytes: parsed, it may take forty times as much.
const PIECE_BYTES_MAX: usize = 256 * 1024;
/// Most things in a piece that are looked at.
const THINGS_MAX: usize = 256;
/// Most values of a key.
const VALUES_MAX: usize = 200;

/// What is a work, besides all that has a headline.
const WORKS: &[&str] = &[
    "Article",
    "Blog",
    "BlogPosting",
    "Book",
    "Chapter",
    "Course",
    "CreativeWork",
    "Dataset",
    "DigitalDocument",
    "Event",
    "HowTo",
    "LearningResource",
    "Map",
    "MusicAlbum",
    "NewsArticle",
    "Periodical",
    "PresentationDigitalDocument",
    "Product",
    "PublicationIssue",
    "Recipe",
    "Report",
    "ScholarlyArticle",
    "SoftwareApplication",
    "SoftwareSourceCode",
    "TechArticle",
    "Thesis",
    "VideoObject",
];

type Thing = Map<String, Value>;

/// Reads the linked data of one page.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: usize,
    is_broken: bool,
    is_cut: bool,
}

impl Reader {
    /// Takes a piece of linked data.
    pub(super) fn read(&mut self, text: &str, tables: &Tables, sheet: &mut Sheet<'_, '_>) {
        self.bytes += text.len();
        if PIECE_BYTES_MAX < text.len() || DATA_BYTES_MAX < self.bytes {
            self.is_cut = true;
            return;
        }
        let Ok(value) = serde_json::from_str::<Value>(text.trim()) else {
            self.is_broken = true;
            return;
        };
        let mut things = Vec::new();
        collect(&value, &mut things);
        // The first of the best.
        let best = things.iter().rev().max_by_key(|it| weight(it)).filter(|it| 0 < weight(it));
        let Some(thing) = best else { return };
        for key in tables.keys() {
            let Action::Tell(attribute) = key.rule.action else { continue };
            let mut values = Vec::new();
            let [first, rest @ ..] = &*key.path else { continue };
            if let Some(value) = thing.get(&**first) {
                find(value, rest, &things, &mut values);
            }
            for value in values {
                match attribute {
                    Attribute::References => sheet.links.add_text(value.trim()),
                    _ => sheet.found.add(&key.rule, &value),
                }
            }
        }
    }

    /// Returns what is to be said of the linked data that could not be read.
    pub(super) fn problem(&self) -> Option<(ProblemKind, &'static str)> {
        match self {
            Self { is_cut: true, .. } => {
                Some((ProblemKind::Limit, "has too much linked data; the rest of it was left out"))
            }
            Self { is_broken: true, .. } => {
                Some((ProblemKind::Broken, "has linked data that is not JSON"))
            }
            _ => None,
        }
    }
}

/// Collects the things that are described side by side.
fn collect<'v>(value: &'v Value, things: &mut Vec<&'v Thing>) {
    if THINGS_MAX <= things.len() {
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

/// Returns how likely a thing is what the page is about.
fn weight(thing: &Thing) -> u8 {
    let types = thing.get("@type").map_or(&[][..], |it| match it {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    });
    let mut types = types.iter().take(THINGS_MAX).filter_map(Value::as_str);
    if thing.contains_key("headline") {
        return 3;
    }
    let kinds = types.by_ref().map(|it| match it {
        it if WORKS.contains(&it) => 2,
        it if it.ends_with("Page") => 1,
        _ => 0,
    });
    kinds.max().unwrap_or(0)
}

/// Finds what stands at the end of a path, as text.
fn find(value: &Value, path: &[Box<str>], things: &[&Thing], found: &mut Vec<String>) {
    if VALUES_MAX <= found.len() {
        return;
    }
    match (value, path) {
        (Value::Array(items), _) => items.iter().for_each(|it| find(it, path, things, found)),
        (Value::Object(thing), [first, rest @ ..]) => {
            if let Some(value) = thing.get(&**first) {
                find(value, rest, things, found);
            }
        }
        (Value::Object(thing), []) => found.extend(called(thing, things)),
        (Value::String(text), []) => found.push(text.clone()),
        (Value::Number(number), []) => found.push(number.to_string()),
        _ => {}
    }
}

/// Returns what a thing is called: a person, a term, a place, a number.
fn called(thing: &Thing, things: &[&Thing]) -> Option<String> {
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
    use super::PIECE_BYTES_MAX;
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
             Identifier: doi:10.1/x\nLanguage: en\nDate: 2020-01-31\nPublisher: P\n\
             License: http://l.example/by",
        );
    }

    #[test]
    fn of_a_graph_the_work_is_taken() {
        check(
            r##"{"@graph": [{"@type": "WebSite", "name": "The site"}, {"@type": "WebPage", "name": "W"},
             {"@type": ["Thing", "BlogPosting"], "name": "Post", "author": {"@id": "#ann"}},
             {"@type": "Person", "@id": "#ann", "name": "Ann"}]}"##,
            "Title: Post\nAuthor: Ann",
        );
        check(r#"[{"@type": "Organization", "name": "Us"}]"#, "Title: p.html");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let check = |data: &str, expected: &str| {
            let page = format!("<script type='application/ld+json'>{data}</script>");
            let seen = render("p.html", Type::Html, page.as_bytes());
            assert_eq!(seen, format!("Title: p.html\n! {expected}"));
        };
        check("{", "broken: has linked data that is not JSON");
        check(&"[".repeat(100_000), "broken: has linked data that is not JSON");
        let long = format!("[{}0]", "0,".repeat(PIECE_BYTES_MAX));
        check(&long, "limit: has too much linked data; the rest of it was left out");
    }
}
