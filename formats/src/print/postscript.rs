//! The PostScript summarizer: metadata in comments, and the text that the pages show.
//!
//! Source: Adobe Document Structuring Conventions 3.0 §5 (header comments); Adobe pdfmark reference
//! §2 (`DOCINFO`, `URI`).
//!
//! # Differences from the paper
//!
//! * Essence ran a converter for each file. Here nothing is run: the strings of the pages are read, and
//!   placed at positions known for the most common programs (dvips, groff). So endless loops do no harm, and
//!   computed text is not seen.

mod painter;
mod tokens;

use memchr::memmem;
use painter::{Dialect, Painter};
use tokens::{PsToken, PsTokens};

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::numbers::{le_len32, slice_up_to};
use crate::text::{decode, is_telling};
use crate::{Draft, Input};

/// Length of the part in which the header is looked for, in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Length of the part at the end in which the trailer is looked for, in bytes.
const TRAILER_BYTES_MAX: usize = 8 * 1024;
/// Maximum number of lines of header or trailer.
const LINES_MAX: usize = 1_000;
/// Least share of letters in text, in percent; fewer are codes of a font.
const LETTERS_MIN: usize = 55;

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = unwrapped(input.head(Limit::Document.bound()));
    let mut header = Header::default();
    header.read(slice_up_to(bytes, 0, HEADER_BYTES_MAX), false);
    let end = bytes.len().saturating_sub(TRAILER_BYTES_MAX);
    header.read(bytes.get(end..).unwrap_or_default(), true);
    let mut painter = Painter::new(dialect(bytes, &header), input.text_bytes_max());
    let mut references = Vec::new();
    let mut time = TimeLimit::new(input.cancelled);
    let is_cut =
        pages(bytes, input, &mut time, &mut painter, &mut header.metadata, &mut references);
    let text = painter.finish();
    let readable = is_readable(text.body.as_str());
    if readable && header.metadata.lines(Field::Title).is_empty() {
        header.metadata.add(Field::Title, &text.title);
    }
    header.metadata.add(Field::Title, &header.file_name);
    let mut draft = header.metadata.draft(0);
    let pages = if header.pages == 0 { text.pages } else { header.pages };
    if 0 < pages {
        draft.other("Pages", pages.to_string());
    }
    draft.other("Dimensions", header.size);
    draft.other("Fonts", header.fonts.join("\n"));
    draft.other("For", header.owner);
    draft.references = references;
    if readable {
        draft.set_body(text.body);
    }
    if is_cut {
        draft.cut(Limit::Commands.cut());
    }
    if text.has_more_fonts {
        draft.cut(Limit::Fonts.cut());
    }
    time.report("its pages", &mut draft);
    input.report(Limit::Document, &mut draft);
    draft
}

/// Removes the DOS header of an EPS file with a preview picture, or a leading Ctrl-D.
fn unwrapped(bytes: &[u8]) -> &[u8] {
    match bytes {
        [0xc5, 0xd0, 0xd3, 0xc6, ..] => {
            let (start, len) = le_len32(bytes, 4).zip(le_len32(bytes, 8)).unwrap_or_default();
            slice_up_to(bytes, start, len)
        }
        [4, rest @ ..] => rest,
        _ => bytes,
    }
}

/// The metadata in comments.
#[derive(Default)]
struct Header {
    metadata: Metadata,
    /// A title that is only the name of a file.
    file_name: String,
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
        // A value may be a string of the language.
        let text = match PsTokens::new(value.as_bytes()).next() {
            Some(PsToken::String(text)) if value.starts_with('(') && value.ends_with(')') => {
                text_string(&text)
            }
            _ => value.to_owned(),
        };
        match name {
            "Title" if is_file(&text) => self.file_name = text,
            "Title" => self.metadata.add(Field::Title, &text),
            "Creator" => {
                self.metadata.add(Field::Generator, &text);
                self.creator = text;
            }
            "CreationDate" => self.metadata.add(Field::Date, &text),
            "Copyright" => self.metadata.add(Field::Copyright, &text),
            "Author" => self.metadata.add(Field::Author, &text),
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

/// Returns whether a title is the name of the file from which the document was made.
fn is_file(title: &str) -> bool {
    let last = title.rsplit(['.', '/']).next().unwrap_or_default();
    let named = !title.contains(' ') && last.len() < title.len() && last.len() <= 4;
    named || !is_telling(title) || matches!(title, "stdin" | "<stdin>" | "-" | "Untitled")
}

/// Returns the program that made the document.
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

fn pages(
    bytes: &[u8],
    input: &Input<'_>,
    time: &mut TimeLimit<'_>,
    painter: &mut Painter,
    metadata: &mut Metadata,
    references: &mut Vec<String>,
) -> bool {
    let mut tokens = PsTokens::new(bytes);
    // Only programs stand before the first page; without comments, its beginning is unknown.
    let structured = memmem::find(bytes, b"%%EndProlog").is_some();
    let mut in_pages = !structured;
    let mut marks = Marks::default();
    let mut depth = 0_usize;
    for count in 0_usize.. {
        let Some(token) = tokens.next().filter(|_| time.goes_on()) else { break };
        if Limit::Commands.bound() <= count {
            return true;
        }
        match &token {
            PsToken::Comment(comment) => {
                in_pages |= ["%%Page:", "%%EndSetup", "%%EndProlog"]
                    .iter()
                    .any(|it| comment.starts_with(it.as_bytes()));
                if comment.starts_with(b"%%Page:") {
                    painter.page();
                }
                painter.comment(comment);
                continue;
            }
            PsToken::OpenProcedure => depth += 1,
            PsToken::CloseProcedure => {
                depth = depth.saturating_sub(1);
                continue;
            }
            _ => {}
        }
        let most = input.settings.references_max;
        marks.token(&token, metadata, &mut |url| add_link(url, references, most));
        // Strings in procedures are not shown where they stand.
        if depth == 0 {
            painter.token(&token, in_pages);
        }
        if painter.is_full() {
            break;
        }
    }
    false
}

/// Reader of pdfmarks, which hold the document's metadata and links.
#[derive(Default)]
struct Marks {
    key: Vec<u8>,
    pending: Vec<(Field, String)>,
}

impl Marks {
    fn token(&mut self, token: &PsToken<'_>, metadata: &mut Metadata, link: &mut dyn FnMut(&[u8])) {
        match token {
            PsToken::Literal(b"DOCINFO") => {
                for (field, text) in self.pending.drain(..) {
                    if field == Field::Keyword {
                        metadata.add_list(field, &text, &[',', ';']);
                    } else {
                        metadata.add(field, &text);
                    }
                }
            }
            PsToken::Literal(key) => {
                self.key.clear();
                self.key.extend_from_slice(key);
            }
            PsToken::String(text) => {
                let field = match self.key.as_slice() {
                    b"Title" => Field::Title,
                    b"Author" => Field::Author,
                    b"Subject" => Field::Description,
                    b"Keywords" => Field::Keyword,
                    b"URI" => return link(text),
                    _ => return,
                };
                self.pending.push((field, text_string(text)));
                self.key.clear();
            }
            PsToken::Name(b"pdfmark") => self.pending.clear(),
            _ => {}
        }
    }
}

/// Adds a link, if it is a URL that is not there yet, unless there is one more than `most` already.
pub(crate) fn add_link(url: &[u8], references: &mut Vec<String>, most: usize) {
    let url = String::from_utf8_lossy(url).into_owned();
    if url.contains("://") && !references.contains(&url) && references.len() <= most {
        references.push(url);
    }
}

/// Reads the pdfmarks of a TeX special: the document's metadata and links.
pub(crate) fn read_pdfmarks(special: &[u8], metadata: &mut Metadata, link: &mut dyn FnMut(&[u8])) {
    let mut marks = Marks::default();
    // dvipdfm writes `pdf:docinfo` in place of the mark `DOCINFO`.
    let rest = special.strip_prefix(b"pdf:docinfo");
    let mut tokens = PsTokens::new(rest.unwrap_or(special));
    while let Some(token) = tokens.next() {
        marks.token(&token, metadata, link);
    }
    if rest.is_some() {
        marks.token(&PsToken::Literal(b"DOCINFO"), metadata, link);
    }
}

/// Decodes a text string: UTF-16 with a byte order mark, UTF-8, or Windows-1252.
fn text_string(bytes: &[u8]) -> String {
    decode(bytes, Some("windows-1252")).into_owned()
}

/// Returns whether a text has enough letters to be readable, unlike codes of a font's own encoding.
fn is_readable(text: &str) -> bool {
    let sample = || text.chars().take(20_000).filter(|it| !it.is_whitespace());
    let letters = sample().filter(|it| it.is_alphanumeric()).count();
    let all = sample().count();
    LETTERS_MIN * all <= 100 * letters
}

#[cfg(test)]
mod tests;
