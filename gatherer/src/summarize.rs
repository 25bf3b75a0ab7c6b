//! Summarizing by type: one object in, one record out.
//!
//! Source: TR §4 and Figure 3; the attributes and their meaning are those of the user's manual. One
//! module a type; each turns an `Input` into a `Draft`, and this module makes the record of it,
//! so that every record has the same attributes in the same order.
//!
//! # Differences from the paper
//!
//! * Every record has a `Title`: where the content has none, it is the file's name.
//! * `Keywords` are the words of much more text than `Partial-Text` holds, so that a search finds
//!   what stands deep in a document although the document is not sent.
//! * Essence ran a program for each object; these are functions, bounded in time and memory.
//!
//! Sans-I/O.

mod about;
mod asciidoc;
mod audio;
pub(crate) mod bibtex;
pub(crate) mod catalog;
mod changes;
mod csl;
mod datacite;
mod detail;
pub(crate) mod distribution;
mod dvi;
mod epub;
mod faq;
mod font;
mod formatted;
mod html;
pub(crate) mod iafa;
mod image;
mod json;
mod jsonld;
mod link;
mod lsm;
pub(crate) mod mail;
mod man;
mod marc;
mod marcxml;
mod markdown;
pub mod markup;
mod news;
mod notebook;
mod numbers;
mod object;
mod office;
mod patch;
pub mod pdf;
mod plain;
mod postscript;
pub mod quick;
mod references;
mod revision;
mod rfc;
mod ris;
mod rst;
mod rtf;
mod soif;
mod source;
mod strings;
mod svg;
mod table;
mod tex;
mod tex_fonts;
mod texinfo;
mod troff;
mod typeset;
mod video;
mod wais;
mod watched;
mod xmp;

use std::borrow::Cow;
use std::sync::Arc;

use ::soif::Record;
use ::soif::digest::Md5;
use serde::{Deserialize, Serialize};

pub use detail::Detail;

use crate::config::FullText;
use crate::object::{Object, Problem, ProblemKind, Summary};
use crate::text::{Keywords, decode, front, one_line};
use crate::typing::{self, HEAD_BYTES, Recognizer, Type};

/// Longest `Title`, in bytes.
const TITLE_BYTES_MAX: usize = 300;
/// Longest `Author`, in bytes.
const AUTHOR_BYTES_MAX: usize = 4 * 1024;
/// Most authors that are looked at.
const AUTHORS_MAX: usize = 1_000;
/// Most of those attributes.
const OTHERS_MAX: usize = 64;
/// Most problems named for one object.
const PROBLEMS_MAX: usize = 100;

/// How much a record says. All bounds are per object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Recognizes types, and knows the names of the site's own.
    pub typing: Arc<Recognizer>,
    /// Types whose records carry `Full-Text` in place of `Partial-Text`.
    pub full_text: FullText,
    /// How much each record says.
    pub detail: Detail,
    /// Longest `Full-Text`, in bytes.
    pub full_text_bytes_max: usize,
    /// How much of the text is read for `Keywords`, in bytes.
    pub keywords_text_bytes_max: usize,
    /// Longest `Keywords`, in bytes.
    pub keywords_bytes_max: usize,
    /// Longest `URL-References`, in bytes.
    pub references_bytes_max: usize,
    /// Most `URL-References`.
    pub references_max: usize,
    /// What markup says.
    pub markup: markup::Tables,
    /// Summarizers that the site has declared.
    pub declared: quick::Declared,
    /// What marks classes of documents in PDF, and what is read of them.
    pub templates: pdf::Templates,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            typing: Arc::default(),
            full_text: FullText::None,
            detail: Detail::default(),
            full_text_bytes_max: 4 * 1024 * 1024,
            keywords_text_bytes_max: 1024 * 1024,
            keywords_bytes_max: 128 * 1024,
            references_bytes_max: 64 * 1024,
            references_max: 1_000,
            markup: markup::Tables::default(),
            declared: quick::Declared::default(),
            templates: pdf::Templates::default(),
        }
    }
}

impl Settings {
    fn is_full(&self, r#type: Type) -> bool {
        match &self.full_text {
            FullText::None => false,
            FullText::All => true,
            FullText::Types(names) => names.contains(self.typing.name(r#type)),
        }
    }

    /// Returns how much text of an object of this type is of use, in bytes.
    pub fn text_bytes_max(&self, r#type: Type) -> usize {
        let stored = if self.is_full(r#type) {
            self.full_text_bytes_max
        } else {
            self.detail.partial_text_bytes_max
        };
        stored.max(self.keywords_text_bytes_max)
    }
}

/// What a summarizer is given.
pub(crate) struct Input<'a> {
    /// The object.
    pub(crate) object: &'a Object,
    /// What it was recognized as.
    pub(crate) r#type: Type,
    /// How much to say.
    pub(crate) settings: &'a Settings,
    /// Whether to stop; polled inside every long loop.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
}

impl<'a> Input<'a> {
    /// Returns the most text that is of use, in bytes.
    pub(crate) fn text_bytes_max(&self) -> usize {
        self.settings.text_bytes_max(self.r#type)
    }

    /// Returns the front of the object, at most `bytes_max` bytes.
    pub(crate) fn head(&self, bytes_max: usize) -> &'a [u8] {
        let bytes = &self.object.bytes;
        bytes.get(..bytes.len().min(bytes_max)).unwrap_or_default()
    }

    /// Returns as much of the object as is of use, decoded.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        decode(self.head(self.text_bytes_max()), None)
    }
}

/// What a summarizer found. Everything may be empty; lengths are bounded later.
#[derive(Debug, Default)]
pub(crate) struct Draft<'a> {
    /// The title; white space is squeezed later, here and in the description.
    pub(crate) title: String,
    /// Authors, one each.
    pub(crate) authors: Vec<String>,
    /// A sentence or two.
    pub(crate) description: String,
    /// The author's own summary.
    pub(crate) r#abstract: String,
    /// Words that the author calls key words, or that say more than the body's.
    pub(crate) keywords: String,
    /// The text, at most [`Input::text_bytes_max`] bytes.
    pub(crate) body: Cow<'a, str>,
    /// URLs that the object refers to, in order, resolved where they can be.
    pub(crate) references: Vec<String>,
    /// Attributes that only this type has, by name, in order.
    pub(crate) others: Vec<(String, String)>,
    /// What went wrong, as kind and message.
    pub(crate) problems: Vec<(ProblemKind, String)>,
}

impl Draft<'_> {
    /// Adds an attribute that only some types have, unless it is empty.
    pub(crate) fn other(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if !value.trim().is_empty() && self.others.len() < OTHERS_MAX {
            self.others.push((name.to_owned(), value));
        }
    }

    /// Adds a problem.
    pub(crate) fn problem(&mut self, kind: ProblemKind, message: impl Into<String>) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push((kind, message.into()));
        }
    }
}

/// Summarizes `object` as what it is: a record with its content attributes. A type without a
/// summarizer of its own gives a record by name.
pub fn summarize(
    object: &Object,
    r#type: Type,
    settings: &Settings,
    cancelled: &dyn Fn() -> bool,
) -> Summary {
    let input = Input { object, r#type, settings, cancelled };
    let draft = draft(&input);
    finish(&input, draft)
}

/// Says what there is to say about an object, by its type: as the site has declared, or as is built in.
pub(crate) fn draft<'a>(input: &Input<'a>) -> Draft<'a> {
    input.settings.declared.draft(input, built_in)
}

fn built_in<'a>(input: &Input<'a>) -> Draft<'a> {
    match input.r#type {
        catalog if catalog::is_catalog(catalog) => catalog::summarize(input),
        Type::Text | Type::Readme => plain::prose(input),
        Type::Faq => faq::summarize(input),
        Type::Rfc | Type::InternetDraft | Type::Fyi => rfc::summarize(input),
        Type::ChangeLog => changes::summarize(input),
        Type::FormattedText => formatted::summarize(input),
        Type::WaisSource => wais::summarize(input),
        // The site's own types have no more than text in common, if that.
        Type::Site(_) if typing::is_text(input.head(HEAD_BYTES)) => plain::prose(input),
        Type::Site(_) => Draft::default(),
        Type::Html => html::summarize(input),
        Type::Xml | Type::Sgml => html::markup(input),
        Type::Markdown => markdown::summarize(input),
        Type::Rst => rst::summarize(input),
        Type::AsciiDoc => asciidoc::summarize(input),
        Type::Pdf => pdf::summarize(input),
        Type::Rtf => rtf::summarize(input),
        Type::Word | Type::Excel | Type::PowerPoint | Type::OpenDocument => {
            office::summarize(input)
        }
        Type::Epub => epub::summarize(input),
        Type::Csv => table::summarize(input),
        Type::Json => json::summarize(input),
        Type::Notebook => notebook::summarize(input),
        Type::Source(language) => source::summarize(input, language),
        Type::Makefile => source::makefile(input),
        Type::ManPage => man::summarize(input),
        Type::Troff => troff::summarize(input),
        Type::Mail | Type::Mailbox => mail::summarize(input),
        Type::News => news::summarize(input),
        Type::Tex => tex::summarize(input),
        Type::Texinfo => texinfo::summarize(input),
        Type::Patch => patch::summarize(input),
        Type::Rcs => revision::rcs(input),
        Type::Sccs => revision::sccs(input),
        Type::Svg => svg::summarize(input),
        Type::Image => image::summarize(input),
        Type::Audio => audio::summarize(input),
        Type::Video => video::summarize(input),
        Type::Font => font::summarize(input),
        Type::Object | Type::Command => object::summarize(input),
        Type::Binary => strings::summarize(input),
        Type::Dvi => dvi::summarize(input),
        Type::PostScript => postscript::summarize(input),
        Type::SymbolicLink => link::summarize(input),
        Type::Uuencoded => Draft::default(),
        other if other.is_text() => plain::lines(input),
        _ => Draft::default(),
    }
}

/// Makes a record of a draft.
pub(crate) fn finish(input: &Input<'_>, draft: Draft<'_>) -> Summary {
    let object = input.object;
    let mut record = Record::new("FILE", object.url.as_str());
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            record.push(name, value);
        }
    };
    let mut title = one_line(&draft.title, TITLE_BYTES_MAX);
    if title.is_empty() {
        title = one_line(&object.name, TITLE_BYTES_MAX);
    }
    let authors = authors(&draft.authors);
    let detail = input.settings.detail;
    let keywords = keywords(input, &draft, &title);
    put("Title", title);
    put("Author", authors);
    put("Description", one_line(&draft.description, detail.description_bytes_max));
    put("Abstract", front(draft.r#abstract.trim(), detail.abstract_bytes_max).to_owned());
    put("Type", input.settings.typing.name(input.r#type).to_owned());
    put("File-Size", object.size.to_string());
    if let Some(md5) = object.md5.or_else(|| (!object.truncated).then(|| Md5::of(&object.bytes))) {
        put("MD5", md5.to_string());
    }
    if let Some(modified) = object.modified {
        put("Last-Modification-Time", modified.to_string());
    }
    for (name, value) in &draft.others {
        let is_kept = detail::is_kept(name) || input.settings.declared.has(input.r#type, name);
        let most = if is_kept { Detail::RICH } else { detail }.other_bytes_max;
        put(name, detail::whole_lines(value.trim(), most).to_owned());
    }
    put("Keywords", keywords);
    put("URL-References", references(input.settings, &draft.references));
    let body = draft.body.trim_start_matches(['\n', '\r', '\u{c}', '\u{feff}']).trim_end();
    if input.settings.is_full(input.r#type) {
        put("Full-Text", front(body, input.settings.full_text_bytes_max).to_owned());
    } else {
        put("Partial-Text", front(body, detail.partial_text_bytes_max).to_owned());
    }
    let problems = draft.problems.into_iter();
    let problems = problems.map(|(kind, message)| Problem::new(&object.url, kind, message));
    Summary { record, problems: problems.collect(), given: None }
}

fn authors(authors: &[String]) -> String {
    let mut seen = String::new();
    for author in authors.iter().take(AUTHORS_MAX) {
        let author = one_line(author, TITLE_BYTES_MAX);
        if AUTHOR_BYTES_MAX < seen.len() + author.len() {
            break;
        }
        if !author.is_empty() && !seen.lines().any(|it| it == author) {
            if !seen.is_empty() {
                seen.push('\n');
            }
            seen.push_str(&author);
        }
    }
    seen
}

fn keywords(input: &Input<'_>, draft: &Draft<'_>, title: &str) -> String {
    let mut words = Keywords::new(input.settings.keywords_bytes_max);
    for text in [title, &draft.keywords, &draft.description, &draft.r#abstract] {
        words.add(front(text, input.settings.keywords_text_bytes_max));
    }
    words.add(front(&draft.body, input.settings.keywords_text_bytes_max));
    match input.settings.detail.keywords_max {
        None => words.finish(),
        Some(words_max) => words.most_telling(words_max),
    }
}

fn references(settings: &Settings, references: &[String]) -> String {
    let mut all = String::new();
    for reference in
        references.iter().take(settings.references_max.min(settings.detail.references_max))
    {
        if settings.references_bytes_max < all.len() + reference.len() + 1 {
            break;
        }
        if !all.is_empty() {
            all.push('\n');
        }
        all.push_str(reference);
    }
    all
}

/// What the tests of all summarizers share.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Summarizes `bytes` under `name` and renders the record, without what depends on the bytes as
    /// a whole (size, sum) and without the keywords.
    pub(crate) fn render(name: &str, r#type: Type, bytes: &[u8]) -> String {
        let object = Object::whole(format!("http://h.example/d/{name}"), bytes.to_vec());
        let summary = summarize(&object, r#type, &Settings::default(), &|| false);
        let mut lines = Vec::new();
        for attribute in summary.record.attributes() {
            if !matches!(attribute.name.as_str(), "File-Size" | "MD5" | "Keywords" | "Type") {
                let value = String::from_utf8_lossy(&attribute.value).replace('\n', " | ");
                lines.push(format!("{}: {value}", attribute.name));
            }
        }
        lines.extend(summary.problems.iter().map(|it| format!("! {}: {}", it.kind, it.message)));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn text_object(text: &str) -> Object {
        Object {
            modified: Some(793_962_520),
            ..Object::whole("http://h.example/notes.txt", text.as_bytes().to_vec())
        }
    }

    fn check(settings: &Settings, text: &str, expected: &[(&str, &str)]) {
        let summary = summarize(&text_object(text), Type::Text, settings, &|| false);
        let seen: Vec<(String, String)> = summary
            .record
            .attributes()
            .iter()
            .map(|it| (it.name.clone(), String::from_utf8_lossy(&it.value).into_owned()))
            .collect();
        let seen: Vec<(&str, &str)> = seen.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(seen, expected);
        assert_eq!(summary.problems, []);
    }

    #[test]
    fn a_record_has_the_attributes_of_the_manual_in_one_order() {
        check(
            &Settings::default(),
            "A short note\n\nAbout the word harvest.\n",
            &[
                ("Title", "A short note"),
                ("Description", "About the word harvest."),
                ("Type", "Text"),
                ("File-Size", "38"),
                ("MD5", "f8fa9e712a179ba7bc020fdc0b0af7d2"),
                ("Last-Modification-Time", "793962520"),
                ("Keywords", "about\nharvest\nnote\nshort\nthe\nword"),
                ("Partial-Text", "A short note\n\nAbout the word harvest."),
            ],
        );
    }

    #[test]
    fn full_text_is_by_type() {
        let types = BTreeSet::from(["Text".to_owned()]);
        let settings = Settings { full_text: FullText::Types(types), ..Settings::default() };
        let text = "word ".repeat(10_000);
        let full = summarize(&text_object(&text), Type::Text, &settings, &|| false).record;
        assert_eq!(full.get("Full-Text").map(<[u8]>::len), Some(text.len() - 1));
        assert_eq!(full.get("Partial-Text"), None);
        let part = summarize(&text_object(&text), Type::Readme, &settings, &|| false).record;
        assert_eq!(part.get("Partial-Text").map(<[u8]>::len), Some(16 * 1024 - 5));
    }

    #[test]
    fn a_site_says_how_much_its_records_say() {
        let page = format!(
            "<title>Reaping</title><meta name=description content='How to reap.'>\
             <meta name=DC.date content=1995><h1>Sickles</h1><a href=x.html>{}</a>",
            "reaper reaper scythe wheat ".repeat(9)
        );
        let said = |detail: Detail| {
            let settings = Settings { detail, ..Settings::default() };
            let object = Object::whole("http://h.example/p.html", page.as_bytes().to_vec());
            let record = summarize(&object, Type::Html, &settings, &|| false).record;
            let value = |name| record.text(name).unwrap_or_default().replace('\n', " ");
            let names = ["Description", "Date", "Keywords", "URL-References", "Partial-Text"];
            assert_eq!(record.text("Title").as_deref(), Some("Reaping"));
            names.map(value).map(|it| it.chars().take(16).collect::<String>())
        };
        let links = "http://h.example";
        assert_eq!(
            said(Detail::RICH),
            ["How to reap.", "1995", "how reap reaper ", links, "Sickles reaper r"]
        );
        assert_eq!(said(Detail::BRIEF), ["", "1995", "how reap reaper ", "", ""]);
        let one = Detail { keywords_max: Some(1), description_bytes_max: 5, ..Detail::TERSE };
        assert_eq!(said(one), ["How", "", "reaper reaper re", "", ""]);
        assert_eq!(said(Detail::NAMES), [""; 5]);
    }

    #[test]
    fn what_identifies_and_what_is_declared_is_in_every_record() {
        let declared = "[[summarizer]]\ntype = 'Mail'\nbeside = true\n\
                        [[summarizer.attribute]]\nname = 'Invoice'\nmatch = 'invoice (\\d+)'\n";
        let declared = quick::Declared::read(&[("q".into(), declared.to_owned())], None).unwrap();
        let id = format!("{}@h.example", "x".repeat(120));
        let mail = format!(
            "From: Ann <a@h.example>\nTo: {}@h.example\nMessage-ID: <{id}>\nSubject: S\n\ninvoice 17\n",
            "b".repeat(120)
        );
        for detail in [Detail::NAMES, Detail::TERSE, Detail::BRIEF] {
            let settings = Settings { detail, declared: declared.clone(), ..Settings::default() };
            let object = Object::whole("http://h.example/a.eml", mail.as_bytes().to_vec());
            let record = summarize(&object, Type::Mail, &settings, &|| false).record;
            assert_eq!(record.text("Message-Id").as_deref(), Some(&*id), "{detail:?}");
            assert_eq!(record.text("Invoice").as_deref(), Some("17"), "{detail:?}");
            assert_eq!(record.get("To"), None, "{detail:?}");
        }
    }

    #[test]
    fn words_deep_in_a_text_are_keywords() {
        let text = format!("{}needle", "hay ".repeat(100_000));
        let record =
            summarize(&text_object(&text), Type::Text, &Settings::default(), &|| false).record;
        assert_eq!(record.text("Keywords").as_deref(), Some("hay\nneedle"));
    }

    #[test]
    fn an_object_that_is_not_all_there_has_no_sum() {
        let object = Object { truncated: true, size: 1 << 40, ..text_object("front") };
        let record = summarize(&object, Type::Text, &Settings::default(), &|| false).record;
        assert_eq!(record.get("MD5"), None);
        assert_eq!(record.number("File-Size"), Some(1 << 40));
    }

    #[test]
    fn a_type_without_a_summarizer_gives_a_record_by_name() {
        let object = Object::whole("http://h.example/my%20photo.png", &b"\x89PNG"[..]);
        let record = summarize(&object, Type::Image, &Settings::default(), &|| false).record;
        assert_eq!(record.text("Title").as_deref(), Some("my photo.png"));
        assert_eq!(record.text("Keywords").as_deref(), Some("my\nphoto\npng"));
        assert_eq!(record.get("Partial-Text"), None);
    }
}
