//! Output of a program that summarizes: attributes in SOIF, which may be incorrect.
//!
//! Source: the user's manual, appendix on SOIF, and its library for Perl (`soif.pl`), whose reader
//! skips lines that are not attributes. Programs of 1995 wrote only the attributes, or also `@FILE
//! { url` and `}` around them; some counted characters instead of bytes.
//!
//! Sans-I/O.

use formats::limit::Limit;
use formats::object::ProblemKind;
use formats::text::{decode, front};
use memchr::{memchr, memchr_iter};
use soif::Record;

use crate::rules::{IDENTITY, value_bytes_max};

/// Maximum number of attributes that are taken.
const ATTRIBUTES_MAX: usize = 1_000;
/// Maximum length of an attribute's name, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Attributes that hold the text: a record has one of them.
const TEXTS: [&str; 2] = ["Partial-Text", "Full-Text"];

/// Returns the attributes of the first object, in order; `None` if there are only other lines. A
/// value has its stated size if an attribute or the end follows there; otherwise it ends before the
/// next attribute. One attribute more than is taken shows that there are more.
pub(super) fn read(written: &[u8]) -> Option<Vec<(&str, &[u8])>> {
    let (mut found, mut has_others) = (Vec::new(), false);
    let mut rest = written;
    while !rest.is_empty() && found.len() <= ATTRIBUTES_MAX {
        if let Some((name, size, start)) = head(rest) {
            let body = rest.get(start..).unwrap_or_default();
            let (value, after) = body.split_at_checked(value_bytes(body, size))?;
            found.push((name, value));
            rest = after;
            continue;
        }
        let end = memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at_checked(end)?;
        match line.trim_ascii().first() {
            Some(b'}') if !found.is_empty() => break,
            None | Some(b'@' | b'}') => {}
            Some(_) => has_others = true,
        }
        rest = after;
    }
    (!found.is_empty() || !has_others).then_some(found)
}

/// Reads the head of an attribute, up to its value: the name, the stated size of the value, and the
/// length of the head, in bytes.
fn head(line: &[u8]) -> Option<(&str, usize, usize)> {
    let front = line.get(..line.len().min(NAME_BYTES_MAX)).unwrap_or_default();
    let name_bytes = front.iter().position(|it| matches!(it, b'{' | b'\n'))?;
    let (name, rest) = line.split_at_checked(name_bytes)?;
    let name = str::from_utf8(name).ok()?.trim();
    let is_part = |it: char| !it.is_whitespace() && !it.is_control() && it != '}';
    if name.is_empty() || name.starts_with('@') || !name.chars().all(is_part) {
        return None;
    }
    let rest = rest.strip_prefix(b"{")?;
    let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
    let (size, rest) = rest.split_at_checked(digits)?;
    let size = str::from_utf8(size).ok()?.parse().ok()?;
    let rest = rest.strip_prefix(b"}:")?;
    let value = rest.strip_prefix(b"\t").or_else(|| rest.strip_prefix(b" ")).unwrap_or(rest);
    Some((name, size, line.len() - value.len()))
}

/// Returns the length of the value at the front of `body`, in bytes.
fn value_bytes(body: &[u8], size: usize) -> usize {
    let is_end = |after: &[u8]| {
        let next = after.trim_ascii_start();
        next.is_empty() || after.first().is_some_and(u8::is_ascii_whitespace) && begins(next)
    };
    if body.get(size..).is_some_and(is_end) {
        return size;
    }
    let mut ends = memchr_iter(b'\n', body);
    let end = ends.find(|at| body.get(at + 1..).is_some_and(begins));
    end.unwrap_or_else(|| body.trim_ascii_end().len())
}

/// Returns whether an attribute or the object's end begins here.
fn begins(rest: &[u8]) -> bool {
    rest.first() == Some(&b'}') || head(rest).is_some()
}

/// Lays attributes over a record; several attributes of one name become lines of one attribute.
/// Identifying attributes are not changed. Returns problems about what was cut.
pub(super) fn lay(
    attributes: Vec<(&str, &[u8])>,
    record: &mut Record,
) -> Vec<(ProblemKind, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    let mut cut = Vec::new();
    if ATTRIBUTES_MAX < attributes.len() {
        cut.push(Limit::Attributes.cut_at(ATTRIBUTES_MAX).problem());
    }
    for (name, value) in attributes.into_iter().take(ATTRIBUTES_MAX) {
        let value = decode(value, None);
        let value = value.trim_end_matches(['\n', '\r']);
        if value.is_empty() || IDENTITY.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            continue;
        }
        match all.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            Some((_, lines)) => {
                lines.push('\n');
                lines.push_str(value);
            }
            None => all.push((name, value.to_owned())),
        }
    }
    let is_text = |name: &str| TEXTS.iter().any(|it| it.eq_ignore_ascii_case(name));
    if all.iter().any(|(name, _)| is_text(name)) {
        // Print and places are of the text that is replaced.
        for text in TEXTS.into_iter().chain(["Text-Print", "Text-Places"]) {
            record.remove(text);
        }
    }
    for (name, value) in all {
        let most = value_bytes_max(name);
        let kept = front(&value, most);
        if kept.len() < value.len() {
            let limit = if is_text(name) { Limit::Text } else { Limit::Value };
            cut.push((limit.kind_at(most), format!("{name} is cut to its first {most} bytes")));
        }
        record.set(name, kept);
    }
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use soif::writer::{write_attribute, write_record};

    use super::*;
    use crate::rules::VALUE_BYTES_MAX;

    /// Reads, and compares each attribute as `name=value`.
    #[track_caller]
    fn check(written: &str, expected: Option<&[&str]>) {
        let text = |it: &[u8]| String::from_utf8_lossy(it).replace('\n', "|");
        let found = read(written.as_bytes());
        let shown = found
            .map(|all| all.iter().map(|(n, v)| format!("{n}={}", text(v))).collect::<Vec<_>>());
        let expected = expected.map(|it| it.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(shown, expected, "{written:?}");
    }

    #[test]
    fn output_of_old_programs_is_read() {
        check("Title{5}:\tHello\nAuthor{3}:\tAnn\n", Some(&["Title=Hello", "Author=Ann"]));
        check("@FILE { http://h/a\nTitle{5}:\tHello\n}\n", Some(&["Title=Hello"]));
        check("@FILE { -\nA{1}:\tx\n}\n@FILE { -\nB{1}:\ty\n}\n", Some(&["A=x"]));
        // Without the last line end; with CRLF; with a space; with a value of several lines.
        check("Title{5}:\tHello", Some(&["Title=Hello"]));
        check("A{1}:\tx\r\nB{1}: y\r\n", Some(&["A=x", "B=y"]));
        check("A{7}:\tx\n}\nB{1\nB{1}:\ty\n", Some(&["A=x|}|B{1", "B=y"]));
        // Wrong sizes: characters, too large, too small, zero.
        check("A{5}:\tGrüße\nB{1}:\ty\n", Some(&["A=Grüße", "B=y"]));
        check("A{500}:\tx\ny\nB{1}:\ty\n}\n", Some(&["A=x|y", "B=y"]));
        check("A{1}:\tx\ny\nB{99}:\ty\n", Some(&["A=x|y", "B=y"]));
        check("A{0}:\t\nB{0}:\tx\n", Some(&["A=", "B=x"]));
        check("A{99999999999999999999}:\tx\nB{1}:\ty\n", Some(&["B=y"]));
        // Other lines are skipped, as in the original's reader.
        check("warning: old\nA{1}:\tx\n\n\nB{1}:\ty\n", Some(&["A=x", "B=y"]));
        check("", Some(&[]));
        check("@FILE { -\n}\n", Some(&[]));
        check("Title: Hello\n", None);
        check("<html>\n", None);
    }

    #[test]
    fn attributes_are_laid_over_the_record() {
        let mut record = Record::new("FILE", "http://h.example/a");
        for (name, value) in [("Title", "old"), ("MD5", "00"), ("Partial-Text", "old"), ("B", "b")]
        {
            record.push(name, value);
        }
        let long = "word ".repeat(VALUE_BYTES_MAX / 5 + 1);
        let cut = lay(
            vec![
                ("title", b"New\n"),
                ("Author", b"Ann"),
                ("MD5", b"11"),
                ("gatherer-id", b"evil"),
                ("author", b"J\xfcrgen"),
                ("Full-Text", long.as_bytes()),
                ("Abstract", long.as_bytes()),
                ("B", b""),
            ],
            &mut record,
        );
        let text = |name: &str| record.text(name).unwrap_or_default().into_owned();
        assert_eq!([text("Title"), text("Author")], ["New", "Ann\nJürgen"]);
        assert_eq!([text("MD5"), text("B"), text("Gatherer-Id")], ["00", "b", ""]);
        assert_eq!(record.get("Partial-Text"), None);
        assert_eq!(text("Full-Text").len(), long.len());
        assert!(text("Abstract").len() <= VALUE_BYTES_MAX);
        let message = "Abstract is cut to its first 1048576 bytes";
        assert_eq!(cut, [(Limit::Value.kind_at(VALUE_BYTES_MAX), message.to_owned())]);
        for (count, expected) in [(ATTRIBUTES_MAX, None), (ATTRIBUTES_MAX + 1, Some(1_000))] {
            let written = "A{1}:\tx\n".repeat(count);
            let cut = lay(read(written.as_bytes()).unwrap(), &mut record);
            let expected = expected.map(|it: u64| Limit::Attributes.cut_at(it).problem());
            assert_eq!(cut, Vec::from_iter(expected));
        }
    }

    proptest! {
        #[test]
        fn correct_output_is_read_unchanged(
            list in prop::collection::vec(("[A-Za-z][A-Za-z0-9-]{0,8}", "[ -~é\n\t]{0,40}"), 0..6),
            is_wrapped in any::<bool>(),
        ) {
            let mut record = Record::new("FILE", "http://h.example/a");
            let mut written = Vec::new();
            for (name, value) in &list {
                record.push(name.as_str(), value.as_str());
                write_attribute(&mut written, name, value.as_bytes());
            }
            if is_wrapped {
                written.clear();
                write_record(&mut written, &record);
            }
            let found = read(&written).unwrap();
            let expected: Vec<(&str, &[u8])> =
                list.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            text in "(A\\{3\\}:\tabc\n|B\\{|\\}:|\\}\n|@|x|é|\n|[0-9]){0,14}",
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            for written in [text.as_bytes(), &bytes] {
                if let Some(found) = read(written) {
                    lay(found, &mut Record::new("FILE", "http://h.example/a"));
                }
            }
        }
    }
}
