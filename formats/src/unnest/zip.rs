//! zip archives: their members in the order of the directory.
//!
//! Source: PKWARE's APPNOTE.
//!
//! The directory stands at the end, and members are read where it says: of a long file, only these parts
//! are read.

mod directory;
mod repair;

pub(crate) use repair::repaired;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::io::{self, Read};
use std::rc::Rc;

use lzma_rust2::XzReader;
use zip::read::{ArchiveOffset, Config};
use zip::result::ZipError;
use zip::{CompressionMethod, DateTime, ZipArchive};

use super::budget::{Budget, End, Fault, Limits, Metered, Stop, read_up_to};
use super::stream::{decoder_kib_max, dictionary_bytes_max, too_large_dictionary};
use super::{MemberInfo, Walk, clean_path, member};
use crate::limit::Limit;
use crate::object::{Object, ProblemKind, SeekReader, SeekState};

/// Maximum number of bytes behind the front of an object that are read to open it: the end of its directory, a
/// search for the begin, and the directory, whose size may be declared too small.
const OPENING_BYTES_MAX: u64 = 96 * 1024 * 1024;
/// Position of the dictionary's size in an entry packed by LZMA.
const LZMA_DICTIONARY_AT: usize = 5;

/// The entries of a zip that stores another format: office documents, books, packages. One budget covers
/// all reads.
pub(crate) struct Entries<'a> {
    archive: Archive<'a>,
    budget: Budget<'a>,
}

/// The readable content of a zip entry.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ZipEntry {
    /// The content, or its front.
    pub(crate) bytes: Vec<u8>,
    /// Whether the entry is longer than requested.
    pub(crate) longer: bool,
    /// The reason why less was read than requested, if the entry is damaged or over a limit.
    pub(crate) fault: Option<Fault>,
}

impl<'a> Entries<'a> {
    /// Reads the directory of the zip `object`. `limits` bound all reads of its entries together.
    pub(crate) fn open(
        object: &'a Object,
        limits: Limits,
        cancelled: &'a dyn Fn() -> bool,
    ) -> Result<Self, Fault> {
        let archive = Archive::open(object, cancelled, Rc::default())?;
        Ok(Self { archive, budget: Budget::new(limits, cancelled) })
    }

    /// Returns the names of all entries in the order of the directory, lossy UTF-8.
    pub(crate) fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.archive.zip.file_names_raw().map(String::from_utf8_lossy)
    }

    /// Returns up to `bytes_max` bytes of the entry called `name`; `None` if there is no such entry.
    pub(crate) fn read(&mut self, name: &str, bytes_max: usize) -> Option<ZipEntry> {
        let index = self.archive.zip.index_for_name(name)?;
        let stop = Cell::new(None);
        let unpacked = self.archive.unpack(index, bytes_max, &self.budget, &stop);
        let (bytes, end) = match unpacked {
            Ok(unpacked) => unpacked,
            Err(fault) => {
                return Some(ZipEntry { fault: Some(fault), ..ZipEntry::default() });
            }
        };
        let fault = self.archive.fault_at(&end, bytes.len(), stop.get());
        Some(ZipEntry { bytes, longer: matches!(end, End::Longer), fault })
    }
}

struct Archive<'a> {
    zip: ZipArchive<SeekReader<'a>>,
    /// Its size, in bytes.
    whole: usize,
    source: Rc<SeekState>,
}

impl<'a> Archive<'a> {
    fn open(
        object: &'a Object,
        cancelled: &'a dyn Fn() -> bool,
        source: Rc<SeekState>,
    ) -> Result<Self, Fault> {
        let mut reader = SeekReader::new(object, cancelled, &source);
        if object.is_cut() {
            return Err(object.cut("its directory, which stands at its end"));
        }
        let whole = usize::try_from(reader.size()).unwrap_or(usize::MAX);
        let too_long = || {
            let bound = Limit::Directory.bound();
            let message = format!("has a directory of more than {bound} bytes; not opened");
            (Limit::Directory.kind(), message)
        };
        let fault = |error: &dyn fmt::Display| match source.take_fault() {
            Some((ProblemKind::Limit(_), _)) => too_long(),
            Some(fault) => fault,
            None => (ProblemKind::Broken, format!("zip directory cannot be read: {error}")),
        };
        source.limit(OPENING_BYTES_MAX);
        let end = directory::find(&mut reader).map_err(|error| fault(&error))?;
        let entries_max = Limit::Entries.bound();
        if (entries_max as u64) < end.entries {
            let message = format!("has more than {entries_max} directory entries; not opened");
            return Err((Limit::Entries.kind(), message));
        }
        // A directory in memory costs no reading, and none is longer than its archive, whatever it says.
        let bytes = end.bytes.min(object.size);
        if object.truncated && (Limit::Directory.bound() as u64) < bytes {
            return Err(too_long());
        }
        let config = Config { archive_offset: ArchiveOffset::Known(end.offset) };
        let zip = ZipArchive::with_config(config, reader).map_err(|error| fault(&error))?;
        source.limit(Limit::Rest.bound() as u64);
        Ok(Self { zip, whole, source })
    }

    /// Returns the reason why an entry broke off; `None` if its end or `bytes_max` was reached.
    fn fault_at(&self, end: &End, kept: usize, stop: Option<Stop>) -> Option<Fault> {
        let End::Broken(error) = end else { return None };
        let broken =
            || (ProblemKind::Broken, format!("breaks off after {kept} good bytes: {error}"));
        let stopped = stop.map(Stop::fault);
        Some(stopped.or_else(|| self.source.take_fault()).unwrap_or_else(broken))
    }

    /// Unpacks up to `bytes_max` bytes of one entry.
    fn unpack(
        &mut self,
        index: usize,
        bytes_max: usize,
        budget: &Budget<'_>,
        stop: &Cell<Option<Stop>>,
    ) -> Result<(Vec<u8>, End), Fault> {
        let entry = self.zip.by_index_data(index).map_err(|error| refusal(&error, &self.source))?;
        let packed = usize::try_from(entry.compressed_size()).unwrap_or(usize::MAX);
        let (packed, method) = (packed.min(self.whole), entry.compression());
        if entry.encrypted() {
            return Err((ProblemKind::Locked, "is locked by a password".to_owned()));
        }
        // The entry decides how much memory the dictionary takes.
        if method == CompressionMethod::LZMA {
            let mut head = [0; LZMA_DICTIONARY_AT + 4];
            let mut raw =
                self.zip.by_index_raw(index).map_err(|error| refusal(&error, &self.source))?;
            let size = raw.read_exact(&mut head).ok().and_then(|()| head.last_chunk::<4>());
            let max = dictionary_bytes_max();
            if size.is_some_and(|it| max < u64::from(u32::from_le_bytes(*it))) {
                return Err(too_large_dictionary());
            }
        }
        let mut bytes = Vec::new();
        let end = if method == CompressionMethod::XZ {
            let raw =
                self.zip.by_index_raw(index).map_err(|error| refusal(&error, &self.source))?;
            let reader = XzReader::new_mem_limit(raw, true, decoder_kib_max());
            let mut reader = Metered::new(reader, packed, Rc::default(), budget, stop);
            read_up_to(&mut reader, bytes_max, &mut bytes)
        } else {
            let file = self.zip.by_index(index).map_err(|error| refusal(&error, &self.source))?;
            let file = Declared { left: file.size(), file };
            let mut reader = Metered::new(file, packed, Rc::default(), budget, stop);
            read_up_to(&mut reader, bytes_max, &mut bytes)
        };
        Ok((bytes, end))
    }
}

/// An entry whose bytes up to its declared size come before the one that shows that it is longer: that read
/// fails, whatever else it had found.
struct Declared<R> {
    file: R,
    left: u64,
}

impl<R: Read> Read for Declared<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room =
            usize::try_from(self.left.max(1)).map_or(buffer.len(), |it| it.min(buffer.len()));
        let count = self.file.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.left = self.left.saturating_sub(count as u64);
        Ok(count)
    }
}

pub(super) fn members(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    let mut archive = Archive::open(object, walk.budget.cancelled, Rc::clone(&walk.source))?;
    for index in 0..archive.zip.len() {
        let Ok(entry) = archive.zip.by_index_data(index) else { continue };
        if !entry.is_file() {
            continue;
        }
        // Many programs write UTF-8 without declaring it; other names are in code page 437 (APPNOTE, D.1).
        let raw = entry.name_raw();
        let name = match std::str::from_utf8(raw) {
            Err(_) => entry
                .name()
                .map_or_else(|_| raw.into(), |it| Cow::Owned(it.into_owned().into_bytes())),
            Ok(_) => Cow::Borrowed(raw),
        };
        walk.take(&name)?;
        let mut info = MemberInfo {
            path: clean_path(&name).to_vec(),
            size: entry.size(),
            modified: entry.last_modified().and_then(seconds),
        };
        let stop = Cell::new(None);
        let bytes_max = walk.budget.member_bytes_max();
        let (bytes, end, fault) = match archive.unpack(index, bytes_max, walk.budget, &stop) {
            Ok((bytes, end)) => {
                let fault = archive.fault_at(&end, bytes.len(), stop.get());
                (bytes, end, fault)
            }
            // Only the name is known.
            Err(fault) => (Vec::new(), End::Longer, Some(fault)),
        };
        let kept = bytes.len() as u64;
        let truncated = !matches!(end, End::Whole);
        // The directory's size may be wrong; the size of the content is right.
        info.size = if truncated { info.size.max(kept) } else { kept };
        let mut member = member(object, &info, bytes, truncated && 0 < info.size);
        let over = fault.clone().filter(|_| archive.source.is_over());
        match (fault, end) {
            (Some(fault), _) => member.add(fault),
            (None, End::Longer) => member.add(walk.budget.cut(bytes_max)),
            (None, _) => {}
        }
        walk.last.clone_from(&member.path);
        walk.visit(member);
        match stop.get() {
            // A member over the ratio does not affect the others.
            None | Some(Stop::Ratio(_)) => {}
            stop => walk.stop.set(stop),
        }
        if walk.stop.get().is_some() {
            break;
        }
        if let Some(fault) = over {
            return Err(fault);
        }
    }
    Ok(())
}

fn refusal(error: &ZipError, source: &SeekState) -> Fault {
    if let Some(fault) = source.take_fault() {
        return fault;
    }
    let message = match error {
        ZipError::CompressionMethodNotSupported(method) => {
            format!("is compressed by method {method}, which is not known here")
        }
        error => format!("cannot be read: {error}"),
    };
    (ProblemKind::Broken, message)
}

/// Returns the Unix seconds of a DOS time, which has no time zone and is taken for UTC.
fn seconds(time: DateTime) -> Option<u64> {
    let part = |it: u8| i8::try_from(it).ok();
    let civil = jiff::civil::DateTime::new(
        i16::try_from(time.year()).ok()?,
        part(time.month())?,
        part(time.day())?,
        part(time.hour())?,
        part(time.minute())?,
        part(time.second())?,
        0,
    );
    let zoned = civil.ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(zoned.timestamp().as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::zipped;
    use super::*;

    #[test]
    fn entries_are_read_by_name_within_one_budget() {
        let zip = zipped(&[("word/a.xml", b"<a/>"), ("big", &[b' '; 3000]), ("b", b"two")]);
        let zip = Object::whole("http://h.example/a", zip);
        let limits = Limits { bytes_max: 2000, ..Limits::default() };
        let mut entries = Entries::open(&zip, limits, &|| false).unwrap();
        assert_eq!(entries.names().collect::<Vec<_>>(), ["word/a.xml", "big", "b"]);
        let whole = ZipEntry { bytes: b"<a/>".to_vec(), ..ZipEntry::default() };
        assert_eq!(entries.read("word/a.xml", 100), Some(whole));
        let front = ZipEntry { bytes: b"<a".to_vec(), longer: true, fault: None };
        assert_eq!(entries.read("word/a.xml", 2), Some(front));
        assert_eq!(entries.read("none", 100), None);
        let big = entries.read("big", 5000).unwrap();
        assert!(big.bytes.len() < 2000);
        assert_eq!(big.fault.map(|(kind, _)| kind), Some(Limit::Opened.kind_at(2000)));
        assert!(entries.read("b", 10).unwrap().fault.is_some(), "nothing is left");
    }

    #[test]
    fn an_entry_longer_than_declared_keeps_what_is_declared() {
        let content: Vec<u8> = (0..3000_u16).map(|it| it.to_le_bytes()[0]).collect();
        let mut zip = zipped(&[("a", &content)]);
        let directory = zip.windows(4).position(|it| it == b"PK\x01\x02").unwrap();
        zip[directory + 24..directory + 28].copy_from_slice(&1001_u32.to_le_bytes());
        let zip = Object::whole("http://h.example/a", zip);
        let entry = Entries::open(&zip, Limits::default(), &|| false).unwrap().read("a", 9000);
        let entry = entry.unwrap();
        assert_eq!(entry.bytes, content[..1001]);
        let (kind, message) = entry.fault.unwrap();
        assert_eq!(kind, ProblemKind::Broken);
        assert!(message.starts_with("breaks off after 1001 good bytes"), "{message}");
    }

    #[test]
    fn zip_bombs_and_broken_zips_are_refused() {
        let zip = Object::whole("http://h.example/a", zipped(&[("bomb", &vec![0; 3 << 20])]));
        let limits = Limits { ratio_max: 100, ..Limits::default() };
        let bomb = Entries::open(&zip, limits, &|| false).unwrap().read("bomb", 1 << 30).unwrap();
        let (kind, message) = bomb.fault.unwrap();
        assert_eq!(
            (kind, message.as_str()),
            (Limit::Ratio.kind_at(100), "opens to more than 100 times its size; cut")
        );
        let cut = Object::whole("http://h.example/a", &b"PK\x03\x04"[..]);
        assert!(Entries::open(&cut, Limits::default(), &|| false).is_err());
        let mut late = Entries::open(&zip, limits, &|| true).unwrap();
        assert_eq!(late.read("bomb", 9).unwrap().fault.unwrap().0, ProblemKind::Time);
    }
}
