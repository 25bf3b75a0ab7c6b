//! The reader of files with declared summarizers.
//!
//! Sans-I/O.

use std::path::PathBuf;

use formats::Type;
use settings::{Document, Mistake, Table};

use super::{Attribute, Expression, Summarizer};
use crate::error::{in_file, unknown_type};
use crate::rules::is_identity;
use crate::typing::{Recognizer, expression_mistake};

/// Maximum number of expressions in all files together.
const EXPRESSIONS_MAX: usize = 1_000;
/// Maximum memory of all compiled expressions, in bytes. A worker holds all of them; its own limit
/// is several times higher.
const EXPRESSIONS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum number of attributes of one summarizer.
const ATTRIBUTES_MAX: usize = 64;
/// Maximum length of an attribute's name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Attributes, besides identifying ones, that summarizers may not set.
const RESERVED: &str = "Type Last-Modification-Time Nested-Filename Truncated Time-to-Live \
                        Refresh-Rate Gatherer-Name Gatherer-Host Gatherer-Port Gatherer-Version";

struct Reading<'t> {
    typing: Option<&'t Recognizer>,
    all: Vec<Summarizer>,
    expressions: usize,
    /// Memory of the expressions, in bytes.
    bytes: usize,
}

pub(super) fn read(
    files: &[(PathBuf, String)],
    typing: Option<&Recognizer>,
) -> Result<Vec<Summarizer>, Vec<Mistake>> {
    let mut reading = Reading { typing, all: Vec::new(), expressions: 0, bytes: 0 };
    let mut mistakes = Vec::new();
    for (path, text) in files {
        if let Err(found) = reading.read_file(text) {
            mistakes.extend(in_file(found, path));
        }
    }
    if mistakes.is_empty() { Ok(reading.all) } else { Err(mistakes) }
}

impl Reading<'_> {
    fn read_file(&mut self, text: &str) -> Result<(), Vec<Mistake>> {
        let document = Document::parse(text)?;
        let root = document.root();
        for table in root.tables("summarizer") {
            let beside = table.boolean("beside", false);
            let r#type = self.r#type(&table);
            let attributes = self.attributes(&table);
            if let Some(r#type) = r#type {
                self.all.push(Summarizer { r#type, beside, attributes });
            }
        }
        document.finish()
    }

    fn r#type(&self, table: &Table<'_>) -> Option<Type> {
        let name = table.required_string("type");
        if name.is_empty() {
            return None;
        }
        let found = match self.typing {
            Some(typing) => typing.by_name(&name),
            None => Some(Type::by_name(&name)?),
        };
        let Some(found) = found else {
            let (message, expected) = unknown_type(&name);
            table.mistake("type", message, expected);
            return None;
        };
        if found.is_opened() {
            let message = format!("{name:?} is opened, and its members are summarized");
            table.mistake("type", message, "the type of its members");
        } else if self.all.iter().any(|it| it.r#type == found) {
            let message = format!("{name:?} has a summarizer already");
            table.mistake("type", message, "one for each type");
        }
        Some(found)
    }

    fn attributes(&mut self, summarizer: &Table<'_>) -> Vec<Attribute> {
        let tables = summarizer.tables("attribute");
        if tables.is_empty() && !summarizer.has("attribute") {
            let expected = "[[summarizer.attribute]] with name and match";
            summarizer.mistake("", "the summarizer says nothing", expected);
        }
        let mut attributes: Vec<Attribute> = Vec::new();
        for table in &tables {
            let name = table.required_string("name");
            let is_same = |it: &Attribute| it.name.eq_ignore_ascii_case(&name);
            let is_reserved =
                is_identity(&name) || RESERVED.split(' ').any(|it| name.eq_ignore_ascii_case(it));
            if name.is_empty() {
                // The missing name has been reported already.
            } else if !is_name(&name) {
                let message = format!("{name:?} is no name of an attribute");
                table.mistake("name", message, "letters, digits, \"-\", \"_\" and \".\"");
            } else if is_reserved {
                table.mistake("name", format!("{name:?} cannot be set by summarizers"), "another");
            } else if attributes.iter().any(is_same) {
                let message = format!("{name:?} is there already");
                table.mistake("name", message, "each once; match may be a list");
            } else if attributes.len() == ATTRIBUTES_MAX {
                let message = format!("there are more than {ATTRIBUTES_MAX} attributes");
                table.mistake("", message, "fewer");
            }
            let all = table.boolean("all", false);
            attributes.push(Attribute { name, expressions: self.expressions(table), all });
        }
        attributes
    }

    fn expressions(&mut self, table: &Table<'_>) -> Vec<Expression> {
        table.require("match", "'^Title: (.*)$'");
        let mut expressions = Vec::new();
        for (i, written) in table.one_or_more("match").into_iter().enumerate() {
            self.expressions += 1;
            if self.expressions == EXPRESSIONS_MAX + 1 {
                let message = format!("there are more than {EXPRESSIONS_MAX} expressions");
                table.mistake_in("match", i, message, "fewer in all files together");
            }
            if EXPRESSIONS_MAX < self.expressions {
                break;
            }
            match Expression::try_from(written.clone()) {
                Ok(expression) => {
                    let before = self.bytes;
                    self.bytes = before.saturating_add(expression.bytes());
                    if self.bytes <= EXPRESSIONS_BYTES_MAX {
                        expressions.push(expression);
                    } else if before <= EXPRESSIONS_BYTES_MAX {
                        let message = format!(
                            "the expressions take more than {EXPRESSIONS_BYTES_MAX} bytes of memory"
                        );
                        let expected =
                            "fewer, or with fewer repetitions, such as {50}, of \\w and its like";
                        table.mistake_in("match", i, message, expected);
                    }
                }
                Err(error) => {
                    let message = format!("{written:?}: {}", expression_mistake(&error));
                    table.mistake_in("match", i, message, "a regular expression");
                }
            }
        }
        expressions
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    name.len() <= NAME_BYTES_MAX && name.bytes().all(is_part)
}
