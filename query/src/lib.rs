//! The query language, version 1: it parses text to a tree and matches records.
//!
//! Source: TR §5 and the user's manual, "Doing queries": words, phrases, `Attribute : value`, and
//! Boolean combinations of them. [`parse()`] reads a typed query; [`Query`]'s `Display` writes it
//! in a canonical form that parses to the same tree. [`Matcher`] decides whether one record
//! matches, where there is no index: views, filtered feeds, a registry's routing. An index must
//! agree with the rest: which text of a record is searched ([`record`]), under which names
//! ([`field`]), and how text becomes words ([`words`]).
//!
//! | written | finds |
//! |---|---|
//! | `gather stream` | both words, in any form (`gathering`, `streams`), anywhere |
//! | `the gathering of streams` | the same; stop words (`the`, `of`) count if all words are such |
//! | `"change log"` | these words as written, side by side |
//! | `title:harvest`, `author:"Peter Danzig"`, `title:(a OR b)` | in that attribute, whatever its case |
//! | `a AND b`, `a OR b`, `NOT a`, `(a OR b) c` | NOT binds tightest, then AND, then OR |
//! | `+a b` | `a`; records that have `b` too come first |
//! | `-a` | not `a` |
//! | `harv*`, `harvst~1`, `havrst~2`, `/har.est/` | words by beginning, by edits, by regular expression |
//! | `size:>10k`, `size:[1 TO 9]`, `modified:2024-01..2024-06`, `year:2024`, `modified:..2020` | ranges |
//! | `keywords:*`, `*` | records with that attribute; all records |
//! | `\` | makes the next character an ordinary one |
//!
//! Words side by side mean AND: each further word narrows the answer, as on every search page. But
//! they are less strict than with the operator: stop words among them do not count
//! ([`Node::without_stop_words`]), and if too few records have all the words, those with some of
//! them may follow ([`Query::loosened`]). `+` therefore has a meaning of its own: it marks the
//! required words, and the unmarked words beside it only affect the ranking. AND, OR, NOT and TO are
//! operators in capitals only. `print()` and `--no-ff` are words, and `C++` and `.NET` are not `C` and `net`
//! ([`words`]).
//!
//! # Differences from the original
//!
//! * AND binds tighter than OR. The original nested to the right without precedence, a trap.
//! * A colon with a space after it is an error: `Attribute : value` of the original must be written
//!   without spaces, since a pasted title (`Re: harvest`) is no attribute.
//! * An address (`http://…`), a path (`/usr/share`), `std::io` and `12:30` are words, not fields.
//!
//! Sans-I/O.

mod broken;
mod check;
pub mod distance;
pub mod field;
pub mod folding;
pub mod forms;
pub mod language;
mod looser;
mod matcher;
mod names;
mod parse;
mod particles;
pub mod percolator;
pub mod phrase;
pub mod record;
mod scripts;
pub mod stem;
mod stop_words;
mod value;
mod word;
pub mod words;

use std::fmt;

use soif::Record;

use field::TextField;
pub use field::{Kind, kind};
pub use looser::plain;
pub use matcher::{Matched, Matcher};
pub use parse::parse;
pub use value::span;
use value::{number, period};
use words::split;

/// Longest query, in bytes.
pub const QUERY_BYTES_MAX: usize = 4096;
/// Deepest nesting of parentheses and signs.
pub const DEPTH_MAX: usize = 32;
/// Maximum number of words, phrases and other conditions in one query.
pub const LEAVES_MAX: usize = 128;

/// Maximum total cost of the patterns in one query: prefixes, fuzzy words and regular expressions,
/// each of which needs an automaton that walks through the words of the index. A prefix costs 1, a
/// fuzzy word 1 for each part (`foo-bar~1` costs 2), a regular expression [`REGEX_COST`].
pub const PATTERNS_MAX: usize = 16;
/// Cost of a regular expression among the patterns: its automaton is by far the largest.
pub const REGEX_COST: usize = 4;

/// A parsed query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The top of the tree.
    pub root: Node,
}

/// A condition on an object.
///
/// [`parse()`] returns canonical trees: no AND directly in an AND, no OR directly in an OR, no
/// operands side by side directly in such, none of them with fewer than two members, no double
/// negation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// Everything.
    All,
    /// One word, phrase, range … in one attribute or in the default ones.
    Leaf(Leaf),
    /// All of these, written with AND.
    And(Vec<Self>),
    /// All of these, written side by side: those of [`Node::without_stop_words`].
    Beside(Vec<Self>),
    /// At least one of these.
    Or(Vec<Self>),
    /// All but this.
    Not(Box<Self>),
    /// All required conditions; a match ranks higher if optional conditions hold too.
    Prefer {
        /// Conditions that must hold.
        required: Vec<Self>,
        /// Conditions that only raise the rank.
        optional: Vec<Self>,
    },
}

/// The smallest condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The attribute's name as typed; `None` for the default ones together.
    pub field: Option<String>,
    /// The condition on its value.
    pub value: Value,
}

/// A condition on the value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Holds this word in any form. A word of several parts (`foo-bar`) is a phrase of its parts.
    Word(String),
    /// Holds these words as written, side by side.
    Phrase(String),
    /// Holds a word with this beginning.
    Prefix(String),
    /// Holds a word at most this number of edits away; see [`distance::edits`].
    Fuzzy(String, u8),
    /// Holds a word that matches this regular expression from beginning to end.
    Regex(String),
    /// Lies between two bounds.
    Range(Bound, Bound),
    /// Exists.
    Present,
}

impl Value {
    /// Returns the fields that are searched for it when a query names no attribute.
    pub fn usual_fields(&self) -> [TextField; 6] {
        match self {
            Self::Word(text) | Self::Phrase(text) | Self::Prefix(text) if 1 < split(text).len() => {
                TextField::OF_A_PHRASE
            }
            _ => TextField::OF_A_WORD,
        }
    }
}

/// One end of a range, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// No bound.
    Open,
    /// This value and beyond it.
    Inclusive(String),
    /// Beyond this value.
    Exclusive(String),
}

/// A mistake in a query, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}, at byte {offset} of the query")]
pub struct QueryError {
    /// Start of the mistake, in bytes from the start of the query.
    pub offset: usize,
    /// Length of the mistake, in bytes; 0 at the query's end.
    pub len: usize,
    /// Description of the mistake and of the expected text; lower-case, no full stop.
    pub message: String,
}

impl QueryError {
    /// Renders two lines: the query, and carets under the mistake.
    ///
    /// Control characters of the query are shown as spaces. Columns are characters.
    pub fn caret(&self, query: &str) -> String {
        let shown: String = query.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let count = |range: std::ops::Range<usize>| {
            query.char_indices().filter(|(at, _)| range.contains(at)).count()
        };
        let before = count(0..self.offset);
        let under = count(self.offset..self.offset.saturating_add(self.len)).max(1);
        format!("{shown}\n{}{}", " ".repeat(before), "^".repeat(under))
    }
}

impl Query {
    /// Returns the query that every record matches.
    pub const fn all() -> Self {
        Self { root: Node::All }
    }

    /// Returns the query for one word in the default attributes.
    pub fn word(word: &str) -> Self {
        Self { root: Node::Leaf(Leaf { field: None, value: Value::Word(word.to_owned()) }) }
    }

    /// Returns the query that records match which match all of `queries`.
    pub fn joined(queries: impl IntoIterator<Item = Self>) -> Self {
        let nodes = queries.into_iter().map(|it| it.root);
        Self { root: Node::and(nodes.filter(|it| *it != Node::All).collect()) }
    }

    /// Returns the attributes of `record` that match; `None` if the record does not match. For many
    /// records, make a [`Matcher`] once.
    pub fn matches(&self, record: &Record) -> Option<Matched> {
        Matcher::new(self).matches(record)
    }

    /// Checks that the query can stand: one record is enough to say whether it matches, and its answer is the same
    /// at any time.
    ///
    /// # Errors
    ///
    /// A description of the part that cannot: write it otherwise.
    pub fn check_standing(&self) -> Result<(), String> {
        fn ranking(node: &Node) -> Option<&Node> {
            match node {
                Node::All | Node::Leaf(_) => None,
                Node::Not(inner) => ranking(inner),
                Node::And(nodes) | Node::Or(nodes) | Node::Beside(nodes) => {
                    nodes.iter().find_map(ranking)
                }
                Node::Prefer { optional, .. } => optional.first(),
            }
        }
        if let Some(node) = ranking(&self.root) {
            return Err(format!(
                "{node} only ranks, and nothing is ranked here: join it by AND or OR"
            ));
        }
        let mut fuzzy = None;
        self.for_each_leaf(&mut |leaf| {
            if matches!(leaf.value, Value::Fuzzy(..)) {
                fuzzy.get_or_insert_with(|| leaf.to_string());
            }
        });
        let advice = "finds other words as they come: name the words, or their beginning (`appl*`)";
        fuzzy.map_or(Ok(()), |it| Err(format!("{it} {advice}")))
    }

    /// Calls `visit` with every leaf.
    pub fn for_each_leaf<'a>(&'a self, visit: &mut dyn FnMut(&'a Leaf)) {
        fn walk<'a>(node: &'a Node, visit: &mut dyn FnMut(&'a Leaf)) {
            match node {
                Node::All => {}
                Node::Leaf(leaf) => visit(leaf),
                Node::Not(inner) => walk(inner, visit),
                Node::And(nodes) | Node::Or(nodes) | Node::Beside(nodes) => {
                    nodes.iter().for_each(|node| walk(node, visit));
                }
                Node::Prefer { required, optional } => {
                    required.iter().chain(optional).for_each(|node| walk(node, visit));
                }
            }
        }
        walk(&self.root, visit);
    }

    /// Calls `visit` with every leaf that is required or raises the rank: all but those under a NOT
    /// and stop words that do not count.
    pub fn for_each_wanted<'a>(&'a self, visit: &mut dyn FnMut(&'a Leaf)) {
        fn walk<'a>(node: &'a Node, visit: &mut dyn FnMut(&'a Leaf)) {
            match node {
                Node::All | Node::Not(_) => {}
                Node::Leaf(leaf) => visit(leaf),
                Node::And(nodes) | Node::Or(nodes) => {
                    nodes.iter().for_each(|node| walk(node, visit));
                }
                Node::Beside(nodes) => {
                    Node::without_stop_words(nodes).into_iter().for_each(|node| walk(node, visit));
                }
                Node::Prefer { required, optional } => {
                    required.iter().chain(optional).for_each(|node| walk(node, visit));
                }
            }
        }
        walk(&self.root, visit);
    }
}

impl Node {
    /// Returns the AND of `nodes`, in canonical form; [`Node::All`] if `nodes` is empty.
    pub fn and(nodes: Vec<Self>) -> Self {
        let parts = |node| if let Self::And(inner) = node { inner } else { vec![node] };
        joined(nodes.into_iter().flat_map(parts).collect(), Self::And)
    }

    /// Returns `nodes` side by side, in canonical form; [`Node::All`] if `nodes` is empty.
    pub fn beside(nodes: Vec<Self>) -> Self {
        let parts = |node| if let Self::Beside(inner) = node { inner } else { vec![node] };
        joined(nodes.into_iter().flat_map(parts).collect(), Self::Beside)
    }

    /// Returns the OR of `nodes`, in canonical form; `nodes` is not empty.
    pub fn or(nodes: Vec<Self>) -> Self {
        debug_assert!(!nodes.is_empty());
        let parts = |node| if let Self::Or(inner) = node { inner } else { vec![node] };
        joined(nodes.into_iter().flat_map(parts).collect(), Self::Or)
    }

    /// Returns the NOT of `node`, in canonical form.
    pub fn negate(node: Self) -> Self {
        match node {
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// Returns `required`, ranked by `optional` too, in canonical form; `required` is not empty.
    pub fn prefer(required: Vec<Self>, optional: Vec<Self>) -> Self {
        if optional.is_empty() { Self::and(required) } else { Self::Prefer { required, optional } }
    }
}

/// Returns the only node of a list, or the list as one node; [`Node::All`] for an empty one.
fn joined(mut nodes: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match nodes.len() {
        0 => Node::All,
        1 => nodes.remove(0),
        _ => join(nodes),
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Leaf(leaf) => write!(f, "{leaf}"),
            Self::Beside(nodes) => join(f, nodes, " ", |node| matches!(node, Self::Not(_))),
            Self::And(nodes) => {
                join(f, nodes, " AND ", |node| matches!(node, Self::Not(_) | Self::Beside(_)))
            }
            Self::Or(nodes) => join(f, nodes, " OR ", |node| {
                matches!(node, Self::Not(_) | Self::Beside(_) | Self::And(_))
            }),
            Self::Not(node) => write!(f, "-{}", Operand(node)),
            Self::Prefer { required, optional } => {
                for node in required {
                    write!(f, "+{} ", Operand(node))?;
                }
                // A bare NOT beside a `+` would be required, so it gets parentheses too.
                join(f, optional, " ", |_| false)
            }
        }
    }
}

/// A node as an operand: in parentheses unless it is a single leaf.
struct Operand<'a>(&'a Node);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Node::All | Node::Leaf(_) => write!(f, "{}", self.0),
            other => write!(f, "({other})"),
        }
    }
}

/// Writes `nodes`, in parentheses unless they are single leaves or `plain`.
fn join(
    f: &mut fmt::Formatter<'_>,
    nodes: &[Node],
    between: &str,
    plain: impl Fn(&Node) -> bool,
) -> fmt::Result {
    for (at, node) in nodes.iter().enumerate() {
        if at != 0 {
            f.write_str(between)?;
        }
        if plain(node) { write!(f, "{node}")? } else { write!(f, "{}", Operand(node))? }
    }
    Ok(())
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}:")?;
        }
        match &self.value {
            Value::Word(text) => f.write_str(&escape(text)),
            Value::Phrase(text) => {
                write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
            Value::Prefix(text) => write!(f, "{}*", escape(text)),
            Value::Fuzzy(text, edits) => write!(f, "{}~{edits}", escape(text)),
            Value::Regex(pattern) => write!(f, "/{}/", pattern.replace('/', "\\/")),
            Value::Range(low, high) => {
                let open = if matches!(low, Bound::Exclusive(_)) { '{' } else { '[' };
                let close = if matches!(high, Bound::Exclusive(_)) { '}' } else { ']' };
                write!(f, "{open}{low} TO {high}{close}")
            }
            Value::Present => f.write_str("*"),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("*"),
            Self::Inclusive(text) | Self::Exclusive(text) => f.write_str(text),
        }
    }
}

/// Writes a word so that it parses as that word: a possible operator gets a backslash.
fn escape(word: &str) -> String {
    let mut out = String::with_capacity(word.len() + 4);
    let is_operator = |it: &&str| {
        word.strip_prefix(*it).is_some_and(|after| after.is_empty() || after.starts_with('('))
    };
    if ["AND", "OR", "NOT"].iter().any(is_operator) {
        out.push('\\');
    }
    let mut before = ' ';
    for (at, c) in word.char_indices() {
        let leading = at == 0
            && matches!(c, '+' | '-' | '/' | '<' | '>' | '[' | '{')
            && !word::is_option(word);
        let dots = c == '.' && before == '.';
        // A pair within a word belongs to it.
        let opens = c == '(' && (at == 0 || !word.get(at..).is_some_and(|it| it.starts_with("()")));
        let closes = c == ')' && (before != '(' || at == 1);
        if leading
            || dots
            || opens
            || closes
            || c.is_whitespace()
            || matches!(c, '\\' | '"' | ':' | '*' | '~')
        {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
    out
}

#[cfg(test)]
mod tests;
