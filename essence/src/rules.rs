//! Post-summarizing rules: a site's changes to the records of its objects, under conditions on the
//! records.
//!
//! Source: the user's manual ("Post-summarizing: rule-based tuning of object summaries"). Rule
//! files of the original are read unchanged; docs/essence.md has their syntax. All rules are
//! applied in order, each to the result of the earlier ones.
//!
//! # Differences from the paper
//!
//! * Spaces and tabs indent; a quote or slash within quotes or slashes is written with a backslash.
//! * A rule file with a mistake is refused as a whole, with the lines of the mistakes.
//! * Commands run behind fences. If a command fails, the record stays as it was, with a problem.
//! * Identifying attributes (`MD5`, `Gatherer-Id` …) cannot be set.
//!
//! Sans-I/O.

mod condition;
mod parse;

use std::fmt;

use condition::Condition;
use settings::Mistake;
use soif::Record;
use soif::reader::parse as parse_records;
use soif::writer::write_record;

/// Maximum number of rules in a file.
pub const RULES_MAX: usize = 10_000;
/// Maximum length of a value that a rule may give an attribute other than the full text, in bytes.
pub const VALUE_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of the full text, in bytes.
const FULL_TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Attributes that identify the object and its gatherer: no rule changes them.
pub const IDENTITY: &[&str] =
    &["MD5", "File-Size", "Gatherer-Id", "Gatherer-Root", "Origin-Version", "Update-Time"];

/// The rules of a site, in order.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    text: String,
    rules: Vec<Rule>,
}

/// Two sets of rules are equal if they have the same text.
impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rules {}

/// A condition with the instructions for records that meet it.
#[derive(Clone, Debug)]
struct Rule {
    /// The condition's line in the file, from 1.
    line: usize,
    text: String,
    condition: Condition,
    actions: Vec<Action>,
}

/// Instruction for a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sets an attribute; an empty value removes it.
    Set {
        /// The attribute.
        attribute: String,
        /// Its new value.
        value: String,
    },
    /// Gives an attribute's value to a command, and sets the attribute to its output.
    Filter {
        /// The attribute.
        attribute: String,
        /// A command of the shell.
        command: String,
    },
    /// Gives attributes to a command as SOIF, and replaces them with the attributes in its output.
    Rewrite {
        /// The attributes.
        attributes: Vec<String>,
        /// A command of the shell.
        command: String,
    },
    /// Leaves the object out.
    Delete,
}

/// Decision of the rules on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The record is published.
    Kept,
    /// A rule left the object out.
    Deleted,
}

/// Rule that applied to a record, for an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedRule {
    /// The rule's line, from 1.
    pub line: usize,
    /// Text of its condition.
    pub condition: String,
    /// Its instructions with their outcomes.
    pub done: Vec<(Action, Result<(), String>)>,
}

impl AppliedRule {
    /// Returns a message for each instruction that failed.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.done.iter().filter_map(|(action, outcome)| {
            let why = outcome.as_ref().err()?;
            Some(format!("rule of line {}: `{action}`: {why}", self.line))
        })
    }
}

/// Runner of shell commands: takes a command and its input, and returns the output or the reason of
/// the failure.
pub type RunCommand<'a> = dyn FnMut(&str, &[u8]) -> Result<Vec<u8>, String> + 'a;

impl Rules {
    /// Reads a rule file.
    ///
    /// # Errors
    ///
    /// Returns the first mistakes in the file, at most 20, in the order of the lines.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        parse::parse(text).map(|rules| Self { text: text.to_owned(), rules })
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether any rule runs a command.
    pub fn run_commands(&self) -> bool {
        let is_run = |it: &Action| matches!(it, Action::Filter { .. } | Action::Rewrite { .. });
        self.rules.iter().any(|rule| rule.actions.iter().any(is_run))
    }

    /// Changes a record by every rule whose condition it meets. Returns the verdict and these
    /// rules, in order, up to the one that leaves the object out.
    pub fn apply(
        &self,
        record: &mut Record,
        run: &mut RunCommand<'_>,
    ) -> (Verdict, Vec<AppliedRule>) {
        let mut all = Vec::new();
        for rule in &self.rules {
            if !rule.condition.holds(record) {
                continue;
            }
            let (mut done, mut verdict) = (Vec::new(), Verdict::Kept);
            for action in &rule.actions {
                done.push((action.clone(), action.apply(record, run)));
                if *action == Action::Delete {
                    verdict = Verdict::Deleted;
                    break;
                }
            }
            all.push(AppliedRule { line: rule.line, condition: rule.text.clone(), done });
            if verdict == Verdict::Deleted {
                return (verdict, all);
            }
        }
        (Verdict::Kept, all)
    }
}

impl Action {
    fn apply(&self, record: &mut Record, run: &mut RunCommand<'_>) -> Result<(), String> {
        match self {
            Self::Set { attribute, value } => set(record, attribute, value.as_bytes()),
            Self::Filter { attribute, command } => {
                let Some(old) = record.get(attribute).map(<[u8]>::to_vec) else { return Ok(()) };
                let new = run(command, &old)?;
                // Most commands add a line feed at the end of their output.
                let new = new.strip_suffix(b"\n").filter(|_| !old.ends_with(b"\n")).unwrap_or(&new);
                set(record, attribute, new)
            }
            Self::Rewrite { attributes, command } => {
                let mut given = Record::new(record.template.as_str(), record.url.as_str());
                for name in attributes {
                    if let Some(value) = record.get(name) {
                        given.push(name.as_str(), value);
                    }
                }
                let mut text = Vec::new();
                write_record(&mut text, &given);
                let written = run(command, &text)?;
                let written = parse_records(&written)
                    .map_err(|error| format!("the output of `{command}` is not SOIF: {error}"))?;
                let written =
                    written.first().ok_or_else(|| format!("`{command}` writes nothing"))?;
                let mut new = record.clone();
                for name in attributes {
                    new.remove(name);
                }
                for it in written.attributes() {
                    set(&mut new, &it.name, &it.value)?;
                }
                *record = new;
                Ok(())
            }
            Self::Delete => Ok(()),
        }
    }
}

/// Returns whether the attribute is one of [`IDENTITY`], which rules and annotations may not
/// change.
pub fn is_identity(attribute: &str) -> bool {
    IDENTITY.iter().any(|it| it.eq_ignore_ascii_case(attribute))
}

/// Returns the maximum length of a value that a site's rule or program may give an attribute, in bytes.
pub(crate) fn value_bytes_max(attribute: &str) -> usize {
    let is_full = attribute.eq_ignore_ascii_case("Full-Text");
    if is_full { FULL_TEXT_BYTES_MAX } else { VALUE_BYTES_MAX }
}

/// Removes the places of a text that another value replaces.
pub(crate) fn drop_places(record: &mut Record, attribute: &str, value: &[u8]) {
    let is_text = ["Full-Text", "Partial-Text"].iter().any(|it| it.eq_ignore_ascii_case(attribute));
    if is_text && record.get(attribute) != Some(value) {
        record.remove("Text-Places");
    }
}

fn set(record: &mut Record, attribute: &str, value: &[u8]) -> Result<(), String> {
    if is_identity(attribute) {
        return Err(format!("{attribute} cannot be changed"));
    }
    let most = value_bytes_max(attribute);
    if most < value.len() {
        return Err(format!("{attribute} would be longer than {most} bytes"));
    }
    drop_places(record, attribute, value);
    if value.is_empty() {
        record.remove(attribute);
    } else {
        record.set(attribute, value);
    }
    Ok(())
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { attribute, value } => write!(f, "{attribute} = {value:?}"),
            Self::Filter { attribute, command } => write!(f, "{attribute} | {command}"),
            Self::Rewrite { attributes, command } => {
                write!(f, "{} ! {command}", attributes.join(","))
            }
            Self::Delete => f.write_str("delete()"),
        }
    }
}

#[cfg(test)]
mod tests;
