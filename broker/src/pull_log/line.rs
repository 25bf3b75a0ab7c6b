//! A line of the log of pulls: one pull, with tabs between its fields.
//!
//! Sans-I/O.

use std::fmt;
use std::str::FromStr;

use crate::config::NAME_BYTES_MAX;

/// First line of every file of the log, without its line break: format, version and columns.
pub const HEADER: &str =
    "#harvest-pulls-1 ended_ms\tsource\tkind\tchanges\telements\tbytes\ttook_ms";

/// Beginning of a line about a jump of the broker's clock; the jump in milliseconds follows. The
/// time stamps of pulls before and after this line cannot be compared.
pub const CLOCK_SET: &str = "#clock-set ";

/// Maximum length of a line without its line break, in bytes: a name, five numbers, a kind, tabs.
pub const LINE_BYTES_MAX: usize = 512;

/// Outcome of a pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The pull brought the changes since the last pull.
    Delta,
    /// The pull, or a failed one since the last successful one, brought a snapshot.
    Snapshot,
    /// The pull failed.
    Failed,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Delta, Self::Snapshot, Self::Failed];

    /// Returns the outcome's name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Snapshot => "snapshot",
            Self::Failed => "failed",
        }
    }
}

/// A pull that has ended. It is written and read as a line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    /// End of the pull, in Unix milliseconds.
    pub ended_ms: u64,
    /// The source's name: 1 to [`NAME_BYTES_MAX`] bytes without control characters.
    pub source: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Number of pulled updates and deletes.
    pub changes: u64,
    /// Number of live objects at the source, as the source reported; `None` if the pull failed.
    pub elements: Option<u64>,
    /// Bytes of the bodies, compressed.
    pub bytes: u64,
    /// Duration, in milliseconds; 0 for a long poll.
    pub took_ms: u64,
}

impl Pull {
    /// Returns whether a line can hold the source's name; the settings accept no other name.
    pub fn is_sound(&self) -> bool {
        is_name(&self.source)
    }
}

/// A mistake in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The line has fewer or more than seven fields.
    #[error("not seven fields between tabs")]
    Fields,
    /// The field of this column is not a whole number.
    #[error("no whole number in the column {0}")]
    Number(&'static str),
    /// The second field is not a name that a source can have.
    #[error("no name of a source in the second column")]
    Source,
    /// The kind is none of the three.
    #[error("neither delta nor snapshot nor failed in the third column")]
    Kind,
    /// The line is longer than [`LINE_BYTES_MAX`].
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    Long,
    /// The line is not UTF-8.
    #[error("not UTF-8")]
    Utf8,
}

/// The line, without its line break.
impl fmt::Display for Pull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ended_ms, source, outcome, changes, elements, bytes, took_ms } = self;
        write!(f, "{ended_ms}\t{source}\t{}\t{changes}\t", outcome.name())?;
        if let Some(elements) = elements {
            write!(f, "{elements}")?;
        }
        write!(f, "\t{bytes}\t{took_ms}")
    }
}

impl FromStr for Pull {
    type Err = Problem;

    /// Reads a line, without its line break.
    fn from_str(line: &str) -> Result<Self, Problem> {
        let mut fields = line.split('\t');
        let mut next = || fields.next().ok_or(Problem::Fields);
        let [ended_ms, source, kind, changes, elements, bytes, took_ms] =
            [next()?, next()?, next()?, next()?, next()?, next()?, next()?];
        if fields.next().is_some() {
            return Err(Problem::Fields);
        }
        if !is_name(source) {
            return Err(Problem::Source);
        }
        let named = Outcome::ALL.into_iter().find(|it| it.name() == kind);
        Ok(Self {
            ended_ms: number(ended_ms, "ended_ms")?,
            source: source.to_owned(),
            outcome: named.ok_or(Problem::Kind)?,
            changes: number(changes, "changes")?,
            elements: (!elements.is_empty()).then(|| number(elements, "elements")).transpose()?,
            bytes: number(bytes, "bytes")?,
            took_ms: number(took_ms, "took_ms")?,
        })
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_BYTES_MAX && !text.contains(char::is_control)
}

fn number(text: &str, column: &'static str) -> Result<u64, Problem> {
    // `parse` would also take a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or(Problem::Number(column))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Problem) {
        assert_eq!(line.parse::<Pull>(), Err(expected), "{line:?}");
    }

    #[test]
    fn a_line_is_a_pull() {
        let line = "1700000000123\tdocs é\tdelta\t3\t1200\t4096\t250";
        let pull = Pull {
            ended_ms: 1_700_000_000_123,
            source: "docs é".to_owned(),
            outcome: Outcome::Delta,
            changes: 3,
            elements: Some(1_200),
            bytes: 4_096,
            took_ms: 250,
        };
        assert_eq!(line.parse(), Ok(pull.clone()));
        assert_eq!(pull.to_string(), line);
        let failed = Pull { outcome: Outcome::Failed, elements: None, ..pull };
        assert_eq!(failed.to_string(), "1700000000123\tdocs é\tfailed\t3\t\t4096\t250");
    }

    #[test]
    fn every_mistake_has_its_problem() {
        check("", Problem::Fields);
        check("1\ta\tdelta\t1\t1\t1", Problem::Fields);
        check("1\ta\tdelta\t1\t1\t1\t1\t", Problem::Fields);
        check("+1\ta\tdelta\t1\t1\t1\t1", Problem::Number("ended_ms"));
        check("1\ta\tdelta\t\t1\t1\t1", Problem::Number("changes"));
        check("1\ta\tdelta\t1\t-\t1\t1", Problem::Number("elements"));
        check("1\ta\tdelta\t1\t1\t18446744073709551616\t1", Problem::Number("bytes"));
        check("1\ta\tdelta\t1\t1\t1\t1\r", Problem::Number("took_ms"));
        check("1\t\tdelta\t1\t1\t1\t1", Problem::Source);
        check("1\ta\u{85}\tdelta\t1\t1\t1\t1", Problem::Source);
        check(&format!("1\t{}\tdelta\t1\t1\t1\t1", "n".repeat(201)), Problem::Source);
        check("1\ta\tDelta\t1\t1\t1\t1", Problem::Kind);
        check(HEADER, Problem::Number("ended_ms"));
    }

    #[test]
    fn the_header_names_every_column() {
        let (format, columns) = HEADER.split_once(' ').unwrap();
        assert_eq!(format, "#harvest-pulls-1");
        assert_eq!(columns.split('\t').count(), 7);
    }

    proptest! {
        #[test]
        fn a_pull_survives_its_line(
            (ended_ms, changes, bytes, took_ms) in any::<(u64, u64, u64, u64)>(),
            elements in any::<Option<u64>>(), source in "\\PC{1,50}|[a-z \\\\\"#]{1,200}",
            outcome in prop::sample::select(Outcome::ALL.to_vec()),
        ) {
            let pull = Pull { ended_ms, source, outcome, changes, elements, bytes, took_ms };
            prop_assume!(pull.is_sound());
            let line = pull.to_string();
            prop_assert!(line.len() <= LINE_BYTES_MAX && !line.contains(['\n', '\r']));
            prop_assert_eq!(line.parse(), Ok(pull));
        }

        #[test]
        fn any_text_is_a_pull_or_a_problem(text in "[0-9a\t\r]{0,40}|([0-9]{0,3}\t|delta\t){0,9}|\\PC{0,60}") {
            if let Ok(pull) = text.parse::<Pull>() {
                prop_assert!(pull.is_sound());
                prop_assert_eq!(pull.to_string().parse(), Ok(pull));
            }
        }
    }
}
