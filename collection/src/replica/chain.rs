//! The contents of a log folder, file by file, and the chain of hashes over them.
//!
//! The text of a `CHAIN`, one fact a line, in this order:
//!
//! ```text
//! harvest log 1
//! life 5f0c63a7d41be920
//! epoch 0193c1f2a5b00000
//! serial 5321
//! objects 5120
//! owner 0123456789abcdef ed25519-key
//! base 5000 c0ffee…
//! purged 5200 5321
//! file 1 base 5000 1048576 c0ffee…
//! file 2 log 5321 20480 4be920…
//! ```
//!
//! A *life* begins with a snapshot of the origin's feed. `base` has the serial that the snapshot
//! reaches, and the chain's value there. A `file` line has the file's number (rising), its part of
//! the log, its last serial, its length in bytes, and the chain's value after it. `serial` is the
//! last serial of the whole log. Changes that were superseded before they were read may be missing,
//! so the last file may end below it. `owner` is the id and the public key that the origin's feed
//! names as its own, or `-`.
//!
//! `purged` has the serial up to which the origin has purged suppressed objects, and the serial up
//! to which the files are free of them; the line is absent if both are 0. If the second is less,
//! the log is about to be folded. If the second serial of a log is less than the first serial of a
//! newer log, the files of the older one have bytes that must be removed.
//!
//! **The chain.** The chain's value after a member is the BLAKE3 hash of the value before it and
//! the member's bytes. When a log is folded (`fold`), its base changes, but the value at the base's
//! serial stays the same, so later members still continue the chain. So whoever has the log up to
//! some serial can check whether another log continues it. The chain is signed with the version of
//! the namespace under which the folder is published.
//!
//! Source: ours; Haber & Stornetta, "How to time-stamp a digital document" (1991), for chains of
//! hashes.
//!
//! Sans-I/O.

use std::fmt;
use std::str::FromStr;

use crate::change::{Epoch, Version};

/// Maximum length of a `CHAIN`, in bytes.
pub const CHAIN_BYTES_MAX: usize = 1 << 20;
/// Maximum number of files of a folder.
pub const FILES_MAX: usize = 8_192;
/// Maximum length of an owner, in bytes.
const OWNER_BYTES_MAX: usize = 200;

const TITLE: &str = "harvest log 1";

/// A value of the chain. Shown as 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link(blake3::Hash);

impl Link {
    /// Returns the value before the first member of a log.
    pub(super) fn first(life: u64, epoch: Epoch) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"harvest log\0");
        hasher.update(&life.to_be_bytes());
        hasher.update(&epoch.0.to_be_bytes());
        Self(hasher.finalize())
    }

    /// Returns the value after a member.
    pub(super) fn after(&self, member: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.0.as_bytes());
        hasher.update(member);
        Self(hasher.finalize())
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Link {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let link = blake3::Hash::from_hex(text).map_err(|_error| ())?;
        let is_lower = !text.bytes().any(|it| it.is_ascii_uppercase());
        is_lower.then_some(Self(link)).ok_or(())
    }
}

/// The part of a log that a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// The state at the beginning of the log.
    Base,
    /// The changes since then.
    Log,
}

impl LogPart {
    fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Log => "log",
        }
    }
}

/// A file of a log folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// The number in its name; later files have greater numbers.
    pub number: u64,
    /// Its part of the log.
    pub part: LogPart,
    /// The last serial in it.
    pub to: u64,
    /// Its length, in bytes.
    pub bytes: u64,
    /// The chain's value after it.
    pub link: Link,
}

impl LogFile {
    /// Returns its name in the folder.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}-{:08}.gz", self.part.name(), self.number)
    }
}

/// The contents of a log folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// A random number that identifies the log. A log that is begun anew has another one.
    pub life: u64,
    /// The version that the log reaches.
    pub version: Version,
    /// Its number of live objects.
    pub objects: u64,
    /// The collection's owner, as `ID KEY` (public key); `None` if its feed named none.
    pub owner: Option<String>,
    /// The last serial of the base, from 0.
    pub base: u64,
    /// The chain's value there.
    pub base_link: Link,
    /// Subjects suppressed up to this serial have been purged at the origin; 0: no purge is known.
    pub purged: u64,
    /// The files are free of subjects suppressed up to this serial.
    pub clean: u64,
    /// The files: first those of the base, then those of the log, in the order of their serials.
    pub files: Vec<LogFile>,
}

/// The reason that a text is not a `CHAIN`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseChainError {
    /// The text is too long, or not UTF-8.
    #[error("it has more than {CHAIN_BYTES_MAX} bytes or is not UTF-8")]
    Form,
    /// A line is malformed or misplaced.
    #[error("line {0} is malformed or misplaced for `{TITLE}`")]
    Line(usize),
    /// A file does not follow the one before it.
    #[error("file {0} does not follow the one before it")]
    Order(u64),
}

impl Chain {
    /// Returns the chain's value at the end of the log.
    #[must_use]
    pub fn link(&self) -> Link {
        let log = self.files.last().filter(|it| it.part == LogPart::Log);
        log.map_or(self.base_link, |it| it.link)
    }

    /// Returns whether the files may have bytes that were purged according to `newer`.
    #[must_use]
    pub fn holds_purged(&self, newer: &Self) -> bool {
        let is_comparable = self.version.epoch == newer.version.epoch;
        newer.purged != 0 && (!is_comparable || self.clean < newer.purged)
    }

    /// Returns the length of a part's files, in bytes.
    #[must_use]
    pub fn bytes(&self, part: LogPart) -> u64 {
        self.files.iter().filter(|it| it.part == part).map(|it| it.bytes).sum()
    }

    /// Reads a text made by `to_string`, and accepts no other text.
    ///
    /// # Errors
    ///
    /// The malformed line; the writer of the text is faulty, or an attacker.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseChainError> {
        if CHAIN_BYTES_MAX < bytes.len() {
            return Err(ParseChainError::Form);
        }
        let text = std::str::from_utf8(bytes).map_err(|_error| ParseChainError::Form)?;
        let mut lines = text.lines().enumerate();
        let mut next = |word: &'static str| -> Result<Vec<&str>, ParseChainError> {
            let (at, line) = lines.next().unwrap_or((0, ""));
            let mut words = line.split(' ');
            let is_it = words.next() == Some(word);
            if is_it { Ok(words.collect()) } else { Err(ParseChainError::Line(at + 1)) }
        };
        let title = next("harvest")?;
        let (life, epoch, serial) = (next("life")?, next("epoch")?, next("serial")?);
        let (objects, owner, base) = (next("objects")?, next("owner")?, next("base")?);
        let head = (|| {
            let [life] = *life else { return None };
            let life = u64::from_str_radix(life, 16).ok()?;
            let version = Version { epoch: parse_one(&epoch)?, serial: parse_one(&serial)? };
            let objects = parse_one(&objects)?;
            let owner = match *owner {
                ["-"] => None,
                [id, key] => Some(parse_owner(&format!("{id} {key}"))?),
                _ => return None,
            };
            let [base, link] = *base else { return None };
            let (base, base_link) = (base.parse().ok()?, link.parse().ok()?);
            let is_ours = title == ["log", "1"] && base <= version.serial;
            let (purged, clean, files) = (0, 0, Vec::new());
            is_ours.then_some(Self {
                life,
                version,
                objects,
                owner,
                base,
                base_link,
                purged,
                clean,
                files,
            })
        })();
        let mut chain = head.ok_or(ParseChainError::Line(1))?;
        for (at, line) in lines {
            if let Some(marks) = line.strip_prefix("purged ") {
                (chain.purged, chain.clean) = parse_marks(marks, chain.version.serial)
                    .ok_or(ParseChainError::Line(at + 1))?;
                continue;
            }
            let file = parse_file(line).ok_or(ParseChainError::Line(at + 1))?;
            if !chain.accepts(&file) {
                return Err(ParseChainError::Order(file.number));
            }
            chain.files.push(file);
        }
        // Only one form of each chain is accepted.
        if chain.to_string() == text { Ok(chain) } else { Err(ParseChainError::Line(1)) }
    }

    /// Returns whether a file may come next.
    fn accepts(&self, file: &LogFile) -> bool {
        let last = self.files.last();
        let rises = last.is_none_or(|it| it.number < file.number && it.to <= file.to);
        let is_in_place = match file.part {
            LogPart::Base => last.is_none_or(|it| it.part == LogPart::Base) && file.to <= self.base,
            LogPart::Log => self.base <= file.to,
        };
        let is_reached = file.to <= self.version.serial;
        rises && is_in_place && is_reached && file.bytes != 0 && self.files.len() < FILES_MAX
    }
}

/// Returns the owner named by a feed; `None` unless it consists of two words and is not too long.
pub(super) fn parse_owner(text: &str) -> Option<String> {
    let is_word = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_graphic());
    let (id, key) = text.split_once(' ')?;
    (is_word(id) && is_word(key) && text.len() <= OWNER_BYTES_MAX).then(|| text.to_owned())
}

fn parse_one<T: FromStr>(words: &[&str]) -> Option<T> {
    let [word] = words else { return None };
    word.parse().ok()
}

/// Reads the two serials of `purged`; `None` if they are malformed or one is above `last`.
fn parse_marks(text: &str, last: u64) -> Option<(u64, u64)> {
    let (purged, clean) = text.split_once(' ')?;
    let marks = (purged.parse().ok()?, clean.parse().ok()?);
    (marks.0 <= last && marks.1 <= last).then_some(marks)
}

fn parse_file(line: &str) -> Option<LogFile> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["file", number, part, to, bytes, link] = *words else { return None };
    let part = [LogPart::Base, LogPart::Log].into_iter().find(|it| it.name() == part)?;
    let (number, to, bytes) = (number.parse().ok()?, to.parse().ok()?, bytes.parse().ok()?);
    Some(LogFile { number, part, to, bytes, link: link.parse().ok()? })
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { life, version, objects, owner, base, base_link, purged, clean, files } = self;
        let owner = owner.as_deref().unwrap_or("-");
        let Version { epoch, serial } = version;
        writeln!(f, "{TITLE}\nlife {life:016x}\nepoch {epoch}\nserial {serial}")?;
        writeln!(f, "objects {objects}\nowner {owner}\nbase {base} {base_link}")?;
        if (*purged, *clean) != (0, 0) {
            writeln!(f, "purged {purged} {clean}")?;
        }
        for LogFile { number, part, to, bytes, link } in files {
            writeln!(f, "file {number} {} {to} {bytes} {link}", part.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chain(lengths: &[(u64, u64)], base_files: usize) -> Chain {
        let mut link = Link::first(7, Epoch(9));
        let mut serial = 0;
        let mut files = Vec::new();
        for (at, (further, bytes)) in lengths.iter().enumerate() {
            serial += further;
            link = link.after(&bytes.to_be_bytes());
            let part = if at < base_files { LogPart::Base } else { LogPart::Log };
            files.push(LogFile { number: at as u64 * 3, part, to: serial, bytes: *bytes, link });
        }
        let base = files.iter().rfind(|it| it.part == LogPart::Base);
        let (base, base_link) =
            base.map_or_else(|| (0, Link::first(7, Epoch(9))), |it| (it.to, it.link));
        let version = Version { epoch: Epoch(9), serial };
        let owner = base_files.is_multiple_of(2).then(|| "0123 key".to_owned());
        let (purged, clean) = (serial / 3, if base_files < 9 { base } else { 0 });
        Chain { life: 7, version, objects: 3, owner, base, base_link, purged, clean, files }
    }

    proptest! {
        #[test]
        fn a_chain_reads_back(
            lengths in prop::collection::vec((0..1_u64 << 40, 1..1_u64 << 40), 0..20),
            base_files in 0..20_usize,
        ) {
            let chain = chain(&lengths, base_files);
            prop_assert_eq!(Chain::parse(chain.to_string().as_bytes()), Ok(chain));
        }

        #[test]
        fn no_other_text_is_accepted(text in "[a-z0-9 \n]{0,200}") {
            let _ = Chain::parse(text.as_bytes()).map(|it| assert_eq!(it.to_string(), text));
        }
    }

    fn check(change: impl FnOnce(String) -> String, expected: ParseChainError) {
        let text = change(chain(&[(5, 1), (5, 2), (5, 3)], 2).to_string());
        assert_eq!(Chain::parse(text.as_bytes()), Err(expected), "{text}");
    }

    #[test]
    fn names_the_wrong_line_or_file() {
        check(|it| it.replace("log 1\n", "log 2\n"), ParseChainError::Line(1));
        check(|it| it.replace("life", "live"), ParseChainError::Line(2));
        check(|it| it.replace("objects 3", "objects 03"), ParseChainError::Line(1));
        check(|it| it.replace("\nbase 10", "\nbase 9"), ParseChainError::Order(3));
        check(|it| it.replace("\nbase 10", "\nbase 16"), ParseChainError::Line(1));
        check(|it| it.replace("\nserial 15", "\nserial 14"), ParseChainError::Order(6));
        check(|it| it.replace("file 6", "file 2"), ParseChainError::Order(2));
        check(|it| it.replace("file 3", "file 0"), ParseChainError::Order(0));
        check(|it| it.replace("log 15", "log 9"), ParseChainError::Order(6));
        check(|it| it.replace("log 15 3", "log 15 0"), ParseChainError::Order(6));
        check(|it| it.replace("file 0 base", "file 0 log"), ParseChainError::Order(0));
        check(|it| it.replace("file 6 log", "file 6 ../log"), ParseChainError::Line(11));
        check(|it| it.replace("owner 0123 key", "owner 0123"), ParseChainError::Line(1));
        check(|it| it.replace("owner 0123 key", "owner  0123 key"), ParseChainError::Line(1));
        check(|it| it.replace("purged 5 10", "purged 16 10"), ParseChainError::Line(8));
        check(|it| it.replace("purged 5 10", "purged 0 0"), ParseChainError::Line(1));
        check(|it| it.trim_end().to_owned(), ParseChainError::Line(1));
        check(|it| it + &" ".repeat(CHAIN_BYTES_MAX), ParseChainError::Form);
    }

    #[test]
    fn recognizes_logs_with_purged_bytes() {
        let of = |epoch, purged, clean| {
            let version = Version { epoch: Epoch(epoch), serial: 15 };
            Chain { version, purged, clean, ..chain(&[(5, 1)], 1) }
        };
        for (old, new, expected) in [
            (of(9, 0, 0), of(9, 0, 0), false),
            (of(9, 0, 0), of(9, 0, 15), false),
            (of(9, 0, 0), of(9, 7, 6), true),
            (of(9, 0, 6), of(9, 7, 15), true),
            (of(9, 7, 6), of(9, 7, 6), true),
            (of(9, 0, 7), of(9, 7, 15), false),
            (of(8, 0, 15), of(9, 7, 15), true),
            (of(8, 0, 0), of(9, 0, 15), false),
        ] {
            assert_eq!(old.holds_purged(&new), expected, "{old} {new}");
        }
    }

    #[test]
    fn a_link_depends_on_all_before_it() {
        let first = Link::first(7, Epoch(9));
        assert_ne!(first, Link::first(8, Epoch(9)));
        assert_ne!(first, Link::first(7, Epoch(8)));
        assert_ne!(first.after(b"ab"), first.after(b"a").after(b"b"));
        assert_ne!(first.after(b"a").after(b"b"), first.after(b"b").after(b"a"));
    }
}
