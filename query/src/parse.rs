//! The parser of the query language: recursive descent over the typed text.
//!
//! ```text
//! or      = and { "OR" and }
//! and     = run { "AND" run }
//! run     = signed { signed }                  side by side, or preference after `+`
//! signed  = [ "+" | "-" | "NOT" ] signed | operand
//! operand = "(" or ")" | [ name ":" ] ( "(" or ")" | '"' … '"' | "/" … "/" | range | word )
//! range   = ("[" | "{") bound "TO" bound ("]" | "}") | (">" | ">=" | "<" | "<=") bound | [ bound ] ".." [ bound ]
//! word    = characters up to a space, a quotation mark or a parenthesis [ "*" | "~" [ "1" | "2" ] ]
//! ```
//!
//! Two exceptions, since people paste code: `()` right after a character of a word belongs to it
//! (`print()`), and so do two hyphens right before its first letter or digit (`--no-ff`).
//!
//! Sans-I/O.

use super::word::{self, TypedWord};
use super::{
    Bound, DEPTH_MAX, Kind, LEAVES_MAX, Leaf, Node, PATTERNS_MAX, QUERY_BYTES_MAX, Query,
    QueryError, REGEX_COST, Value, check, kind, words,
};

/// Reads a query; an empty one is [`Node::All`].
///
/// # Errors
///
/// The query has a mistake; show it with [`QueryError::caret`].
pub fn parse(text: &str) -> Result<Query, QueryError> {
    if QUERY_BYTES_MAX < text.len() {
        let message = format!("the query is longer than {QUERY_BYTES_MAX} bytes");
        return Err(QueryError {
            offset: QUERY_BYTES_MAX,
            len: text.len() - QUERY_BYTES_MAX,
            message,
        });
    }
    let mut parser = Parser { text, at: 0, leaves: 0, patterns: 0 };
    parser.skip_spaces();
    if parser.rest().is_empty() {
        return Ok(Query::all());
    }
    let root = parser.or(0, None)?;
    if parser.rest().starts_with(')') {
        return Err(parser.error(parser.at, 1, "this parenthesis closes nothing"));
    }
    Ok(Query { root })
}

/// A sign before an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plain,
    Required,
    Excluded,
}

struct Parser<'a> {
    text: &'a str,
    /// How much of `text` has been read, in bytes.
    at: usize,
    leaves: usize,
    /// Sum of the [cost] of all leaves.
    patterns: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, offset: usize, len: usize, message: impl Into<String>) -> QueryError {
        let len = len.min(self.text.len().saturating_sub(offset));
        QueryError { offset, len, message: message.into() }
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Returns whether the operator `word` comes next, as a word of its own.
    fn sees(&self, word: &str) -> bool {
        self.rest().strip_prefix(word).is_some_and(|after| {
            after.chars().next().is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ')' | '"'))
        })
    }

    /// Returns whether the side of an operator ends here.
    fn at_end_of_run(&self) -> bool {
        self.rest().is_empty()
            || self.rest().starts_with(')')
            || self.sees("AND")
            || self.sees("OR")
    }

    fn or(&mut self, depth: usize, field: Option<&str>) -> Result<Node, QueryError> {
        let mut nodes = vec![self.and(depth, field)?];
        while self.sees("OR") {
            self.at += 2;
            nodes.push(self.and(depth, field)?);
        }
        Ok(Node::or(nodes))
    }

    fn and(&mut self, depth: usize, field: Option<&str>) -> Result<Node, QueryError> {
        let mut nodes = vec![self.run(depth, field)?];
        while self.sees("AND") {
            self.at += 3;
            nodes.push(self.run(depth, field)?);
        }
        Ok(Node::and(nodes))
    }

    fn run(&mut self, depth: usize, field: Option<&str>) -> Result<Node, QueryError> {
        let (mut required, mut plain, mut all) = (Vec::new(), Vec::new(), Vec::new());
        let mut plus = false;
        loop {
            self.skip_spaces();
            if self.at_end_of_run() {
                break;
            }
            let (sign, node) = self.signed(depth, field)?;
            plus |= sign == Sign::Required;
            all.push(node.clone());
            if sign == Sign::Plain { plain.push(node) } else { required.push(node) }
        }
        if all.is_empty() {
            return Err(self.missing_operand());
        }
        Ok(if plus { Node::prefer(required, plain) } else { Node::beside(all) })
    }

    /// Returns the error for an operator or a parenthesis without an operand.
    fn missing_operand(&self) -> QueryError {
        let before = self.text.get(..self.at).unwrap_or_default().trim_end();
        let word = before.rsplit([' ', '\t', '(']).next().unwrap_or_default();
        if self.sees("AND") || self.sees("OR") {
            let len = if self.sees("OR") { 2 } else { 3 };
            let message =
                "expected a word before this operator; write it in small letters to look for it";
            return self.error(self.at, len, message);
        }
        if before.ends_with('(') {
            return self.error(
                before.len() - 1,
                self.at + 2 - before.len(),
                "nothing between the parentheses",
            );
        }
        let message =
            format!("expected a word after {word}; write it in small letters to look for it");
        self.error(before.len() - word.len(), word.len(), message)
    }

    fn signed(&mut self, depth: usize, field: Option<&str>) -> Result<(Sign, Node), QueryError> {
        if DEPTH_MAX <= depth {
            let message = format!("the query is nested deeper than {DEPTH_MAX} levels");
            return Err(self.error(self.at, 1, message));
        }
        let start = self.at;
        if self.sees("NOT") {
            self.at += 3;
            self.skip_spaces();
            if self.at_end_of_run() {
                let message = "expected a word after NOT; write it in small letters to look for it";
                return Err(self.error(start, 3, message));
            }
            let (_, node) = self.signed(depth + 1, field)?;
            return Ok((Sign::Excluded, Node::negate(node)));
        }
        let mut chars = self.rest().chars();
        let (sign, next) = (chars.next(), chars.next());
        let bound = next.is_some_and(|c| !c.is_whitespace() && c != ')');
        let bound = bound && !word::is_option(self.rest());
        let (Some(sign @ ('+' | '-')), true) = (sign, bound) else {
            return Ok((Sign::Plain, self.operand(depth, field)?));
        };
        self.at += 1;
        let (_, node) = self.signed(depth + 1, field)?;
        Ok(match sign {
            '+' => (Sign::Required, node),
            _ => (Sign::Excluded, Node::negate(node)),
        })
    }

    fn operand(&mut self, depth: usize, field: Option<&str>) -> Result<Node, QueryError> {
        let start = self.at;
        if self.rest().starts_with('(') {
            return self.group(depth, field);
        }
        let name = word::field_name(self.rest());
        if let Some(name) = name {
            self.at += name.len() + 1;
            match self.rest().chars().next() {
                None | Some(')') => {
                    let message = format!("expected a word right after {name}:");
                    return Err(self.error(start, name.len() + 1, message));
                }
                Some(c) if c.is_whitespace() => {
                    let message = format!(
                        "expected a word right after {name}: without a space; write {name}\\: to look for the colon's word itself"
                    );
                    return Err(self.error(start, name.len() + 1, message));
                }
                Some('(') => return self.group(depth, Some(name)),
                Some(_) => {}
            }
        }
        let field = name.or(field);
        let value_at = self.at;
        let value = self.value(field)?;
        self.leaves += 1;
        if LEAVES_MAX < self.leaves {
            let message = format!("the query has more than {LEAVES_MAX} words");
            return Err(self.error(start, self.at - start, message));
        }
        let Some(value) = value else { return Ok(Node::All) };
        self.patterns += cost(&value);
        if PATTERNS_MAX < self.patterns {
            let message = format!(
                "the query has more than {PATTERNS_MAX} patterns: * is one, ~ one for each part of its word, /…/ {REGEX_COST}"
            );
            return Err(self.error(start, self.at - start, message));
        }
        if let Some(field) = field {
            check::value(field, &value)
                .map_err(|message| self.error(value_at, self.at - value_at, message))?;
        }
        Ok(Node::Leaf(Leaf { field: field.map(str::to_owned), value }))
    }

    /// Reads `( … )`; the opening parenthesis comes next.
    fn group(&mut self, depth: usize, field: Option<&str>) -> Result<Node, QueryError> {
        let start = self.at;
        self.at += 1;
        if DEPTH_MAX <= depth {
            let message = format!("the query is nested deeper than {DEPTH_MAX} levels");
            return Err(self.error(start, 1, message));
        }
        let node = self.or(depth + 1, field)?;
        if !self.rest().starts_with(')') {
            return Err(self.error(start, 1, "this parenthesis is never closed"));
        }
        self.at += 1;
        Ok(node)
    }

    /// Reads the next value; `None` is the `*` that stands for everything.
    fn value(&mut self, field: Option<&str>) -> Result<Option<Value>, QueryError> {
        match (self.rest().chars().next(), field) {
            (Some('"'), _) => self.phrase().map(Some),
            (Some('[' | '{'), Some(_)) => self.brackets().map(Some),
            (Some('>' | '<'), Some(_)) => self.comparison().map(Some),
            (Some('/'), _) => match self.regex()? {
                Some(value) => Ok(Some(value)),
                None => self.word(field),
            },
            _ => self.word(field),
        }
    }

    fn phrase(&mut self) -> Result<Value, QueryError> {
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    if text.is_empty() {
                        return Err(self.error(start, 2, "nothing between the quotation marks"));
                    }
                    if self.rest().starts_with(['~', '*']) {
                        let message =
                            "a phrase is looked for as written: expected a space after it";
                        return Err(self.error(self.at, 1, message));
                    }
                    return Ok(Value::Phrase(text));
                }
                '\\' => match chars.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                    Some((_, next)) => text.push(next),
                    None => text.push('\\'),
                },
                other => text.push(other),
            }
        }
        Err(self.error(start, 1, "this quotation mark is never closed"))
    }

    /// Reads `[a TO b]` and its variants; the opening bracket comes next.
    fn brackets(&mut self) -> Result<Value, QueryError> {
        let start = self.at;
        let inside = self.rest().get(1..).unwrap_or_default();
        let Some(end) = inside.find([']', '}']) else {
            return Err(self.error(start, 1, "this range is never closed; expected [FROM TO TO]"));
        };
        let mut words = inside.get(..end).unwrap_or_default().split_whitespace();
        let (Some(low), Some("TO"), Some(high), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            let message = "expected a range [FROM TO UNTIL], with * for an open end";
            return Err(self.error(start, end + 2, message));
        };
        let bound = |text: &str, exclusive: bool| match text {
            "*" => Bound::Open,
            _ if exclusive => Bound::Exclusive(text.to_owned()),
            _ => Bound::Inclusive(text.to_owned()),
        };
        let low = bound(low, self.rest().starts_with('{'));
        let high = bound(high, inside.get(end..).is_some_and(|rest| rest.starts_with('}')));
        self.at += end + 2;
        Ok(Value::Range(low, high))
    }

    /// Reads `>a`, `>=a`, `<a`, `<=a`; the sign comes next.
    fn comparison(&mut self) -> Result<Value, QueryError> {
        let start = self.at;
        let greater = self.rest().starts_with('>');
        self.at += 1;
        let inclusive = self.rest().starts_with('=');
        self.at += usize::from(inclusive);
        let typed = TypedWord::read(self.rest());
        let text = typed.text();
        if text.is_empty() {
            return Err(self.error(
                start,
                self.at - start,
                "expected a number or a date after this",
            ));
        }
        self.at += typed.len;
        let bound = if inclusive { Bound::Inclusive(text) } else { Bound::Exclusive(text) };
        Ok(if greater {
            Value::Range(bound, Bound::Open)
        } else {
            Value::Range(Bound::Open, bound)
        })
    }

    /// Reads `/pattern/`; the slash comes next. `None` if it starts a path.
    fn regex(&mut self) -> Result<Option<Value>, QueryError> {
        let start = self.at;
        match word::regex(self.rest()) {
            word::SlashToken::Path => Ok(None),
            word::SlashToken::Open(len) => {
                let message = "this regular expression is never closed; expected a / at its end, before a space";
                Err(self.error(start, len, message))
            }
            word::SlashToken::Regex { pattern, len } => {
                self.at += len;
                check::regex(&pattern).map_err(|message| self.error(start, len, message))?;
                Ok(Some(Value::Regex(pattern)))
            }
        }
    }

    fn word(&mut self, field: Option<&str>) -> Result<Option<Value>, QueryError> {
        let start = self.at;
        let typed = TypedWord::read(self.rest());
        self.at += typed.len;
        if typed.is_star() {
            return Ok(field.map(|_| Value::Present));
        }
        if let Some(field) = field
            && kind(field) != Some(Kind::Text)
            && let Some(range) = typed.dots(kind(field).is_some())
        {
            return Ok(Some(range));
        }
        match typed.value() {
            Ok(value) => Ok(Some(value)),
            Err((at, len, message)) => Err(self.error(start + at, len, message)),
        }
    }
}

/// Returns the cost of a value among the patterns.
fn cost(value: &Value) -> usize {
    match value {
        Value::Prefix(_) => 1,
        Value::Fuzzy(text, _) => words::split(text).len().max(1),
        Value::Regex(_) => REGEX_COST,
        Value::Word(_) | Value::Phrase(_) | Value::Range(..) | Value::Present => 0,
    }
}
