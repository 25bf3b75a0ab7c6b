//! Lists of files, as FTP servers write them: facts (MLSD), `ls -l`, MS-DOS, and lists of a whole
//! tree (`LIST -R`, files named `ls-lR`).
//!
//! A name with a control character or a slash, and the name `..`, is refused: it would lead out of
//! its folder, or be another command.
//!
//! Source: RFC 3659 §7. The other forms have no standard; these are those of vsftpd, pyftpdlib, GNU
//! ls and IIS.
//!
//! Sans-I/O.

use url::Url;

use super::reply::{number, split};
use super::time::Moment;
use crate::fetch::escaped;

/// Longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// Maximum number of entries of a list, headings included.
const ENTRIES_MAX: usize = 1_000_000;

const MONTHS: [&[u8]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];

/// Kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, and where it leads, if that is told.
    Link(Vec<u8>),
    /// A device, socket or the like.
    Other,
}

/// A file or folder in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name: the server's bytes, no control character or slash.
    pub name: Vec<u8>,
    /// Its kind.
    pub kind: EntryKind,
    /// Its size in bytes, of files only.
    pub size: Option<u64>,
    /// The time of its last change.
    pub modified: Option<Moment>,
}

impl Entry {
    /// Returns its URL; `folder` is that of its folder, with the last slash. `None`: a device or a link, which
    /// may lead anywhere.
    pub fn url(&self, folder: &Url) -> Option<Url> {
        let slash = match self.kind {
            EntryKind::File => "",
            EntryKind::Folder => "/",
            EntryKind::Link(_) | EntryKind::Other => return None,
        };
        folder.join(&[&escaped(&self.name), slash].concat()).ok()
    }
}

/// Size and time of a file, as far as the server tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its size in bytes.
    pub size: Option<u64>,
    /// The time of its last change.
    pub modified: Option<Moment>,
}

/// A folder with its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    /// Its path as the list has it, without `./`; empty for the folder that was listed.
    pub path: Vec<u8>,
    /// Its entries, in the server's order.
    pub entries: Vec<Entry>,
}

impl Folder {
    /// Returns its URL; `listed` is that of the folder that was listed, with the last slash. `None`: the server
    /// gives another kind of path.
    pub fn url(&self, listed: &Url) -> Option<Url> {
        match self.path.as_slice() {
            b"" => Some(listed.clone()),
            [b'/', ..] => None,
            path => listed.join(&[&escaped(path), "/"].concat()).ok(),
        }
    }
}

/// A list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The folders; the one that was listed is the first.
    pub folders: Vec<Folder>,
    /// Number of lines that were left out: not understood, refused names, or too many.
    pub left_out: usize,
    /// Whether the list is larger than allowed, so that only its beginning was read.
    pub truncated: bool,
}

/// Form of the lines of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Facts and a name (MLSD).
    Facts,
    /// Whatever LIST gives.
    Free,
}

/// What a line is.
enum Line {
    Entry(Entry),
    /// The folder itself or the one above, or a sum of sizes.
    Nothing,
    Unknown,
}

impl Listing {
    /// Reads a list. `now_seconds` (since 1970) gives times without a year their year.
    pub fn parse(text: &[u8], form: Form, now_seconds: i64) -> Self {
        let mut listing = Self::default();
        let mut present = Folder::default();
        let mut count = 0_usize;
        let (mut after_blank, mut headed) = (true, false);
        // Whether the path of the present folder is refused.
        let mut refused = false;
        for line in text.split(|it| *it == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let may_be_heading = std::mem::replace(&mut after_blank, line.is_empty());
            if line.is_empty() {
                continue;
            }
            let read = match form {
                _ if LINE_BYTES_MAX < line.len() => Line::Unknown,
                Form::Facts => facts(line),
                Form::Free => free(line, now_seconds),
            };
            match read {
                Line::Nothing => {}
                Line::Entry(_) if refused || ENTRIES_MAX <= count => listing.left_out += 1,
                Line::Entry(entry) => {
                    count += 1;
                    present.entries.push(entry);
                }
                Line::Unknown => match line.strip_suffix(b":") {
                    Some(path) if may_be_heading && form == Form::Free => {
                        let path = folder_path(path).filter(|_| count < ENTRIES_MAX);
                        count += 1;
                        refused = path.is_none();
                        listing.left_out += usize::from(refused);
                        if let Some(path) = path {
                            let new = Folder { path, entries: Vec::new() };
                            let done = std::mem::replace(&mut present, new);
                            // A heading at the beginning names the folder that was listed.
                            if headed || !done.entries.is_empty() {
                                listing.folders.push(done);
                            }
                            headed = true;
                        }
                    }
                    _ => listing.left_out += 1,
                },
            }
        }
        listing.folders.push(present);
        listing
    }
}

/// Returns the path of a heading without `./`; `None` if it is refused.
fn folder_path(path: &[u8]) -> Option<Vec<u8>> {
    if path == b"." {
        return Some(Vec::new());
    }
    let path = path.strip_prefix(b"./").unwrap_or(path);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let names = path.strip_prefix(b"/").unwrap_or(path);
    names.split(|it| *it == b'/').all(is_name).then(|| path.to_vec())
}

/// Returns whether a file may have this name.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..")
        && !name.iter().any(|it| *it == b'/' || it.is_ascii_control())
}

/// Returns the line of an entry of this name.
fn named(name: &[u8], entry: impl FnOnce(Vec<u8>) -> Entry) -> Line {
    match name {
        b"." | b".." => Line::Nothing,
        name if is_name(name) => Line::Entry(entry(name.to_vec())),
        _ => Line::Unknown,
    }
}

/// Reads `fact=value;… name` (RFC 3659 §7.2).
fn facts(line: &[u8]) -> Line {
    let Some((facts, name)) = split(line, b' ') else { return Line::Unknown };
    let Some((kind, facts)) = read_facts(facts) else { return Line::Nothing };
    let Facts { size, modified } = facts;
    let size = size.filter(|_| kind == EntryKind::File);
    named(name, |name| Entry { name, kind, size, modified })
}

/// Reads `fact=value;…`; `None` if they are those of the folder that is listed, or the one above.
pub(super) fn read_facts(text: &[u8]) -> Option<(EntryKind, Facts)> {
    let (mut kind, mut facts) = (EntryKind::File, Facts::default());
    for fact in text.split(|it| *it == b';') {
        let Some((key, value)) = split(fact, b'=') else { continue };
        match key.to_ascii_lowercase().as_slice() {
            b"type" => match value.to_ascii_lowercase().as_slice() {
                b"file" => {}
                b"dir" => kind = EntryKind::Folder,
                b"cdir" | b"pdir" => return None,
                other if other.starts_with(b"os.unix=s") => {
                    let target = split(value, b':').map_or(&b""[..], |it| it.1);
                    kind = EntryKind::Link(target.to_vec());
                }
                _ => kind = EntryKind::Other,
            },
            b"size" => facts.size = number(value),
            b"modify" => facts.modified = Moment::of_digits(value),
            _ => {}
        }
    }
    Some((kind, facts))
}

fn free(line: &[u8], now_seconds: i64) -> Line {
    if line.strip_prefix(b"total ").is_some_and(|it| it.iter().all(|it| !it.is_ascii_control())) {
        return Line::Nothing;
    }
    unix(line, now_seconds).or_else(|| dos(line)).unwrap_or(Line::Unknown)
}

/// Reads a line of `ls -l`.
fn unix(line: &[u8], now_seconds: i64) -> Option<Line> {
    let mut kind = match line.first()? {
        b'-' => EntryKind::File,
        b'd' => EntryKind::Folder,
        b'l' => EntryKind::Link(Vec::new()),
        b'b' | b'c' | b'p' | b's' => EntryKind::Other,
        _ => return None,
    };
    // Some servers leave out links, owner or group: the date is where a month is, after a number.
    let words = words(line);
    let word = |at: usize| words.get(at).map(|it| it.1);
    let (at, modified) = (2..words.len()).find_map(|at| {
        let month = month(word(at)?)?;
        number::<u64>(word(at - 1)?)?;
        let (day, last) = (number(word(at + 1)?)?, word(at + 2)?);
        let modified = match number(last) {
            Some(year) => Moment::of_date(year, month, day),
            None => Moment::of_recent(month, day, last, now_seconds),
        };
        modified.map(|it| (at, it))
    })?;
    let size = number(word(at - 1)?).filter(|_| kind == EntryKind::File);
    let (start, last) = words.get(at + 2)?;
    let mut name = line.get(start + last.len() + 1..)?;
    if let EntryKind::Link(target) = &mut kind
        && let Some(arrow) = name.windows(4).position(|it| it == b" -> ")
    {
        *target = name.get(arrow + 4..)?.to_vec();
        name = name.get(..arrow)?;
    }
    Some(named(name, |name| Entry { name, kind, size, modified: Some(modified) }))
}

/// Reads a line of MS-DOS: `MM-DD-YY HH:MMAM <DIR> name` or a size in place of `<DIR>`.
fn dos(line: &[u8]) -> Option<Line> {
    let words = words(line);
    let [(_, date), (_, clock), (start, size)] = *words.get(..3)? else { return None };
    let mut date = date.split(|it| *it == b'-');
    let (month, day, year) = (number(date.next()?)?, number(date.next()?)?, date.next()?);
    let year = match (year.len(), number::<i64>(year)?) {
        (2, year) if year < 70 => 2_000 + year,
        (2, year) => 1_900 + year,
        (_, year) => year,
    };
    let upper = clock.to_ascii_uppercase();
    let (clock, noon) = match upper.strip_suffix(b"AM") {
        Some(clock) => (clock, Some(0)),
        None => upper.strip_suffix(b"PM").map_or((&upper[..], None), |it| (it, Some(12 * 3_600))),
    };
    let mut modified = Moment::of_minute(year, month, day, clock)?;
    if let Some(noon) = noon {
        let is_twelve = clock.starts_with(b"12:");
        modified.seconds += noon - if is_twelve { 12 * 3_600 } else { 0 };
    }
    let (kind, bytes) = match size {
        b"<DIR>" => (EntryKind::Folder, None),
        b"<JUNCTION>" | b"<SYMLINKD>" | b"<SYMLINK>" => (EntryKind::Link(Vec::new()), None),
        digits => {
            let digits: Vec<u8> = digits.iter().copied().filter(|it| *it != b',').collect();
            (EntryKind::File, Some(number(&digits)?))
        }
    };
    let name = line.get(start + size.len()..)?.trim_ascii_start();
    Some(named(name, |name| Entry { name, kind, size: bytes, modified: Some(modified) }))
}

fn month(word: &[u8]) -> Option<i64> {
    let lower = word.to_ascii_lowercase();
    let at = MONTHS.iter().position(|it| *it == lower.as_slice())?;
    i64::try_from(at + 1).ok()
}

/// Returns the first words of a line, each with where it begins.
fn words(line: &[u8]) -> Vec<(usize, &[u8])> {
    const WORDS_MAX: usize = 12;
    let mut words = Vec::new();
    let mut at = 0;
    for word in line.split(|it| *it == b' ') {
        if !word.is_empty() {
            words.push((at, word));
        }
        if words.len() == WORDS_MAX {
            break;
        }
        at += word.len() + 1;
    }
    words
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
