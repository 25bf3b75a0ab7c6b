//! The writer of a log folder at its origin: stores the members of a feed unchanged.
//!
//! Members are verified and appended as they come. They become part of the log once the stream's
//! end mark has come and `CHAIN` is replaced: a crash, or a broken stream, leaves the old state.

use std::path::{Path, PathBuf};

use disk::{Disk, File};
use tokio::sync::mpsc;

use super::chain::{Chain, FILES_MAX, Link, LogFile, LogPart};
use super::fold::{fold, is_due};
use super::folder::{self, CHAIN, list, write_chain, wrong};
use crate::change::{Epoch, Version};
use crate::error::{Damage, Error};
use crate::member::content::Drafter;
use crate::member::pack::Packer;
use crate::member::{Decoder, Header, MEMBER_BYTES_MAX, Member};
use crate::wire::client::Piece;

/// Length at which a file of the base is closed, in bytes.
pub(super) const BASE_FILE_BYTES: u64 = 64 << 20;
/// Lower and upper bound of the length at which a file of the log is closed, in bytes; between them
/// it is the log's length divided by [`LOG_PARTS`]. Files are short because each version copies the
/// last one.
const LOG_FILE_BYTES: (u64, u64) = (1 << 20, 8 << 20);
const LOG_PARTS: u64 = 64;
/// Compression level of the rest of a partly known member: the fastest.
const LEVEL_REST: u32 = 1;

/// An origin's log folder.
#[derive(Debug)]
pub(crate) struct Writer {
    disk: Disk,
    dir: PathBuf,
    chain: Option<Chain>,
    /// The number of the next file.
    next: u64,
    /// Whether there may be bytes that belong to no state of the log.
    unclean: bool,
}

impl Writer {
    /// Opens a folder, or makes it if there is none. A damaged log is begun anew.
    pub(crate) fn open(disk: &Disk, dir: &Path) -> Result<Self, Error> {
        let made = disk.make_directories(dir, None);
        made.map_err(|error| Error::io("cannot create", dir, error))?;
        let chain = match folder::read_chain(disk, dir).and_then(|it| check_files(disk, dir, it)) {
            Err(error @ (Error::LogFolder { .. } | Error::Damaged { .. })) => {
                tracing::warn!(%error, "the log is begun anew");
                None
            }
            read => read?,
        };
        let mut writer =
            Self { disk: disk.clone(), dir: dir.to_owned(), chain, next: 1, unclean: true };
        writer.tidy()?;
        Ok(writer)
    }

    /// Returns the contents; `None` before the first stream.
    pub(crate) fn chain(&self) -> Option<&Chain> {
        self.chain.as_ref()
    }

    /// Removes other files and bytes, such as those of a broken stream.
    pub(super) fn tidy(&mut self) -> Result<(), Error> {
        let files: &[LogFile] = self.chain.as_ref().map_or(&[], |it| it.files.as_slice());
        let last = files.last().map_or(0, |it| it.number);
        for name in list(&self.dir)? {
            let is_known = files.iter().any(|it| it.name() == name);
            if !is_known && (name != CHAIN || self.chain.is_none()) {
                let path = self.dir.join(name);
                let removed = self.disk.remove_file(&path);
                removed.map_err(|error| Error::io("cannot remove", &path, error))?;
            }
        }
        if let Some(last) = files.last() {
            let path = self.dir.join(last.name());
            let cut = self.disk.open(&path).and_then(|it| it.set_len(last.bytes));
            cut.map_err(|error| Error::io("cannot shorten", &path, error))?;
        }
        self.next = last + 1;
        self.unclean = false;
        Ok(())
    }

    /// Takes a stream until its end: a delta that continues the present state, or a snapshot, which
    /// begins the log anew under a new `life`. Blocks. Returns whether anything has changed.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`]: the stream is damaged, or cut short, at the offset that the error names.
    /// Otherwise the system's error. The log is unchanged.
    pub(crate) fn take(
        &mut self,
        stream: &Stream,
        mut pieces: mpsc::Receiver<Piece>,
    ) -> Result<bool, Error> {
        if self.unclean {
            self.tidy()?;
        }
        self.unclean = true;
        let taken = StreamWriter::new(self, stream).and_then(|mut stream_writer| {
            loop {
                match pieces.blocking_recv() {
                    Some(Piece::Bytes(bytes)) => stream_writer.feed(&bytes)?,
                    Some(Piece::End) => return stream_writer.finish(),
                    None => return Ok(None),
                }
            }
        });
        let Ok(Some(chain)) = taken else {
            self.tidy()?;
            return taken.map(|_| false);
        };
        self.replace(chain)
    }

    /// Puts a list of files in force, and removes files that are not on it.
    pub(super) fn replace(&mut self, chain: Chain) -> Result<bool, Error> {
        let is_new = self.chain.as_ref() != Some(&chain);
        if is_new {
            write_chain(&self.disk, &self.dir, &chain)?;
            self.chain = Some(chain);
        }
        self.tidy()?;
        Ok(is_new)
    }

    /// Records the serial up to which the source has purged suppressed subjects. Blocks. Returns
    /// whether the serial is new; then folding may be due.
    ///
    /// # Errors
    ///
    /// The system's error. The log is unchanged.
    pub(crate) fn note_purged(&mut self, purged: u64) -> Result<bool, Error> {
        let Some(chain) = &self.chain else { return Ok(false) };
        let purged = purged.min(chain.version.serial);
        if purged <= chain.purged {
            return Ok(false);
        }
        let chain = Chain { purged, ..chain.clone() };
        self.replace(chain)
    }

    /// Folds the log, if that is due (see [`is_due`]). Blocks. Returns whether the log was folded.
    pub(crate) fn fold_if_due(&mut self) -> Result<bool, Error> {
        let Some(chain) = self.chain.clone().filter(is_due) else { return Ok(false) };
        if self.unclean {
            self.tidy()?;
        }
        self.unclean = true;
        match fold(&self.disk, &self.dir, &chain, &self.dir) {
            Ok(folded) => self.replace(folded),
            Err(error) => self.tidy().and(Err(error)),
        }
    }
}

/// Checks that all files are there. Cuts the last one to its length, and checks its chain.
fn check_files(disk: &Disk, dir: &Path, chain: Option<Chain>) -> Result<Option<Chain>, Error> {
    let Some(chain) = chain else { return Ok(None) };
    for file in &chain.files {
        let path = dir.join(file.name());
        let bytes = disk.open_to_read(&path).and_then(|it| it.length()).unwrap_or(0);
        if bytes < file.bytes {
            return Err(wrong(dir, format!("{} is missing or cut short", file.name())));
        }
    }
    let Some((last, before)) = chain.files.split_last() else { return Ok(Some(chain)) };
    let same = before.last().filter(|it| it.part == last.part);
    let (link, after) = match (same, last.part) {
        (Some(before), _) => (before.link, before.to),
        (None, LogPart::Base) => (Link::first(chain.life, chain.version.epoch), 0),
        (None, LogPart::Log) => (chain.base_link, chain.base),
    };
    let path = dir.join(last.name());
    let cut = disk.open(&path).and_then(|it| it.set_len(last.bytes));
    cut.map_err(|error| Error::io("cannot shorten", &path, error))?;
    let links = folder::links(&folder::open_file(disk, dir, last, after)?, link)?;
    if links.last().is_none_or(|it| it.1 != last.link) {
        return Err(wrong(dir, format!("{} is not what was written", last.name())));
    }
    Ok(Some(chain))
}

/// The properties of a stream that are known before its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    /// The life of a log that is begun anew; `None`: the stream continues the log.
    pub(crate) life: Option<u64>,
    /// The version that it has to reach.
    pub(crate) to: Version,
    /// Number of live objects at that version.
    pub(crate) objects: u64,
    /// The collection's owner, as the feed names it.
    pub(crate) owner: Option<String>,
    /// Subjects suppressed up to this serial have been purged at the source.
    pub(crate) purged: u64,
}

/// A file under construction.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) entry: LogFile,
    file: File,
    path: PathBuf,
}

impl OpenFile {
    pub(super) fn create(
        disk: &Disk,
        dir: &Path,
        number: u64,
        part: LogPart,
    ) -> Result<Self, Error> {
        let (to, bytes, link) = (0, 0, Link::first(0, Epoch::default()));
        let entry = LogFile { number, part, to, bytes, link };
        let path = dir.join(entry.name());
        let made = disk.create(&path);
        let file = made.map_err(|error| Error::io("cannot create", &path, error))?;
        Ok(Self { entry, file, path })
    }

    pub(super) fn append(&mut self, member: &[u8], to: u64, link: Link) -> Result<(), Error> {
        let written = self.file.write_all_at(member, self.entry.bytes);
        written.map_err(|error| Error::io("cannot write", &self.path, error))?;
        self.entry =
            LogFile { to, bytes: self.entry.bytes + member.len() as u64, link, ..self.entry };
        Ok(())
    }

    /// Closes the file and makes it durable.
    pub(super) fn close(self) -> Result<LogFile, Error> {
        let synced = self.file.sync_all();
        synced.map_err(|error| Error::io("cannot sync", &self.path, error))?;
        Ok(self.entry)
    }
}

/// A stream in progress.
struct StreamWriter<'a> {
    writer: &'a mut Writer,
    /// The contents of the folder after the stream, without the open file.
    chain: Chain,
    part: LogPart,
    open: Option<OpenFile>,
    link: Link,
    serial: u64,
    to: Version,
    decoder: Decoder,
    ended: bool,
}

impl<'a> StreamWriter<'a> {
    fn new(writer: &'a mut Writer, stream: &Stream) -> Result<Self, Error> {
        let &Stream { life, to, objects, ref owner, purged } = stream;
        let (owner, purged) = (owner.clone(), purged.min(to.serial));
        let (part, mut chain) = match (life, &writer.chain) {
            (None, Some(chain)) => {
                let purged = purged.max(chain.purged);
                (LogPart::Log, Chain { objects, owner, purged, ..chain.clone() })
            }
            (life, _) => {
                let life = life.unwrap_or_default();
                let base_link = Link::first(life, to.epoch);
                let (base, files) = (to.serial, Vec::new());
                let version = Version { serial: 0, ..to };
                // A snapshot is made after all purges so far, so it is free of purged subjects.
                let clean = purged;
                let chain =
                    Chain { life, version, objects, owner, base, base_link, purged, clean, files };
                (LogPart::Base, chain)
            }
        };
        let (link, serial) = (chain.link(), chain.version.serial);
        let goes_on = |it: &LogFile| it.part == LogPart::Log && it.bytes < LOG_FILE_BYTES.1;
        let last = chain.files.last().copied().filter(|it| part == LogPart::Log && goes_on(it));
        let open = match last {
            Some(last) => {
                let path = writer.dir.join(last.name());
                let file = writer.disk.open(&path);
                let file = file.map_err(|error| Error::io("cannot open", &path, error))?;
                chain.files.pop().map(|entry| OpenFile { entry, file, path })
            }
            None => None,
        };
        let decoder = Decoder::new(MEMBER_BYTES_MAX);
        Ok(Self { writer, chain, part, open, link, serial, to, decoder, ended: false })
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.decoder.feed(bytes);
        while let Some((member, bytes)) = self.decoder.next_with_bytes()? {
            self.member(&member, bytes)?;
        }
        Ok(())
    }

    fn member(&mut self, member: &Member, bytes: Vec<u8>) -> Result<(), Error> {
        let header = &member.header;
        let damaged = |what| Error::Stream { offset: member.offset, what };
        if self.ended || header.local {
            return Err(damaged(Damage::Content));
        }
        if header.end_mark {
            let is_it = (header.epoch, header.base) == (self.to.epoch, self.to.serial);
            self.ended = is_it && self.serial <= self.to.serial;
            return if self.ended { Ok(()) } else { Err(damaged(Damage::Content)) };
        }
        if header.last() < self.serial || self.to.serial < header.last() {
            return Err(damaged(Damage::Order));
        }
        // Others rely on the chain, which is signed, so the contents must match the header.
        member.changes().map_err(damaged)?;
        let bytes = if header.base < self.serial {
            match rest(member, self.serial).map_err(damaged)? {
                Some(bytes) => bytes,
                None => return Ok(()),
            }
        } else {
            bytes
        };
        if header.entries.is_empty() {
            return Ok(());
        }
        self.append(&bytes, header.last())
    }

    fn append(&mut self, bytes: &[u8], to: u64) -> Result<(), Error> {
        let log_bytes = self.chain.bytes(LogPart::Log);
        let full = match self.part {
            LogPart::Base => BASE_FILE_BYTES,
            LogPart::Log => (log_bytes / LOG_PARTS).clamp(LOG_FILE_BYTES.0, LOG_FILE_BYTES.1),
        };
        if self.open.as_ref().is_some_and(|it| full <= it.entry.bytes) {
            self.close()?;
        }
        self.link = self.link.after(bytes);
        self.serial = to;
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.create()?,
        };
        open.append(bytes, to, self.link)?;
        self.open = Some(open);
        Ok(())
    }

    fn create(&mut self) -> Result<OpenFile, Error> {
        let number = self.writer.next;
        self.writer.next += 1;
        OpenFile::create(&self.writer.disk, &self.writer.dir, number, self.part)
    }

    fn close(&mut self) -> Result<(), Error> {
        if FILES_MAX <= self.chain.files.len() {
            return Err(wrong(
                &self.writer.dir,
                format!("the log has more than {FILES_MAX} files"),
            ));
        }
        if let Some(open) = self.open.take() {
            self.chain.files.push(open.close()?);
        }
        Ok(())
    }

    /// Ends the stream; returns the new contents.
    fn finish(mut self) -> Result<Option<Chain>, Error> {
        self.decoder.finish()?;
        if !self.ended {
            let offset = self.decoder.offset();
            return Err(Error::Stream { offset, what: Damage::Truncated });
        }
        self.close()?;
        if self.part == LogPart::Base {
            self.chain.base_link = self.link;
        }
        self.chain.version = self.to;
        Ok(Some(self.chain))
    }
}

/// Makes a member of the changes after a serial; `None` if there are none.
fn rest(member: &Member, after: u64) -> Result<Option<Vec<u8>>, Damage> {
    let changes = member.changes()?;
    let mut drafter = Drafter::new(MEMBER_BYTES_MAX, MEMBER_BYTES_MAX);
    for scanned in changes.iter().filter(|it| after < it.serial) {
        drafter.push_scanned(scanned, 0).map_err(|_reason| Damage::Content)?;
    }
    drafter.cut();
    let drafts = drafter.take();
    // The changes were in one member, so the rest of them fits in one.
    let [draft] = drafts.as_slice() else { return Ok(None) };
    let header = Header { base: after, entries: draft.entries.clone(), ..member.header.clone() };
    let mut bytes = Vec::new();
    header.write(&Packer::new(LEVEL_REST).pack(draft), &mut bytes);
    Ok(Some(bytes))
}
