//! Views: named queries over a broker's records, each perhaps within another one.
//!
//! A view is a scope of searches (`view:NAME`), and what other brokers pull (`/feed?view=NAME`).
//!
//! Source: TR §8 (topic-specific brokers).
//!
//! Sans-I/O.

pub mod alerts;
pub(crate) mod membership;
mod present;
pub(crate) mod selecting;
pub(crate) mod tree;
pub(crate) mod visible;
pub mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;

use daemon::access::{Access, Proof};
use query::percolator::Percolator;
use query::{Leaf, Node, Query, Value};
use settings::Table;

use visible::unknown;
use webhook::{WEBHOOKS_MAX, Webhook};

/// The field of a query that names a view.
pub const FIELD: &str = "view";
/// Maximum number of views.
pub const VIEWS_MAX: usize = 10_000;
/// Maximum number of views that need no word in particular: each record is held against each of these.
const HELD_AGAINST_ALL_MAX: usize = 1_000;
/// Maximum number of conditions of a view, with those of the views that it is within.
const CONDITIONS_MAX: usize = 512;
/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// What the settings say that they expect where a query is wrong.
pub(crate) const EXPECTED: &str = "a query such as \"type:PDF AND subject:physics\"";

/// A view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name in queries and addresses: small letters, digits, `-` and `_`.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// The view that it is within, by name.
    pub within: Option<String>,
    /// What the settings say.
    pub query: String,
    /// What its records match: with the queries of all views that it is within or names.
    pub whole: Query,
    /// Who is told of its changes.
    pub webhook: Option<Webhook>,
}

/// The views of a broker. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Views(Arc<BTreeMap<String, View>>);

impl Views {
    /// Reads all `[[view]]`, and reports their mistakes.
    pub(crate) fn read(root: &Table<'_>) -> Self {
        let tables = root.tables("view");
        let mut read: BTreeMap<String, (View, Vec<String>, &Table<'_>)> = BTreeMap::new();
        let mut webhooks = 0;
        for (number, table) in tables.iter().enumerate() {
            if number == VIEWS_MAX {
                table.mistake("name", format!("more than {VIEWS_MAX} views"), "less of them");
                break;
            }
            let name = table.required_string("name");
            let is_plain =
                |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "-_".contains(it);
            if name.is_empty() || NAME_BYTES_MAX < name.len() || !name.chars().all(is_plain) {
                let expected = "small letters, digits, - and _";
                table.mistake("name", format!("{name:?} is no name for a view"), expected);
                continue;
            }
            let (title, within) = (table.string("title"), table.string("within"));
            let Some(text) =
                table.require("query", EXPECTED).then(|| table.required_string("query"))
            else {
                continue;
            };
            let (whole, mut named) = match selecting::standing(&text).and_then(split) {
                Ok(split) => split,
                Err(fault) => {
                    table.mistake("query", fault, EXPECTED);
                    continue;
                }
            };
            named.extend(within.clone());
            let title = title.unwrap_or_else(|| name.clone());
            let webhook = Webhook::read(table);
            if webhook.is_some() {
                webhooks += 1;
                if webhooks == WEBHOOKS_MAX + 1 {
                    let message = format!("more than {WEBHOOKS_MAX} webhooks");
                    table.mistake("webhook", message, "less of them, or a feed for each");
                }
            }
            let view = View { name: name.clone(), title, within, query: text, whole, webhook };
            if read.insert(name.clone(), (view, named, table)).is_some() {
                table.mistake("name", format!("{name:?} is above, too"), "each view once");
            }
        }
        let names: Vec<String> = read.keys().cloned().collect();
        let mut views = BTreeMap::new();
        for name in names {
            let whole = whole(&read, &name);
            let Some((view, _, table)) = read.get(&name) else { continue };
            match whole {
                Ok(whole) => drop(views.insert(name, View { whole, ..view.clone() })),
                Err(fault) => table.mistake("query", fault, "views that are there, in no circle"),
            }
        }
        if let Some(name) = one_too_many(&views)
            && let Some((_, _, table)) = read.get(name)
        {
            let message = format!(
                "more than {HELD_AGAINST_ALL_MAX} views need no word in particular, so that each record is held against them"
            );
            table.mistake("query", message, "a word in it, or in a view that it is within");
        }
        Self(Arc::new(views))
    }

    /// Reads the `view` of each `[[consumer]]`, and reports mistakes.
    pub(crate) fn limit(&self, root: &Table<'_>, access: &mut Access) {
        for table in root.tables("consumer") {
            let Some(view) = table.string("view") else { continue };
            if self.get(&view).is_none() {
                table.mistake("view", unknown(&view), "the name of a [[view]]");
            }
            let name = table.string("name");
            let consumer = access.consumers.iter_mut().find(|it| Some(&it.name) == name.as_ref());
            match consumer {
                Some(consumer) if consumer.proof == Proof::Nobody => {
                    let message = format!("{:?} may have nothing anyway", consumer.name);
                    table.mistake("view", message, "the view of another consumer");
                }
                Some(consumer) => consumer.view = Some(view),
                None => {}
            }
        }
    }

    /// Returns a view by its name.
    pub fn get(&self, name: &str) -> Option<&View> {
        self.0.get(name)
    }

    /// Returns all views by their names.
    pub fn all(&self) -> impl Iterator<Item = &View> {
        self.0.values()
    }
}

/// Takes the names of views out of a query.
pub(crate) fn split(query: Query) -> Result<(Query, Vec<String>), String> {
    let is_view =
        |leaf: &Leaf| leaf.field.as_deref().is_some_and(|it| it.eq_ignore_ascii_case(FIELD));
    let mut names = Vec::new();
    let mut take = |node: &Node| match node {
        Node::Leaf(leaf) if is_view(leaf) => match &leaf.value {
            Value::Word(name) | Value::Phrase(name) => {
                let name = name.to_ascii_lowercase();
                if !names.contains(&name) {
                    names.push(name);
                }
                false
            }
            _ => true,
        },
        _ => true,
    };
    let root = match query.root {
        Node::And(nodes) => Node::and(nodes.into_iter().filter(&mut take).collect()),
        Node::Beside(nodes) => Node::beside(nodes.into_iter().filter(&mut take).collect()),
        other => {
            if take(&other) {
                other
            } else {
                Node::All
            }
        }
    };
    let rest = Query { root };
    let mut within = None;
    rest.for_each_leaf(&mut |leaf| {
        if is_view(leaf) {
            within.get_or_insert_with(|| leaf.to_string());
        }
    });
    match within {
        Some(leaf) => Err(format!("{leaf} has to stand beside all else, not within it")),
        None => Ok((rest, names)),
    }
}

/// Returns the name of a view that there may not be, since too many are held against each record.
fn one_too_many(views: &BTreeMap<String, View>) -> Option<&String> {
    if views.len() <= HELD_AGAINST_ALL_MAX {
        return None;
    }
    let percolator = Percolator::new(views.values().map(|it| &it.whole));
    let number = *percolator.held_against_all().get(HELD_AGAINST_ALL_MAX)?;
    views.keys().nth(usize::try_from(number).ok()?)
}

/// Returns what the records of a view match, of views of which each has what its own query says.
fn whole(
    read: &BTreeMap<String, (View, Vec<String>, &Table<'_>)>,
    first: &str,
) -> Result<Query, String> {
    // Each once, in the order in which they are reached.
    let (mut reached, mut at): (Vec<&str>, usize) = (vec![first], 0);
    let mut queries = Vec::new();
    while let Some(name) = reached.get(at) {
        let (view, named, _) = read.get(*name).ok_or_else(|| unknown(name))?;
        queries.push(view.whole.clone());
        if CONDITIONS_MAX < queries.len() {
            break;
        }
        for other in named {
            if other == first {
                return Err(format!(
                    "{first:?} is within {:?}, and that within {first:?}",
                    view.name
                ));
            }
            if !reached.contains(&other.as_str()) {
                reached.push(other);
            }
        }
        at += 1;
    }
    let (whole, mut conditions) = (Query::joined(queries), 0);
    whole.for_each_leaf(&mut |_| conditions += 1);
    if CONDITIONS_MAX < conditions {
        return Err(format!(
            "with the views around it, it has more than {CONDITIONS_MAX} conditions"
        ));
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    fn parsed(text: &str) -> Result<Views, String> {
        let document = Document::parse(text).unwrap();
        let views = Views::read(&document.root());
        let mistakes = document.finish();
        mistakes
            .map(|()| views)
            .map_err(|them| them.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    fn view(name: &str, more: &str) -> String {
        format!("[[view]]\nname = {name:?}\n{more}\n")
    }

    #[test]
    fn a_view_is_within_others() {
        let text = view("science", "query = \"subject:science\"\ntitle = \"Science\"")
            + &view("papers", "query = \"type:PDF\"")
            + &view("physics", "query = \"view:papers physics\"\nwithin = \"science\"");
        let views = parsed(&text).unwrap();
        assert_eq!(views.get("science").unwrap().title, "Science");
        let whole = views.get("physics").unwrap().whole.to_string();
        assert_eq!(whole, "physics AND type:PDF AND subject:science");
        let scope = |text: &str| {
            let (rest, scope) = views.visible(None).scope(&query::parse(text).unwrap())?;
            Ok::<_, String>((
                rest.to_string(),
                scope.iter().map(|it| it.whole.to_string()).collect(),
            ))
        };
        let both = vec!["type:PDF".to_owned(), "subject:science".to_owned()];
        assert_eq!(scope("view:papers apple pie View:science"), Ok(("apple pie".to_owned(), both)));
        assert_eq!(scope("view:papers"), Ok(("*".to_owned(), vec!["type:PDF".to_owned()])));
        assert!(scope("view:papers OR apple").unwrap_err().contains("view:papers"));
        assert!(scope("-view:papers").is_err() && scope("view:pa*").is_err());
        assert!(scope("view:none").unwrap_err().contains("no view \"none\""));
        let none = Views::default();
        assert!(none.visible(None).scope(&query::parse("view:none").unwrap()).is_ok());
    }

    #[test]
    fn mistakes_are_named() {
        let circle =
            view("a", "query = \"x\"\nwithin = \"b\"") + &view("b", "query = \"view:a y\"");
        let many: String = (0..600)
            .map(|it| view(&format!("v{it}"), &format!("query = \"w{it} view:v{}\"", it + 1)))
            .collect();
        let views = |count: usize, query: &str, more: &str| -> String {
            (0..count)
                .map(|it| view(&format!("v{it}"), &format!("query = {query:?}{more}")))
                .collect()
        };
        let within =
            view("whole", "query = \"apple\"") + &views(2_000, "size:>10", "\nwithin = \"whole\"");
        assert_eq!(parsed(&within).unwrap().all().count(), 2_001);
        assert_eq!(parsed(&views(1_000, "*", "")).unwrap().all().count(), 1_000);
        for (text, part) in [
            (views(1_001, "*", ""), "more than 1000 views need no word"),
            (views(100_000, "apple", ""), "more than 10000 views"),
            (view("A b", "query = \"x\""), "is no name for a view"),
            (view("a", ""), "query"),
            (view("a", "query = \"(x\""), "at byte"),
            (view("a", "query = \"x~1\""), "x~1"),
            (view("a", "query = \"x OR view:b\""), "beside all else"),
            (view("a", "query = \"view:b\""), "no view \"b\""),
            (view("a", "query = \"x\"\nwithin = \"a\""), "within"),
            (view("a", "query = \"x\"") + &view("a", "query = \"y\""), "each view once"),
            (circle, "in no circle"),
            (many, "512 conditions"),
        ] {
            let said = parsed(&text).unwrap_err();
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
