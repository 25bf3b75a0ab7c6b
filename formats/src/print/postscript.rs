//! PostScript: what its comments say, and the text that its pages show.
//!
//! Source: Adobe Document Structuring Conventions 3.0 §5 (header comments); Adobe pdfmark reference
//! §2 (`DOCINFO`, `URI`).
//!
//! # Differences from the paper
//!
//! * Essence ran a converter for each file. Here nothing is run: the strings of the pages are read,
//!   and put where the programs that make most PostScript (dvips, groff) say that they go. So no
//!   endless loop can be met, and what a program computes is not seen.
//!
//! Sans-I/O.

mod show;
mod tokens;

use std::borrow::Cow;

use memchr::memmem;
use show::{Dialect, Shower};
use tokens::{Token, Tokens};

use crate::about::{About, Field};
use crate::numbers::{le32, slice_up_to};
use crate::object::ProblemKind;
use crate::text::{decode, is_telling};
use crate::{Draft, Input};

/// How much of a document is read, in bytes: pictures in it may be large.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Tokens between two looks at the clock.
const POLL_TOKENS: usize = 2_048;
/// Most tokens of one document.
const TOKENS_MAX: usize = 20_000_000;
/// How far the header is looked for, in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// How far from the end the trailer is looked for, in bytes.
const TRAILER_BYTES_MAX: usize = 8 * 1024;
/// Most lines of header or trailer.
const LINES_MAX: usize = 1_000;
/// Of text, this many in a hundred characters are letters at least; less is the code of a font.
const LETTERS_MIN: usize = 55;

/// Summarizes a document.
pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = unwrapped(input.head(DOCUMENT_BYTES_MAX));
    let mut header = Header::default();
    header.read(slice_up_to(bytes, 0, HEADER_BYTES_MAX), false);
    let end = bytes.len().saturating_sub(TRAILER_BYTES_MAX);
    header.read(bytes.get(end..).unwrap_or_default(), true);
    let mut shower = Shower::new(dialect(bytes, &header), input.text_bytes_max());
    let mut references = Vec::new();
    let late = !pages(bytes, input, &mut shower, &mut header.about, &mut references);
    let text = shower.finish();
    let readable = is_readable(&text.body);
    if header.about.title_is_a_file() && readable {
        header.about.add(Field::Title, &text.title);
    }
    header.about.add(Field::Title, &header.file);
    let mut draft = header.about.draft(0);
    let pages = if header.pages == 0 { text.pages } else { header.pages };
    if 0 < pages {
        draft.other("Pages", pages.to_string());
    }
    draft.other("Dimensions", header.size);
    draft.other("Fonts", header.fonts.join("\n"));
    draft.other("For", header.owner);
    draft.references = references;
    if readable {
        draft.body = Cow::Owned(text.body);
    }
    if late {
        draft.problem(ProblemKind::Time, "ran out of time on its pages");
    }
    draft
}

/// Takes off what DOS puts around an EPS file, to add a picture of it.
fn unwrapped(bytes: &[u8]) -> &[u8] {
    match bytes {
        [0xc5, 0xd0, 0xd3, 0xc6, ..] => {
            let place = le32(bytes, 4).zip(le32(bytes, 8)).unwrap_or_default();
            slice_up_to(bytes, place.0 as usize, place.1 as usize)
        }
        [4, rest @ ..] => rest,
        _ => bytes,
    }
}

impl About {
    /// Whether there is no title yet.
    fn title_is_a_file(&self) -> bool {
        self.lines(Field::Title).is_empty()
    }
}

/// What the comments say.
#[derive(Default)]
struct Header {
    about: About,
    /// What is called the title, and is the name of a file.
    file: String,
    creator: String,
    pages: usize,
    size: String,
    owner: String,
    fonts: Vec<String>,
}

impl Header {
    fn read(&mut self, bytes: &[u8], trailer: bool) {
        let epsf = memmem::find(slice_up_to(bytes, 0, 64), b"EPSF").is_some();
        let lines = bytes.split(|it| matches!(it, b'\n' | b'\r')).take(LINES_MAX);
        let mut lines = lines.filter(|line| line.starts_with(b"%%"));
        for line in lines.by_ref() {
            let line = decode(line, Some("iso-8859-1"));
            if !trailer && (line.starts_with("%%EndComments") || line.starts_with("%%Page:")) {
                break;
            }
            let Some((name, value)) = line.get(2..).and_then(|it| it.split_once(':')) else {
                continue;
            };
            let value = value.trim();
            if !value.is_empty() && value != "(atend)" {
                self.comment(name, value, epsf);
            }
        }
    }

    fn comment(&mut self, name: &str, value: &str, epsf: bool) {
        // A value may be a string as programs write it.
        let text = match Tokens::new(value.as_bytes()).next() {
            Some(Token::String(text)) if value.starts_with('(') && value.ends_with(')') => {
                text_string(&text)
            }
            _ => value.to_owned(),
        };
        match name {
            "Title" if is_file(&text) => self.file = text,
            "Title" => self.about.add(Field::Title, &text),
            "Creator" => {
                self.about.add(Field::Generator, &text);
                self.creator = text;
            }
            "CreationDate" => self.about.add(Field::Date, &text),
            "Copyright" => self.about.add(Field::Copyright, &text),
            "Author" => self.about.add(Field::Author, &text),
            "For" => self.owner = text,
            "Pages" => {
                let pages = text.split(' ').next().and_then(|it| it.parse().ok());
                self.pages = pages.unwrap_or(self.pages);
            }
            "BoundingBox" if epsf => {
                let sides: Vec<i64> =
                    text.split(' ').filter_map(|it| it.trim().parse().ok()).collect();
                if let [left, bottom, right, top] = sides.as_slice()
                    && left < right
                    && bottom < top
                {
                    let (width, height) =
                        (right.saturating_sub(*left), top.saturating_sub(*bottom));
                    self.size = format!("{width}x{height}");
                }
            }
            "DocumentFonts" | "DocumentNeededFonts" | "DocumentSuppliedFonts" => {
                for font in text.split_whitespace().take(LINES_MAX) {
                    if !self.fonts.iter().any(|it| it == font) {
                        self.fonts.push(font.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether a title is the name of a file that the document was made from.
fn is_file(title: &str) -> bool {
    let last = title.rsplit(['.', '/']).next().unwrap_or_default();
    let named = !title.contains(' ') && last.len() < title.len() && last.len() <= 4;
    named || !is_telling(title) || matches!(title, "stdin" | "<stdin>" | "-" | "Untitled")
}

/// Returns which program made the document.
fn dialect(bytes: &[u8], header: &Header) -> Dialect {
    let head = slice_up_to(bytes, 0, HEADER_BYTES_MAX);
    if header.creator.contains("dvips") || memmem::find(head, b"TeXDict begin").is_some() {
        Dialect::Dvips
    } else if header.creator.starts_with("groff") {
        Dialect::Groff
    } else {
        Dialect::General
    }
}

/// Reads the pages; false when the time was up.
fn pages(
    bytes: &[u8],
    input: &Input<'_>,
    shower: &mut Shower,
    about: &mut About,
    references: &mut Vec<String>,
) -> bool {
    let mut tokens = Tokens::new(bytes);
    // What is in front of the first page is programs; without comments, nobody knows.
    let structured = memmem::find(bytes, b"%%EndProlog").is_some();
    let mut in_pages = !structured;
    let mut marks = Marks::default();
    let mut depth = 0_usize;
    for number in 0..TOKENS_MAX {
        if number.is_multiple_of(POLL_TOKENS) && (input.cancelled)() {
            return false;
        }
        let Some(token) = tokens.next() else { break };
        match &token {
            Token::Comment(comment) => {
                in_pages |= ["%%Page:", "%%EndSetup", "%%EndProlog"]
                    .iter()
                    .any(|it| comment.starts_with(it.as_bytes()));
                if comment.starts_with(b"%%Page:") {
                    shower.page();
                }
                shower.comment(comment);
                continue;
            }
            Token::OpenProcedure => depth += 1,
            Token::CloseProcedure => {
                depth = depth.saturating_sub(1);
                continue;
            }
            _ => {}
        }
        marks.token(&token, about, &mut |url| {
            let url = String::from_utf8_lossy(url).into_owned();
            let new = url.contains("://") && !references.contains(&url);
            if new && references.len() < input.settings.references_max {
                references.push(url);
            }
        });
        // Strings of programs are not shown where they stand.
        if depth == 0 {
            shower.token(&token, in_pages);
        }
        if shower.is_full() {
            break;
        }
    }
    true
}

/// Finds pdfmarks in the tokens: what a document says about itself, and its links.
#[derive(Default)]
struct Marks {
    key: Vec<u8>,
    pending: Vec<(Field, String)>,
}

/// Most values that wait for their mark.
const PENDING_MAX: usize = 16;

impl Marks {
    fn token(&mut self, token: &Token<'_>, about: &mut About, reference: &mut dyn FnMut(&[u8])) {
        match token {
            Token::Literal(b"DOCINFO") => {
                for (field, text) in self.pending.drain(..) {
                    if field == Field::Keyword {
                        about.add_list(field, &text, &[',', ';']);
                    } else {
                        about.add(field, &text);
                    }
                }
            }
            Token::Literal(key) => {
                self.key.clear();
                self.key.extend_from_slice(key);
            }
            Token::String(text) => {
                let field = match self.key.as_slice() {
                    b"Title" => Field::Title,
                    b"Author" => Field::Author,
                    b"Subject" => Field::Description,
                    b"Keywords" => Field::Keyword,
                    b"URI" => return reference(text),
                    _ => return,
                };
                if self.pending.len() < PENDING_MAX {
                    self.pending.push((field, text_string(text)));
                }
                self.key.clear();
            }
            Token::Name(b"pdfmark") => self.pending.clear(),
            _ => {}
        }
    }
}

/// Reads the pdfmarks of a special of TeX: what the document says about itself, and its links.
pub(crate) fn information(special: &[u8], about: &mut About, reference: &mut dyn FnMut(&[u8])) {
    let mut marks = Marks::default();
    // dvipdfm's way to say the same.
    let rest = special.strip_prefix(b"pdf:docinfo");
    let mut tokens = Tokens::new(rest.unwrap_or(special));
    while let Some(token) = tokens.next() {
        marks.token(&token, about, reference);
    }
    if rest.is_some() {
        marks.token(&Token::Literal(b"DOCINFO"), about, reference);
    }
}

/// Decodes a text string: UTF-16 with a byte order mark, UTF-8, or (nearly) Latin-1.
fn text_string(bytes: &[u8]) -> String {
    decode(bytes, Some("windows-1252")).into_owned()
}

/// Whether a text is one: fonts may have codes of their own.
fn is_readable(text: &str) -> bool {
    let sample = || text.chars().take(20_000).filter(|it| !it.is_whitespace());
    let letters = sample().filter(|it| it.is_alphanumeric()).count();
    let all = sample().count();
    LETTERS_MIN * all <= 100 * letters
}

#[cfg(test)]
mod tests;
