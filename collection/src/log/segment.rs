//! A segment: one append-only file of members, and the directory of their positions.
//!
//! The directory is small and lives in memory. It finds the member of a serial by binary search, so
//! the key index and compaction need no positions.
//!
//! Source: ARCHITECTURE.md, "The one idea".

mod walk;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use disk::{Disk, File};

use crate::error::{Damage, Error};
use crate::member::{Frame, Header, Member, MemberLayout, Unpacker};
pub(crate) use walk::{SERIAL_MAX, Stretch};

/// Maximum length of a member's header, in bytes.
const HEADER_BYTES_MAX: usize = (64 << 10) + 32;

/// The position of a member, and its range of serials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// A serial below all serials of the member.
    pub(crate) base: u64,
    /// The last serial of the member; `base` if it has no changes.
    pub(crate) last: u64,
    pub(crate) commit: u64,
    /// Its offset in the file, in bytes.
    pub(crate) offset: u64,
    /// Its length, in bytes.
    pub(crate) bytes: u32,
    pub(crate) changes: u16,
    pub(crate) local: bool,
    pub(crate) start_of_commit: bool,
    pub(crate) end_of_commit: bool,
}

impl Entry {
    /// Makes the entry of a member of `bytes` bytes at `offset`.
    pub(crate) fn new(header: &Header, offset: u64, bytes: usize) -> Self {
        Self {
            base: header.base,
            last: header.last(),
            commit: header.commit,
            offset,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            changes: u16::try_from(header.entries.len()).unwrap_or(u16::MAX),
            local: header.local,
            start_of_commit: header.start_of_commit,
            end_of_commit: header.end_of_commit,
        }
    }

    /// Returns where the member ends in the file.
    pub(crate) fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }
}

/// A segment. Its file is removed once it is obsolete and the last reference is dropped.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    /// Names the file; unique in its collection, in no particular order.
    pub(crate) number: u64,
    pub(crate) file: File,
    disk: Disk,
    entries: RwLock<Vec<Entry>>,
    /// Members that were found damaged, by offset. They stay marked, since a disk that has once
    /// returned wrong bytes is not trusted even if the bytes are right the next time.
    damaged: Mutex<BTreeMap<u64, Damage>>,
    obsolete: AtomicBool,
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire)
            && let Err(error) = self.disk.remove_file(&self.path)
        {
            // The file is not in the manifest, so the next opening removes it.
            tracing::warn!(path = %self.path.display(), %error, "old segment stays for now");
        }
    }
}

impl Segment {
    pub(crate) fn path_in(dir: &Path, number: u64) -> PathBuf {
        dir.join(format!("segment-{number:08}.gz"))
    }

    /// Returns the number in a segment's file name.
    pub(crate) fn number_in(name: &str) -> Option<u64> {
        name.strip_prefix("segment-")?.strip_suffix(".gz")?.parse().ok()
    }

    pub(crate) fn create(disk: &Disk, dir: &Path, number: u64) -> Result<Self, Error> {
        let path = Self::path_in(dir, number);
        let file = disk.create(&path).map_err(|error| Error::io("cannot create", &path, error))?;
        Ok(Self::with(disk, path, number, file))
    }

    /// Opens the file of a segment, with `to_write` also to write. The caller sets its entries.
    pub(crate) fn open(
        disk: &Disk,
        dir: &Path,
        number: u64,
        to_write: bool,
    ) -> Result<Self, Error> {
        let path = Self::path_in(dir, number);
        if !to_write {
            return Self::open_to_read(disk, path, number);
        }
        let file = disk.open(&path).map_err(|error| Error::io("cannot open", &path, error))?;
        Ok(Self::with(disk, path, number, file))
    }

    /// Opens, only to read, a file that another process may write. The caller sets its entries.
    pub(crate) fn open_to_read(disk: &Disk, path: PathBuf, number: u64) -> Result<Self, Error> {
        let opened = disk.open_to_read(&path);
        let file = opened.map_err(|error| Error::io("cannot open", &path, error))?;
        Ok(Self::with(disk, path, number, file))
    }

    fn with(disk: &Disk, path: PathBuf, number: u64, file: File) -> Self {
        Self {
            path,
            number,
            file,
            disk: disk.clone(),
            entries: RwLock::default(),
            damaged: Mutex::default(),
            obsolete: AtomicBool::new(false),
        }
    }

    pub(crate) fn entries(&self) -> RwLockReadGuard<'_, Vec<Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the entries of members that are durable.
    pub(crate) fn extend(&self, entries: impl IntoIterator<Item = Entry>) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).extend(entries);
    }

    pub(crate) fn end(&self) -> u64 {
        self.entries().last().map_or(0, Entry::end)
    }

    /// Returns whether a member is known to be damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        !self.marks().is_empty()
    }

    /// Returns whether its last member is known to be damaged.
    pub(crate) fn ends_damaged(&self) -> bool {
        let marks = self.marks();
        self.entries().last().is_some_and(|it| marks.contains_key(&it.offset))
    }

    /// Removes the file when the last reference is dropped.
    pub(crate) fn retire(&self) {
        self.obsolete.store(true, Ordering::Release);
    }

    /// Reads and verifies a member.
    pub(crate) fn read(&self, entry: &Entry, unpacker: &mut Unpacker) -> Result<Member, Error> {
        let bytes = self.raw(entry)?;
        let layout = self.layout(entry, &bytes)?;
        let unpacked = unpacker.unpack(layout, &bytes, entry.offset);
        unpacked.map_err(|what| self.damage(entry, what))
    }

    /// Reads the header of a member whose bytes are all there.
    fn layout(&self, entry: &Entry, bytes: &[u8]) -> Result<MemberLayout, Error> {
        match Header::read(bytes) {
            Ok(Frame::Whole(layout)) if layout.member_bytes() == bytes.len() => Ok(layout),
            Ok(Frame::Whole(_) | Frame::More(_)) => Err(self.damage(entry, Damage::Truncated)),
            Err(what) => Err(self.damage(entry, what)),
        }
    }

    /// Reads a member's header, even if its body is damaged.
    pub(crate) fn header(&self, entry: &Entry) -> Result<Header, Error> {
        Ok(self.head(entry)?.header)
    }

    /// Reads a member's header and the sizes of its parts.
    fn head(&self, entry: &Entry) -> Result<MemberLayout, Error> {
        let wanted = HEADER_BYTES_MAX.min(entry.bytes as usize);
        let head = self.readable(entry.offset, wanted)?;
        let is_there = entry.end() <= self.file_bytes()?;
        let missing =
            if is_there && head.len() < wanted { Damage::Unreadable } else { Damage::Truncated };
        match Header::read(&head) {
            Ok(Frame::Whole(layout)) => Ok(layout),
            Ok(Frame::More(_)) => Err(self.damage(entry, missing)),
            Err(what) => Err(self.damage(entry, what)),
        }
    }

    /// Checks a member's bytes against its checksums.
    pub(crate) fn check(&self, entry: &Entry, bytes: &[u8]) -> Result<(), Error> {
        self.layout(entry, bytes)?.check(bytes).map_err(|what| self.damage(entry, what))
    }

    /// Checks a member against its checksums, a part at a time, for members too large for memory.
    pub(crate) fn check_large(&self, entry: &Entry) -> Result<(), Error> {
        let layout = self.head(entry)?;
        if layout.member_bytes() != entry.bytes as usize {
            return Err(self.damage(entry, Damage::Truncated));
        }
        let read =
            |part: &mut [u8], at: usize| self.file.read_exact_at(part, entry.offset + at as u64);
        let checked = layout.check_read(read).map_err(|error| self.misread(entry, error))?;
        checked.map_err(|what| self.damage(entry, what))
    }

    /// Makes the error of a failed read. A member that the disk cannot read is marked as damaged.
    fn misread(&self, entry: &Entry, error: io::Error) -> Error {
        match unreadable(&error) {
            Some(what) => self.damage(entry, what),
            None => Error::io("cannot read", &self.path, error),
        }
    }

    /// Marks a member as damaged, and returns the error.
    fn damage(&self, entry: &Entry, what: Damage) -> Error {
        self.mark(entry.offset, what);
        self.fault(entry, what)
    }

    /// Returns the error of a damaged member.
    pub(crate) fn fault(&self, entry: &Entry, what: Damage) -> Error {
        Error::Damaged { path: self.path.clone(), offset: entry.offset, what }
    }

    /// Marks the member at `offset` as damaged.
    pub(crate) fn mark(&self, offset: u64, what: Damage) {
        if self.marks().insert(offset, what).is_none() {
            tracing::error!(file = %self.path.display(), offset, "damaged: {what}");
        }
    }

    fn marks(&self) -> MutexGuard<'_, BTreeMap<u64, Damage>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the members that were found damaged.
    pub(crate) fn damaged(&self) -> Vec<(Entry, Damage)> {
        let marks = self.marks();
        if marks.is_empty() {
            return Vec::new();
        }
        let entries = self.entries();
        entries.iter().filter_map(|it| Some((*it, *marks.get(&it.offset)?))).collect()
    }

    /// Reads a member's bytes without a check.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`]: the disk cannot read them. Otherwise the system's error.
    pub(crate) fn raw(&self, entry: &Entry) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; entry.bytes as usize];
        let read = self.file.read_exact_at(&mut bytes, entry.offset);
        read.map_err(|error| self.misread(entry, error))?;
        Ok(bytes)
    }

    pub(crate) fn file_bytes(&self) -> Result<u64, Error> {
        self.file.length().map_err(|error| Error::io("cannot read", &self.path, error))
    }

    /// Reads `bytes` bytes at `offset`, up to the first one that the disk cannot read.
    fn readable(&self, offset: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        let mut window = vec![0; bytes];
        let (read, error) = self.file.read_up_to(&mut window, offset);
        if let Some(error) = error.filter(|it| unreadable(it).is_none()) {
            return Err(Error::io("cannot read", &self.path, error));
        }
        window.truncate(read);
        Ok(window)
    }
}

/// Returns the damage of bytes that the disk cannot read; `None` for other errors.
fn unreadable(error: &io::Error) -> Option<Damage> {
    match error.raw_os_error() {
        None if error.kind() == io::ErrorKind::UnexpectedEof => Some(Damage::Truncated),
        Some(code) if code == rustix::io::Errno::IO.raw_os_error() => Some(Damage::Unreadable),
        _ => None,
    }
}
