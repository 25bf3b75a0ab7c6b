//! The Rich Text Format summarizer: metadata of `\info`, headings by style, links, and text.
//!
//! Source: Microsoft's Rich Text Format Specification 1.9.1; \[MS-OXRTFEX\] 2.1.3 for pages that Outlook
//! has put into RTF, which are read as the pages that they were.
//!
//! # Differences from the specification
//!
//! * Of formatting, only hidden text and the character sets of fonts, which give the charset of the
//!   text, are followed.
//! * Headers and footers of pages follow the text, each line once.
//! * Bytes before the beginning, as mail programs and editors leave them, are skipped.

mod groups;
mod tokens;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use encoding_rs::{Encoding, WINDOWS_1252};
use groups::{Destination, FIELDS, GroupState, PAGE_TEXTS, SKIPPED};
use tokens::{RtfToken, RtfTokens};

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::object::Object;
use crate::office::codepage;
use crate::prose::references::References;
use crate::text::{Body, HEADINGS_BYTES_MAX, is_telling, one_line};
use crate::{DateSource, Draft, Input, Type, html};

/// Maximum number of fonts, and of styles of headings: their numbers have 16 bits.
const FONTS_MAX: usize = 64 * 1024;
/// First bytes of every document.
pub(super) const START: &[u8] = b"{\\rtf";
/// Length of the front in which they are looked for, in bytes.
const START_BYTES_MAX: usize = 4 * 1024;

/// The state of reading, and the attributes so far.
struct RtfReader {
    state: GroupState,
    stack: Vec<GroupState>,
    /// Groups that were opened beyond [`Limit::Groups`].
    beyond: usize,
    /// Whether `\*` was read last: the group is skipped if its next word is unknown.
    optional: bool,
    /// Number of stand-in characters still to skip.
    to_skip: usize,
    encoding: &'static Encoding,
    fonts: HashMap<i64, &'static Encoding>,
    font: i64,
    /// Styles of headings, by number.
    heading_styles: HashSet<i64>,
    style: i64,
    in_heading: bool,
    /// Bytes in the charset `state.encoding`.
    bytes: Vec<u8>,
    /// The first half of a surrogate pair.
    high: Option<u32>,
    run: Body,
    paragraph: Body,
    body: Body,
    /// The page that is in the document; then all text and the marks of `\*\htmltag` are its source.
    page: Option<Body>,
    /// The open paragraph of a header or footer, and the ended ones.
    page_paragraph: Body,
    page_texts: Body,
    page_lines: HashSet<String>,
    headings: Body,
    description: String,
    fields: Vec<(&'static str, String)>,
    created: [i64; 3],
    references: References,
    /// Limits that it goes beyond.
    cuts: BTreeSet<Limit>,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let state = GroupState {
        destination: Destination::Text,
        outer: Destination::Text,
        stand_ins: 1,
        encoding: WINDOWS_1252,
        hidden: false,
        in_page: false,
    };
    let mut document = RtfReader {
        state,
        stack: Vec::new(),
        beyond: 0,
        optional: false,
        to_skip: 0,
        encoding: WINDOWS_1252,
        fonts: HashMap::new(),
        font: 0,
        heading_styles: HashSet::new(),
        style: 0,
        in_heading: false,
        bytes: Vec::new(),
        high: None,
        run: Body::new(Limit::Property.bound()),
        paragraph: Body::new(Limit::Paragraph.bound()),
        body: Body::new(input.text_bytes_max()),
        page: None,
        page_paragraph: Body::new(Limit::Paragraph.bound()),
        page_texts: Body::new(Limit::PageTexts.bound()),
        page_lines: HashSet::new(),
        headings: Body::new(HEADINGS_BYTES_MAX),
        description: String::new(),
        fields: Vec::new(),
        created: [0; 3],
        references: References::of(input),
        cuts: BTreeSet::new(),
    };
    let mut time = TimeLimit::new(input.cancelled);
    let bytes = input.head(Limit::Document.bound());
    let start = memchr::memmem::find(input.head(START_BYTES_MAX), START).unwrap_or(0);
    let bytes = bytes.get(start..).unwrap_or(bytes);
    for token in RtfTokens::new(bytes).take_while(|_| time.goes_on()) {
        document.token(&token);
        if document.page.as_ref().unwrap_or(&document.body).is_full() {
            break;
        }
    }
    document.flush();
    document.end_paragraph();
    document.end_page_paragraph();
    let cuts = std::mem::take(&mut document.cuts);
    let mut draft = match document.page.take() {
        Some(source) => page(input, source),
        None => document.draft(),
    };
    cuts.into_iter().for_each(|it| draft.cut(it.cut()));
    time.report("the document", &mut draft);
    input.report(Limit::Document, &mut draft);
    draft
}

fn page(input: &Input<'_>, source: Body) -> Draft<'static> {
    let is_cut = source.is_full() || source.is_cut();
    let object = Object::whole(format!("{}#page", input.object.url), source.finish());
    let page = html::summarize(&Input { object: &object, r#type: Type::Html, ..*input });
    let mut draft = Draft {
        title: page.title,
        authors: page.authors,
        description: page.description,
        r#abstract: page.r#abstract,
        keywords: page.keywords,
        words: page.words,
        body: Cow::Owned(page.body.into_owned()),
        references: page.references,
        leads: None,
        others: page.others,
        places: page.places,
        problems: page.problems,
    };
    if is_cut {
        draft.cut(Limit::RtfPage.cut());
    }
    draft
}

impl RtfReader {
    fn token(&mut self, token: &RtfToken<'_>) {
        match token {
            RtfToken::Open => {
                self.flush();
                self.to_skip = 0;
                if self.stack.len() < Limit::Groups.bound() {
                    self.stack.push(self.state);
                } else {
                    self.beyond += 1;
                }
            }
            RtfToken::Close => self.close(),
            RtfToken::Text(_) | RtfToken::Byte(_) if 0 < self.beyond => {
                self.cuts.insert(Limit::Groups);
            }
            _ if 0 < self.beyond => {}
            RtfToken::Text(text) => {
                let skipped = self.to_skip.min(text.len());
                self.to_skip -= skipped;
                self.take(text.get(skipped..).unwrap_or_default());
            }
            RtfToken::Byte(byte) => {
                if 0 < self.to_skip {
                    self.to_skip -= 1;
                } else {
                    self.take(&[*byte]);
                }
            }
            RtfToken::Optional => self.optional = true,
            RtfToken::Word(word, number) => {
                let optional = std::mem::take(&mut self.optional);
                if 0 < self.to_skip {
                    self.to_skip -= 1;
                    return;
                }
                self.flush();
                self.word(word, *number, optional);
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.state.destination != Destination::Skipped && !self.state.hidden {
            let room = Limit::Paragraph.bound().saturating_sub(self.bytes.len()).min(bytes.len());
            if room < bytes.len() {
                self.cuts.insert(Limit::Paragraph);
            }
            self.bytes.extend_from_slice(bytes.get(..room).unwrap_or_default());
        }
    }

    /// Decodes the bytes so far, and adds them to their destination.
    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            self.high = None;
            self.text(&self.state.encoding.decode_without_bom_handling(&bytes).0);
            self.bytes = bytes;
            self.bytes.clear();
        }
    }

    fn text(&mut self, text: &str) {
        match self.state.destination {
            Destination::Text if self.state.hidden => {}
            Destination::Text if self.state.in_page => self.page_paragraph.push(text),
            Destination::Text => self.page.as_mut().unwrap_or(&mut self.paragraph).push(text),
            Destination::Field(_) | Destination::Styles | Destination::Instruction => {
                self.run.push(text);
            }
            _ => {}
        }
    }

    fn close(&mut self) {
        self.flush();
        (self.to_skip, self.optional) = (0, false);
        if 0 < self.beyond {
            self.beyond -= 1;
            return;
        }
        let Some(outer) = self.stack.pop() else { return };
        let ended = self.state.destination;
        if self.run.is_cut() {
            self.cuts.insert(Limit::Property);
        }
        if self.state.in_page && !outer.in_page {
            self.end_page_paragraph();
        }
        self.state = outer;
        match ended {
            Destination::Styles => {
                self.in_heading = false;
                let name = self.run.take().trim_start().to_ascii_lowercase();
                if name.starts_with("heading ") || name.starts_with("title") {
                    self.style_is_heading();
                }
            }
            Destination::Field(name) if outer.destination != ended => {
                let value = self.run.take();
                if !self.fields.iter().any(|(it, _)| *it == name) {
                    self.fields.push((name, value));
                }
            }
            Destination::Instruction if outer.destination != ended => {
                self.references.add_field(&self.run.take());
            }
            _ => {}
        }
    }

    fn style_is_heading(&mut self) {
        if self.heading_styles.len() < FONTS_MAX {
            self.heading_styles.insert(self.style);
        }
    }

    fn word(&mut self, word: &str, number: Option<i64>, optional: bool) {
        if self.state.destination == Destination::Skipped && word != "ud" {
            return;
        }
        let value = number.unwrap_or(1);
        if self.group(word) || self.document(word, value) || self.paragraphs(word, value) {
            return;
        }
        match word {
            "u" => self.unicode(value),
            "uc" => self.state.stand_ins = usize::try_from(value).unwrap_or(1).min(16),
            // What is for readers of RTF alone is hidden from those of the page.
            "htmlrtf" => self.state.hidden = value != 0,
            "v" | "plain" if self.page.is_some() => {}
            "v" => self.state.hidden = value != 0,
            "plain" => self.state.hidden = false,
            "fromhtml" => self.page = Some(Body::new(Limit::RtfPage.bound())),
            "tab" => self.text("\t"),
            "line" | "softline" | "lbr" => self.text("\n"),
            "emdash" => self.text("\u{2014}"),
            "endash" => self.text("\u{2013}"),
            "lquote" => self.text("\u{2018}"),
            "rquote" => self.text("\u{2019}"),
            "ldblquote" => self.text("\u{201c}"),
            "rdblquote" => self.text("\u{201d}"),
            "bullet" => self.text("\u{2022}"),
            "~" | "emspace" | "enspace" | "qmspace" => self.text(" "),
            "_" => self.text("-"),
            _ if optional => self.state.destination = Destination::Skipped,
            _ => {}
        }
    }

    /// Handles a word that gives the group's destination; returns false for any other.
    fn group(&mut self, word: &str) -> bool {
        let field = FIELDS.into_iter().find(|it| *it == word);
        self.state.destination = match (word, field) {
            ("info", _) => Destination::Info,
            ("fonttbl", _) => Destination::Fonts,
            ("stylesheet", _) => Destination::Styles,
            ("fldinst", _) => Destination::Instruction,
            ("fldrslt" | "shpinst" | "do" | "footnote", _) => Destination::Text,
            // Text boxes, in shapes or older drawing objects.
            ("shptxt" | "dptxbxtext", _) => {
                self.paragraph.line();
                Destination::Text
            }
            ("htmltag", _) if self.page.is_some() => Destination::Text,
            ("upr", _) => {
                self.state.outer = self.state.destination;
                Destination::Skipped
            }
            ("ud", _) => self.state.outer,
            ("creatim", _) => Destination::Created,
            (_, Some("generator")) => Destination::Field("generator"),
            (_, Some(name)) if self.state.destination == Destination::Info => {
                Destination::Field(name)
            }
            _ if SKIPPED.contains(&word) => Destination::Skipped,
            _ if PAGE_TEXTS.contains(&word) => {
                self.state.in_page = true;
                Destination::Text
            }
            _ => return false,
        };
        true
    }

    /// Handles a word for charset, font or date of creation; returns false for any other.
    fn document(&mut self, word: &str, value: i64) -> bool {
        match word {
            "ansicpg" => self.whole(codepage::of_number(value)),
            "mac" => self.whole(codepage::of_number(10000)),
            "f" => {
                self.font = value;
                if self.state.destination != Destination::Fonts {
                    self.state.encoding = self.fonts.get(&value).copied().unwrap_or(self.encoding);
                }
            }
            "fcharset" | "cpg" => {
                let page = if word == "cpg" { Some(value) } else { codepage::of_font(value) };
                if self.state.destination == Destination::Fonts
                    && self.fonts.len() < FONTS_MAX
                    && let Some(page) = page
                {
                    self.fonts.insert(self.font, codepage::of_number(page));
                }
            }
            "yr" | "mo" | "dy" if self.state.destination == Destination::Created => {
                let at = ["yr", "mo", "dy"].iter().position(|it| *it == word).unwrap_or(0);
                if let Some(part) = self.created.get_mut(at) {
                    *part = value;
                }
            }
            _ => return false,
        }
        true
    }

    fn whole(&mut self, encoding: &'static Encoding) {
        self.encoding = encoding;
        self.state.encoding = encoding;
    }

    fn paragraphs(&mut self, word: &str, value: i64) -> bool {
        match word {
            "par" | "row" | "sect" | "page" | "column" => {
                if self.state.destination != Destination::Text {
                    self.text(" ");
                } else if self.state.in_page {
                    self.end_page_paragraph();
                } else {
                    self.end_paragraph();
                }
            }
            "cell" | "nestcell" => self.text("\t"),
            "pard" => self.in_heading = false,
            "s" => {
                self.style = value;
                self.in_heading = self.heading_styles.contains(&value);
            }
            "outlinelevel" if self.state.destination == Destination::Styles => {
                self.style_is_heading();
            }
            "outlinelevel" => self.in_heading = (0..9).contains(&value),
            _ => return false,
        }
        true
    }

    /// `\u8364?`: a character, and its stand-in for programs without Unicode.
    fn unicode(&mut self, value: i64) {
        self.to_skip = self.state.stand_ins;
        // The number is a signed one of 16 bits.
        let code = u32::try_from(value.rem_euclid(0x1_0000)).unwrap_or(0xfffd);
        let code = match (self.high.take(), code) {
            (_, 0xd800..0xdc00) => {
                self.high = Some(code);
                return;
            }
            (Some(high), 0xdc00..0xe000) => 0x1_0000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            _ => code,
        };
        let character = char::from_u32(code).unwrap_or('\u{fffd}');
        self.text(character.encode_utf8(&mut [0; 4]));
    }

    fn end_paragraph(&mut self) {
        if self.page.is_some() {
            self.text("\n");
            return;
        }
        if self.paragraph.is_cut() {
            self.cuts.insert(Limit::Paragraph);
        }
        let paragraph = self.paragraph.take();
        let text = paragraph.trim();
        if text.is_empty() {
            return;
        }
        if self.in_heading {
            self.headings.push_squeezed_line(text);
        } else if self.description.is_empty() && is_telling(text) {
            text.clone_into(&mut self.description);
        }
        self.references.add_bare(text);
        self.body.push_lines(text);
    }

    /// Ends a paragraph of a header or footer. Sections repeat them.
    fn end_page_paragraph(&mut self) {
        if self.page_paragraph.is_over() {
            self.cuts.insert(Limit::Paragraph);
        }
        let paragraph = self.page_paragraph.take();
        let text = one_line(&paragraph, Limit::Paragraph.bound());
        if !text.is_empty() && !self.page_lines.contains(&text) {
            self.page_texts.push_line(&text);
            if self.page_texts.is_cut() {
                self.cuts.insert(Limit::PageTexts);
            } else {
                self.page_lines.insert(text);
            }
        }
    }

    fn draft<'a>(mut self) -> Draft<'a> {
        let mut draft = Draft::default();
        let field = |name: &str| self.fields.iter().find(|(it, _)| *it == name);
        let field = |name: &str| field(name).map_or("", |(_, value)| value.trim());
        // Some programs write a hyphen in place of an empty value.
        let field = |name: &str| Some(field(name)).filter(|it| is_telling(it)).unwrap_or_default();
        draft.title = match field("title") {
            "" => self.body.as_str().lines().next().unwrap_or_default().to_owned(),
            title => title.to_owned(),
        };
        draft.authors.push(field("author").to_owned());
        draft.description = match field("doccomm") {
            "" => self.description,
            comment => comment.to_owned(),
        };
        draft.keywords = field("keywords").to_owned();
        let [year, month, day] = self.created;
        draft.date(&format!("{year:04}-{month:02}-{day:02}"), DateSource::Properties);
        draft.other("Subject", field("subject"));
        draft.other("Publisher", field("company"));
        draft.other("Generator", field("generator").trim_end_matches(';'));
        draft.other("Headings", self.headings.as_str().trim());
        draft.references = self.references.finish();
        self.body.push_lines(self.page_texts.as_str());
        draft.set_body(self.body);
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
        assert_eq!(render("n.rtf", Type::Rtf, text.as_bytes()), expected);
    }

    #[test]
    fn a_document() {
        check(
            "{\\rtf1\\ansi\\ansicpg1252\\deff0{\\fonttbl{\\f0\\fswiss Arial;}{\\f1\\fcharset204 Times;}}\r\n\
             {\\colortbl;\\red0\\green0\\blue0;}{\\stylesheet{\\ql Normal;}{\\s1\\b heading 1;}\
             {\\s2\\outlinelevel1 \\'dcberschrift;}{\\*\\cs3 Title Char;}}\
             {\\info{\\title The title}{\\author Ann}{\\keywords a1, b2}{\\subject Things}\
             {\\creatim\\yr2004\\mo5\\dy6\\hr7}{\\revtim\\yr2005}{\\*\\company Firm}}\
             {\\*\\generator Riched20 10.0;}{\\header top}\r\n\
             \\pard\\s1 First\\par\\pard\\plain Gr\\'fc\\'dfe \\f1\\'cf\\f0  \\u8364?\\u-10179?\\u-8704? \\{x\\}\r\n\
             y\\~z\\line {\\field{\\*\\fldinst{HYPERLINK \"http://w.example/\"}}{\\fldrslt{a link}}}.\\par\r\n\
             \\s2 Second\\par\\pard a\\cell b\\cell\\row{\\pict\\bin3 }}}}{\\*\\unknown no}{\\v hidden}end}",
            "Title: The title\n\
             Author: Ann\n\
             Description: Grüße П €😀 {x}y z a link.\n\
             Date: 2004-05-06\nDate-Source: document properties\n\
             Subject: Things\n\
             Publisher: Firm\n\
             Generator: Riched20 10.0\n\
             Headings: First | Second\n\
             URL-References: http://w.example/\n\
             Partial-Text: First | Grüße П €😀 {x}y z | a link. | Second | a b | end | top",
        );
    }

    #[test]
    fn charsets() {
        check(
            "{\\rtf1\\ansi\\ansicpg1251 \\'cf\\'f0}",
            "Title: Пр\nDescription: Пр\nPartial-Text: Пр",
        );
        check(
            "{\\rtf1{\\fonttbl{\\f2\\fcharset128 x;}}\\f2 \\'83e\\'83X}",
            "Title: テス\nDescription: テス\nPartial-Text: テス",
        );
        check(
            "{\\rtf1\\uc2 \\u228\\'81\\'82b{\\upr{no}{\\*\\ud{yes}}}\\uc0\\u246 o}",
            "Title: äbyesöo\nDescription: äbyesöo\nPartial-Text: äbyesöo",
        );
    }

    #[test]
    fn headers_and_footers_follow_the_text_once() {
        check(
            "{\\rtf1{\\headerl Firm\\par Secret}{\\footer{\\field{\\*\\fldinst PAGE}{\\fldrslt 1}} of 2}One\\par\\sect\
             {\\header Firm}Two{\\*\\do\\dptxbx{\\dptxbxtext\\pard In a box\\par}}}",
            "Title: One\nDescription: One\nPartial-Text: One | Two | In a box | Firm | Secret | 1 of 2",
        );
    }

    #[test]
    fn long_headers_are_cut() {
        // A header of many short runs.
        let header = "a b\\tab ".repeat(20_000);
        let rendered =
            render("n.rtf", Type::Rtf, format!("{{\\rtf1{{\\header {header}}}x}}").as_bytes());
        assert!(rendered.contains("Truncated: paragraph 65536"), "{rendered}");
    }

    #[test]
    fn bytes_before_a_document_are_skipped() {
        check(
            "\r\n\u{feff} left {\\rtf1 words}",
            "Title: words\nDescription: words\nPartial-Text: words",
        );
        let bytes = b"\r\n{\\rtf1 words}";
        let rendered = render("n.doc", Type::Word, bytes);
        assert_eq!(rendered, "Title: words\nDescription: words\nPartial-Text: words");
    }

    #[test]
    fn hostile_documents_end() {
        check("{\\rtf1 \\bin99999999999 x}", "Title: n.rtf");
        check("}}}}\\", "Title: n.rtf");
        check(
            &format!("{{\\rtf1 a{}b", "{".repeat(100_000)),
            "Title: a\nPartial-Text: a\nTruncated: groups 512\n\
             ! limit: has more than 512 groups in a group; the rest was left out",
        );
        check(
            &format!("{{\\rtf1 a{}{}b", "{".repeat(100_000), "}".repeat(100_000)),
            "Title: ab\nDescription: ab\nPartial-Text: ab",
        );
        render("n.rtf", Type::Rtf, "\\u1?\\f9{\\fonttbl\\f1\\fcharset2".repeat(20_000).as_bytes());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(
            text in "(\\{|\\}|[\\\\](par|u|uc|'|bin|[*]|fonttbl|info|title|f|s|upr|ud|fldinst)|-?[0-9]{1,3}|[a-c ]|\\PC){0,80}",
        ) {
            prop_assert!(render("n.rtf", Type::Rtf, text.as_bytes()).starts_with("Title: "));
        }
    }
}
