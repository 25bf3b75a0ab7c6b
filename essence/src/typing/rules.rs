//! The site's own rules of types, and the recognizer that applies them.
//!
//! Source: TR §4 and the user's manual (`byurl.cf`, `byname.cf`, `bycontent.cf`). docs/essence.md
//! has the format of rule files.
//!
//! All conditions of a rule must hold; a list holds if one of its expressions matches. The first
//! rule that matches decides, before the built-in rules.
//!
//! # Differences from the paper
//!
//! * Rules of all kinds are in one order, and may have several conditions; the original applied all
//!   URL rules first, then all name rules, then all content rules.
//! * `by_content` sees the bytes themselves (the first [`HEAD_BYTES`]), not the output of file(1).
//!
//! Sans-I/O.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use formats::{HEAD_BYTES, Type};
use regex::bytes::{RegexBuilder, RegexSet, RegexSetBuilder, SetMatches};
use serde::{Deserialize, Serialize};
use settings::{Document, Mistake, Table};

use super::{Reason, decide};
use crate::error::in_file;

/// Maximum number of rules in all files together.
const RULES_MAX: usize = 10_000;

/// Maximum length of a type's name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Keys of the conditions that a rule may have, and whether they match text. Content is matched as
/// bytes.
const CONDITIONS: [(&str, bool); 3] = [("by_url", true), ("by_name", true), ("by_content", false)];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rule {
    r#type: Type,
    /// The expressions of each of [`CONDITIONS`]; empty if the rule does not have the condition.
    conditions: [Vec<String>; 3],
    file: String,
    line: usize,
}

/// One of [`CONDITIONS`], with the expressions of all rules.
#[derive(Clone, Debug, Default)]
struct Condition {
    expressions: RegexSet,
    /// For each rule, the range of its expressions.
    ranges: Vec<Range<usize>>,
}

/// Recognizer of types, by the site's rules, then by the built-in ones.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(into = "RecognizerRules", try_from = "RecognizerRules")]
pub struct Recognizer {
    rules: Vec<Rule>,
    /// The names of the site's own types, by number.
    names: Vec<String>,
    urls: Condition,
    file_names: Condition,
    contents: Condition,
}

/// Recognizer in the form that is sent to a worker.
#[derive(Serialize, Deserialize)]
struct RecognizerRules {
    rules: Vec<Rule>,
    names: Vec<String>,
}

impl From<Recognizer> for RecognizerRules {
    fn from(it: Recognizer) -> Self {
        Self { rules: it.rules, names: it.names }
    }
}

impl TryFrom<RecognizerRules> for Recognizer {
    type Error = regex::Error;

    fn try_from(RecognizerRules { rules, names }: RecognizerRules) -> Result<Self, regex::Error> {
        let compiled = |which| Condition::of(&rules, which);
        let [urls, file_names, contents] = [compiled(0)?, compiled(1)?, compiled(2)?];
        Ok(Self { rules, names, urls, file_names, contents })
    }
}

/// Type of an object, and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// The type.
    pub r#type: Type,
    /// Its name, the value of the `Type` attribute.
    pub name: &'a str,
    /// What decided on the type.
    pub by: DecidedBy<'a>,
}

/// What decided on a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy<'a> {
    /// A rule of the site.
    Rule {
        /// Its file, by the name given to [`Recognizer::read`].
        file: &'a str,
        /// Its line, from 1.
        line: usize,
    },
    /// The built-in recognition.
    BuiltIn(Reason),
}

impl fmt::Display for DecidedBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { file, line } => write!(f, "{file}:{line}"),
            Self::BuiltIn(reason) => write!(f, "built in: {reason}"),
        }
    }
}

/// Two recognizers are equal if their rules are, including the rules' files and lines.
impl PartialEq for Recognizer {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules && self.names == other.names
    }
}

impl Eq for Recognizer {}

impl fmt::Debug for Recognizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recognizer").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Recognizer {
    /// Reads rule files, each with its name and its text, in order of precedence.
    ///
    /// # Errors
    ///
    /// Returns every mistake of every file, with the file's name.
    pub fn read(files: &[(PathBuf, String)]) -> Result<Self, Vec<Mistake>> {
        let (mut recognizer, mut mistakes) = (Self::default(), Vec::new());
        for (path, text) in files {
            if let Err(found) = recognizer.read_file(path, text) {
                mistakes.extend(in_file(found, path));
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let written = RecognizerRules { rules: recognizer.rules, names: recognizer.names };
        Self::try_from(written).map_err(|error| {
            let file = files.last().map(|(path, _)| path.clone());
            let message = format!("the rules together: {}", expression_mistake(&error));
            let expected = "fewer of them".to_owned();
            vec![Mistake { file, line: 1, column: 1, message, expected }]
        })
    }

    fn read_file(&mut self, path: &Path, text: &str) -> Result<(), Vec<Mistake>> {
        let document = Document::parse(text)?;
        let root = document.root();
        for table in root.tables("type") {
            let conditions = CONDITIONS.map(|it| expressions(&table, it));
            let keys = CONDITIONS.map(|(key, _)| key);
            if conditions.iter().all(Vec::is_empty) && !keys.iter().any(|key| table.has(key)) {
                table.mistake("", "the rule has no condition", keys.join(", "));
            }
            let name = table.required_string("name");
            if !name.is_empty() && !is_name(&name) {
                let message = format!("{name:?} is no name of a type");
                table.mistake("name", message, "letters, digits, \"-\", \"_\", \"+\" and \".\"");
            } else if RULES_MAX <= self.rules.len() {
                table.mistake("", format!("there are more than {RULES_MAX} rules"), "fewer");
                break;
            }
            let r#type = self.intern(&name);
            let file = path.display().to_string();
            self.rules.push(Rule { r#type, conditions, file, line: table.line() });
        }
        document.finish()
    }

    /// Returns the type called `name`; if the name is new, adds it as a type of the site's own.
    fn intern(&mut self, name: &str) -> Type {
        self.by_name(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            // There are at most as many names as rules, and at most 10,000 rules.
            Type::Site(u16::try_from(self.names.len() - 1).unwrap_or(u16::MAX))
        })
    }

    /// Returns the type called `name`, ignoring case: a built-in one, or one of the site's own;
    /// `None` if there is none.
    pub fn by_name(&self, name: &str) -> Option<Type> {
        let own = || self.names.iter().position(|it| it.eq_ignore_ascii_case(name));
        let site = || own().and_then(|at| u16::try_from(at).ok()).map(Type::Site);
        Type::by_name(name).or_else(site)
    }

    /// Returns the name of this type, the value of the `Type` attribute.
    pub fn name(&self, r#type: Type) -> &str {
        match r#type {
            Type::Site(number) => {
                self.names.get(usize::from(number)).map_or_else(|| r#type.name(), String::as_str)
            }
            built_in => built_in.name(),
        }
    }

    /// Returns the type of the object at `url`. `name` is its name without directories; `head` is
    /// the first [`formats::HEAD_BYTES`] of its content, or all of it.
    pub fn recognize(&self, url: &str, name: &str, head: &[u8]) -> Type {
        self.explain(url, name, head).r#type
    }

    /// Does the same as [`Recognizer::recognize`], and returns the rule or the built-in reason,
    /// too.
    pub fn explain(&self, url: &str, name: &str, head: &[u8]) -> Decision<'_> {
        let (r#type, by) = match self.first_match(url, name, head) {
            Some(rule) => (rule.r#type, DecidedBy::Rule { file: &rule.file, line: rule.line }),
            None => {
                let (r#type, reason) = decide(name, head);
                (r#type, DecidedBy::BuiltIn(reason))
            }
        };
        Decision { r#type, name: self.name(r#type), by }
    }

    /// Returns the rules without their files and lines, as text for the fingerprint of records.
    pub fn fingerprint_source(&self) -> String {
        let rule = |rule: &Rule| format!("{} {:?}\n", self.name(rule.r#type), rule.conditions);
        self.rules.iter().map(rule).collect()
    }

    fn first_match(&self, url: &str, name: &str, head: &[u8]) -> Option<&Rule> {
        if self.rules.is_empty() {
            return None;
        }
        let urls = self.urls.expressions.matches(url.as_bytes());
        let names = self.file_names.expressions.matches(name.as_bytes());
        let head = head.get(..head.len().min(HEAD_BYTES)).unwrap_or_default();
        // Matching the content takes longest: this is done only if a rule needs it.
        let mut contents = None;
        let mut holds = |number: &usize| {
            self.urls.holds(*number, &urls)
                && self.file_names.holds(*number, &names)
                && (self.contents.is_none(*number) || {
                    let matches = || self.contents.expressions.matches(head);
                    let found = contents.get_or_insert_with(matches);
                    self.contents.holds(*number, found)
                })
        };
        let first = (0..self.rules.len()).find(|number| holds(number))?;
        self.rules.get(first)
    }
}

impl Condition {
    /// Compiles the expressions of one of [`CONDITIONS`] together.
    fn of(rules: &[Rule], which: usize) -> Result<Self, regex::Error> {
        let (mut all, mut ranges) = (Vec::new(), Vec::new());
        for rule in rules {
            let own = rule.conditions.get(which).map(Vec::as_slice).unwrap_or_default();
            ranges.push(all.len()..all.len() + own.len());
            all.extend(own);
        }
        let is_text = CONDITIONS.get(which).is_some_and(|(_, is_text)| *is_text);
        let expressions = RegexSetBuilder::new(all).unicode(is_text).build()?;
        Ok(Self { expressions, ranges })
    }

    /// Returns whether the rule lacks this condition.
    fn is_none(&self, rule: usize) -> bool {
        self.ranges.get(rule).is_none_or(Range::is_empty)
    }

    fn holds(&self, rule: usize, matches: &SetMatches) -> bool {
        let range = self.ranges.get(rule).cloned().unwrap_or_default();
        range.is_empty() || range.into_iter().any(|it| matches.matched(it))
    }
}

/// Reads the expressions of one of [`CONDITIONS`]; invalid ones are mistakes.
fn expressions(table: &Table<'_>, (key, is_text): (&str, bool)) -> Vec<String> {
    let written = table.one_or_more(key);
    for (i, expression) in written.iter().enumerate() {
        if let Err(error) = RegexBuilder::new(expression).unicode(is_text).build() {
            let message = format!("{expression:?}: {}", expression_mistake(&error));
            table.mistake_in(key, i, message, "a regular expression");
        }
    }
    written
}

/// Returns the message of an expression's error, without the drawing of its position.
pub(crate) fn expression_mistake(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+.".contains(&byte);
    name.len() <= NAME_BYTES_MAX && name.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Recognizer {
        Recognizer::read(&[("t.toml".into(), text.to_owned())]).unwrap()
    }

    /// Checks that the decision is `expected`, rendered as `name by`.
    #[track_caller]
    fn check(rules: &str, url: &str, head: &[u8], expected: &str) {
        let recognizer = read(rules);
        let name = url.rsplit('/').next().unwrap();
        let decision = recognizer.explain(url, name, head);
        assert_eq!(format!("{} {}", decision.name, decision.by), expected);
        assert_eq!(recognizer.recognize(url, name, head), decision.r#type);
    }

    const RULES: &str = "[[type]]\nname = 'Recipe'\nby_name = ['\\.recipe$', '^RECIPES']\n\
                         [[type]]\nname = 'Minutes'\nby_url = '/minutes/\\d{4}/'\nby_content = '(?i)^minutes of'\n\
                         [[type]]\nname = 'html'\nby_content = '^\\xff\\xfe<'\n\
                         [[type]]\nname = 'recipe'\nby_url = 'cook'\n";

    #[test]
    fn the_first_rule_that_matches_decides() {
        check(RULES, "file:///a/cake.recipe", b"%PDF-1.4", "Recipe t.toml:1");
        check(RULES, "file:///a/RECIPES", b"", "Recipe t.toml:1");
        check(
            RULES,
            "file:///a/recipe",
            b"x",
            "Text built in: it is text, and nothing says what of",
        );
        check(RULES, "file:///minutes/2024/x", b"Minutes of the board", "Minutes t.toml:4");
        check(RULES, "file:///minutes/24/x.md", b"Minutes of the", "Markdown built in: its name");
        check(RULES, "file:///minutes/2024/x.md", b"About", "Markdown built in: its name");
        check(RULES, "file:///x", b"\xff\xfe<\0", "HTML t.toml:8");
        check(RULES, "file:///cook/x", b"\xff\xfe<\0", "HTML t.toml:8");
        check(RULES, "file:///cook/x", b"x", "Recipe t.toml:11");
        check("", "file:///x.md", b"x", "Markdown built in: its name");
    }

    #[test]
    fn only_the_head_is_looked_at() {
        let rules = "[[type]]\nname = 'Late'\nby_content = 'z'\n";
        let mut content = vec![b'x'; HEAD_BYTES];
        content.push(b'z');
        check(rules, "file:///x.md", &content, "Markdown built in: its name");
        check(rules, "file:///x.md", &content[1..], "Late t.toml:1");
    }

    #[test]
    fn types_of_the_site_have_names() {
        let recognizer = read(RULES);
        let recipe = recognizer.by_name("RECIPE").unwrap();
        assert_eq!(recipe, Type::Site(0));
        assert_eq!(recognizer.name(recipe), "Recipe");
        assert_eq!(recognizer.name(Type::Site(7)), "Site");
        assert_eq!(recognizer.by_name("pdf"), Some(Type::Pdf));
        assert_eq!(recognizer.by_name("none"), None);
    }

    #[test]
    fn a_fingerprint_depends_on_the_rules_and_not_on_their_lines() {
        let moved = format!("# a comment\n{RULES}");
        let source = |text: &str| read(text).fingerprint_source();
        assert_eq!(source(RULES), source(&moved));
        assert_ne!(read(RULES), read(&moved));
        assert_ne!(source(RULES), source(&RULES.replace("cook", "bake")));
        assert_ne!(source(RULES), source(&RULES.replace("Minutes", "Notes")));
        assert_eq!(source(""), Recognizer::default().fingerprint_source());
    }

    #[test]
    fn every_mistake_is_named_with_file_and_line() {
        let check = |text: &str, expected: &[&str]| {
            let files = [("a.toml".into(), "".to_owned()), ("b.toml".into(), text.to_owned())];
            let mistakes = Recognizer::read(&files).err().unwrap_or_default();
            let shown: Vec<String> =
                mistakes.iter().map(|it| it.with_file(Path::new("settings.toml"))).collect();
            assert_eq!(shown.len(), expected.len(), "{shown:#?}");
            for (shown, expected) in shown.iter().zip(expected) {
                let (position, part) = expected.split_once(' ').unwrap();
                assert!(shown.starts_with(position) && shown.contains(part), "{shown}");
            }
        };
        check("[[type]]\nname = 'A'\nby_name = 'x'\n", &[]);
        check("[[type]]\n", &["b.toml:1:1: no condition", "b.toml:1:1: \"name\" is missing"]);
        check("[[type]]\nname = 'a b'\nby_name = 'x'\n", &["b.toml:2:8: \"a b\""]);
        check(
            "[[type]]\nname = 'A'\nby_name = ['x', '(']\nby_nam = 'y'\nby_url = []\n",
            &[
                "b.toml:3:17: \"(\": unclosed group",
                "b.toml:4:1: \"by_name\"",
                "b.toml:5:10: empty",
            ],
        );
        check("[[typ]]\n", &["b.toml:1:3: \"type\""]);
        check("[[type]\n", &["b.toml:1: "]);
        check("[[type]]\nname = 'A'\nby_name = 7\n", &["b.toml:3:11: \"by_name\""]);
    }
}
