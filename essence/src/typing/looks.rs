//! Typing by looks: the type of a text with a vague name.
//!
//! Source: RFC 5322 and RFC 5536 (mail, news), RFC 4155 (mailboxes), RIS, the CSL-JSON schema, the
//! DataCite schema 4, JSON-LD 1.1, nbformat 4, the LSM and IAFA templates, docutils and AsciiDoc.
//!
//! Sans-I/O.

use formats::Type;
use formats::text::is_text;

/// Header fields of mail messages, in lower case.
const MAIL_FIELDS: &str = "from: to: subject: date: message-id: received: return-path: \
                           mime-version: delivered-to: reply-to: newsgroups: path: x-mailer: \
                           in-reply-to: cc: sender:";

/// Kinds of BibTeX entries, in lower case.
const ENTRIES: &str = "article book inproceedings incollection inbook techreport phdthesis \
                       mastersthesis misc manual proceedings unpublished booklet conference online";

/// Beginnings of lines by which a text is recognized.
const BEGINNINGS: &[(Type, &[&str])] = &[
    (Type::ManPage, &[".TH ", ".Dd ", ".so man"]),
    (Type::Tex, &["\\documentclass", "\\documentstyle", "\\begin{document}"]),
    (Type::Texinfo, &["\\input texinfo", "@setfilename ", "@settitle ", "@node Top"]),
    (Type::Patch, &["diff -", "@@ -"]),
    (Type::MacCompressed, &["(This file must be converted with BinHex"]),
    (Type::ShellArchive, &["# This is a shell archive"]),
];

/// Days of the week as written in the separator lines of a mailbox, three letters each.
const DAYS: &[u8] = b"MonTueWedThuFriSatSun";
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// Maximum number of words read of a separator line after `From` and the first address word.
const SEPARATOR_WORDS_MAX: usize = 12;

/// Number of lines that are read to recognize a text.
const LOOK_LINES: usize = 60;

/// Number of lines in which the head of an RFC or a draft of one may be.
const MEMO_LINES: usize = 20;

/// Number of bytes at the front of markup that are searched for its vocabulary.
const MARKUP_BYTES: usize = 1024;

/// Maximum number of comments, declarations and instructions before the first element.
const PROLOG_PARTS_MAX: usize = 32;

/// Of this many bytes of markup, one may be zero.
const ZEROS_SHARE: usize = 20;

/// Minimum number of overstruck characters in a text for a printer.
const OVERSTRUCK_MIN: usize = 5;

/// Minimum score of a text for troff: a macro gives 1, a comment 2.
const TROFF_MIN: usize = 4;

/// Minimum number of lines of a table.
const TABLE_LINES_MIN: usize = 5;
const TABLE_COLUMNS_MIN: usize = 3;

/// Returns the type that a text looks like, or `None` if it looks like plain text.
pub(super) fn by_look(head: &[u8]) -> Option<Type> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let front = head.trim_ascii_start();
    markup(front)
        .or_else(|| first_line(front))
        .or_else(|| mail(head))
        .or_else(|| is_overstruck(head).then_some(Type::FormattedText))
        .or_else(|| by_lines(head))
        .or_else(|| json(front))
        .or_else(|| is_table(head).then_some(Type::Csv))
}

/// Returns the type of markup that is not quite text: it has a few zeros in it, bytes behind its end, or two
/// bytes a character without a mark.
pub(super) fn spoiled(head: &[u8]) -> Option<Type> {
    let front = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let text: Vec<u8> = match front {
        [b'<', 0, second, 0, ..] if *second != 0 => front.iter().copied().step_by(2).collect(),
        [0, b'<', 0, second, ..] if *second != 0 => {
            front.iter().copied().skip(1).step_by(2).collect()
        }
        [b'<', ..] => {
            let end = memchr::memmem::find(&front.to_ascii_lowercase(), b"</html>");
            let page = front.get(..end.unwrap_or(front.len())).unwrap_or_default();
            let zeros = memchr::memchr_iter(0, page).count();
            if page.len() < zeros * ZEROS_SHARE {
                return None;
            }
            page.iter().copied().filter(|it| *it != 0).collect()
        }
        _ => return None,
    };
    let found = markup(&text).filter(|_| is_text(&text));
    found.filter(|it| matches!(it, Type::Html | Type::Xml))
}

/// Returns whether the text is a picture: XPM, XBM, PNM, Fig.
pub(super) fn is_picture(head: &[u8]) -> bool {
    let marks: [&[u8]; 8] =
        [b"/* XPM", b"! XPM2", b"#define ", b"static ", b"#FIG ", b"/*", b"%!", b"#?RADIANCE"];
    marks.iter().any(|it| head.starts_with(it))
        || matches!(head, [b'P', b'1'..=b'7', white, ..] if white.is_ascii_whitespace())
}

fn markup(front: &[u8]) -> Option<Type> {
    if front.first() != Some(&b'<') {
        return None;
    }
    let lower = front.get(..front.len().min(MARKUP_BYTES)).unwrap_or_default().to_ascii_lowercase();
    let has = |needle: &[u8]| memchr::memmem::find(&lower, needle).is_some();
    let starts = ["<!doctype html", "<head", "<title", "<body"];
    if starts.iter().any(|it| lower.starts_with(it.as_bytes())) || has(b"<html") {
        return Some(Type::Html);
    }
    let root = root(front);
    let local = root.rsplit(|byte| *byte == b':').next().unwrap_or_default();
    if local == b"svg" {
        return Some(Type::Svg);
    }
    let names = |needle: &[u8]| memchr::memmem::find(front, needle).is_some();
    if matches!(local, b"collection" | b"record") && names(b"http://www.loc.gov/MARC21/slim") {
        return Some(Type::MarcXml);
    }
    if local == b"resource" && names(b"http://datacite.org/schema/kernel") {
        return Some(Type::DataCite);
    }
    if local == b"FictionBook" {
        return Some(Type::Ebook);
    }
    if local == b"abiword" {
        return Some(Type::WordProcessor);
    }
    if lower.starts_with(b"<?xml") {
        return Some(Type::Xml);
    }
    if lower.starts_with(b"<!doctype") || lower.starts_with(b"<!--") && has(b"<!doctype") {
        return Some(Type::Sgml);
    }
    None
}

/// Returns the name of the first element, with its prefix; empty if there is none.
fn root(front: &[u8]) -> &[u8] {
    let mut rest = front;
    for _ in 0..PROLOG_PARTS_MAX {
        rest = rest.trim_ascii_start();
        let end: &[u8] = if rest.starts_with(b"<?") {
            b"?>"
        } else if rest.starts_with(b"<!--") {
            b"-->"
        } else if rest.starts_with(b"<!") {
            let declaration = memchr::memchr2(b'[', b'>', rest).and_then(|at| rest.get(at));
            if declaration == Some(&b'[') { b"]>" } else { b">" }
        } else {
            let name = rest.strip_prefix(b"<").unwrap_or_default();
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"/>".contains(byte);
            return name.split(is_end).next().unwrap_or_default();
        };
        let Some(at) = memchr::memmem::find(rest, end) else { return b"" };
        rest = rest.get(at + end.len()..).unwrap_or_default();
    }
    b""
}

/// Returns the type by the first line that is not empty.
fn first_line(front: &[u8]) -> Option<Type> {
    let mut lines = front.split(|byte| *byte == b'\n');
    let line = lines.next().unwrap_or_default().trim_ascii_end();
    let starts =
        |wanted: &[u8]| line.get(..wanted.len()).is_some_and(|it| it.eq_ignore_ascii_case(wanted));
    if starts(b"Begin") && matches!(line.get(5..), Some(b"2" | b"3" | b"4")) {
        return Some(Type::Lsm);
    }
    if starts(b"Template-Type:") {
        return Some(Type::Iafa);
    }
    if starts(b"Archive-name: ") {
        return Some(Type::Faq);
    }
    if starts(b"(:source") {
        return Some(Type::WaisSource);
    }
    if line.starts_with(b"TY  - ") {
        return Some(Type::Ris);
    }
    if [&b"BEGIN:VCARD"[..], b"BEGIN:VCALENDAR"].into_iter().any(starts) {
        return Some(Type::Data);
    }
    let mut groups = lines.clone().take(LOOK_LINES).map(<[u8]>::trim_ascii);
    // AutoCAD's exchange format begins with a section, or with comments (999).
    if line == b"0" && groups.next().is_some_and(|it| it == b"SECTION")
        || line == b"999" && groups.any(|it| it == b"SECTION")
    {
        return Some(Type::Drawing);
    }
    if is_soif(line) {
        return Some(Type::Soif);
    }
    if is_change(line) {
        return Some(Type::ChangeLog);
    }
    if line.starts_with(b"= ") {
        // A line of the document's head, or a section heading, tells a title from decoration.
        let mut more = lines.take(LOOK_LINES);
        return more.any(|it| it.starts_with(b"== ") || is_attribute(it)).then_some(Type::AsciiDoc);
    }
    None
}

/// Returns whether the line begins SOIF: `@FILE { http://…`, or a section of a stream, `@UPDATE {`.
fn is_soif(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"@") else { return false };
    let Some(brace) = memchr::memchr(b'{', rest) else { return false };
    let (template, url) = rest.split_at(brace);
    let template = template.trim_ascii_end();
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || b"-_".contains(byte);
    if template.is_empty() || !template.iter().all(is_name) {
        return false;
    }
    let url = url.get(1..).unwrap_or_default().trim_ascii();
    // The key of a BibTeX entry may be a URL, too, but it is followed by a comma.
    memchr::memmem::find(url, b":/").is_some() && !url.ends_with(b",")
        || url.is_empty() && matches!(template, b"UPDATE" | b"DELETE" | b"REFRESH")
}

/// Returns whether the line is the heading of a change: `package (1.2-3) unstable; urgency=low`, or
/// `2001-02-03  Name  <address>`.
fn is_change(line: &[u8]) -> bool {
    if line.first().is_some_and(u8::is_ascii_lowercase) {
        return memchr::memchr(b'(', line).is_some()
            && memchr::memmem::find(line, b"; urgency=").is_some();
    }
    let Some((date, rest)) = line.split_at_checked(10) else { return false };
    let is_date = date.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    is_date
        && rest.starts_with(b" ")
        && memchr::memchr(b'<', rest).is_some()
        && rest.ends_with(b">")
}

/// Returns whether the line is an attribute of AsciiDoc: `:toc: left`.
fn is_attribute(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b":") else { return false };
    let Some(colon) = memchr::memchr(b':', rest) else { return false };
    let (name, value) = rest.split_at(colon);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_!".contains(byte);
    !name.is_empty() && name.iter().all(is_name) && value.get(1).is_none_or(u8::is_ascii_whitespace)
}

/// Recognizes a mailbox by its first two lines, other mail by three fields before an empty line.
pub(super) fn mail(head: &[u8]) -> Option<Type> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if first.starts_with(b"From ") {
        return (is_separator(first) && lines.next().is_some_and(is_field))
            .then_some(Type::Mailbox);
    }
    let (mut known, mut groups) = (0, false);
    for line in head.split(|byte| *byte == b'\n').take(LOOK_LINES) {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            break;
        }
        if line.first().is_some_and(u8::is_ascii_whitespace) {
            continue;
        }
        if !is_field(line) {
            return None;
        }
        let lower = line.get(..line.len().min(16)).unwrap_or_default().to_ascii_lowercase();
        let mut fields = MAIL_FIELDS.split(' ');
        known += usize::from(fields.any(|field| lower.starts_with(field.as_bytes())));
        groups |= lower.starts_with(b"newsgroups:");
    }
    (3 <= known).then_some(if groups { Type::News } else { Type::Mail })
}

/// Returns whether the line is `From address Mon Jan  1 00:00:00 2024` and not a sentence: it has a
/// sender, a day of the week, a month and a time of day, in any order.
fn is_separator(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(2);
    let is_of = |names: &[u8], word: &[u8]| {
        let word = word.trim_ascii_end();
        let word = word.strip_suffix(b",").unwrap_or(word);
        word.len() == 3 && names.chunks_exact(3).any(|it| it == word)
    };
    // The address may consist of several words.
    let (mut day, mut month, mut time) = (false, false, false);
    for word in words.by_ref().take(SEPARATOR_WORDS_MAX) {
        day |= is_of(DAYS, word);
        month |= is_of(MONTHS, word);
        time |= matches!(word, [b'0'..=b'2', b'0'..=b'9', b':', b'0'..=b'5', b'0'..=b'9', ..]);
    }
    day && month && time
}

fn is_field(line: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let name = line.get(..colon).unwrap_or_default();
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// Returns whether the text has enough characters that are struck twice, or over an underscore.
fn is_overstruck(head: &[u8]) -> bool {
    let is_struck = |at: &usize| {
        let before = at.checked_sub(1).and_then(|it| head.get(it));
        let after = head.get(at + 1);
        before.is_some() && (before == after || before == Some(&b'_') || after == Some(&b'_'))
    };
    memchr::memchr_iter(8, head).filter(is_struck).take(OVERSTRUCK_MIN).count() == OVERSTRUCK_MIN
}

fn by_lines(head: &[u8]) -> Option<Type> {
    let mut troff = 0;
    for (number, line) in head.split(|byte| *byte == b'\n').take(LOOK_LINES).enumerate() {
        let starts = |beginning: &str| line.starts_with(beginning.as_bytes());
        let begins = |(_, all): &&(Type, &[&str])| all.iter().any(|it| starts(it));
        if let Some((found, _)) = BEGINNINGS.iter().find(begins) {
            return Some(*found);
        }
        if starts("Index: ") && is_indexed(head, number + 1) {
            return Some(Type::Patch);
        }
        troff += usize::from(is_macro(line));
        troff += 2 * usize::from(starts(".\\\"") || starts("'\\\""));
        if starts("begin 6") && line.split(|byte| *byte == b' ').count() == 3 {
            return Some(Type::Uuencoded);
        }
        if is_entry(line) {
            return Some(Type::BibTeX);
        }
        if is_directive(line) {
            return Some(Type::Rst);
        }
        if number < MEMO_LINES
            && let Some(found) = memo(line, head)
        {
            return Some(found);
        }
    }
    (TROFF_MIN <= troff).then_some(Type::Troff)
}

/// Returns whether line `number` follows the name of a file in a patch by Subversion, CVS and others:
/// documents have indexes, too.
fn is_indexed(head: &[u8], number: usize) -> bool {
    let next = head.split(|byte| *byte == b'\n').nth(number).unwrap_or_default();
    [&b"====="[..], b"--- ", b"*** ", b"diff "].iter().any(|it| next.starts_with(it))
}

/// Returns whether the line is a macro of a paper in troff: title, author, section, paragraph.
fn is_macro(line: &[u8]) -> bool {
    const MACROS: &[&[u8]] = &[
        b"TL", b"AU", b"AI", b"AB", b"AE", b"NH", b"SH", b"PP", b"LP", b"IP", b"DS", b"DE", b"nr",
        b"pp", b"lp", b"np", b"ip", b"sh", b"uh", b"sp", b"ce", b"br",
    ];
    let Some((name, rest)) = line.strip_prefix(b".").and_then(|it| it.split_at_checked(2)) else {
        return false;
    };
    MACROS.contains(&name) && rest.first().is_none_or(u8::is_ascii_whitespace)
}

/// Returns whether the line is a directive of reStructuredText, such as `.. contents::`.
fn is_directive(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b".. ") else { return false };
    let Some(colons) = memchr::memmem::find(rest, b"::") else { return false };
    let (name, after) = rest.split_at(colons);
    name.first().is_some_and(u8::is_ascii_lowercase)
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_:".contains(byte))
        && after.get(2).is_none_or(u8::is_ascii_whitespace)
}

/// Returns the type by a line of a memo's head: an RFC, or a draft of one.
fn memo(line: &[u8], head: &[u8]) -> Option<Type> {
    let number = line.strip_prefix(b"Request for Comments: ");
    if number.is_some_and(|it| it.first().is_some_and(u8::is_ascii_digit)) {
        let front = head.get(..head.len().min(MARKUP_BYTES)).unwrap_or_default();
        let is_fyi = memchr::memmem::find(front, b"\nFYI: ").is_some();
        return Some(if is_fyi { Type::Fyi } else { Type::Rfc });
    }
    let (word, after) = line.split_at_checked(b"Internet-Draft".len())?;
    (word.eq_ignore_ascii_case(b"Internet-Draft") && after.starts_with(b"   "))
        .then_some(Type::InternetDraft)
}

/// Returns whether the line begins a BibTeX entry: `@article{key,`.
fn is_entry(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"@") else { return false };
    let Some(brace) = memchr::memchr(b'{', rest) else { return false };
    let kind = rest.get(..brace).unwrap_or_default().trim_ascii_end();
    ENTRIES.split(' ').any(|it| kind.eq_ignore_ascii_case(it.as_bytes()))
}

/// Recognizes a JSON object or array by its first token, and its kind by the names of its members.
pub(super) fn json(front: &[u8]) -> Option<Type> {
    let is_json = match front.split_first() {
        Some((b'{', rest)) => matches!(rest.trim_ascii_start(), [b'"' | b'}', ..]),
        Some((b'[', rest)) => match rest.trim_ascii_start() {
            [b'{' | b'"', ..] => memchr::memchr(b':', rest).is_some(),
            _ => false,
        },
        _ => false,
    };
    if !is_json {
        return None;
    }
    let has = |needle: &str| memchr::memmem::find(front, needle.as_bytes()).is_some();
    let all = |needles: &[&str]| needles.iter().all(|it| has(it));
    Some(if has("\"cells\"") && (has("\"cell_type\"") || has("\"nbformat\"")) {
        Type::Notebook
    } else if has("\"@context\"") || all(&["\"@graph\"", "\"@id\""]) {
        Type::JsonLd
    } else if has("://datacite.org/schema/") || all(&["\"creators\"", "\"titles\"", "\"doi\""]) {
        Type::DataCite
    } else if has("\"date-parts\"") || all(&["\"type\"", "\"title\"", "\"family\""]) {
        Type::CslJson
    } else {
        Type::Json
    })
}

/// Returns whether every line has as many fields as the first, by one separator, and there are too
/// many lines and fields for a coincidence. Quotes are not interpreted: tables with quotes are
/// recognized by their names.
fn is_table(head: &[u8]) -> bool {
    // The last line may be incomplete.
    let whole = memchr::memrchr(b'\n', head).and_then(|end| head.get(..end)).unwrap_or_default();
    [b'\t', b';', b','].into_iter().any(|separator| {
        let mut lines =
            whole.split(|byte| *byte == b'\n').take(LOOK_LINES).map(<[u8]>::trim_ascii_end);
        let separators = |line: &[u8]| memchr::memchr_iter(separator, line).count();
        let Some(first) = lines.next() else { return false };
        // Column names are neither empty nor sentences.
        let named = first.split(|byte| *byte == separator).all(|it| {
            let name = it.trim_ascii();
            !name.is_empty() && name.len() <= 40 && !name.ends_with(b".")
        });
        let count = separators(first);
        let mut rows = 1;
        named
            && TABLE_COLUMNS_MIN <= count + 1
            && lines.inspect(|_| rows += 1).all(|line| separators(line) == count)
            && TABLE_LINES_MIN <= rows
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, expected: Option<Type>) {
        assert_eq!(by_look(head.as_bytes()), expected, "{head}");
    }

    #[test]
    fn markup_goes_by_its_vocabulary() {
        check("<!-- c -->\n<html>", Some(Type::Html));
        check("<?xml version='1.0'?><!DOCTYPE svg [ <!ENTITY a '>'> ]><svg/>", Some(Type::Svg));
        check("<svg:svg xmlns:svg='http://www.w3.org/2000/svg'>", Some(Type::Svg));
        check("<?xml version='1.0'?>\n<book><svg/></book>", Some(Type::Xml));
        let marc = "xmlns='http://www.loc.gov/MARC21/slim'";
        check(&format!("<collection {marc}>"), Some(Type::MarcXml));
        check(&format!("<?xml version='1.0'?><marc:record {marc}>"), Some(Type::MarcXml));
        check(&format!("<?xml version='1.0'?><mods {marc}>"), Some(Type::Xml));
        check(
            "<?xml version='1.0'?><resource xmlns='http://datacite.org/schema/kernel-4'>",
            Some(Type::DataCite),
        );
        check("<!-- unclosed", None);
        check("<", None);
    }

    #[test]
    fn catalogs_are_typed_by_their_first_line() {
        check("Begin3\nTitle: x\n", Some(Type::Lsm));
        check("\n\nTemplate-Type: DOCUMENT\nTitle: x\n", Some(Type::Iafa));
        check("Archive-Name: editor-faq/sed\nPosting-Frequency: monthly\n", Some(Type::Faq));
        check("(:source\n :version 3\n", Some(Type::WaisSource));
        check(
            "From: x\n\n(This file must be converted with BinHex 4.0)\n\n:",
            Some(Type::MacCompressed),
        );
        check("TY  - JOUR\r\nAU  - x\r\n", Some(Type::Ris));
        check("TY - JOUR\n", None);
        check("@FILE { http://h.example/\nTitle{1}:\tx\n}\n", Some(Type::Soif));
        check("@UPDATE {\n", Some(Type::Soif));
        check("@BOOK {key,\n", Some(Type::BibTeX));
        check("@MISC{http://h.example/,\n", Some(Type::BibTeX));
        check("@startuml{x\n", None);
        check("hello (2.10-2) unstable; urgency=low\n\n  * x\n", Some(Type::ChangeLog));
        check("1998-01-02  Ada  <ada@h.example>\n\n\t* x.c: y\n", Some(Type::ChangeLog));
        check("1998-01-02 was a day\n", None);
    }

    #[test]
    fn spoiled_markup_and_pictures_that_are_text() {
        for (head, expected) in [
            (&b"<html><title>a\0b</title> and more of it"[..], Some(Type::Html)),
            (b"<!DOCTYPE html><p>words</p></HTML>\0\0\x01\0\x02\0\0", Some(Type::Html)),
            (b"<\0h\0t\0m\0l\0>\0", Some(Type::Html)),
            (b"\0<\0?\0x\0m\0l\0 ", Some(Type::Xml)),
            (b"<html>\0\x01\0\x02\0\x03\0\0", None),
            (b"<x\0y>", None),
            (b"\0\0", None),
        ] {
            assert_eq!(spoiled(head), expected, "{head:?}");
        }
        for (head, expected) in [
            (&b"/* XPM */"[..], true),
            (b"#define a_width 16", true),
            (b"P3\n1 1\n", true),
            (b"#FIG 3.2", true),
            (b"ENVI\nsamples = 3", false),
            (b"P3D", false),
        ] {
            assert_eq!(is_picture(head), expected, "{head:?}");
        }
    }

    #[test]
    fn an_index_is_no_patch() {
        check(
            "Document: x\nTitle: y\nSection: z\n\nFormat: HTML\nIndex: /a.html\nFiles: /a.html\n",
            None,
        );
        check("Index: a.c\n=====\n--- a.c\n", Some(Type::Patch));
    }

    #[test]
    fn data_of_programs_as_text() {
        check("<?xml version='1.0'?><FictionBook xmlns='x'>", Some(Type::Ebook));
        check("<?xml version='1.0'?>\n<!DOCTYPE abiword>\n<abiword>", Some(Type::WordProcessor));
        check("BEGIN:VCARD\r\nFN:Ann\r\n", Some(Type::Data));
        check("  0\r\nSECTION\r\n  2\r\nHEADER\r\n", Some(Type::Drawing));
        check("999\nby hand\n0\nSECTION\n", Some(Type::Drawing));
        check("0\n1\nSECTION\n", None);
    }

    #[test]
    fn mail_mailboxes_and_news_are_told_apart() {
        check("Package: x\nVersion: 1\nSection: y\n\n", None);
        check("Date: x\nFrom: y\nSubject: z\n folded\n\n", Some(Type::Mail));
        check("Path: h!x\nFrom: y\nNewsgroups: comp.text\nSubject: z\n\n", Some(Type::News));
        check("From a@b Mon Jan  1 00:00:00 2024\nSubject: x\n\n", Some(Type::Mailbox));
        check(
            "From ann at b.example  Mon Jan  1 00:00:00 2024\nSubject: x\n\n",
            Some(Type::Mailbox),
        );
        check("From a@b Mon, 1 Jan 2024 00:00:00 +0000\nSubject: x\n\n", Some(Type::Mailbox));
        check("From a@b Mon Jan  1 00:00:00 2024\n\nSubject: x\n", None);
        check("From the beginning it was a good day in May\nnote: so\n", None);
        check("From the beginning\nit was so.\n", None);
        check("Notes: see below\nand more\n", None);
        check("[1] Smith\n", None);
    }

    #[test]
    fn documents_are_typed_by_telling_lines() {
        check("\n(This file must be converted with BinHex 4.0)\n:x", Some(Type::MacCompressed));
        check("@c x\n@setfilename x.info\n@settitle X\n", Some(Type::Texinfo));
        check("\\input texinfo @c\n", Some(Type::Texinfo));
        check(".TL\nTitle\n.AU\nAnn\n.PP\nText.\n.PP\nMore.\n", Some(Type::Troff));
        check(".git\n.env\n.profile\n.bash_history\n.ssh\n", None);
        check("N\u{8}NA\u{8}AM\u{8}ME\u{8}E\n     _\u{8}x\n", Some(Type::FormattedText));
        check("a\u{8}b c\u{8}d e\u{8}f g\u{8}h i\u{8}j k\u{8}l\n", None);
        check("Title\n=====\n\n.. contents:: Here\n", Some(Type::Rst));
        check("Title\n=====\n\n.. dots :: here\n", None);
        check("= Title\nAda <a@h.example>\n:toc:\n\nText.\n", Some(Type::AsciiDoc));
        check("= Title\n\nText.\n\n== Section\n", Some(Type::AsciiDoc));
        check("= 3 apples\n", None);
        check("\n\nNetwork Working Group   A. B\nRequest for Comments: 822\n", Some(Type::Rfc));
        check("NWG\nRequest for Comments: 1177    x\nFYI: 4\n", Some(Type::Fyi));
        check("Group    A. B\nInternet-Draft      Example\n", Some(Type::InternetDraft));
        check("Internet-Drafts are working documents\n", None);
    }

    #[test]
    fn json_goes_by_the_names_of_its_members() {
        check("{ \"cells\": [ { \"cell_type\": \"code\"", Some(Type::Notebook));
        check("{\"@context\": \"https://schema.org\"}", Some(Type::JsonLd));
        check("{\"schemaVersion\": \"http://datacite.org/schema/kernel-4\"}", Some(Type::DataCite));
        check("{\"doi\":\"x\",\"creators\":[],\"titles\":[]}", Some(Type::DataCite));
        let csl = "[{\"type\":\"book\",\"title\":\"x\",\"author\":[{\"family\":\"y\"}]}]";
        check(csl, Some(Type::CslJson));
        check("{\"a\": 1}", Some(Type::Json));
        check("[\"a\", 1]", None);
        check("{x}", None);
    }

    #[test]
    fn tables_have_as_many_fields_in_every_line() {
        check(&format!("id,name,year\n{}", "1,Ada,1843\n".repeat(5)), Some(Type::Csv));
        check(
            &format!("id\tname\tyear\r\n{}4\tcu", "1\tA, B\t1843\r\n".repeat(5)),
            Some(Type::Csv),
        );
        check(&format!("id,name,year\n{}", "1,Ada,1843\n".repeat(3)), None);
        check(&format!("id,name,year\n{}1,2\n", "1,Ada,1843\n".repeat(5)), None);
        check(&"Words, and more, of prose.\n".repeat(9), None);
        check(&"a,b\n".repeat(9), None);
    }
}
