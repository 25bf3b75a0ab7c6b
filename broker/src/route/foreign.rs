//! Foreign engines: search engines of other makes, which are asked by SRU or as their OpenSearch description says.
//!
//! Their scores mean nothing beside ours, so what they find is shown apart, merged by reciprocal rank. They are asked
//! for words and phrases alone: whatever else a query has, each engine would understand in its own way.
//!
//! Source: SRU 1.2 (Library of Congress, 2007); OpenSearch 1.1 draft 6; G. Cormack et al., SIGIR 2009 (reciprocal rank
//! fusion).
//!
//! Sans-I/O, but for `engines`, which asks.

pub mod description;
pub(crate) mod engines;
pub mod read;

use std::collections::HashMap;

use query::{Leaf, Node, Query, Value};
use settings::Table;
use url::Url;

use crate::answer::ForeignHit;

/// Maximum number of `[[foreign]]`.
const ENGINES_MAX: usize = 50;
/// Number of hits that each engine is asked for.
const HITS: usize = 10;
/// Weakens the first ranks, so that no engine decides alone.
const RANK_BASE: f64 = 60.0;

/// How an engine is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// By its OpenSearch description.
    OpenSearch,
    /// By Search/Retrieve via URL.
    Sru,
}

/// A foreign engine of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignEngine {
    /// The address of its description, or of its SRU service.
    pub url: Url,
    /// How it is asked.
    pub protocol: Protocol,
    /// Its name for people.
    pub name: String,
}

/// What an engine has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// How much there is, as it says.
    pub total: Option<u64>,
    /// The best ones, in its order.
    pub hits: Vec<ForeignHit>,
}

/// A part of a query that every engine understands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Term {
    Word(String),
    Phrase(String),
}

/// Reads all `[[foreign]]`, and reports mistakes.
pub(super) fn read_settings(root: &Table<'_>) -> Vec<ForeignEngine> {
    let tables = root.tables("foreign");
    if ENGINES_MAX < tables.len() {
        root.mistake("foreign", format!("more than {ENGINES_MAX} foreign engines"), "fewer");
    }
    let read = |table: &Table<'_>| {
        let name = table.string("name");
        let protocol = match table.choice("protocol", &["opensearch", "sru"]) {
            Some("sru") => Protocol::Sru,
            _ => Protocol::OpenSearch,
        };
        if !table.require("url", "the address of its OpenSearch description, or SRU service") {
            return None;
        }
        let url = table.url("url")?;
        if !matches!(url.scheme(), "http" | "https") {
            table.mistake("url", format!("{url} is no address of the Web"), "http:// or https://");
            return None;
        }
        let name = name.unwrap_or_else(|| url.host_str().unwrap_or_default().to_owned());
        Some(ForeignEngine { url, protocol, name })
    };
    tables.iter().filter_map(read).collect()
}

/// Returns the words and phrases of a query that wants nothing else; `None`: it wants something else.
fn terms(query: &Query) -> Option<Vec<Term>> {
    let term = |node: &Node| match node {
        Node::Leaf(Leaf { field: None, value: Value::Word(word) }) => {
            Some(Term::Word(word.clone()))
        }
        Node::Leaf(Leaf { field: None, value: Value::Phrase(text) }) => {
            Some(Term::Phrase(text.clone()))
        }
        _ => None,
    };
    match &query.root {
        Node::And(members) | Node::Beside(members) => members.iter().map(term).collect(),
        one => Some(vec![term(one)?]),
    }
}

/// Returns the query in CQL: all terms, each quoted.
fn cql(terms: &[Term]) -> String {
    let quoted = |term: &Term| {
        let (Term::Word(text) | Term::Phrase(text)) = term;
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    };
    terms.iter().map(quoted).collect::<Vec<_>>().join(" and ")
}

/// Returns the query as people type it.
fn typed(terms: &[Term]) -> String {
    let typed = |term: &Term| match term {
        Term::Word(text) => text.clone(),
        Term::Phrase(text) => format!("\"{}\"", text.replace('"', " ")),
    };
    terms.iter().map(typed).collect::<Vec<_>>().join(" ")
}

/// Returns the address at which an SRU service answers. What the settings say in its address holds.
fn sru_address(base: &Url, terms: &[Term]) -> Url {
    let mut url = base.clone();
    let given = |name: &str| base.query_pairs().any(|it| it.0 == name);
    let hits = HITS.to_string();
    let usual = [
        ("operation", "searchRetrieve"),
        ("version", "1.2"),
        ("recordSchema", "dc"),
        ("recordPacking", "xml"),
        ("maximumRecords", &*hits),
    ];
    url.query_pairs_mut()
        .extend_pairs(usual.iter().filter(|it| !given(it.0)))
        .append_pair("query", &cql(terms));
    url
}

/// Returns the hits of all engines, those that many have at high ranks first. Each page is there once.
fn fused(found: Vec<(String, Vec<ForeignHit>)>) -> Vec<ForeignHit> {
    let mut all: Vec<ForeignHit> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (engine, hits) in found {
        for (rank, hit) in (1_u32..).zip(hits) {
            let score = 1.0 / (RANK_BASE + f64::from(rank));
            // What has no address is the engine's own.
            let key = if hit.url.is_empty() { format!("{engine} {rank}") } else { hit.url.clone() };
            let at = *places.entry(key).or_insert(all.len());
            match all.get_mut(at) {
                Some(known) if known.engines.contains(&engine) => {}
                Some(known) => {
                    known.score += score;
                    known.engines.push(engine.clone());
                }
                None => all.push(ForeignHit { score, engines: vec![engine.clone()], ..hit }),
            }
        }
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    all
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    #[test]
    fn engines_are_read() {
        let read = |text: &str| {
            let document = Document::parse(text).unwrap();
            let read = read_settings(&document.root());
            document.finish().map(|()| read).map_err(|them| them[0].to_string())
        };
        let text = "[[foreign]]\nurl = \"https://a.example/os.xml\"\n\
                    [[foreign]]\nurl = \"http://b.example/sru?x=y\"\nprotocol = \"sru\"\nname = \"B\"";
        let all = read(text).unwrap();
        assert_eq!((all[0].protocol, &*all[0].name), (Protocol::OpenSearch, "a.example"));
        assert_eq!((all[1].protocol, &*all[1].name), (Protocol::Sru, "B"));
        for (wrong, part) in [
            ("[[foreign]]\nname = \"a\"", "url"),
            ("[[foreign]]\nurl = \"ftp://a/\"", "no address of the Web"),
            ("[[foreign]]\nurl = \"http://a/\"\nprotocol = \"z39.50\"", "\"sru\""),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn words_and_phrases_are_asked_for() {
        let asked = |text: &str| terms(&query::parse(text).unwrap());
        let both = asked("glacier \"ice \\\" age\"").unwrap();
        assert_eq!(cql(&both), "\"glacier\" and \"ice \\\" age\"");
        assert_eq!(typed(&both), "glacier \"ice   age\"");
        assert_eq!(asked("a AND b").map(|it| it.len()), Some(2));
        for other in ["a OR b", "-a b", "title:a", "gla*", "*", "+a b", "year:2020"] {
            assert_eq!(asked(other), None, "{other}");
        }
    }

    #[test]
    fn an_address_of_the_settings_holds() {
        let base = Url::parse("http://h/sru?version=1.1&recordSchema=marcxml").unwrap();
        let url = sru_address(&base, &[Term::Word("a&b".to_owned())]);
        let expected = "http://h/sru?version=1.1&recordSchema=marcxml&operation=searchRetrieve\
                        &recordPacking=xml&maximumRecords=10&query=%22a%26b%22";
        assert_eq!(url.as_str(), expected);
    }

    #[test]
    fn what_many_engines_have_comes_first() {
        let hit = |url: &str| ForeignHit { url: url.to_owned(), ..ForeignHit::default() };
        let a = vec![hit("http://1/"), hit("http://2/"), hit("http://2/"), hit("")];
        let b = vec![hit("http://3/"), hit("http://2/"), hit("")];
        let all = fused(vec![("a".to_owned(), a), ("b".to_owned(), b)]);
        let urls: Vec<_> = all.iter().map(|it| &*it.url).collect();
        assert_eq!(urls, ["http://2/", "http://1/", "http://3/", "", ""]);
        assert_eq!(all[0].engines, ["a", "b"]);
        assert!((all[0].score - 2.0 / 62.0).abs() < 1e-9);
    }
}
