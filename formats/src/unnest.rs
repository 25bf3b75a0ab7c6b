//! Presentation unnesting: containers (archives, packages, mail) are opened, and members handed on one by one.
//!
//! Source: TR §4 ("Essence can also extract files with arbitrarily deep presentation-layer nesting,
//! e.g. compressed tar files").
//!
//! Containers are foreign and may be hostile. One [`Budget`] for a fetched object bounds bytes, ratio,
//! members, names, depth and time over all its containers. The dictionary of a stream is bounded before
//! it is allocated. Members beyond the budget are left out, with a problem. Names of members are data:
//! nothing here touches a file system, so `..` and absolute names do no harm. Nothing is run: shell
//! archives are read, not executed.
//!
//! # Differences from the paper
//!
//! * Each member has a URL: the container's URL, `#`, and the percent-encoded path. For a container
//!   within a container, `!/` replaces the `#`.

mod ar;
mod binhex;
mod budget;
mod cpio;
mod format;
mod lzw;
mod mail;
mod metadata;
mod rpm;
mod sevenz;
mod shar;
mod stream;
mod tar;
mod uu;
mod warc;
pub(crate) mod zip;

use std::cell::Cell;
use std::io::Read;
use std::rc::Rc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::Draft;
use crate::limit::Limit;
use crate::object::{Object, Problem, ProblemKind, SeekState};

pub use budget::{Budget, Limits};
use budget::{End, Fault, Metered, Source, Stop, read_up_to};
pub use format::Format;
pub use stream::peek;
pub use stream::{Opened, Packing, unpack};

/// Bytes of a member's path that are encoded in a URL: all but unreserved ones and the slash.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns whether a byte of a path stays unencoded in a URL.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte)
}

/// A member of a container.
#[derive(Debug)]
pub struct Member {
    /// The member, with its own URL.
    pub object: Object,
    /// Its path in the container, lossy UTF-8.
    pub path: String,
    /// Problems while it was read.
    pub problems: Vec<Problem>,
}

/// The results about a container as a whole, beside its members.
#[derive(Debug, Default)]
pub struct Report {
    /// Problems of the container as a whole.
    pub problems: Vec<Problem>,
    /// The metadata of a package.
    pub about: Option<Draft<'static>>,
}

/// Calls `visit` with every file in the container `object`, in the container's order. Only one member is
/// in memory at a time. A [`Format::Stream`] has no members: see [`unpack`].
pub fn members(
    object: &Object,
    format: Format,
    budget: &Budget<'_>,
    visit: &mut dyn FnMut(Member),
) -> Report {
    let stop = Cell::new(None);
    let is_cut = object.is_cut() || object.truncated && !format.reads_rest();
    let (source, last) = (Rc::default(), String::new());
    let mut walk = Walk { object, budget, stop: &stop, source, is_cut, visit, about: None, last };
    let outcome = walk.open(format);
    let Walk { about, last, source, .. } = walk;
    let fault = match outcome {
        Err((ProblemKind::Broken, _)) | Ok(()) if is_cut => Some(object.cut("the rest")),
        Err(fault) => Some(source.take_fault().unwrap_or(fault)),
        Ok(()) => None,
    };
    let mut report = Report { problems: Vec::new(), about };
    if let Some((kind, mut message)) = stop.get().map(Stop::fault).or(fault) {
        if !last.is_empty() {
            message = format!("{message} (last member: {last})");
        }
        report.problems.push(Problem::new(&object.url, kind, message));
    }
    report
}

/// A container's data about a member, read before the member's content.
struct MemberInfo {
    path: Vec<u8>,
    size: u64,
    modified: Option<u64>,
}

/// The walk through one container.
struct Walk<'b, 'v> {
    object: &'b Object,
    budget: &'b Budget<'b>,
    stop: &'b Cell<Option<Stop>>,
    /// Bound and state of readers of the container's rest.
    source: Rc<SeekState>,
    /// Whether only the front of the container is read.
    is_cut: bool,
    visit: &'v mut dyn FnMut(Member),
    about: Option<Draft<'static>>,
    /// The path of the last member that was begun.
    last: String,
}

impl<'b> Walk<'b, '_> {
    fn open(&mut self, format: Format) -> Result<(), Fault> {
        let bytes: &'b [u8] = &self.object.bytes;
        match format {
            Format::Stream(_) => Ok(()),
            Format::Tar => tar::members(self, &mut self.meter(bytes)),
            Format::PackedTar(packing) => {
                let mut reader = self.unpacked(packing, bytes)?;
                tar::members(self, &mut reader)
            }
            Format::Zip => zip::members(self),
            Format::SevenZip => sevenz::members(self),
            Format::Cpio => cpio::members(self, &mut self.meter(bytes)),
            Format::Ar => ar::members(self),
            Format::Deb => ar::package(self),
            Format::Rpm => rpm::package(self),
            Format::Shar => shar::members(self),
            Format::Uuencoded => uu::members(self),
            Format::BinHex => binhex::members(self),
            Format::Message => mail::message(self),
            Format::Mailbox => mail::mailbox(self),
            Format::Outlook => mail::outlook(self),
            Format::Warc => warc::members(self),
            Format::Closed(name) => {
                Err((ProblemKind::Broken, format!("is packed by {name}, which is not opened here")))
            }
        }
    }

    /// Returns a reader of uncompressed bytes, within the budget; see [`Source::of`].
    fn meter(&self, bytes: &'b [u8]) -> Metered<'b, Source<'b>> {
        let source = self.source(bytes);
        let left = source.left();
        let whole = left.get();
        Metered::new(source, whole, left, self.budget, self.stop)
    }

    fn source(&self, bytes: &'b [u8]) -> Source<'b> {
        Source::of(self.object, bytes, self.budget, &self.source)
    }

    /// Returns a reader of a stream's decompressed content, within the budget.
    fn unpacked(
        &self,
        packing: Packing,
        bytes: &'b [u8],
    ) -> Result<Metered<'b, Box<dyn Read + 'b>>, Fault> {
        let reader = packing.reader(bytes, self.source(bytes), self.budget, self.stop);
        reader.map_err(|error| packing.fault(&error, 0))
    }

    /// Takes a member off the budget; fails with the reason why the rest is left out.
    fn take(&self, path: &[u8]) -> Result<(), Fault> {
        self.budget.take_member(self.object, path).map_err(|it| (it.kind, it.message))
    }

    /// Reads the next member from a stream; fails when the budget has no room for it.
    fn read(&mut self, info: &MemberInfo, reader: &mut dyn Read) -> Result<Member, Fault> {
        self.take(&info.path)?;
        let bytes_max = self.budget.member_bytes_max();
        let mut bytes = Vec::new();
        let end = read_up_to(&mut Read::take(reader, info.size), bytes_max, &mut bytes);
        let (kept, size) = (bytes.len(), info.size);
        let mut member = member(self.object, info, bytes, (kept as u64) < size);
        if matches!(end, End::Longer) {
            member.add(self.budget.cut(bytes_max));
        } else if (kept as u64) < size {
            let kind = if self.is_cut {
                Limit::Read.kind_at(self.object.bytes.len())
            } else {
                ProblemKind::Broken
            };
            let broken = || (kind, format!("breaks off after {kept} of {size} bytes"));
            let fault = self.stop.get().map(Stop::fault).or_else(|| self.source.fault());
            member.add(fault.unwrap_or_else(broken));
        }
        self.last.clone_from(&member.path);
        Ok(member)
    }

    /// Emits a member that is decoded in memory. `name` replaces the file name from its path.
    fn emit(&mut self, path: &[u8], name: Option<String>, decoded: Decoded) -> Result<(), Fault> {
        self.take(path)?;
        let Decoded { mut bytes, modified, fault } = decoded;
        self.budget.take_bytes(bytes.len()).map_err(Stop::fault)?;
        let (size, bytes_max) = (bytes.len(), self.budget.member_bytes_max());
        bytes.truncate(bytes_max);
        let info = MemberInfo { path: clean_path(path).to_vec(), size: size as u64, modified };
        let mut member = member(self.object, &info, bytes, bytes_max < size);
        member.object.name = name.unwrap_or(member.object.name);
        if bytes_max < size {
            member.add(self.budget.cut(bytes_max));
        }
        if let Some(fault) = fault {
            member.add(fault);
        }
        self.last.clone_from(&member.path);
        self.visit(member);
        Ok(())
    }

    /// Hands on a member; keeps the package's metadata if the member is the first that has them.
    fn visit(&mut self, member: Member) {
        if self.about.is_none() {
            self.about = metadata::of_member(&member);
        }
        let bytes = member.object.bytes.len();
        self.budget.hold(bytes);
        (self.visit)(member);
        self.budget.release(bytes);
    }
}

/// The decoded content of a member.
#[derive(Default)]
struct Decoded {
    bytes: Vec<u8>,
    modified: Option<u64>,
    fault: Option<Fault>,
}

impl Member {
    fn add(&mut self, fault: Fault) {
        self.problems.push(Problem::new(&self.object.url, fault.0, fault.1));
    }
}

fn member(container: &Object, info: &MemberInfo, bytes: Vec<u8>, truncated: bool) -> Member {
    let MemberInfo { path, size, modified } = info;
    let bound = Limit::Path.bound();
    let is_cut = bound < path.len();
    let path = path.get(..path.len().min(bound)).unwrap_or_default();
    let url = member_url(&container.url, path);
    let path = String::from_utf8_lossy(path).into_owned();
    let name = path.trim_end_matches('/').rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let (bytes, size) = (bytes.into(), *size);
    let (modified, rest, md5) = (*modified, None, None);
    let object = Object { url, name, bytes, modified, size, truncated, rest, md5 };
    let mut member = Member { object, path, problems: Vec::new() };
    if is_cut {
        let message = format!(
            "has a path of more than {bound} bytes; of those with the same front only the last is read"
        );
        member.add((Limit::Path.kind(), message));
    }
    member
}

/// Returns the URL of the member at `path` in the container at `container`.
pub fn member_url(container: &str, path: &[u8]) -> String {
    let separator = if container.contains('#') { "!/" } else { "#" };
    format!("{container}{separator}{}", percent_encode(path, PATH))
}

/// Returns a member's path without leading `./` and `/`. It is bounded, but shows whether it is too long.
fn clean_path(path: &[u8]) -> &[u8] {
    let mut path = path;
    while let Some(rest) = path.strip_prefix(b"./").or_else(|| path.strip_prefix(b"/")) {
        path = rest;
    }
    path.get(..path.len().min(Limit::Path.bound() + 1)).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests;
