//! The log of pulls: it keeps time, changes and cost of each pull for later studies.
//!
//! `DATA/pulls/` has text files with one line for each pull, for `awk`, spreadsheets and `harvest
//! freshness report`. The first line of a file has the format, its version and the columns
//! ([`HEADER`]); tabs separate fields.
//!
//! | column | is |
//! |---|---|
//! | `ended_ms` | end of the pull, in Unix milliseconds |
//! | `source` | the source's name in the settings |
//! | `kind` | `delta`, `failed`, or `snapshot` (all anew, by this pull or a failed one before it) |
//! | `changes` | number of pulled updates and deletes, even if the pull failed |
//! | `elements` | number of live objects at the source, as it reported; empty if it reported none |
//! | `bytes` | bytes of the bodies, compressed |
//! | `took_ms` | duration, in milliseconds; 0 for a long poll, which waits most of the time |
//!
//! The changes of a failed pull are kept, and the next pull goes on after them. So the changes
//! between two successful pulls are those of the second pull and of the failed pulls between the
//! two.
//!
//! A followed source is pulled all the time, by long polls. Of consecutive empty long polls, which
//! end every ten seconds, only the last has a line: until its end, nothing had changed.
//!
//! A jump of the clock has a line of its own ([`CLOCK_SET`]). Other lines that begin with `#` are
//! comments by people.
//!
//! Files are only appended to. At [`FILE_BYTES_MAX`] the next file begins, the previous one is
//! packed (gzip; `zcat` reads it), and above [`FILES_MAX`] files the oldest is deleted. Names are
//! numbered, so that they sort by age even after the clock was set back.
//!
//! Lines are not synced: a power cut may destroy the last few. The reader skips an incomplete line,
//! and the writer removes it before it writes the next line.
//!
//! Source: Liu §4 (a log of daily harvests, studied afterwards).

mod line;
mod read;
mod write;

pub use self::line::{CLOCK_SET, HEADER, LINE_BYTES_MAX, Outcome, Problem, Pull};
pub use self::read::{Malformed, MalformedKind, PullLogReader, read};
pub use self::write::PullLog;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the log's folder in the broker's data directory.
pub const FOLDER: &str = "pulls";

/// Length at which a file of the log ends and the next begins, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of files of the log; if there are more, the oldest is deleted. They hold 2 GiB of
/// lines: with lines of about 50 bytes, more than a year of 1,000 sources that are pulled every
/// quarter of an hour.
pub const FILES_MAX: usize = 128;

/// Prefix and suffix of a file's name, around its number.
const AFFIXES: (&str, &str) = ("pulls-", ".tsv");

/// Further suffix of a packed file's name.
const PACKED: &str = ".gz";

/// Number of digits of a file's number: enough for millennia at a million pulls a minute.
const DIGITS: usize = 10;

/// Returns the path of a numbered file of the log in `folder` before it is packed.
fn path(folder: &Path, number: u64) -> PathBuf {
    let (before, after) = AFFIXES;
    folder.join(format!("{before}{number:0DIGITS$}{after}"))
}

/// Returns the path of a numbered file of the log in `folder` after it is packed.
fn packed(folder: &Path, number: u64) -> PathBuf {
    let (before, after) = AFFIXES;
    folder.join(format!("{before}{number:0DIGITS$}{after}{PACKED}"))
}

/// Returns the numbers of the log's files in `folder`, packed or not, ascending. Ignores everything
/// that is not a regular file, even if it has the name of one: opening a pipe would wait for ever.
fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| at(folder, &error))? {
        let entry = entry.map_err(|error| at(folder, &error))?;
        if !entry.path().is_file() {
            continue;
        }
        let name = entry.file_name();
        let digits = name.to_str().and_then(|it| {
            let plain = it.strip_suffix(PACKED).unwrap_or(it);
            plain.strip_prefix(AFFIXES.0)?.strip_suffix(AFFIXES.1)
        });
        let digits =
            digits.filter(|it| it.len() == DIGITS && it.bytes().all(|b| b.is_ascii_digit()));
        found.extend(digits.and_then(|it| it.parse::<u64>().ok()));
    }
    found.sort_unstable();
    // A file may exist both packed and not.
    found.dedup();
    Ok(found)
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
