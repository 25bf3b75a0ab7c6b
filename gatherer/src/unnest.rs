//! Presentation unnesting: opens gzip, tar and zip, and hands their members on, one at a time.
//!
//! Source: TR §4 ("Essence can also extract files with arbitrarily deep presentation-layer nesting,
//! e.g. compressed tar files").
//!
//! What is opened is foreign and may be made to hurt: one [`Budget`] for a fetched object bounds
//! bytes, ratio, members, depth and time over all its containers. What does not fit is left out and
//! named. Names of members are data: nothing here touches a file system, so `..` and absolute names
//! do no harm.
//!
//! # Differences from the paper
//!
//! * Members keep their place in a URL: the container's URL, `#`, and the percent-encoded path; `!/`
//!   in place of `#` for a container within a container.
//!
//! Sans-I/O.

mod tar;
pub(crate) mod zip;

use std::cell::Cell;
use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::object::{Object, Problem, ProblemKind};
use crate::typing::{self, Type};

/// Bytes taken from a container between two looks at the clock.
const PIECE_BYTES: usize = 64 * 1024;
/// Longest path of a member, in bytes; longer ones are cut.
const PATH_BYTES_MAX: usize = 4 * 1024;
/// Largest dictionary or window that a compressed stream may ask for, in bytes: it is memory.
const DICTIONARY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The same with what a decoder needs beside it, in KiB.
const DICTIONARY_KIB_MAX: u32 = 65 * 1024;
/// What a member's path keeps as it is in a URL.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// How much of one fetched object is opened, over all depths together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may come out of one fetched object.
    pub bytes_max: u64,
    /// Bytes kept of one member.
    pub member_bytes_max: usize,
    /// Bytes that may come out for each byte that goes in, once more than
    /// [`Limits::ratio_from_bytes`] have come out.
    pub ratio_max: u64,
    /// Where the ratio starts to count, in bytes out.
    pub ratio_from_bytes: u64,
    /// Containers within containers.
    pub depth_max: u32,
    /// Members of all containers together.
    pub members_max: u64,
    /// Bytes of the URLs of all members together: they are remembered in one note.
    pub names_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 256 * 1024 * 1024,
            member_bytes_max: 64 * 1024 * 1024,
            ratio_max: 1000,
            ratio_from_bytes: 1024 * 1024,
            depth_max: 8,
            members_max: 10_000,
            names_bytes_max: 4 * 1024 * 1024,
        }
    }
}

/// What is left of the limits for one fetched object; shared by all its containers.
pub struct Budget<'a> {
    limits: Limits,
    bytes_left: Cell<u64>,
    members_left: Cell<u64>,
    names_bytes_left: Cell<u64>,
    cancelled: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget")
            .field("bytes_left", &self.bytes_left)
            .field("members_left", &self.members_left)
            .finish_non_exhaustive()
    }
}

impl<'a> Budget<'a> {
    /// Returns the whole budget for one fetched object. `cancelled` is polled for every 64 KiB.
    pub fn new(limits: Limits, cancelled: &'a dyn Fn() -> bool) -> Self {
        Self {
            limits,
            bytes_left: Cell::new(limits.bytes_max),
            members_left: Cell::new(limits.members_max),
            names_bytes_left: Cell::new(limits.names_bytes_max),
            cancelled,
        }
    }

    /// Takes the member at `path` of `container` off, or says why the rest is left out.
    pub(crate) fn take_member(&self, container: &Object, path: &[u8]) -> Result<(), Problem> {
        // Percent-encoded, a byte is one or three.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
        let encoded = path.iter().take(PATH_BYTES_MAX).map(|it| if plain(it) { 1 } else { 3 });
        let name_bytes = container.url.len() + encoded.sum::<usize>();
        let name_bytes = u64::try_from(name_bytes).unwrap_or(u64::MAX);
        let (members, names) = (self.members_left.get(), self.names_bytes_left.get());
        self.members_left.set(members.saturating_sub(1));
        self.names_bytes_left.set(names.saturating_sub(name_bytes));
        let message = if members == 0 {
            format!("has more than {} members; the rest was left out", self.limits.members_max)
        } else if names < name_bytes {
            let max = self.limits.names_bytes_max;
            format!("has names of more than {max} bytes in all; the rest was left out")
        } else {
            return Ok(());
        };
        Err(Problem::new(&container.url, ProblemKind::Limit, message))
    }
}

/// Why a container was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Bytes(u64),
    Ratio(u64),
    Time,
}

impl Stop {
    fn fault(self) -> (ProblemKind, String) {
        match self {
            Self::Bytes(max) => {
                (ProblemKind::Limit, format!("opens to more than {max} bytes in all; cut"))
            }
            Self::Ratio(max) => {
                (ProblemKind::Limit, format!("opens to more than {max} times its size; cut"))
            }
            Self::Time => (ProblemKind::Time, "ran out of time while it was opened".to_owned()),
        }
    }

    fn problem(self, url: &str) -> Problem {
        let (kind, message) = self.fault();
        Problem::new(url, kind, message)
    }
}

/// A reader of what comes out of a container, which stops where the budget ends.
struct Metered<'b, R> {
    inner: R,
    /// Size of what `inner` opens, in bytes.
    whole: u64,
    /// How many bytes of that `inner` has not yet taken.
    left: fn(&R) -> u64,
    out: u64,
    budget: &'b Budget<'b>,
    stop: &'b Cell<Option<Stop>>,
}

impl<'b, R: Read> Metered<'b, R> {
    fn new(
        inner: R,
        whole: usize,
        left: fn(&R) -> u64,
        budget: &'b Budget<'b>,
        stop: &'b Cell<Option<Stop>>,
    ) -> Self {
        Self { inner, whole: whole as u64, left, out: 0, budget, stop }
    }

    fn why_stop(&self) -> Option<Stop> {
        let limits = &self.budget.limits;
        if (self.budget.cancelled)() {
            return Some(Stop::Time);
        }
        if self.budget.bytes_left.get() == 0 {
            return Some(Stop::Bytes(limits.bytes_max));
        }
        let consumed = self.whole.saturating_sub((self.left)(&self.inner)).max(1);
        let allowed = limits.ratio_max.saturating_mul(consumed);
        (limits.ratio_from_bytes < self.out && allowed < self.out)
            .then_some(Stop::Ratio(limits.ratio_max))
    }
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(stop) = self.stop.get().or_else(|| self.why_stop()) {
            self.stop.set(Some(stop));
            return Err(io::Error::other("the budget ends here"));
        }
        let left = usize::try_from(self.budget.bytes_left.get()).unwrap_or(usize::MAX);
        let room = buffer.len().min(PIECE_BYTES).min(left);
        let count = self.inner.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.out += count as u64;
        self.budget.bytes_left.set(self.budget.bytes_left.get().saturating_sub(count as u64));
        Ok(count)
    }
}

/// How the reading of one member ended.
enum End {
    /// All of it was read.
    Whole,
    /// There is more than was wanted.
    Longer,
    /// It breaks off or is damaged; the reader knows whether the budget was the reason.
    Broken(io::Error),
}

/// Appends to `kept` until it holds `bytes_max` bytes.
fn read_up_to(reader: &mut impl Read, bytes_max: usize, kept: &mut Vec<u8>) -> End {
    // One byte more than wanted tells whether that was all.
    let room = bytes_max.saturating_add(1).saturating_sub(kept.len());
    let outcome = reader.take(u64::try_from(room).unwrap_or(u64::MAX)).read_to_end(kept);
    let longer = bytes_max < kept.len();
    kept.truncate(bytes_max);
    match outcome {
        Ok(_) if longer => End::Longer,
        Ok(_) => End::Whole,
        Err(error) => End::Broken(error),
    }
}

/// What a gzip file holds.
#[derive(Debug)]
pub struct Opened {
    /// The file's name inside: from the header, else the container's name without its extension.
    pub name: String,
    /// The content, or its front.
    pub bytes: Vec<u8>,
    /// Whether `bytes` is only the front.
    pub truncated: bool,
    /// What went wrong.
    pub problems: Vec<Problem>,
}

/// Opens a gzip file of one or more members, which make one content.
///
/// `wanted` is given the name and the front of the content, and says how many bytes of it are of
/// use; no more than the limit for a member are kept anyway.
pub fn gunzip(
    object: &Object,
    budget: &Budget<'_>,
    wanted: &dyn Fn(&str, &[u8]) -> usize,
) -> Opened {
    let stop = Cell::new(None);
    let mut reader = gzip_reader(object, budget, &stop);
    let mut bytes = Vec::new();
    let mut end = read_up_to(&mut reader, typing::HEAD_BYTES, &mut bytes);
    let name = inner_name(&reader.inner, object);
    let member_bytes_max = budget.limits.member_bytes_max;
    let bytes_max = wanted(&name, &bytes).min(member_bytes_max);
    if matches!(end, End::Longer) {
        // The byte that told that there is more is lost to the head: read again from the start.
        let again = u64::try_from(bytes.len() + 1).unwrap_or(u64::MAX);
        budget.bytes_left.set(budget.bytes_left.get().saturating_add(again));
        reader = gzip_reader(object, budget, &stop);
        bytes.clear();
        end = read_up_to(&mut reader, bytes_max, &mut bytes);
    }
    let mut problems = Vec::new();
    if let End::Broken(error) = &end {
        let rest = reader.inner.get_ref();
        match stop.get() {
            Some(stop) => problems.push(stop.problem(&object.url)),
            // Tapes and some programs pad with zeros.
            None if !bytes.is_empty() && rest.iter().all(|byte| *byte == 0) && !rest.is_empty() => {
                end = End::Whole;
            }
            None => {
                let message =
                    format!("gzip data breaks off after {} good bytes: {error}", bytes.len());
                problems.push(Problem::new(&object.url, ProblemKind::Broken, message));
            }
        }
    } else if matches!(end, End::Longer) && bytes.len() == member_bytes_max {
        let message = format!("opens to more than {member_bytes_max} bytes; cut");
        problems.push(Problem::new(&object.url, ProblemKind::Limit, message));
    }
    Opened { name, bytes, truncated: !matches!(end, End::Whole), problems }
}

fn gzip_reader<'b>(
    object: &'b Object,
    budget: &'b Budget<'b>,
    stop: &'b Cell<Option<Stop>>,
) -> Metered<'b, MultiGzDecoder<&'b [u8]>> {
    let decoder = MultiGzDecoder::new(&*object.bytes);
    Metered::new(decoder, object.bytes.len(), |it| it.get_ref().len() as u64, budget, stop)
}

fn inner_name<R: BufRead>(decoder: &MultiGzDecoder<R>, object: &Object) -> String {
    let named = decoder.header().and_then(flate2::GzHeader::filename);
    let named = named.map(|name| String::from_utf8_lossy(name).into_owned());
    let named = named.map(|name| name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| typing::stem(&object.name))
}

/// A member of a container.
#[derive(Debug)]
pub struct Member {
    /// The member, with its own URL.
    pub object: Object,
    /// Its path in the container, lossy UTF-8.
    pub path: String,
    /// What went wrong while it was read.
    pub problems: Vec<Problem>,
}

/// Hands every file in the container `object` to `visit`, in the container's order, and returns what
/// went wrong with the container as a whole. Only one member is in memory at a time.
///
/// `container` is [`Type::Tar`], [`Type::GzipTar`] or [`Type::Zip`]; others have no members.
pub fn members(
    object: &Object,
    container: Type,
    budget: &Budget<'_>,
    visit: &mut dyn FnMut(Member),
) -> Vec<Problem> {
    let stop = Cell::new(None);
    match container {
        Type::Tar => {
            let bytes: &[u8] = &object.bytes;
            let reader = Metered::new(bytes, bytes.len(), |rest| rest.len() as u64, budget, &stop);
            tar::members(object, reader, budget, &stop, visit)
        }
        Type::GzipTar => {
            let reader = gzip_reader(object, budget, &stop);
            tar::members(object, reader, budget, &stop, visit)
        }
        Type::Zip => zip::members(object, budget, visit),
        _ => Vec::new(),
    }
}

/// Makes a member of what was read of it.
fn member(
    container: &Object,
    path: &[u8],
    size: u64,
    modified: Option<u64>,
    bytes: Vec<u8>,
    truncated: bool,
) -> Member {
    let url = member_url(&container.url, path);
    let path = String::from_utf8_lossy(path).into_owned();
    let name = path.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let object = Object { url, name, bytes: bytes.into(), modified, size, truncated, md5: None };
    Member { object, path, problems: Vec::new() }
}

/// Returns the URL of the member at `path` in the container at `container`.
pub(crate) fn member_url(container: &str, path: &[u8]) -> String {
    let separator = if container.contains('#') { "!/" } else { "#" };
    format!("{container}{separator}{}", percent_encode(path, PATH))
}

/// Returns a member's path without what only says "here", bounded.
fn clean_path(path: &[u8]) -> &[u8] {
    let mut path = path;
    while let Some(rest) = path.strip_prefix(b"./").or_else(|| path.strip_prefix(b"/")) {
        path = rest;
    }
    path.get(..path.len().min(PATH_BYTES_MAX)).unwrap_or_default()
}

/// The problem of a member of which only the front was kept.
fn longer(member: &Member, budget: &Budget<'_>) -> Problem {
    let max = budget.limits.member_bytes_max;
    Problem::new(
        &member.object.url,
        ProblemKind::Limit,
        format!("is longer than {max} bytes; only its front was read"),
    )
}

#[cfg(test)]
pub(crate) mod tests;
