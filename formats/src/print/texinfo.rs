//! The Texinfo summarizer: title, authors, chapters and index entries by their commands, and plain text.
//!
//! Source: the Texinfo manual (version 7), "Beginning and Ending a Texinfo File", "Chapter Structuring",
//! "Indices", "Cross-references" and "Conditionally Visible Text".
//!
//! The text is that of Info: parts for TeX, HTML or DocBook only are left out, and so are menus. Nothing is
//! executed, no file is read in, and no macro is expanded.

mod commands;
mod reader;

use std::collections::HashMap;

use commands::{Treatment, treatment};
use reader::{TexinfoReader, printed};

use crate::cancellable::TimeLimit;
use crate::code::source::legal;
use crate::limit::{Cut, Limit};
use crate::text::{Body, HEADINGS_BYTES_MAX, decode, squeezed};
use crate::{DateSource, Draft, Input};

/// Length of the part in which the charset is looked for, in bytes.
const CHARSET_BYTES_MAX: usize = 4 * 1024;
/// Deepest nesting of arguments; deeper ones are text.
const DEPTH_MAX: usize = 6;

/// The destination of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ManualTarget {
    #[default]
    Body,
    Copying,
    Description,
}

/// The attributes read so far.
#[derive(Default)]
struct Manual {
    title: String,
    subtitle: String,
    /// The title of page headers; used if the manual has no title.
    short_title: String,
    /// The title of the first node; used if there is no other title.
    top: String,
    authors: Vec<String>,
    language: String,
    category: String,
    variables: HashMap<String, String>,
    /// Length of all that variables may still add, in bytes.
    room: usize,
    /// What the variables go beyond.
    cuts: Vec<Cut>,
    references: Vec<String>,
    headings: Body,
    index: Body,
    copying: Body,
    description: Body,
    body: Body,
    target: ManualTarget,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = input.head(input.text_bytes_max());
    let text = decode(bytes, charset(bytes));
    let mut manual = Manual {
        headings: Body::new(HEADINGS_BYTES_MAX),
        index: Body::new(input.text_bytes_max()),
        copying: Body::new(input.text_bytes_max()),
        description: Body::new(input.text_bytes_max()),
        body: Body::new(input.text_bytes_max()),
        room: input.text_bytes_max(),
        ..Manual::default()
    };
    let mut time = TimeLimit::new(input.cancelled);
    manual.read(&text, &mut time);
    let mut draft = manual.draft();
    time.report("the text", &mut draft);
    input.report_text(&mut draft);
    draft
}

/// Returns the charset that the manual names.
fn charset(bytes: &[u8]) -> Option<&str> {
    const NAME: &[u8] = b"@documentencoding ";
    let front = bytes.get(..bytes.len().min(CHARSET_BYTES_MAX)).unwrap_or_default();
    let at = memchr::memmem::find(front, NAME)?;
    let line = front.get(at + NAME.len()..)?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split_whitespace().next()
}

impl Manual {
    fn read(&mut self, text: &str, time: &mut TimeLimit<'_>) {
        let mut reader = TexinfoReader::new(text);
        // The lines before the first command are for TeX.
        if text.trim_start().starts_with("\\input") {
            reader.line();
            reader.line();
        }
        while !reader.is_at_end() && time.goes_on() {
            let plain = reader.plain();
            self.text().push_squeezed(plain);
            match reader.special() {
                Some('@') => {
                    let command = reader.command();
                    if command == "bye" {
                        return;
                    }
                    if !self.common(command, &mut reader) && !self.structure(command, &mut reader) {
                        let shown = self.print(command, &mut reader, 0);
                        self.text().push_squeezed(&shown);
                    }
                }
                Some('\n') => self.text().line(),
                Some(' ') => self.text().space(),
                _ => {}
            }
        }
    }

    /// Returns the body that the text goes to.
    fn text(&mut self) -> &mut Body {
        match self.target {
            ManualTarget::Copying => &mut self.copying,
            ManualTarget::Description => &mut self.description,
            ManualTarget::Body => &mut self.body,
        }
    }

    /// Handles a command that is treated like many others; returns false for any other.
    fn common(&mut self, command: &str, reader: &mut TexinfoReader<'_>) -> bool {
        match treatment(command) {
            Some(Treatment::Hidden) => {
                reader.environment(command);
            }
            Some(Treatment::Heading) => self.heading(reader),
            Some(Treatment::Silent) => {
                reader.line();
                self.text().line();
            }
            None => return false,
        }
        true
    }

    /// Handles a command that describes the manual; returns false for any other.
    fn structure(&mut self, command: &str, reader: &mut TexinfoReader<'_>) -> bool {
        match command {
            "settitle" => self.short_title = self.line(reader),
            "title" => {
                let title = self.line(reader);
                append(&mut self.title, &title);
            }
            "titlefont" => {
                let title = reader.argument().unwrap_or_default();
                let title = self.expand(title, 0);
                append(&mut self.title, &title);
            }
            "subtitle" => {
                let subtitle = self.line(reader);
                append(&mut self.subtitle, &subtitle);
            }
            "top" => self.top = self.line(reader),
            "author" => {
                let line = self.line(reader);
                self.take_authors(&line);
            }
            "documentlanguage" => self.language = self.line(reader).replace('_', "-"),
            "dircategory" => self.category = self.line(reader),
            "set" => self.set(reader.line()),
            "copying" => self.target = ManualTarget::Copying,
            "documentdescription" => self.target = ManualTarget::Description,
            // The text of this page is given by commands, or repeated elsewhere.
            "titlepage" => self.title_page(reader.environment("titlepage")),
            "end" => {
                if matches!(reader.line(), "copying" | "documentdescription") {
                    self.target = ManualTarget::Body;
                }
                self.text().line();
            }
            "verbatim" => {
                let shown = reader.environment("verbatim");
                self.text().line();
                self.text().push_line(shown.trim_start_matches(['\r', '\n']));
            }
            // `@cindex entry`, and those of functions, variables, keys, programs and types.
            name if name.len() == 6 && name.ends_with("index") => {
                let entry = self.line(reader);
                self.index.push_squeezed_line(&entry);
            }
            "item" | "itemx" | "headitem" | "exdent" | "center" => self.text().line(),
            name if name.starts_with("def") && name != "defn" => {
                let line = self.line(reader);
                self.text().line();
                self.text().push_squeezed_line(&line);
            }
            _ => return false,
        }
        true
    }

    /// Reads the commands of the title page.
    fn title_page(&mut self, page: &str) {
        let mut reader = TexinfoReader::new(page);
        while !reader.is_at_end() {
            reader.plain();
            if reader.special() == Some('@') {
                let command = reader.command();
                if matches!(command, "title" | "titlefont" | "subtitle" | "author") {
                    self.structure(command, &mut reader);
                }
            }
        }
    }

    fn take_authors(&mut self, line: &str) {
        let line = line.strip_prefix("by ").unwrap_or(line);
        let names: Vec<&str> = line.split(" and ").map(|it| it.trim_matches([',', ' '])).collect();
        let whole = names.iter().all(|it| 1 < it.split_whitespace().count());
        let names = if whole { names } else { vec![line] };
        self.authors.extend(names.into_iter().map(str::to_owned));
    }

    /// `@set NAME value`.
    fn set(&mut self, line: &str) {
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let value = self.expand(value, 0);
        if self.variables.len() < Limit::Abbreviations.bound() {
            self.variables.insert(name.to_owned(), value);
        } else {
            self.cut(Limit::Abbreviations.cut());
        }
    }

    /// Returns the text of a variable, as long as all variables together do not add too much.
    fn variable(&mut self, name: &str) -> String {
        let Some(value) = self.variables.get(name) else { return String::new() };
        if let Some(room) = self.room.checked_sub(value.len()) {
            self.room = room;
            return value.clone();
        }
        self.cut(Limit::Text.cut_at(self.body.bytes_max()));
        String::new()
    }

    fn cut(&mut self, cut: Cut) {
        if !self.cuts.iter().any(|it| it.limit == cut.limit) {
            self.cuts.push(cut);
        }
    }

    fn heading(&mut self, reader: &mut TexinfoReader<'_>) {
        let heading = self.line(reader);
        self.headings.push_line(&heading);
        self.text().line();
        self.text().push_line(&heading);
    }

    /// Returns the text that the rest of the line prints.
    fn line(&mut self, reader: &mut TexinfoReader<'_>) -> String {
        let line = reader.line();
        self.expand(line, 0)
    }

    /// Returns the text that `text` prints, on one line.
    fn expand(&mut self, text: &str, depth: usize) -> String {
        if depth == DEPTH_MAX {
            return squeezed(text);
        }
        // Only variables make it longer, which have their own bound.
        let mut shown = Body::new(usize::MAX);
        let mut reader = TexinfoReader::new(text);
        while !reader.is_at_end() {
            shown.push_squeezed(reader.plain());
            match reader.special() {
                Some('@') => {
                    let command = reader.command();
                    if matches!(command, "c" | "comment") {
                        reader.line();
                    } else {
                        shown.push_squeezed(&self.print(command, &mut reader, depth + 1));
                    }
                }
                Some(' ' | '\n') => shown.space(),
                _ => {}
            }
        }
        shown.finish().trim().to_owned()
    }

    /// Returns the text that a command inside a text prints. An unknown command prints its argument, which
    /// stays in the input.
    fn print(&mut self, command: &str, reader: &mut TexinfoReader<'_>, depth: usize) -> String {
        if let Some(letter) = reader.accented(command) {
            return letter.to_string();
        }
        if let Some(text) = printed(command) {
            return text.to_owned();
        }
        match command {
            "*" => " ".to_owned(),
            "value" => {
                let name = reader.argument().unwrap_or_default();
                self.variable(name)
            }
            "url" | "uref" => {
                let mut parts = self.parts(reader, depth);
                let url = parts.first().cloned().unwrap_or_default();
                if url.contains(':') {
                    self.references.push(url.clone());
                }
                match parts.pop().filter(|_| !parts.is_empty()) {
                    Some(text) if parts.len() == 1 => format!("{text} ({url})"),
                    Some(text) => text,
                    None => url,
                }
            }
            "email" => self.parts(reader, depth).pop().unwrap_or_default(),
            "acronym" | "abbr" => {
                let parts = self.parts(reader, depth);
                match parts.as_slice() {
                    [short, long, ..] => format!("{short} ({long})"),
                    other => other.concat(),
                }
            }
            "xref" | "pxref" | "ref" | "inforef" => self.xref(command, reader, depth),
            "footnote" => {
                let note = reader.argument().unwrap_or_default();
                format!(" ({})", self.expand(note, depth))
            }
            "anchor" | "image" | "inlineraw" | "sortas" | "hyphenation" | "U" | "errormsg" => {
                reader.argument();
                String::new()
            }
            _ => String::new(),
        }
    }

    /// Returns the printed texts of the comma-separated parts of an argument, without empty ones.
    fn parts(&mut self, reader: &mut TexinfoReader<'_>, depth: usize) -> Vec<String> {
        let argument = reader.argument().unwrap_or_default();
        let parts = argument.splitn(5, ',').map(|it| self.expand(it, depth));
        parts.filter(|it| !it.is_empty()).collect()
    }

    /// `@xref{node, name, title, file, manual}`: the title, or else the node.
    fn xref(&mut self, command: &str, reader: &mut TexinfoReader<'_>, depth: usize) -> String {
        let argument = reader.argument().unwrap_or_default();
        let parts: Vec<&str> = argument.splitn(5, ',').map(str::trim).collect();
        let part = |at: usize| parts.get(at).copied().filter(|it| !it.is_empty());
        let name = part(2).or_else(|| part(0)).or_else(|| part(4)).unwrap_or_default();
        let name = self.expand(name, depth);
        match command {
            "xref" => format!("See {name}"),
            "pxref" => format!("see {name}"),
            _ => name,
        }
    }

    fn draft<'a>(mut self) -> Draft<'a> {
        let is_cut = [&self.index, &self.copying, &self.description].iter().any(|it| it.is_over());
        let copying = self.copying.finish();
        let mut draft = Draft { authors: self.authors, ..Draft::default() };
        self.cuts.into_iter().for_each(|it| draft.cut(it));
        if is_cut {
            draft.cut(Limit::Text.cut_at(self.body.bytes_max()));
        }
        let titles = [self.title, self.short_title, self.top];
        draft.title = titles.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
        let description = self.description.finish();
        draft.description = [&description, self.subtitle.as_str(), &copying]
            .into_iter()
            .find_map(|it| it.lines().next())
            .unwrap_or_default()
            .to_owned();
        draft.keywords = self.index.finish();
        draft.other("Language", self.language);
        draft.other("Category", self.category);
        draft.other("Headings", self.headings.finish());
        let mut variable = |name: &str| self.variables.remove(name).unwrap_or_default();
        draft.other("Version", variable("VERSION"));
        draft.date(&variable("UPDATED"), DateSource::Header);
        draft.other("Copyright", legal::copyright(&copying));
        draft.other("License", legal::license(&copying));
        draft.references = self.references;
        self.body.line();
        self.body.push(&copying);
        draft.set_body(self.body);
        draft
    }
}

fn append(title: &mut String, more: &str) {
    if !title.is_empty() && !more.is_empty() {
        title.push(' ');
    }
    title.push_str(more);
}

#[cfg(test)]
mod tests;
