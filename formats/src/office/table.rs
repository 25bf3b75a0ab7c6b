//! The summarizer of tables as text, with commas, tabs or other separators: names of columns, number of rows,
//! and the text of the first rows.
//!
//! Source: RFC 4180 and the text/tab-separated-values registration; Python's `csv.Sniffer` for the idea of
//! guessing the separator from the evenness of lines. Cells are parsed by `csv`.
//!
//! All bytes are scanned once, to count the rows; only the front is parsed.

use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::cancellable::TimeLimit;
use crate::object::ProblemKind;
use crate::prose::references::References;
use crate::text::{Body, HEADINGS_BYTES_MAX, decode};
use crate::{Draft, Input};

/// Length of the front from which the separator is guessed, in bytes.
const SNIFF_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of lines from which the separator is guessed.
const SNIFF_LINES_MAX: usize = 20;
/// The separators, the likeliest first.
const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];
/// Bytes between two checks of the time limit while rows are counted.
const POLL_BYTES: usize = 4 * 1024 * 1024;
/// Longest name of a column, in bytes: a longer cell is not a name.
const NAME_BYTES_MAX: usize = 200;

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    // Statistics offices and instruments write comments above the table, which are not rows.
    let text = input.text();
    let mut draft = Draft::default();
    input.report_text(&mut draft);
    let mut body = Body::new(input.text_bytes_max());
    let comments_bytes = comments(text.as_bytes());
    let (above, table) = text.split_at(comments_bytes);
    for line in above.lines() {
        body.push_squeezed_line(line.trim_start_matches('#'));
    }
    draft.description = body.as_str().to_owned();
    let delimiter = delimiter(table);
    let mut reader = reader(table, delimiter);
    let mut references = References::of(input);
    let mut first = None;
    let mut has_header = false;
    let mut row = ByteRecord::new();
    let mut count = 0_usize;
    let mut time = TimeLimit::new(input.cancelled);
    // Reading from memory never fails, and rows may have any length.
    while let Ok(true) = reader.read_byte_record(&mut row) {
        count += 1;
        if !time.goes_on() {
            draft.problem(ProblemKind::Time, format!("ran out of time after {count} rows"));
            break;
        }
        match &first {
            None => first = Some(row.clone()),
            Some(header) if count == 2 => has_header = is_header(header, &row),
            Some(_) => {}
        }
        for cell in &row {
            let cell = String::from_utf8_lossy(cell);
            references.add_bare(&cell);
            body.push_squeezed(&cell);
            body.space();
        }
        body.line();
        if body.is_full() {
            break;
        }
    }
    if let Some(header) = &first {
        draft.other("Columns", header.len().to_string());
        has_header |= count == 1 && header.iter().all(is_name);
        if has_header {
            draft.other("Headings", names(header));
        }
    }
    if let Some(rows) = rows(input).filter(|_| first.is_some()) {
        draft.other("Rows", rows.saturating_sub(usize::from(has_header)).to_string());
    } else if draft.problems.is_empty() && (input.cancelled)() {
        draft.problem(ProblemKind::Time, "ran out of time counting the rows");
    }
    draft.references = references.finish();
    draft.set_body(body);
    draft
}

/// Returns a reader of rows of any length; the first row is read like the others.
pub(crate) fn reader(table: &str, delimiter: u8) -> Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).has_headers(false).flexible(true).from_reader(table.as_bytes())
}

/// Returns the length of the comment lines at the table's beginning, in bytes.
fn comments(table: &[u8]) -> usize {
    let lines = table.split_inclusive(|it| *it == b'\n').take_while(|line| line.starts_with(b"#"));
    lines.map(<[u8]>::len).sum()
}

/// Guesses the separator: the one that most lines have as often as the first line.
fn delimiter(table: &str) -> u8 {
    let front = table.get(..table.floor_char_boundary(SNIFF_BYTES_MAX)).unwrap_or_default();
    let score = |separator: u8| {
        let lines = front.lines().filter(|line| !line.is_empty()).take(SNIFF_LINES_MAX);
        let counts: Vec<usize> = lines.map(|line| outside_quotes(line, separator)).collect();
        let first = counts.first().copied().unwrap_or(0);
        let even = counts.iter().filter(|it| **it == first).count();
        if first == 0 { (0, 0) } else { (even * 100 / counts.len().max(1), first) }
    };
    // Of equal scores the first wins.
    DELIMITERS.into_iter().rev().max_by_key(|separator| score(*separator)).unwrap_or(b',')
}

fn outside_quotes(line: &str, separator: u8) -> usize {
    let mut quoted = false;
    let outside = line.bytes().filter(|it| {
        quoted ^= *it == b'"';
        !quoted && *it == separator
    });
    outside.count()
}

/// Returns whether the first row names the columns: it has only names, each once, and the second
/// row has a number, or as many cells.
fn is_header(first: &ByteRecord, second: &ByteRecord) -> bool {
    let is_number = |cell: &[u8]| cell.iter().any(u8::is_ascii_digit) && !is_name(cell);
    let mut seen: Vec<&[u8]> = first.iter().filter(|it| !it.is_empty()).collect();
    let named = seen.len();
    seen.sort_unstable();
    seen.dedup();
    let names = first.iter().all(|it| it.is_empty() || is_name(it)) && seen.len() == named;
    // A table of words alone may lack a header, but nearly all have one.
    0 < named && names && (second.iter().any(is_number) || second.len() == first.len())
}

/// Returns whether a cell may name a column: it is short, and has a letter before any digit.
fn is_name(cell: &[u8]) -> bool {
    let first = cell.iter().find(|it| it.is_ascii_alphanumeric() || !it.is_ascii());
    cell.len() <= NAME_BYTES_MAX && first.is_some_and(|it| !it.is_ascii_digit())
}

fn names(header: &ByteRecord) -> String {
    let mut names = Body::new(HEADINGS_BYTES_MAX);
    for cell in header {
        names.push_squeezed_line(&String::from_utf8_lossy(cell));
    }
    names.finish().trim().to_owned()
}

/// Counts the rows below the comments: lines that are not empty, without line breaks in quotes.
/// Returns `None` if part of the table is missing or the time is up.
fn rows(input: &Input<'_>) -> Option<usize> {
    let object = input.object;
    if object.truncated {
        return None;
    }
    let decoded;
    let mut bytes: &[u8] = &object.bytes;
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        // UTF-16 is counted only if the decoded front is the whole table.
        if input.text_bytes_max() < bytes.len() {
            return None;
        }
        decoded = decode(bytes, None);
        bytes = decoded.as_bytes();
    }
    let mut rest = bytes.get(comments(bytes)..)?;
    let (mut rows, mut quoted, mut line_bytes, mut polled) = (0, false, 0, rest.len());
    while let Some(at) = memchr::memchr3(b'\n', b'\r', b'"', rest) {
        line_bytes += at;
        if rest.get(at) == Some(&b'"') {
            quoted = !quoted;
            line_bytes += 1;
        } else if !quoted {
            rows += usize::from(0 < line_bytes);
            line_bytes = 0;
        }
        rest = rest.get(at + 1..)?;
        if rest.len() + POLL_BYTES < polled {
            polled = rest.len();
            if (input.cancelled)() {
                return None;
            }
        }
    }
    Some(rows + usize::from(0 < line_bytes + rest.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::object::Object;
    use crate::testing::{self, render};
    use crate::{Settings, Type};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render("n.csv", Type::Csv, text.as_bytes()), expected);
    }

    #[test]
    fn a_table() {
        check(
            "id,\"full name\",url\r\n1,\"Ann, \"\"A\"\"\",http://a.example/\r\n\r\n2,\"two\r\nlines\",\r\n",
            "Title: n.csv\n\
             Columns: 3\n\
             Headings: id | full name | url\n\
             Rows: 2\n\
             URL-References: http://a.example/\n\
             Partial-Text: id full name url | 1 Ann, \"A\" http://a.example/ | 2 two lines",
        );
    }

    #[test]
    fn other_separators_and_no_header() {
        check(
            "# made by hand\n1;a,b;2,5\n2;c;3,5\n",
            "Title: n.csv\nDescription: made by hand\nColumns: 3\nRows: 2\n\
             Partial-Text: made by hand | 1 a,b 2,5 | 2 c 3,5",
        );
        check(
            "a\tb\n1\tx, y\n",
            "Title: n.csv\nColumns: 2\nHeadings: a | b\nRows: 1\nPartial-Text: a b | 1 x, y",
        );
        check("a|b\n", "Title: n.csv\nColumns: 2\nHeadings: a | b\nRows: 0\nPartial-Text: a b");
        check("", "Title: n.csv");
    }

    #[test]
    fn sixteen_bits_a_character() {
        let text: Vec<u8> =
            "\u{feff}a,b\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(
            render("n.csv", Type::Csv, &text),
            "Title: n.csv\nColumns: 2\nHeadings: a | b\nRows: 1\nPartial-Text: a b | 1 2"
        );
    }

    #[test]
    fn a_long_table_is_counted_and_its_front_read() {
        let text = format!("number,word\n{}", "1,needle\n".repeat(300_000));
        let rendered = render("n.csv", Type::Csv, text.as_bytes());
        assert!(rendered.contains("\nRows: 300000\n"), "{}", &rendered[..200]);
    }

    #[test]
    fn rows_of_a_truncated_table_are_not_counted() {
        let object =
            Object { truncated: true, ..Object::whole("http://h.example/n.csv", "a,b\n1,2\n") };
        let summary = testing::summarize(&object, Type::Csv, &Settings::default(), &|| false);
        assert_eq!(summary.record.get("Rows"), None);
        assert_eq!(summary.record.text("Columns").as_deref(), Some("2"));
    }

    proptest! {
        #[test]
        fn rows_are_those_that_are_parsed(
            rows in proptest::collection::vec(proptest::collection::vec("[a-z,;\"\n ]{1,6}", 2..4), 0..9),
        ) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(["one", "two"]).unwrap();
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(writer.into_inner().unwrap());
            for row in &rows {
                writer.write_record(row).unwrap();
            }
            let rendered = render("n.csv", Type::Csv, &writer.into_inner().unwrap());
            let counted = rendered.lines().find_map(|it| it.strip_prefix("Rows: ")).unwrap();
            let counted: usize = counted.parse().unwrap();
            let header = usize::from(!rendered.contains("\nHeadings: "));
            prop_assert_eq!(counted, rows.len() + header);
        }

        #[test]
        fn any_bytes_give_a_record(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 32..127_u8], 0..200)) {
            prop_assert!(render("n.csv", Type::Csv, &bytes).starts_with("Title: "));
        }
    }
}
