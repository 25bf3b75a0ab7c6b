//! Annotations as SOIF: a record states its attributes about the object with its URL.
//!
//! ```text
//! @FILE { https://docs.example.org/a.pdf
//! Title{14}:    A better title
//! Keywords+{5}:    wells
//! Abstract{0}:
//! }
//! ```
//!
//! A tab follows the colon. Attributes that identify the object or its gatherer are ignored, so
//! that a record printed by a gatherer can be read unchanged.
//!
//! Sans-I/O.

use formats::text::decode;
use settings::Mistake;
use soif::{Event, Limits, Mode, NO_URL, Reader, RecordRef, Section};

use super::{ANNOTATIONS_MAX, Annotation, Statement, VALUE_BYTES_MAX, is_protected, mistake_at};

/// Maximum number of mistakes in records that are reported.
const MISTAKES_MAX: usize = 100;

const LIMITS: Limits = Limits {
    name_bytes_max: 256,
    url_bytes_max: 64 * 1024,
    value_bytes_max: VALUE_BYTES_MAX,
    attributes_max: 1_000,
    record_bytes_max: 8 * 1024 * 1024,
};

pub(super) fn read(bytes: &[u8]) -> Result<Vec<Annotation>, Vec<Mistake>> {
    let (mut annotations, mut mistakes) = (Vec::new(), Vec::new());
    let mut lines = Lines { bytes, at: 0, line: 1 };
    let mut outside = None;
    let read = Reader::over(bytes, Mode::Strict, LIMITS, |event| match event {
        // One annotation above the maximum shows that there are too many.
        Event::Record(record) if annotations.len() <= ANNOTATIONS_MAX => {
            annotations.extend(annotation(&record, &mut lines, &mut mistakes));
        }
        Event::Open(section) if section != Section::Update => outside = outside.or(Some(section)),
        Event::Record(_) | Event::Open(_) | Event::Close(_) => {}
    });
    if let Err(error) = read {
        let at = usize::try_from(error.offset).unwrap_or(bytes.len());
        mistakes.push(mistake_at(bytes, at, &error.kind.to_string(), ""));
    }
    if let Some(section) = outside {
        let message = format!("a section {} says nothing of objects", section.name());
        mistakes.push(mistake_at(bytes, 0, &message, "records alone"));
    }
    if mistakes.is_empty() { Ok(annotations) } else { Err(mistakes) }
}

fn annotation(
    record: &RecordRef<'_>,
    lines: &mut Lines<'_>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Annotation> {
    let start = usize::try_from(record.offset()).unwrap_or(lines.bytes.len());
    let line = lines.line_of(start);
    let mut report = |mistake| {
        if mistakes.len() < MISTAKES_MAX {
            mistakes.push(mistake);
        }
    };
    if record.url() == NO_URL {
        report(lines.mistake_at(start, "the record has no URL", "@FILE { URL"));
        return None;
    }
    let mut statements = Vec::new();
    for (name, value) in record.attributes() {
        if is_protected(name.trim_end_matches(['+', '='])) {
            continue;
        }
        match Statement::new(name, text(value)) {
            Ok(statement) => statements.push(statement),
            Err(message) => {
                // The name is a slice of the file's bytes, so its address gives its offset.
                let at = name.as_ptr().addr().saturating_sub(lines.bytes.as_ptr().addr());
                report(lines.mistake_at(at, &message, ""));
            }
        }
    }
    let about = record.url().to_owned();
    Some(Annotation { line, about, is_pattern: false, statements: statements.into() })
}

/// Returns the value in UTF-8.
fn text(value: &[u8]) -> Vec<u8> {
    if std::str::from_utf8(value).is_ok() {
        return value.to_vec();
    }
    // Without a line end, the last letter would be treated as cut.
    let ended = [value, b"\n"].concat();
    let text = decode(&ended, None);
    text.strip_suffix('\n').unwrap_or(&text).as_bytes().to_vec()
}

/// Line counter that goes from one offset to the next, so that a file with many records is read
/// only once.
struct Lines<'b> {
    bytes: &'b [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// Returns the line at an offset, which must not be before the previous one.
    fn line_of(&mut self, at: usize) -> usize {
        let between = self.bytes.get(self.at..at).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', between).count();
        self.at = at;
        self.line
    }

    /// Returns the mistake at an offset, which must not be before the previous one.
    fn mistake_at(&mut self, at: usize, message: &str, expected: &str) -> Mistake {
        let line = self.line_of(at);
        let before = self.bytes.get(..at).unwrap_or(self.bytes);
        let start = before.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
        let of_line = before.get(start..).unwrap_or_default();
        Mistake { line, ..mistake_at(of_line, of_line.len(), message, expected) }
    }
}
