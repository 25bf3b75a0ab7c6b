//! The notebook summarizer: headings and text, program text, and the printed output.
//!
//! Source: the Jupyter notebook format 4 (nbformat, "The Notebook file format"), and 3, whose cells are in
//! work sheets.
//!
//! # Differences from the format
//!
//! * Only the front of the text of results is read. Pictures come from the program, not from the author.

use crate::cancellable::TimeLimit;
use crate::json::tokens::{JsonToken, JsonTokens};
use crate::limit::Limit;
use crate::object::Object;
use crate::prose::markdown;
use crate::text::{Body, decode};
use crate::{Draft, Input, Type};

/// Deepest nesting at which keys are known; deeper values are skipped.
const DEPTH_MAX: usize = 32;
/// Longest name of a key, in bytes; a longer one is cut.
const KEY_BYTES_MAX: usize = 32;

/// The state of reading a notebook.
#[derive(Default)]
struct Notebook {
    /// The key of each level, from the outermost.
    path: Vec<String>,
    depth: usize,
    /// The last key on the innermost level.
    key: String,
    kind: String,
    level: usize,
    source: Body,
    /// The cells of text, as one document.
    markdown: Body,
    code: Body,
    results: Body,
    cells: usize,
    title: String,
    authors: Vec<String>,
    kernel: String,
    language: String,
    version: String,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = decode(input.head(Limit::Document.bound()), None);
    let bytes_max = input.text_bytes_max();
    let mut notebook = Notebook {
        source: Body::new(bytes_max),
        markdown: Body::new(bytes_max),
        code: Body::new(bytes_max),
        results: Body::new(Limit::Results.bound()),
        ..Notebook::default()
    };
    let mut time = TimeLimit::new(input.cancelled);
    JsonTokens::new(&text).take_while(|_| time.goes_on()).for_each(|it| notebook.token(it));
    let mut draft = notebook.draft(input);
    time.report("the notebook", &mut draft);
    input.report(Limit::Document, &mut draft);
    draft
}

impl Notebook {
    fn token(&mut self, token: JsonToken<'_>) {
        match token {
            JsonToken::Open => {
                self.depth += 1;
                if self.depth <= DEPTH_MAX {
                    self.path.push(std::mem::take(&mut self.key));
                }
            }
            JsonToken::Close => {
                if self.depth <= DEPTH_MAX
                    && let Some(outer) = self.path.pop()
                {
                    // A cell is an object in a list named `cells`.
                    if outer.is_empty() && self.is_at(&["cells"]) {
                        self.end_cell();
                    }
                    self.key = outer;
                }
                self.depth = self.depth.saturating_sub(1);
            }
            JsonToken::Key(key) => {
                self.key.clear();
                self.key.push_str(crate::text::front(&key, KEY_BYTES_MAX));
            }
            JsonToken::String(value) => self.value(&value),
            JsonToken::Scalar(value) => {
                if self.key == "level" {
                    self.level = value.parse().unwrap_or(0);
                }
            }
        }
    }

    /// Returns whether the innermost levels have these keys; the last key is the innermost.
    fn is_at(&self, keys: &[&str]) -> bool {
        self.path.iter().map(String::as_str).rev().take(keys.len()).eq(keys.iter().copied().rev())
    }

    fn value(&mut self, value: &str) {
        if DEPTH_MAX < self.depth {
            return;
        }
        let field = || value.to_owned();
        let inner = self.path.last().map(String::as_str).unwrap_or_default();
        match (inner, self.key.as_str()) {
            // These keys have a list of lines, or one string; so do results.
            ("source" | "input", _) | ("", "source" | "input") => self.source.push(value),
            ("text" | "text/plain", _) | (_, "text" | "text/plain") => self.results.push(value),
            ("", "cell_type") => self.kind = field(),
            ("metadata", "title") if self.depth == 2 => self.title = field(),
            ("", "name") if self.is_at(&["metadata", "authors", ""]) => self.authors.push(field()),
            ("authors", _) => self.authors.push(field()),
            ("kernelspec", "display_name") => self.kernel = field(),
            ("kernelspec", "language") | ("language_info", "name") => self.language = field(),
            ("language_info", "version") => self.version = field(),
            _ => {}
        }
    }

    fn end_cell(&mut self) {
        self.cells += 1;
        let source = self.source.take();
        match self.kind.as_str() {
            "code" => {
                self.code.push_line(&source);
            }
            kind => {
                // Version 3 has cells for headings.
                if kind == "heading" {
                    self.markdown.push("######".get(..self.level.clamp(1, 6)).unwrap_or("#"));
                    self.markdown.push(" ");
                }
                self.markdown.push(&source);
                self.markdown.push("\n\n");
            }
        }
        self.kind.clear();
        self.results.line();
    }

    fn draft<'a>(self, input: &Input<'_>) -> Draft<'a> {
        let texts = [&self.source, &self.markdown, &self.code];
        let (is_cut, has_more_results) =
            (texts.iter().any(|it| it.is_cut()), self.results.is_over());
        let object = Object::whole(input.object.url.clone(), self.markdown.finish());
        let document = Input { object: &object, r#type: Type::Markdown, ..*input };
        let text = markdown::summarize(&document);
        let mut body = Body::new(input.text_bytes_max());
        for piece in [&*text.body, self.code.as_str(), self.results.as_str()] {
            body.line();
            body.push(piece);
        }
        let mut draft = Draft {
            title: if self.title.is_empty() { text.title } else { self.title },
            authors: [self.authors, text.authors].concat(),
            description: text.description,
            references: text.references,
            others: text.others,
            problems: text.problems,
            ..Draft::default()
        };
        // `Language` is for human languages; programming languages go to `Environment`.
        let language = [self.language, self.version].join(" ");
        draft.other("Environment", [language.trim(), &self.kernel].join("\n").trim());
        draft.other("Entries", self.cells.to_string());
        draft.set_body(body);
        if is_cut {
            draft.cut(Limit::Text.cut_at(input.text_bytes_max()));
        }
        if has_more_results {
            draft.cut(Limit::Results.cut());
        }
        draft
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render("n.ipynb", Type::Notebook, text.as_bytes()), expected);
    }

    #[test]
    fn a_notebook() {
        check(
            r###"{"cells": [
                {"cell_type": "markdown", "metadata": {"name": "x"}, "source": ["# The *title*\n", "\n", "About [it](http://w.example/)."]},
                {"cell_type": "code", "execution_count": 1, "metadata": {},
                 "outputs": [{"data": {"image/png": "iVBORw0KGgo", "text/plain": ["<Figure>"]}, "output_type": "display_data"},
                             {"name": "stdout", "output_type": "stream", "text": ["printed\n"]}],
                 "source": ["import os\n", "os.getcwd()"]},
                {"cell_type": "markdown", "source": "## Next"}],
              "metadata": {"authors": [{"name": "Ann"}],
                "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
                "language_info": {"codemirror_mode": {"name": "ipython", "version": 3}, "name": "python", "version": "3.11.2"}},
              "nbformat": 4, "nbformat_minor": 5}"###,
            "Title: The title\n\
             Author: Ann\n\
             Description: About it.\n\
             Headings: The title | Next\n\
             Environment: python 3.11.2 | Python 3 (ipykernel)\n\
             Entries: 3\n\
             URL-References: http://w.example/\n\
             Partial-Text: The title | About it. | Next | import os | os.getcwd() | <Figure>printed",
        );
    }

    #[test]
    fn the_older_format() {
        check(
            r#"{"metadata": {"name": ""}, "nbformat": 3, "worksheets": [{"cells": [
                {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["Old"]},
                {"cell_type": "code", "input": ["x = 1"], "language": "python", "outputs": []}]}]}"#,
            "Title: Old\nHeadings: Old\nEntries: 2\nPartial-Text: Old | x = 1",
        );
    }

    #[test]
    fn hostile_notebooks_end() {
        for text in ["[{".repeat(100_000), "{\"cells\":[".repeat(60_000), "]}".repeat(100_000)] {
            render("n.ipynb", Type::Notebook, text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_a_record(
            text in "([\\[\\]{}\",:]|\"cells\":|\"source\":|\"cell_type\":|\"code\"|\"a\"|\\PC){0,80}",
        ) {
            prop_assert!(render("n.ipynb", Type::Notebook, text.as_bytes()).starts_with("Title: "));
        }
    }
}
