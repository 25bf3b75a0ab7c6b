//! The parser of rule files.

use regex::bytes::RegexBuilder;
use settings::Mistake;

use super::condition::Condition;
use super::{Action, RULES_MAX, Rule, is_identity};

/// Maximum depth of nested parentheses.
const DEPTH_MAX: usize = 50;
/// Maximum size of a compiled expression, in bytes.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of mistakes that are reported.
const MISTAKES_MAX: usize = 20;

/// The form of conditions, for mistakes.
const CONDITIONS: &str = "comparisons such as Type == 'HTML', City != 'Rome', URL ~ /users/ or \
                          Title !~ /draft/i, joined by && or ||";
/// The forms of instructions, for mistakes.
const INSTRUCTIONS: &str = "Attribute = \"value\", Attribute | command, \
                            Attribute,Attribute ! command or delete()";
/// Signs of conditions that a line of instructions must not have behind an attribute.
/// `!~/bin/x` is a command.
const COMPARISONS: [&str; 4] = ["==", "!=", "~", "!~ "];

pub(super) fn parse(text: &str) -> Result<Vec<Rule>, Vec<Mistake>> {
    let (mut rules, mut mistakes): (Vec<Rule>, Vec<Mistake>) = (Vec::new(), Vec::new());
    // Whether the last condition has a mistake; if so, the instructions below it are only checked.
    let mut is_broken = false;
    // Line of the last condition if it has no instructions yet.
    let mut bare = None;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let is_indented = line.starts_with([' ', '\t']);
        let (text, allowed) = (line.trim(), if is_indented { INSTRUCTIONS } else { CONDITIONS });
        if !is_indented {
            mistakes.extend(bare.replace(number).filter(|_| !is_broken).map(no_instructions));
        } else {
            bare = None;
        }
        let outcome = if is_indented {
            match rules.last_mut() {
                _ if is_broken => action(text).map(|_ignored| ()),
                Some(rule) => action(text).map(|it| rule.actions.push(it)),
                None => {
                    let message = "an instruction comes below a condition, which begins in the \
                                   first column";
                    Err(Fault::at(text, message))
                }
            }
        } else if rules.len() == RULES_MAX {
            Err(Fault::at(text, format!("there are more than {RULES_MAX} rules")))
        } else {
            let read = condition(text);
            is_broken = read.is_err();
            let text = text.to_owned();
            read.map(|condition| {
                rules.push(Rule { line: number, text, condition, actions: Vec::new() });
            })
        };
        mistakes.extend(outcome.err().map(|fault| fault.in_line(number, line, allowed)));
    }
    mistakes.extend(bare.filter(|_| !is_broken).map(no_instructions));
    mistakes.sort_by_key(|it| it.line);
    mistakes.truncate(MISTAKES_MAX);
    if mistakes.is_empty() { Ok(rules) } else { Err(mistakes) }
}

fn no_instructions(line: usize) -> Mistake {
    let message = "the condition has no instructions: indent them below it".to_owned();
    Mistake { file: None, line, column: 1, message, expected: INSTRUCTIONS.to_owned() }
}

/// A mistake in a line.
struct Fault {
    /// Length of the line from the mistake to its end, in bytes, without spaces at its end.
    rest_bytes: usize,
    message: String,
}

impl Fault {
    /// Returns a mistake where `rest` begins, which is the rest of its line.
    fn at(rest: &str, message: impl Into<String>) -> Self {
        Self { rest_bytes: rest.len(), message: message.into() }
    }

    fn in_line(self, number: usize, line: &str, allowed: &str) -> Mistake {
        let before = line.trim_end().len().saturating_sub(self.rest_bytes);
        let column = line.get(..before).unwrap_or(line).chars().count() + 1;
        let expected = allowed.to_owned();
        Mistake { file: None, line: number, column, message: self.message, expected }
    }
}

fn condition(text: &str) -> Result<Condition, Fault> {
    let mut cursor = Cursor { text, depth: 0 };
    let condition = cursor.any()?;
    match cursor.rest() {
        "" => Ok(condition),
        rest => Err(Fault::at(rest, format!("`{}` is not expected here", front(rest)))),
    }
}

fn action(text: &str) -> Result<Action, Fault> {
    if text.strip_prefix("delete").map(str::trim_start).is_some_and(|it| it.trim() == "()") {
        return Ok(Action::Delete);
    }
    let end = text.find(|it: char| !is_name(it) && it != ',' && it != ' ').unwrap_or(text.len());
    let (names, rest) = text.split_at(end);
    let names: Vec<String> = names.split(',').map(|it| it.trim().to_owned()).collect();
    let sign = COMPARISONS.iter().find(|it| rest.starts_with(**it));
    if let Some(sign) = sign.filter(|_| names.len() == 1) {
        let message = format!(
            "`{}` compares: conditions begin in the first column, and an instruction sets its \
             attribute with one `=`",
            sign.trim_end()
        );
        return Err(Fault::at(rest, message));
    }
    if names.iter().any(|it| it.is_empty() || it.contains(' ')) {
        return Err(Fault::at(text, format!("`{}` is no instruction", front(text))));
    }
    if let Some(name) = names.iter().find(|it| is_identity(it)) {
        let message = format!("{name} cannot be changed: it says which object this is");
        return Err(Fault::at(text, message));
    }
    let one = |names: Vec<String>| match <[String; 1]>::try_from(names) {
        Ok([attribute]) => Ok(attribute),
        Err(names) => {
            let message = format!("one attribute, not {}, comes before this", names.len());
            Err(Fault::at(rest, message))
        }
    };
    let mut signs = rest.chars();
    let command = |after: &str| match after.trim() {
        "" => Err(Fault::at(after, "a command is missing")),
        command => Ok(command.to_owned()),
    };
    match signs.next() {
        Some('=') => {
            let mut cursor = Cursor { text: signs.as_str(), depth: 0 };
            let value = cursor.string()?;
            match cursor.rest() {
                "" => Ok(Action::Set { attribute: one(names)?, value }),
                more => {
                    let message = format!("`{}` is not expected behind the value", front(more));
                    Err(Fault::at(more, message))
                }
            }
        }
        Some('|') => {
            Ok(Action::Filter { attribute: one(names)?, command: command(signs.as_str())? })
        }
        Some('!') => Ok(Action::Rewrite { attributes: names, command: command(signs.as_str())? }),
        _ => {
            let message = format!("`=`, `|` or `!` is missing behind `{}`", names.join(","));
            Err(Fault::at(rest, message))
        }
    }
}

struct Cursor<'t> {
    text: &'t str,
    depth: usize,
}

impl<'t> Cursor<'t> {
    fn rest(&mut self) -> &'t str {
        self.text = self.text.trim_start();
        self.text
    }

    fn take(&mut self, sign: &str) -> bool {
        let Some(rest) = self.rest().strip_prefix(sign) else { return false };
        self.text = rest;
        true
    }

    /// Returns a mistake at the cursor.
    fn fault(&mut self, message: impl Into<String>) -> Fault {
        Fault::at(self.rest(), message)
    }

    fn any(&mut self) -> Result<Condition, Fault> {
        let mut any = vec![self.all()?];
        while self.take("||") {
            any.push(self.all()?);
        }
        Ok(join_all(any, Condition::Any))
    }

    fn all(&mut self) -> Result<Condition, Fault> {
        let mut all = vec![self.one()?];
        while self.take("&&") {
            all.push(self.one()?);
        }
        Ok(join_all(all, Condition::All))
    }

    fn one(&mut self) -> Result<Condition, Fault> {
        if self.take("(") {
            self.depth += 1;
            if DEPTH_MAX < self.depth {
                return Err(self.fault(format!("parentheses are more than {DEPTH_MAX} deep")));
            }
            let inner = self.any()?;
            self.depth -= 1;
            return if self.take(")") { Ok(inner) } else { Err(self.fault("`)` is missing")) };
        }
        let text = self.rest();
        let end = text.find(|it: char| !is_name(it)).unwrap_or(text.len());
        let (attribute, rest) = text.split_at(end);
        if attribute.is_empty() {
            let found = if text.is_empty() { "the line's end" } else { front(text) };
            let message = format!("an attribute's name is missing before `{found}`");
            return Err(Fault::at(text, message));
        }
        self.text = rest;
        let attribute = attribute.to_owned();
        for (sign, negated) in [("==", false), ("!=", true)] {
            if self.take(sign) {
                return Ok(Condition::Is { attribute, value: self.string()?, negated });
            }
        }
        for (sign, negated) in [("~", false), ("!~", true)] {
            if self.take(sign) {
                let pattern = self.pattern()?;
                return Ok(Condition::Matches { attribute, pattern, negated });
            }
        }
        let message = format!("`==`, `!=`, `~` or `!~` is missing behind `{attribute}`");
        Err(self.fault(message))
    }

    /// Reads a string in single or double quotes.
    fn string(&mut self) -> Result<String, Fault> {
        let quote = self.rest().chars().next().filter(|it| matches!(it, '\'' | '"'));
        let quote = quote.ok_or_else(|| self.fault("a string in quotes is missing"))?;
        let read = self.enclosed(quote)?;
        let escaped = format!("\\{quote}");
        Ok(read.replace(&escaped, quote.encode_utf8(&mut [0; 4])))
    }

    /// Reads a regular expression between slashes; an `i` after it means that case is ignored.
    fn pattern(&mut self) -> Result<regex::bytes::Regex, Fault> {
        let start = self.rest();
        if !start.starts_with('/') {
            return Err(self.fault("a regular expression between slashes is missing"));
        }
        let read = self.enclosed('/')?.replace("\\/", "/");
        let insensitive = self.text.starts_with('i');
        if insensitive {
            self.text = self.text.split_at(1).1;
        }
        let mut builder = RegexBuilder::new(&read);
        let builder = builder.case_insensitive(insensitive).size_limit(PATTERN_BYTES_MAX);
        builder.build().map_err(|error| {
            let error = error.to_string();
            let last = error.lines().last().unwrap_or_default();
            Fault::at(start, format!("/{read}/ is no regular expression: {last}"))
        })
    }

    /// Reads the text between two characters `sign`, including its backslashes.
    fn enclosed(&mut self, sign: char) -> Result<&'t str, Fault> {
        let inner = self.text.strip_prefix(sign).unwrap_or_default();
        let mut is_escaped = false;
        for (at, character) in inner.char_indices() {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                it if it == sign => {
                    let (read, rest) = inner.split_at(at);
                    self.text = rest.strip_prefix(sign).unwrap_or_default();
                    return Ok(read);
                }
                _ => {}
            }
        }
        Err(self.fault(format!("the closing {sign} is missing")))
    }
}

fn join_all(mut several: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Condition {
    match several.pop() {
        Some(only) if several.is_empty() => only,
        Some(last) => {
            several.push(last);
            join(several)
        }
        None => join(several),
    }
}

fn is_name(it: char) -> bool {
    it.is_alphanumeric() || matches!(it, '-' | '_' | '.')
}

/// Returns the first 30 characters of the wrong text, for a message.
fn front(text: &str) -> &str {
    text.char_indices().nth(30).map_or(text, |(at, _)| text.split_at(at).0)
}
