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
        if !is_indented {
            mistakes.extend(bare.replace(number).filter(|_| !is_broken).map(no_instructions));
        } else {
            bare = None;
        }
        let outcome = if is_indented {
            match rules.last_mut() {
                _ if is_broken => action(line.trim()).map(|_ignored| ()),
                Some(rule) => action(line.trim()).map(|it| rule.actions.push(it)),
                None => Err("an instruction comes below a condition, which begins in the first \
                            column"
                    .to_owned()),
            }
        } else if rules.len() == RULES_MAX {
            Err(format!("there are more than {RULES_MAX} rules"))
        } else {
            let read = condition(line.trim());
            is_broken = read.is_err();
            let text = line.trim().to_owned();
            read.map(|condition| {
                rules.push(Rule { line: number, text, condition, actions: Vec::new() });
            })
        };
        mistakes.extend(outcome.err().map(|message| mistake(number, message)));
    }
    mistakes.extend(bare.filter(|_| !is_broken).map(no_instructions));
    mistakes.sort_by_key(|it| it.line);
    mistakes.truncate(MISTAKES_MAX);
    if mistakes.is_empty() { Ok(rules) } else { Err(mistakes) }
}

fn mistake(line: usize, message: String) -> Mistake {
    let expected = "conditions and instructions as docs/essence.md has them".to_owned();
    Mistake { file: None, line, column: 1, message, expected }
}

fn no_instructions(line: usize) -> Mistake {
    mistake(line, "the condition has no instructions: indent them below it".to_owned())
}

fn condition(text: &str) -> Result<Condition, String> {
    let mut cursor = Cursor { text, depth: 0 };
    let condition = cursor.any()?;
    match cursor.rest() {
        "" => Ok(condition),
        rest => {
            Err(format!("`{}` is not expected here; join comparisons by && or ||", front(rest)))
        }
    }
}

fn action(text: &str) -> Result<Action, String> {
    if text.strip_prefix("delete").map(str::trim_start).is_some_and(|it| it.trim() == "()") {
        return Ok(Action::Delete);
    }
    let end = text.find(|it: char| !is_name(it) && it != ',' && it != ' ').unwrap_or(text.len());
    let (names, rest) = text.split_at(end);
    let names: Vec<String> = names.split(',').map(|it| it.trim().to_owned()).collect();
    if names.iter().any(|it| it.is_empty() || it.contains(' ')) {
        return Err(format!(
            "`{}` is no instruction: write `Attribute = \"value\"`, `Attribute | command`, \
             `Attribute,Attribute ! command` or `delete()`",
            front(text)
        ));
    }
    if let Some(name) = names.iter().find(|it| is_identity(it)) {
        return Err(format!("{name} cannot be changed: it says which object this is"));
    }
    let one = |names: Vec<String>| match <[String; 1]>::try_from(names) {
        Ok([attribute]) => Ok(attribute),
        Err(names) => Err(format!("one attribute, not {}, comes before this", names.len())),
    };
    let mut signs = rest.chars();
    let command = |text: &str| match text.trim() {
        "" => Err("a command is missing".to_owned()),
        command => Ok(command.to_owned()),
    };
    match signs.next() {
        Some('=') => {
            let mut cursor = Cursor { text: signs.as_str(), depth: 0 };
            let value = cursor.string()?;
            match cursor.rest() {
                "" => Ok(Action::Set { attribute: one(names)?, value }),
                rest => Err(format!("`{}` is not expected behind the value", front(rest))),
            }
        }
        Some('|') => {
            Ok(Action::Filter { attribute: one(names)?, command: command(signs.as_str())? })
        }
        Some('!') => Ok(Action::Rewrite { attributes: names, command: command(signs.as_str())? }),
        _ => Err(format!("`=`, `|` or `!` is missing behind `{}`", names.join(","))),
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

    fn any(&mut self) -> Result<Condition, String> {
        let mut any = vec![self.all()?];
        while self.take("||") {
            any.push(self.all()?);
        }
        Ok(join_all(any, Condition::Any))
    }

    fn all(&mut self) -> Result<Condition, String> {
        let mut all = vec![self.one()?];
        while self.take("&&") {
            all.push(self.one()?);
        }
        Ok(join_all(all, Condition::All))
    }

    fn one(&mut self) -> Result<Condition, String> {
        if self.take("(") {
            self.depth += 1;
            if DEPTH_MAX < self.depth {
                return Err(format!("parentheses are more than {DEPTH_MAX} deep"));
            }
            let inner = self.any()?;
            self.depth -= 1;
            return if self.take(")") { Ok(inner) } else { Err("`)` is missing".to_owned()) };
        }
        let text = self.rest();
        let end = text.find(|it: char| !is_name(it)).unwrap_or(text.len());
        let (attribute, rest) = text.split_at(end);
        if attribute.is_empty() {
            let found = if text.is_empty() { "the line's end" } else { front(text) };
            return Err(format!("an attribute's name is missing before `{found}`"));
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
        Err(format!("`==`, `!=`, `~` or `!~` is missing behind `{attribute}`"))
    }

    /// Reads a string in single or double quotes.
    fn string(&mut self) -> Result<String, String> {
        let quote = self.rest().chars().next().filter(|it| matches!(it, '\'' | '"'));
        let quote = quote.ok_or_else(|| "a string in quotes is missing".to_owned())?;
        let read = self.enclosed(quote)?;
        let escaped = format!("\\{quote}");
        Ok(read.replace(&escaped, quote.encode_utf8(&mut [0; 4])))
    }

    /// Reads a regular expression between slashes; an `i` after it means that case is ignored.
    fn pattern(&mut self) -> Result<regex::bytes::Regex, String> {
        if !self.rest().starts_with('/') {
            return Err("a regular expression between slashes is missing".to_owned());
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
            format!("/{read}/ is no regular expression: {}", error.lines().last().unwrap_or(""))
        })
    }

    /// Reads the text between two characters `sign`, including its backslashes.
    fn enclosed(&mut self, sign: char) -> Result<&'t str, String> {
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
        Err(format!("the closing {sign} is missing"))
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
