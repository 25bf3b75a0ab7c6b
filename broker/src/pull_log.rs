//! The log of pulls: who was pulled when, what it brought and what it cost, for studies of it later.
//!
//! `DATA/pulls/` holds text files of one line a pull, made for `awk` and spreadsheets as much as for
//! `harvest freshness report`: fields between tabs, after a first line that names the format, its
//! version and the columns ([`HEADER`]).
//!
//! | column | is |
//! |---|---|
//! | `ended_ms` | when the pull ended, in Unix milliseconds |
//! | `source` | the source's name in the settings |
//! | `kind` | `delta`, `snapshot` (everything anew, by this pull or one that failed before it) or `failed` |
//! | `changes` | updates and deletes that it brought, as far as it came |
//! | `elements` | live objects at the source, as it said; empty if it did not |
//! | `bytes` | bytes of the bodies, compressed as they came |
//! | `took_ms` | how long it took, in milliseconds; 0 of a long poll, whose time is mostly waiting |
//!
//! What a failed pull brought is kept, and the next one goes on after it: what has changed since a pull
//! that succeeded is what the next one that does and the failed ones between brought together.
//!
//! A followed source is asked all the time, by long polls. Of those that bring nothing, one in ten seconds, only
//! the last before something else happens has a line: until then, nothing had changed.
//!
//! Where the clock was set there is a line of its own ([`CLOCK_SET`]). Other lines that begin with `#` are
//! anybody's notes.
//!
//! Files are only ever appended to; at [`FILE_BYTES_MAX`] the next one begins, the one before is packed
//! (gzip; `zcat` reads it), and of more than [`FILES_MAX`] the oldest goes. Names are numbered, so that they sort by when they were begun even
//! where the clock was set back.
//!
//! Nothing is synced: a power cut may take the last few lines. A line that was cut off is skipped by
//! the reader and taken away before the next one is written.
//!
//! Source: Liu §4 (a log of daily harvests, studied afterwards).

mod line;
mod read;
mod write;

pub use self::line::{CLOCK_SET, HEADER, LINE_BYTES_MAX, Outcome, Problem, Pull};
pub use self::read::{Malformed, PullLogReader, Trouble, read};
pub use self::write::PullLog;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the log's folder in the broker's.
pub const FOLDER: &str = "pulls";

/// Length at which a file of the log is ended, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Files of the log; of more than these, the oldest goes. 2 GiB of lines: more than a year of 1,000
/// sources that are pulled every quarter of an hour, in lines of some 50 bytes.
pub const FILES_MAX: usize = 128;

/// What a file's name begins and ends with, around its number.
const AFFIXES: (&str, &str) = ("pulls-", ".tsv");

/// What the name of a file that is packed ends with besides.
const PACKED: &str = ".gz";

/// Digits of a file's number: at a million pulls a minute they last for millennia.
const DIGITS: usize = 10;

/// The path of a numbered file of the log in `folder`, as long as it is not packed.
fn path(folder: &Path, number: u64) -> PathBuf {
    let (before, after) = AFFIXES;
    folder.join(format!("{before}{number:0DIGITS$}{after}"))
}

/// The same once it is packed.
fn packed(folder: &Path, number: u64) -> PathBuf {
    let (before, after) = AFFIXES;
    folder.join(format!("{before}{number:0DIGITS$}{after}{PACKED}"))
}

/// The numbers of the log's files in `folder`, packed or not, ascending. What else is there is left alone,
/// also under such a name: a pipe would be waited for without end.
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
    // Packed, and the other one not yet gone.
    found.dedup();
    Ok(found)
}

/// The same error, with the path that it is about.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
