//! Traces: logs of real changes as text. Each change has a time, a source and, if known, an
//! element.
//!
//! There is one change on each line, in any order: `TIME<TAB>SOURCE` or
//! `TIME<TAB>SOURCE<TAB>ELEMENT`. A line without a tab may use commas instead. TIME is a whole
//! number of seconds since 1970, or an ISO 8601 date or date and time (UTC; a fraction of a second
//! is dropped):
//!
//! ```text
//! # released   package   version
//! #elements zlib 40
//! 2024-01-31   zlib   1.3.1
//! 1706659200   serde
//! ```
//!
//! (with tabs instead of the spaces here). A line that begins with `#` is a comment, except for
//! `#elements SOURCE N`, which gives the number of a source's elements from the start. Without it,
//! a source has as many elements as have changed so far. A change without an element counts as the
//! change of a new element. Traces for `--trace` can be made of the release dates in package
//! indexes.
//!
//! # Differences from the paper
//!
//! * Liu's study has the logs of OAI repositories; a trace is the simplest form of such a log.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, HashMap};

use freshness::date::parse_date_time;

use super::world::{Change, ELEMENTS_MAX, Process, Repository};

/// Maximum number of lines of a trace.
pub const LINES_MAX: usize = 5_000_000;
/// Maximum length of a line, in bytes.
pub const LINE_BYTES_MAX: usize = 4_096;
/// Maximum number of bytes of a trace, in all its lines.
pub const BYTES_MAX: usize = 512 << 20;
/// Latest time of a change, in seconds since 1970 (the year 2286).
pub const SECS_MAX: u64 = 9_999_999_999;
/// First word of the line with the number of a source's elements.
const ELEMENTS: &str = "#elements";
/// Problem of a line with only one field.
const NO_SOURCE: &str = "no source: a line is TIME<TAB>SOURCE[<TAB>ELEMENT]";
/// Problem of a line with more than three fields.
const TOO_MANY_FIELDS: &str = "more than three fields: a line is TIME<TAB>SOURCE[<TAB>ELEMENT]";

/// A log of changes by source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    sources: BTreeMap<String, SourceLog>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SourceLog {
    /// The number of elements given by `#elements`.
    elements: Option<u64>,
    /// Time in seconds and, if known, element of each change; in the order of time, then as listed.
    changes: Vec<(u64, Option<Box<str>>)>,
}

impl Trace {
    /// Reads a trace from its text.
    ///
    /// # Errors
    ///
    /// The first wrong line and its problem. The whole trace is refused: without a change, a source
    /// would look slower than it is.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut trace, mut bytes) = (Self::default(), 0);
        for (at, line) in text.lines().enumerate() {
            bytes += line.len() + 1;
            let read = if LINES_MAX <= at {
                Err(format!("there are more than {LINES_MAX} lines"))
            } else if BYTES_MAX < bytes {
                Err(format!("there are more than {BYTES_MAX} bytes"))
            } else if LINE_BYTES_MAX < line.len() {
                Err(format!("the line is longer than {LINE_BYTES_MAX} bytes"))
            } else {
                trace.read(line)
            };
            read.map_err(|problem| format!("line {}: {problem}", at + 1))?;
        }
        for log in trace.sources.values_mut() {
            log.changes.sort_by_key(|(secs, _)| *secs);
        }
        Ok(trace)
    }

    fn read(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim_start_matches('\u{feff}').trim();
        if let Some(rest) = line.strip_prefix(ELEMENTS)
            && rest.starts_with(is_separator)
        {
            let tabs = rest.contains('\t');
            let separator = |it| if tabs { it == '\t' } else { is_separator(it) };
            let wrong = || format!("not {ELEMENTS} SOURCE N with an N up to {ELEMENTS_MAX}");
            let parts = rest.trim_matches(separator).rsplit_once(separator);
            let (source, number) = parts.ok_or_else(wrong)?;
            let source = source.trim_end_matches(separator).trim();
            let elements = digits(number.trim()).filter(|it| *it <= ELEMENTS_MAX);
            let elements = elements.filter(|_| !source.is_empty()).ok_or_else(wrong)?;
            self.sources.entry(source.to_owned()).or_default().elements = Some(elements);
            return Ok(());
        }
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let mut fields = line.split(if line.contains('\t') { '\t' } else { ',' }).map(str::trim);
        let time = fields.next().unwrap_or_default();
        let secs = seconds(time).ok_or_else(|| {
            let shown: String = time.chars().take(40).collect();
            format!(
                "{shown:?} is no time: seconds since 1970 (up to {SECS_MAX}), or a date and time \
                 as in 2024-01-31 or 2024-01-31T12:00:00Z"
            )
        })?;
        let source = fields.next().filter(|it| !it.is_empty()).ok_or(NO_SOURCE)?;
        let element = fields.next().filter(|it| !it.is_empty());
        if fields.next().is_some() {
            return Err(TOO_MANY_FIELDS.to_owned());
        }
        if !self.sources.contains_key(source) {
            self.sources.insert(source.to_owned(), SourceLog::default());
        }
        if let Some(log) = self.sources.get_mut(source) {
            log.changes.push((secs, element.map(Box::from)));
        }
        Ok(())
    }

    /// Returns the sources by name, each as a repository that replays its changes.
    pub fn repositories(&self) -> impl Iterator<Item = (&str, Repository)> {
        self.sources.iter().map(|(name, log)| (name.as_str(), log.repository()))
    }

    /// Returns the number of sources.
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Returns the number of changes.
    pub fn changes(&self) -> usize {
        self.sources.values().map(|it| it.changes.len()).sum()
    }

    /// Returns the first and last change, in seconds since 1970; `None` without changes.
    pub fn span(&self) -> Option<(f64, f64)> {
        let first = self.sources.values().filter_map(|it| it.changes.first()).map(|it| it.0);
        let last = self.sources.values().filter_map(|it| it.changes.last()).map(|it| it.0);
        Some((first.min()? as f64, last.max()? as f64))
    }
}

impl SourceLog {
    fn repository(&self) -> Repository {
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut next = 0_u32;
        let mut changes = Vec::with_capacity(self.changes.len());
        for (secs, name) in &self.changes {
            let new = next;
            let element = match name {
                Some(name) => *numbers.entry(name).or_insert(new),
                None => new,
            };
            next += u32::from(element == new);
            changes.push(Change { at: *secs as f64, element });
        }
        let changes = Process::Replay(changes.into());
        Repository::new(self.elements.unwrap_or_default(), changes)
    }
}

fn is_separator(it: char) -> bool {
    it == ',' || it.is_whitespace()
}

/// Reads seconds since 1970 from a number of seconds, a date, or a date and time in UTC.
fn seconds(text: &str) -> Option<u64> {
    if let Some(secs) = digits(text) {
        return Some(secs).filter(|it| *it <= SECS_MAX);
    }
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    // Dates before 1970 are refused; the time of day is read more strictly than by
    // `parse_date_time`.
    let day = u64::try_from(parse_date_time(date)?).ok()?;
    let secs = time.map_or(Some(0), seconds_of_day)?;
    Some(day + secs).filter(|it| *it <= SECS_MAX)
}

/// Reads the seconds since midnight of a time such as 12:00, 12:00:00, 12:00:00.25Z or
/// 12:00:00+00:00.
fn seconds_of_day(time: &str) -> Option<u64> {
    let utc = ["Z", "z", "+00:00", "+0000"].iter().find_map(|it| time.strip_suffix(it));
    let time = utc.unwrap_or(time).trim_end();
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    digits(fraction.get(..fraction.len().min(9))?)?;
    let mut parts = whole.split(':').map(digits);
    let (hours, minutes) = (parts.next()??, parts.next()??);
    let secs = parts.next().unwrap_or(Some(0))?;
    // A leap second counts as the first second of the next minute.
    let is_valid = hours < 24 && minutes < 60 && secs <= 60 && parts.next().is_none();
    is_valid.then_some(hours * 3_600 + minutes * 60 + secs)
}

/// Reads a number of up to 18 digits.
fn digits(text: &str) -> Option<u64> {
    let sound = text.len() <= 18 && text.bytes().all(|it| it.is_ascii_digit());
    sound.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(seconds(text), expected, "{text}");
    }

    /// Expected values: `date -u -d ... +%s`.
    #[test]
    fn times_are_seconds_or_dates() {
        check("0", Some(0));
        check("1706659200", Some(1_706_659_200));
        check("1970-01-01", Some(0));
        check("2000-02-29", Some(951_782_400));
        check("2000-03-01", Some(951_868_800));
        check("2024-01-31T12:34:56Z", Some(1_706_704_496));
        check("2024-12-31 23:59:59.999999+00:00", Some(1_735_689_599));
        check("2100-03-01T00:00", Some(4_107_542_400));
        check("9999999999", Some(9_999_999_999));
        for wrong in [
            "",
            "-1",
            "1.5",
            "10000000000",
            "1969-12-31",
            "2023-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "2024-01-32",
            "2024-01",
            "2024-01-31T",
            "2024-01-31T24:00",
            "2024-01-31T1",
            "2024-01-31T12:00:61",
            "2024-01-31T12:00:00+01:00",
            "99999999999999999999999",
            "２",
            "2024-01-31T12:00:00.é",
            "9999-01-01",
        ] {
            check(wrong, None);
        }
    }

    fn check_error(text: &str, line: usize, problem: &str) {
        let message = Trace::parse(text).unwrap_err();
        assert!(message.starts_with(&format!("line {line}: {problem}")), "{message}");
    }

    #[test]
    fn errors_name_the_line() {
        check_error("1\ta\n\nx,b", 3, "\"x\" is no time");
        check_error("# one\n17", 2, NO_SOURCE);
        check_error("17\t \tx", 1, NO_SOURCE);
        check_error("17,a,b,c", 1, TOO_MANY_FIELDS);
        check_error("#elements a", 1, "not #elements SOURCE N");
        check_error("#elements a x", 1, "not #elements SOURCE N");
        check_error("#elements a 99999999999999999", 1, "not #elements SOURCE N");
        check_error(&"x".repeat(LINE_BYTES_MAX + 1), 1, "the line is longer");
        check_error(
            &"\n".repeat(LINES_MAX + 1),
            LINES_MAX + 1,
            "there are more than 5000000 lines",
        );
        check_error("yesterday,a", 1, "\"yesterday\" is no time");
    }

    #[test]
    fn elements_are_numbered_in_order_of_first_change() {
        let text = "\u{feff}30,a,x\r\n10\ta\ty, z\n20,a\n30,a,x\n40\ta\ty, z\n#elementary, my dear\n\
                    #elements b 7\n50,b\n";
        let trace = Trace::parse(text).unwrap();
        assert_eq!((trace.sources(), trace.changes()), (2, 6));
        assert_eq!(trace.span(), Some((10.0, 50.0)));
        let found: Vec<(&str, Repository)> = trace.repositories().collect();
        let changes = |list: &[(f64, u32)]| {
            Process::Replay(
                list.iter().map(|(at, element)| Change { at: *at, element: *element }).collect(),
            )
        };
        let a = [(10.0, 0), (20.0, 1), (30.0, 2), (30.0, 2), (40.0, 0)];
        assert_eq!(found[0], ("a", Repository::new(0, changes(&a))));
        assert_eq!(found[1], ("b", Repository::new(7, changes(&[(50.0, 0)]))));
    }

    proptest! {
        #[test]
        fn any_text_is_a_trace_or_an_error(text in "[0-9#,\t\n\r a-cT:Z.é\u{feff}-]{0,60}|\\PC{0,60}") {
            if let Err(error) = Trace::parse(&text) {
                prop_assert!(error.starts_with("line "));
            }
        }
    }
}
