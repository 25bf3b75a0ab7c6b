//! The LaTeX and TeX summarizer: title, authors, abstract and sections by their commands, and plain text.
//!
//! Source: "LaTeX: A Document Preparation System" (1994), appendix C; The TeXbook, chapters 7 and 8
//! (how input becomes tokens). Essence's Tex summarizer (text without commands).
//!
//! Nothing is executed, and no file is read in. Macros are expanded only in values of attributes, if they have no
//! arguments.

mod languages;
mod reader;

use std::collections::HashMap;

use reader::TexReader;

use crate::cancellable::TimeLimit;
use crate::code::source::legal;
use crate::limit::Limit;
use crate::names::NameTable;
use crate::text::{Body, HEADINGS_BYTES_MAX};
use crate::{DateSource, Draft, Input};

/// Returns the number of a command's arguments, if it prints none of them.
fn silent(command: &str) -> Option<usize> {
    Some(match command {
        "href" | "fbox" => 0,
        "label" | "ref" | "eqref" | "pageref" | "autoref" | "cref" | "cite" | "citep" | "citet"
        | "citeauthor" | "citealp" | "nocite" | "usepackage" | "RequirePackage" | "input"
        | "include" | "index" | "includegraphics" | "bibliography" | "bibliographystyle"
        | "addbibresource" | "vspace" | "hspace" | "pagestyle" | "thispagestyle"
        | "pagenumbering" | "color" | "textcolor" | "scalebox" | "raisebox" | "hypersetup"
        | "lstset" | "SweaveOpts" | "newcounter" | "newlength" | "bibitem" | "end" | "thanks"
        | "inst" | "orcid" | "geometry" | "selectlanguage" | "cline" | "hyphenation"
        | "graphicspath" | "captionsetup" => 1,
        "setlength" | "addtolength" | "setcounter" | "addtocounter" | "rule" | "newtheorem"
        | "multicolumn" | "fontsize" | "resizebox" => 2,
        "DeclareMathOperator" => 2,
        "definecolor" | "newenvironment" | "renewenvironment" => 3,
        _ => return None,
    })
}

/// Commands and the text that they print.
static WORDS: NameTable = NameTable::of(
    "LaTeX:LaTeX LaTeXe:LaTeX2e TeX:TeX BibTeX:BibTeX ldots:... dots:... S:\u{a7} P:\u{b6} \
     copyright:(C) ss:ß ae:æ AE:Æ oe:œ OE:Œ o:ø O:Ø aa:å AA:Å l:ł L:Ł i:i j:j ng:ŋ \
     textbackslash:\\ textasciitilde:~ textasciicircum:^ pounds:£ textendash:- textemdash:- \
     textquotesingle:' textregistered:(R) texttrademark:(TM) textbar:| textless:< \
     textgreater:> textunderscore:_ slash:/ times:x infty:infinity",
);

/// Greek letters of formulas, which are printed as words.
const GREEK: &[&str] = &[
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi",
    "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi",
    "Omega",
];

/// The destination of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TexTarget {
    Body,
    Abstract,
}

/// The attributes read so far.
struct TexDocument<'c, 't> {
    time: TimeLimit<'c>,
    title: String,
    authors: Vec<String>,
    date: String,
    keywords: String,
    class: String,
    language: &'static str,
    version: String,
    r#abstract: Body,
    body: Body,
    headings: Body,
    references: Vec<String>,
    macros: HashMap<&'t str, &'t str>,
    /// Length of all that macros may still add, in bytes, and whether it was not enough.
    room: usize,
    has_more: bool,
    target: TexTarget,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut document = TexDocument {
        time: TimeLimit::new(input.cancelled),
        title: String::new(),
        authors: Vec::new(),
        date: String::new(),
        keywords: String::new(),
        class: String::new(),
        language: "",
        version: String::new(),
        r#abstract: Body::new(usize::MAX),
        body: Body::new(input.text_bytes_max()),
        headings: Body::new(HEADINGS_BYTES_MAX),
        references: Vec::new(),
        macros: HashMap::new(),
        room: input.text_bytes_max(),
        has_more: false,
        target: TexTarget::Body,
    };
    document.read(&text);
    let mut draft = Draft {
        title: document.title,
        authors: document.authors,
        r#abstract: document.r#abstract.finish(),
        keywords: document.keywords,
        references: document.references,
        ..Draft::default()
    };
    draft.set_body(document.body);
    // A date that means the day of printing is left out.
    draft.date(&document.date, DateSource::Header);
    draft.other("Language", document.language);
    draft.other("Headings", document.headings.finish());
    draft.other("TeX-Class", document.class);
    draft.other("Version", document.version);
    draft.other("License", legal::license(&text));
    if document.has_more {
        draft.cut(Limit::Text.cut_at(input.text_bytes_max()));
    }
    document.time.report("the text", &mut draft);
    input.report_text(&mut draft);
    draft
}

impl<'t> TexDocument<'_, 't> {
    fn read(&mut self, text: &'t str) {
        let mut reader = TexReader::new(text);
        while !reader.is_at_end() && self.time.goes_on() {
            let plain = reader.plain();
            self.push(plain);
            match reader.special() {
                Some('\\') => {
                    let command = reader.command();
                    if command == "end" && reader.peek_group("document") {
                        return;
                    }
                    if !self.structure(command, &mut reader) {
                        let into = match self.target {
                            TexTarget::Body => &mut self.body,
                            TexTarget::Abstract => &mut self.r#abstract,
                        };
                        print(command, &mut reader, into);
                    }
                }
                Some('%') => reader.skip_comment(),
                Some('\n') => self.paragraph(),
                Some('~' | '&') => self.push(" "),
                _ => {}
            }
        }
    }

    fn push(&mut self, text: &str) {
        match self.target {
            TexTarget::Body => self.body.push_squeezed(text),
            TexTarget::Abstract => self.r#abstract.push_squeezed(text),
        }
    }

    fn paragraph(&mut self) {
        match self.target {
            TexTarget::Body => self.body.line(),
            TexTarget::Abstract => self.r#abstract.line(),
        }
    }

    /// Handles a command that describes the document; returns false for any other.
    fn structure(&mut self, command: &str, reader: &mut TexReader<'t>) -> bool {
        match command {
            "title" | "Title" | "Plaintitle" => {
                let title = self.argument(reader).replace('\n', " ");
                if self.title.is_empty() && !title.trim().is_empty() {
                    self.title = title;
                }
            }
            "author" | "Author" => {
                reader.skip_option();
                let written = reader.group().unwrap_or_default();
                for one in written.split("\\and").flat_map(|it| it.split("\\And")) {
                    let printed = self.expand(one);
                    split_authors(printed.lines().next().unwrap_or_default(), &mut self.authors);
                }
            }
            "date" => {
                let date = reader.group().unwrap_or_default();
                if !date.contains("\\today") {
                    self.date = self.expand(date).replace('\n', " ");
                }
            }
            "keywords" | "Keywords" | "keyword" => self.keywords = self.argument(reader),
            "abstract" | "Abstract" if reader.is_group() => {
                let printed = self.argument(reader);
                self.r#abstract.push_squeezed(&printed);
            }
            "documentclass" | "documentstyle" => {
                reader.skip_option();
                reader.group().unwrap_or_default().clone_into(&mut self.class);
            }
            "usepackage" => self.language_of(reader.option().unwrap_or_default(), reader.group()),
            "setmainlanguage" | "setdefaultlanguage" => {
                reader.skip_option();
                self.language_of(reader.group().unwrap_or_default(), Some("babel"));
            }
            "ProvidesPackage" | "ProvidesClass" => self.provides(reader),
            "part" | "chapter" | "section" | "subsection" | "part*" | "chapter*" | "section*"
            | "subsection*" => self.heading(reader),
            "url" | "href" | "doi" => self.link(command, reader),
            "newcommand" | "renewcommand" | "providecommand" | "newcommand*" | "def" => {
                self.define(reader);
            }
            "begin" => self.begin(reader),
            "end" => {
                if reader.group() == Some("abstract") {
                    self.target = TexTarget::Body;
                }
                self.paragraph();
            }
            _ => return false,
        }
        true
    }

    fn begin(&mut self, reader: &mut TexReader<'t>) {
        match reader.group().unwrap_or_default() {
            // The text before the document has only settings.
            "document" => {
                self.body.take();
            }
            "abstract" => self.target = TexTarget::Abstract,
            "comment" => reader.skip_past("\\end{comment}"),
            "keyword" | "keywords" | "IEEEkeywords" => {
                self.keywords = self.expand(reader.until("\\end{"));
            }
            "tabular" | "array" | "thebibliography" | "longtable" | "minipage" | "tabular*" => {
                reader.skip_option();
                reader.group();
            }
            _ => reader.skip_option(),
        }
        self.paragraph();
    }

    fn heading(&mut self, reader: &mut TexReader<'t>) {
        reader.skip_option();
        let heading = self.argument(reader).replace('\n', " ");
        self.headings.push_squeezed_line(heading.trim());
        self.paragraph();
        self.push(&heading);
        self.paragraph();
    }

    fn link(&mut self, command: &str, reader: &mut TexReader<'_>) {
        let url = reader.group().unwrap_or_default().trim().replace('\\', "");
        if command != "href" {
            self.push(&url);
        }
        let url = if command == "doi" { format!("https://doi.org/{url}") } else { url };
        if url.contains("://") {
            self.references.push(url);
        }
    }

    /// `\usepackage[english, ngerman]{babel}`: the language after `main=`, else the last one.
    fn language_of(&mut self, names: &str, package: Option<&str>) {
        if package == Some("babel") {
            let tag = |it: &str| languages::tag(it.trim());
            let main = names.split(',').find_map(|it| it.trim().strip_prefix("main="));
            let last = || names.split(',').rev().find_map(tag);
            self.language = main.and_then(tag).or_else(last).unwrap_or(self.language);
        }
    }

    /// `\ProvidesPackage{name}[date version what it is]`.
    fn provides(&mut self, reader: &mut TexReader<'_>) {
        let name = reader.group().unwrap_or_default();
        let release = reader.option().unwrap_or_default();
        let mut words = release.split_whitespace();
        self.date = words.next().unwrap_or_default().replace('/', "-");
        words.next().unwrap_or_default().trim_start_matches('v').clone_into(&mut self.version);
        let description: Vec<&str> = words.collect();
        self.title = [name, &description.join(" ")].join(" ");
    }

    /// `\newcommand{\name}{text}`, `\newcommand\name{text}` or `\def\name{text}`.
    fn define(&mut self, reader: &mut TexReader<'t>) {
        let name = match reader.group() {
            Some(name) => name.trim().trim_start_matches('\\'),
            None => reader.next_command(),
        };
        let parameters = reader.option().is_some();
        let definition = reader.group().unwrap_or_default();
        if !parameters {
            self.macros.insert(name, definition);
        }
    }

    /// Returns the text that the next argument prints.
    fn argument(&mut self, reader: &mut TexReader<'t>) -> String {
        reader.skip_option();
        let written = reader.group().unwrap_or_default();
        self.expand(written)
    }

    /// Returns the text that `tex` prints, with its line breaks.
    fn expand(&mut self, tex: &'t str) -> String {
        let mut printed = Body::new(usize::MAX);
        // The text, and the macros in it that are not read to their ends.
        let mut readers = vec![TexReader::new(tex)];
        while let Some(reader) = readers.last_mut().filter(|_| self.time.goes_on()) {
            printed.push_squeezed(reader.plain());
            match reader.special() {
                Some('\\') => {
                    let command = reader.command();
                    if let Some(definition) = self.macros.get(command).copied() {
                        // An empty macro counts, too.
                        match self.room.checked_sub(definition.len() + 1) {
                            Some(room) => {
                                self.room = room;
                                readers.push(TexReader::new(definition));
                            }
                            None => self.has_more = true,
                        }
                    } else {
                        print(command, reader, &mut printed);
                    }
                }
                Some('%') => reader.skip_comment(),
                Some('\n') => printed.line(),
                Some('~') => printed.space(),
                Some(_) => {}
                None => drop(readers.pop()),
            }
        }
        printed.finish().trim().to_owned()
    }
}

/// Prints a command without a meaning for the document as a whole.
fn print(command: &str, reader: &mut TexReader<'_>, into: &mut Body) {
    if let Some(accented) = reader.accented(command) {
        into.push(accented.encode_utf8(&mut [0; 4]));
        return;
    }
    match command {
        "\\" | "newline" | "par" | "item" | "hline" | "tabularnewline" | "maketitle" => into.line(),
        "%" | "&" | "$" | "#" | "_" | "{" | "}" => into.push(command),
        " " | "," | ";" | ":" | "quad" | "qquad" | "\n" => into.space(),
        "verb" | "verb*" => into.push(reader.verbatim()),
        _ => {
            if let Some(word) = WORDS.get(command) {
                into.push(word);
            } else if GREEK.contains(&command) {
                into.push(command);
            } else if let Some(count) = silent(command) {
                for _ in 0..count {
                    reader.skip_option();
                    reader.group();
                }
            } else if 1 < command.len() {
                reader.skip_option();
            }
        }
    }
}

/// Adds the names of the authors on a line, one or more.
fn split_authors(line: &str, authors: &mut Vec<String>) {
    let parts: Vec<&str> =
        line.split(", ").flat_map(|it| it.split(" and ")).map(str::trim).collect();
    if parts.iter().all(|it| 1 < it.trim_start_matches("and ").split_whitespace().count()) {
        authors.extend(parts.iter().map(|it| it.trim_start_matches("and ").to_owned()));
    } else {
        authors.push(line.trim().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    fn check(tex: &str, expected: &str) {
        assert_eq!(render("x.tex", Type::Tex, tex.as_bytes()), expected);
    }

    #[test]
    fn an_article() {
        check(
            "\\documentclass[11pt]{article}\n\\usepackage{url}\n\
             \\usepackage[main=british, ngerman, shorthands=off]{babel}\n\\newcommand{\\hv}{Harvest}\n\
             \\title{The \\hv{} System\\thanks{Paid}}\n\\author{C. Mic B\\\"owman\\\\ Transarc \\and \
             Peter \\'Elan}\n\\date{March 1995}\n\\begin{document}\n\\maketitle\n\\begin{abstract}\n\
             It is \\emph{hard}.\n\\end{abstract}\n\\keywords{a, b}\n\\section{Intro\\-duction}\n\
             % not shown\nText~of $\\alpha_1$ \\cite{x} 50\\% \\href{http://h.example/}{here}.\n\n\
             \\begin{tabular}{ll}a & b\\\\\n\\end{tabular}\n\\end{document}\njunk\n",
            "Title: The Harvest System\n\
             Author: C. Mic Böwman | Peter Élan\n\
             Abstract: It is hard.\n\
             Date: 1995-03\nDate-Source: header\n\
             Language: en-GB\nLanguage-Source: declared\n\
             Headings: Introduction\n\
             TeX-Class: article\n\
             URL-References: http://h.example/\n\
             Partial-Text: Introduction | Text of alpha_1 50% here. | a b",
        );
    }

    #[test]
    fn a_package_and_plain_tex() {
        check(
            "\\ProvidesPackage{foo}[2020/01/02 v1.3 Sets foos]\n",
            "Title: foo Sets foos\nDate: 2020-01-02\nDate-Source: header\nVersion: 1.3",
        );
        check("Hello \\bf world\n\\bye\n", "Title: x.tex\nPartial-Text: Hello world");
    }

    #[test]
    fn running_out_of_time_is_a_problem() {
        let text = format!("\\title{{{}}}", "a~".repeat(1_500));
        let object = crate::object::Object::whole("http://h.example/x.tex", text.into_bytes());
        let settings = crate::Settings::default();
        let looks = std::cell::Cell::new(0);
        // The second look comes within the title.
        let cancelled = || looks.replace(looks.get() + 1) == 1;
        let seen = crate::testing::summarize(&object, Type::Tex, &settings, &cancelled);
        assert_eq!(seen.problems.len(), 1);
        assert_eq!(looks.get(), 2);
    }

    #[test]
    fn macros_of_any_length_and_depth_are_expanded() {
        let long = "word".repeat(60);
        let deep: String = (b'a'..=b'y')
            .map(|it| format!("\\def\\{0}{{\\{1}}}", it as char, (it + 1) as char))
            .collect();
        let tex = format!(
            "\\newcommand{{\\long}}{{{long}}}{deep}\\def\\z{{deep}}\\title{{\\long{{}} \\a}}"
        );
        check(&tex, &format!("Title: {long} deep"));
    }

    #[test]
    fn macros_that_grow_end() {
        let bomb = "\\def\\a{\\b\\b\\b\\b\\b\\b\\b}\\def\\b{\\a\\a\\a\\a\\a\\a\\a}\\title{\\a}";
        let seen = render("x.tex", Type::Tex, bomb.as_bytes());
        assert!(seen.starts_with("Title: x.tex\nTruncated: text "), "{seen}");
        let open = "\\title{".repeat(50_000);
        render("x.tex", Type::Tex, open.as_bytes());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            render("x.tex", Type::Tex, &bytes);
        }

        #[test]
        fn any_tex_gives_a_record(parts in proptest::collection::vec(
            prop_oneof![Just("\\title"), Just("\\begin"), Just("\\def\\a"), Just("\\a"), Just("{"),
                Just("}"), Just("["), Just("]"), Just("\\"), Just("'"), Just("é"), Just("%"),
                Just("\n"), Just("abstract"), Just("\\verb"), Just("\\author"), Just("\\c")], 0..60)) {
            render("x.tex", Type::Tex, parts.concat().as_bytes());
        }
    }
}
