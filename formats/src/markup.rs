//! Markup tables: the attributes that elements, head fields and keys of linked data become.
//!
//! Source: Essence's `HTML.sum` and SGML summarizers, whose table (`HTML.sum.tbl`) a site may override. A
//! table is TOML; the built-in one is `markup/tables.toml`:
//!
//! ```toml
//! [[vocabulary]]
//! name = "Recipes"                      # recognized by one of
//! root = "cookbook"                     #   the root's name
//! namespace = "http://recipes.example/" #   the beginning of its namespace
//! doctype = "-//Recipes//"              #   a piece of the document type
//!
//! [[map]]
//! in = "Recipes"                        # default: HTML
//! element = ["cook", "recipe/by"]       # `by` right inside a `recipe`
//! attribute = "Author"                  # of its text
//!
//! [[map]]
//! element = "a"
//! value_of = "href"                     # of this attribute's value in place of the text
//! when = "rel=license"                  # only where it has this word; without `=`: where it is there
//! attribute = "License"
//!
//! [[map]]
//! meta = ["dc.creator", "author"]       # a field of the head
//! json = "author.name"                  # a key of linked data in the page
//! attribute = "Author"
//! ```
//!
//! Further keys: `prefix = "doi:"` is put before the value. `split = ";"` makes several values of one.
//! `parts = ["forename", "surname"]` names the elements inside that make up the value, in this order, with
//! `join` between them (default: a space). `line = true` ends the value with its line, as in SGML without end
//! tags. In place of an attribute, `main = true` says that an element holds the main text, `aside = true` moves
//! its text behind everything else (menus, footers), and `ignore = true` leaves it out. `attribute = "Partial-Text"` stands for plain text. Names are
//! compared without regard to case.
//!
//! **Precedence.** Earlier maps win: of several that give one attribute, the first with a value.
//! For `Keywords`, `Headings`, `Identifier` and `URL-References` the values of all maps are kept.
//! The values that lose become keywords. Of the maps of one element, only those with the most
//! conditions apply. A site's files come before the built-in table, and replace its maps of the
//! same elements (under the same conditions), fields and keys.
//!
//! # Differences from the paper
//!
//! * One table serves all vocabularies; the original had one file for each, and a parser that needed
//!   the document type.

mod read;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};
use settings::Mistake;

/// The table that is built in.
const BUILT_IN: &str = include_str!("markup/tables.toml");

/// Longest name of an element or of a head field, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The rules of markup, by element, head field and key: the site's tables over the built-in one. Cheap to
/// clone. Serialized as the text of the site's files.
#[derive(Clone, Serialize, Deserialize)]
#[serde(into = "Vec<Source>", from = "Vec<Source>")]
pub struct Tables(Arc<Compiled>);

/// A table as written by the site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    path: PathBuf,
    text: String,
}

/// Tables ready for use.
#[derive(Debug, Default)]
struct Compiled {
    sources: Vec<Source>,
    /// [`HTML`] and [`OTHER`] first.
    vocabularies: Vec<Vocabulary>,
    /// The names of [`Attribute::Other`], by number.
    attributes: Vec<Box<str>>,
    fields: HashMap<Box<[u8]>, Vec<Rule>, RandomState>,
    /// Beginnings of the names of head fields that are left out.
    silent: Vec<Box<str>>,
    keys: Vec<Key>,
}

/// The index of HTML in the vocabularies.
const HTML: usize = 0;
/// The index of the vocabulary for documents of no known vocabulary.
const OTHER: usize = 1;

/// A vocabulary: how it is recognized, and its rules.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    name: Box<str>,
    roots: Vec<String>,
    /// Attributes of which the root must have one, if any are listed: some roots have common names.
    root_attributes: Vec<String>,
    namespaces: Vec<String>,
    /// Pieces of the document type.
    doctypes: Vec<String>,
    /// Whether text may be escaped HTML.
    pub(crate) escaped: bool,
    elements: HashMap<Box<[u8]>, Vec<Rule>, RandomState>,
}

/// The attribute of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Attribute {
    Title,
    Author,
    Description,
    Abstract,
    Keywords,
    References,
    Headings,
    Text,
    Identifier,
    Language,
    /// Any other, by its index in the table's list of names.
    Other(u16),
}

/// The action for an element, a head field or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Its value becomes an attribute.
    Attribute(Attribute),
    /// Its text is put behind everything else.
    Aside,
    /// It is the document's main text: text outside of it is put behind it.
    Main,
    /// It is left out.
    Ignore,
}

/// The rule for an element, a head field or a key.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) action: Action,
    /// Names of the enclosing elements, the nearest first.
    parents: Box<[Box<str>]>,
    /// An attribute that must be there, and a word that it must have.
    when: Option<(Box<str>, Option<Box<str>>)>,
    /// The attribute whose value replaces the text.
    pub(crate) value_of: Option<Box<str>>,
    /// Text before the value.
    pub(crate) prefix: Box<str>,
    /// The separator of several values.
    pub(crate) split: Option<Box<str>>,
    /// Names of the elements that make up the value, in order.
    pub(crate) parts: Box<[Box<str>]>,
    /// Text between the parts.
    pub(crate) join: Box<str>,
    /// Whether the value ends with its line.
    pub(crate) line: bool,
    /// The position of its map. Of two rules for one attribute, the lower rank wins.
    pub(crate) rank: u16,
}

/// A key of linked data, as the names on the path to it.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) path: Box<[Box<str>]>,
    pub(crate) rule: Rule,
}

/// The features of a document's beginning that show its vocabulary.
#[derive(Debug, Default)]
pub(crate) struct Root<'t> {
    /// The name of its first element, without prefix.
    pub(crate) name: &'t str,
    pub(crate) namespace: Option<&'t str>,
    /// The document type, between `<!` and `>` or `[`.
    pub(crate) doctype: &'t str,
}

impl Default for Tables {
    fn default() -> Self {
        static DEFAULT: LazyLock<Arc<Compiled>> =
            LazyLock::new(|| Arc::new(Compiled::read(Vec::new()).unwrap_or_default()));
        Self(Arc::clone(&DEFAULT))
    }
}

impl From<Tables> for Vec<Source> {
    fn from(tables: Tables) -> Self {
        tables.0.sources.clone()
    }
}

impl From<Vec<Source>> for Tables {
    /// This program wrote the text, and so reads it without mistakes.
    fn from(sources: Vec<Source>) -> Self {
        if sources.is_empty() {
            return Self::default();
        }
        Compiled::read(sources).map(Arc::new).map_or_else(|_wrong| Self::default(), Self)
    }
}

/// Equal when made of the same files.
impl PartialEq for Tables {
    fn eq(&self, other: &Self) -> bool {
        self.0.sources == other.0.sources
    }
}

impl Eq for Tables {}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tables").field(&self.0.sources).finish()
    }
}

impl Tables {
    /// Reads a site's tables, each with its file's name and text, in order of precedence.
    ///
    /// # Errors
    ///
    /// Every mistake of every file, with the file's name.
    pub fn read(files: &[(PathBuf, String)]) -> Result<Self, Vec<Mistake>> {
        let source =
            |(path, text): &(PathBuf, String)| Source { path: path.clone(), text: text.clone() };
        Compiled::read(files.iter().map(source).collect()).map(|it| Self(Arc::new(it)))
    }

    pub(crate) fn html(&self) -> &Vocabulary {
        static NONE: LazyLock<Vocabulary> = LazyLock::new(Vocabulary::default);
        self.0.vocabularies.get(HTML).unwrap_or(&NONE)
    }

    /// Returns the vocabulary of a document: by its namespace, else by its document type, else by its root's
    /// name and attributes. `has` says whether the root has an attribute.
    pub(crate) fn vocabulary(&self, root: &Root<'_>, has: impl Fn(&str) -> bool) -> &Vocabulary {
        let doctype = root.doctype.to_ascii_lowercase();
        let is_named =
            |it: &&Vocabulary| it.roots.iter().any(|name| root.name.eq_ignore_ascii_case(name));
        let all = || self.0.vocabularies.iter();
        let begins = |it: &&Vocabulary| {
            root.namespace.is_some_and(|ns| it.namespaces.iter().any(|begin| ns.starts_with(begin)))
        };
        let typed = |it: &&Vocabulary| it.doctypes.iter().any(|piece| doctype.contains(piece));
        let special =
            |it: &&Vocabulary| is_named(it) && it.root_attributes.iter().any(|it| has(it));
        let plain = |it: &&Vocabulary| is_named(it) && it.root_attributes.is_empty();
        all()
            .find(begins)
            .or_else(|| all().find(typed))
            .or_else(|| all().find(special))
            .or_else(|| all().find(plain))
            .or_else(|| self.0.vocabularies.get(OTHER))
            .unwrap_or_else(|| self.html())
    }

    /// Returns the rules of the head field `name`, if there are any.
    pub(crate) fn field(&self, name: &str) -> Option<&[Rule]> {
        with_lower_case(name, |lower| self.0.fields.get(lower)).flatten().map(Vec::as_slice)
    }

    /// Returns whether a head field without rules is left out: it is about layout, or for machines only.
    pub(crate) fn is_silent(&self, name: &str) -> bool {
        let begins = |begin: &str| {
            name.get(..begin.len()).is_some_and(|front| front.eq_ignore_ascii_case(begin))
        };
        self.0.silent.iter().any(|begin| begins(begin))
    }

    /// Returns the keys of linked data, in order of precedence.
    pub(crate) fn keys(&self) -> &[Key] {
        &self.0.keys
    }

    pub(crate) fn name(&self, attribute: Attribute) -> &str {
        match attribute {
            Attribute::Other(number) => {
                self.0.attributes.get(usize::from(number)).map_or("", |it| it)
            }
            known => STANDARD.iter().find(|(_, it)| *it == known).map_or("", |(name, _)| name),
        }
    }
}

/// The attributes with a meaning of their own here.
const STANDARD: &[(&str, Attribute)] = &[
    ("Title", Attribute::Title),
    ("Author", Attribute::Author),
    ("Description", Attribute::Description),
    ("Abstract", Attribute::Abstract),
    ("Keywords", Attribute::Keywords),
    ("URL-References", Attribute::References),
    ("Headings", Attribute::Headings),
    ("Partial-Text", Attribute::Text),
    ("Identifier", Attribute::Identifier),
    ("Language", Attribute::Language),
];

impl Attribute {
    /// Returns whether the values of all rules are kept, not only those of the first that has some.
    pub(crate) fn adds_up(self) -> bool {
        matches!(self, Self::Keywords | Self::References | Self::Headings | Self::Identifier)
    }
}

impl Vocabulary {
    /// Returns the rules of the element `name`, those with the most conditions first.
    pub(crate) fn rules(&self, name: &str) -> &[Rule] {
        with_lower_case(name, |lower| self.elements.get(lower)).flatten().map_or(&[], Vec::as_slice)
    }

    /// Returns whether this is the vocabulary of pages.
    pub(crate) fn is_html(&self) -> bool {
        &*self.name == "HTML"
    }
}

impl Rule {
    fn weight(&self) -> usize {
        self.parents.len() + usize::from(self.when.is_some())
    }

    fn holds<'t>(
        &self,
        parent: &impl Fn(usize) -> Option<&'t str>,
        value_of: &impl Fn(&str) -> Option<&'t str>,
    ) -> bool {
        let has_word = |value: &str, word: &str| {
            value.split_ascii_whitespace().any(|it| it.eq_ignore_ascii_case(word))
        };
        let when = self.when.as_ref().is_none_or(|(name, word)| {
            value_of(name)
                .is_some_and(|value| word.as_ref().is_none_or(|word| has_word(value, word)))
        });
        when && self
            .parents
            .iter()
            .enumerate()
            .all(|(at, name)| parent(at).is_some_and(|it| it.eq_ignore_ascii_case(name)))
    }
}

/// Returns the rules of an element that apply: of the rules whose conditions hold, those with the
/// most conditions. `rules` must have those with the most conditions first. `parent` returns the
/// name of the enclosing element at a distance (0 is the nearest); `value_of` returns the value of
/// an attribute.
pub(crate) fn applying<'r, 't>(
    rules: &'r [Rule],
    parent: impl Fn(usize) -> Option<&'t str>,
    value_of: impl Fn(&str) -> Option<&'t str>,
) -> impl Iterator<Item = &'r Rule> {
    let mut best = 0;
    rules.iter().filter(move |rule| {
        let applies = best <= rule.weight() && rule.holds(&parent, &value_of);
        if applies {
            best = rule.weight();
        }
        applies
    })
}

/// Calls `with` with a name in lower case; returns `None` for a name longer than all known ones.
fn with_lower_case<R>(name: &str, with: impl FnOnce(&[u8]) -> R) -> Option<R> {
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    Some(with(lower))
}

/// Returns whether other parts of Harvest give the name a meaning; a page or a table must not set it.
pub(crate) fn is_reserved(name: &str) -> bool {
    match &*name.to_ascii_lowercase() {
        "type" | "md5" | "url" | "file-size" | "update-time" | "time-to-live" | "refresh-rate"
        | "generation-time" | "full-text" | "partial-text" | "url-references"
        | "nested-filename" | "related" | "origin-path" | "origin-version" | "headings"
        | "confirmed" | "root-url" | "date-source" | "language-source" | "text-print" => true,
        "last-modification-time" => true,
        other => other.starts_with("gatherer-") || other.starts_with("embed"),
    }
}

/// Returns whether the text can be an attribute's name.
pub(crate) fn is_attribute_name(name: &str) -> bool {
    name.starts_with(|it: char| it.is_ascii_alphabetic())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-._:".contains(&it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use crate::testing::summarize;
    use crate::{Settings, Type};

    fn read(text: &str) -> Result<Tables, Vec<String>> {
        let read = Tables::read(&[(PathBuf::from("my.toml"), text.to_owned())]);
        read.map_err(|it| it.iter().map(|it| it.with_file("g.toml".as_ref())).collect())
    }

    /// Summarizes with a site's table; returns the attributes of `expected`.
    #[track_caller]
    fn check(table: &str, (r#type, text): (Type, &str), expected: &[(&str, &str)]) {
        let settings = Settings { markup: read(table).unwrap(), ..Settings::default() };
        let object = Object::whole("http://h.example/p", text.to_owned());
        let record = summarize(&object, r#type, &settings, &|| false).record;
        for (name, value) in expected {
            assert_eq!(record.text(name).unwrap_or_default(), *value, "{name}");
        }
    }

    #[test]
    fn the_built_in_table_has_no_mistake() {
        let built_in = Compiled::read(Vec::new());
        assert!(built_in.is_ok(), "{built_in:#?}");
        assert!(Tables::default().html().is_html());
        assert!(!Tables::default().html().rules("A").is_empty());
    }

    #[test]
    fn a_sites_table_lies_over_the_built_in_one() {
        let page = (
            Type::Html,
            "<title>t</title><meta name=who content=Ann><meta name=author content=Bo>\
            <meta name=color content=red><h1>One</h1><h2>Two</h2><blockquote>Said</blockquote>\
            <nav>Menu</nav><p>Text<small>fine print</small>",
        );
        check(
            "[[map]]\nmeta = 'who'\nattribute = 'Author'\n\
             [[map]]\nmeta = ['author', 'color']\nignore = true\n\
             [[map]]\nelement = 'H1'\nattribute = 'Title'\n\
             [[map]]\nelement = 'blockquote'\nattribute = 'Quotation'\n\
             [[map]]\nelement = 'nav'\nattribute = 'Partial-Text'\n\
             [[map]]\nelement = 'small'\nignore = true\n",
            page,
            &[
                ("Title", "One"),
                ("Author", "Ann"),
                ("color", ""),
                ("Headings", "Two"),
                ("Quotation", "Said"),
                ("Partial-Text", "Two\nSaid\nMenu\nText"),
            ],
        );
        check(
            "",
            page,
            &[("Title", "t"), ("Author", "Bo"), ("color", "red"), ("Headings", "One\nTwo")],
        );
    }

    #[test]
    fn a_site_may_add_vocabularies() {
        let table = "[[vocabulary]]\nname = 'Recipes'\nroot = 'cookbook'\n\
            [[map]]\nin = 'recipes'\nelement = 'recipe/name'\nattribute = 'Title'\n\
            [[map]]\nin = 'Recipes'\nelement = 'cook'\nparts = ['first', 'last']\nattribute = 'Author'\n\
            [[map]]\nin = 'Recipes'\nelement = 'cook'\nwhen = 'role=helper'\nattribute = 'Contributor'\n\
            [[map]]\nin = 'Recipes'\nelement = 'secret'\nignore = true\n";
        let text = "<cookbook><name>Not it</name><recipe><name>Soup</name>\
            <cook><last>Lee</last><first>Ann</first></cook><cook role='helper'>Bo</cook>\
            <secret>salt</secret>Boil.</recipe></cookbook>";
        check(
            table,
            (Type::Xml, text),
            &[
                ("Title", "Soup"),
                ("Author", "Ann Lee"),
                ("Contributor", "Bo"),
                ("Partial-Text", "Not it\nLee\nAnn\nBo\nBoil."),
            ],
        );
    }

    #[test]
    fn every_mistake_is_named_with_file_and_line() {
        let check = |text: &str, expected: &[&str]| {
            let mistakes = read(text).err().unwrap_or_default();
            assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
            for (mistake, expected) in mistakes.iter().zip(expected) {
                let (position, text) = expected.split_once(' ').unwrap();
                assert!(mistake.starts_with(position) && mistake.contains(text), "{mistake}");
            }
        };
        check("[[map]]\nattribute = 'Title'\n", &["my.toml:1: names no subject"]);
        check("[[map]]\nelement = 'a'\n", &["my.toml:1: does not say what"]);
        check("[[map]]\nelement = 'a'\nattribute = 'MD5'\n", &["my.toml:3: is reserved"]);
        check("[[map]]\nelement = 'a'\nattribute = 'a b'\n", &["my.toml:3: no name"]);
        check("[[map]]\nelement = 'a/b'\nattribute = 'A'\n", &["my.toml:2: nesting"]);
        check("[[map]]\nmeta = ['x', 'y*']\nattribute = 'A'\n", &["my.toml:2:14 many names"]);
        check(
            "[[map]]\nin = 'DocBok'\nelement = 'a'\nattribute = 'A'\n",
            &["my.toml:2: \"DocBook\""],
        );
        check(
            "[[map]]\nelement = 'a'\nattribut = 'A'\n",
            &["my.toml:1: does not", "my.toml:3: attribut"],
        );
        assert!(read("[[map\n").is_err_and(|it| it.iter().all(|it| it.starts_with("my.toml:1:"))));
        assert!(Tables::read(&[("a".into(), "[[vocabulary]]\n".into())]).is_err());
    }

    #[test]
    fn tables_go_to_workers_as_their_text() {
        let tables = read("[[map]]\nmeta = 'who'\nattribute = 'Author'\n").unwrap();
        let sent = serde_json::to_string(&tables).unwrap();
        let received: Tables = serde_json::from_str(&sent).unwrap();
        assert_eq!(received, tables);
        assert!(received.field("WHO").is_some());
        let default: Tables = serde_json::from_str("[]").unwrap();
        assert_eq!(default, Tables::default());
        assert!(default.field("who").is_none());
    }
}
