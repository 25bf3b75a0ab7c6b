//! The writer of the log of pulls.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{CLOCK_SET, FILE_BYTES_MAX, FILES_MAX, HEADER, Pull, at, numbers, packed, path};

/// Number of bytes read at a time to find the end of the last whole line.
const BLOCK_BYTES: u64 = 4_096;

/// Maximum number of consecutive file numbers that folders, pipes and links may occupy.
const TAKEN_MAX: u64 = 100;

/// Writer of the log of pulls; there must be at most one for each folder.
///
/// After an error only the present line is lost: the next line starts again from the state on the
/// disk.
#[derive(Debug)]
pub struct PullLog {
    folder: PathBuf,
    file_bytes_max: u64,
    files_max: usize,
    /// `None` before the first line and after an error.
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    path: PathBuf,
    number: u64,
}

impl PullLog {
    /// Continues the log in `folder`, which need not exist: the first line creates the folder and a
    /// file. Removes an incomplete last line.
    ///
    /// # Errors
    ///
    /// The folder or its newest file cannot be read or written; the error has the path.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        Self::with_limits(folder.into(), FILE_BYTES_MAX, FILES_MAX)
    }

    /// Opens the log as [`open`](Self::open) does, with other limits.
    pub(super) fn with_limits(
        folder: PathBuf,
        file_bytes_max: u64,
        files_max: usize,
    ) -> io::Result<Self> {
        let mut log = Self { folder, file_bytes_max, files_max, open: None };
        match log.go_on() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(log),
            Err(error) => Err(error),
            Ok(open) => {
                log.open = open;
                Ok(log)
            }
        }
    }

    /// Writes a line: a short write to the end of a file, without a sync. Waits for the system's
    /// cache and, after every [`FILE_BYTES_MAX`] bytes, until a file is packed (about a second).
    ///
    /// # Errors
    ///
    /// A line cannot hold the source's name ([`Pull::is_sound`]), or the disk is full or gone; the
    /// error names the file. Then no part of the line is in the log, and the next line can be
    /// written.
    pub fn append(&mut self, pull: &Pull) -> io::Result<()> {
        if !pull.is_sound() {
            let message = format!("{:?} is no name for a source", pull.source);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.append_line(&format!("{pull}\n"))
    }

    /// Writes a line about a jump of the clock by `by_ms` milliseconds.
    ///
    /// # Errors
    ///
    /// The errors of [`append`](Self::append).
    pub fn append_clock_set(&mut self, by_ms: i64) -> io::Result<()> {
        self.append_line(&format!("{CLOCK_SET}{by_ms}\n"))
    }

    fn append_line(&mut self, line: &str) -> io::Result<()> {
        let mut open = match self.open.take() {
            // If the file was deleted, the log is opened again.
            Some(open) if open.path.exists() => Some(open),
            Some(_) | None => self.go_on().or_else(none_if_not_found)?,
        };
        if let Some(full) = open.take_if(|it| it.is_full(line.len(), self.file_bytes_max)) {
            open = Some(self.begin(full.number.saturating_add(1))?);
        }
        let mut open = match open {
            Some(open) => open,
            None => self.begin(1)?,
        };
        open.write(line.as_bytes())?;
        self.open = Some(open);
        Ok(())
    }

    /// Opens the newest file, or begins the next one if the newest cannot be continued; `None` if
    /// there are no files.
    fn go_on(&self) -> io::Result<Option<OpenFile>> {
        let Some(number) = numbers(&self.folder)?.pop() else { return Ok(None) };
        let path = path(&self.folder, number);
        if !path.exists() {
            // The newest file is packed, so it has ended.
            return self.begin(number.saturating_add(1)).map(Some);
        }
        let (file, sound) = cut_to_whole_lines(&path).map_err(|error| at(&path, &error))?;
        let open = OpenFile { file, path, number };
        if sound { Ok(Some(open)) } else { self.begin(number.saturating_add(1)).map(Some) }
    }

    /// Begins a file, then deletes the oldest surplus files and packs those that have ended.
    fn begin(&self, number: u64) -> io::Result<OpenFile> {
        fs::create_dir_all(&self.folder).map_err(|error| at(&self.folder, &error))?;
        let (file, path, number) = create(&self.folder, number)?;
        let mut open = OpenFile { file, path, number };
        if let Err(error) = open.write(format!("{HEADER}\n").as_bytes()) {
            // Without this deletion, a full disk would get more and more empty files.
            let _ = fs::remove_file(&open.path);
            return Err(error);
        }
        let there = numbers(&self.folder)?;
        let surplus = there.len().saturating_sub(self.files_max);
        for (nth, ended) in there.into_iter().filter(|it| *it != number).enumerate() {
            if nth < surplus {
                drop_file(&self.folder, ended)?;
            } else {
                // On an error the file stays plain; it is tried again when the next file begins.
                let _ = pack(&self.folder, ended);
            }
        }
        Ok(open)
    }
}

impl OpenFile {
    /// Returns whether a line of `bytes` bytes would make the file too long.
    fn is_full(&self, bytes: usize, max: u64) -> bool {
        let there = self.file.metadata().map_or(u64::MAX, |it| it.len());
        max < there.saturating_add(bytes as u64)
    }

    /// Writes all bytes; after an error, cuts the file so that none of them remain, if that is
    /// possible.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.file.metadata().map_err(|error| at(&self.path, &error))?.len();
        self.file.write_all(bytes).map_err(|error| {
            // If this fails too, the next open cuts the file.
            let _ = self.file.set_len(before);
            at(&self.path, &error)
        })
    }
}

/// Creates the file with the given number or the next free number.
fn create(folder: &Path, first: u64) -> io::Result<(File, PathBuf, u64)> {
    let mut number = first;
    loop {
        let path = path(folder, number);
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, path, number)),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists
                    && number < first.saturating_add(TAKEN_MAX) =>
            {
                number += 1;
            }
            Err(error) => return Err(at(&path, &error)),
        }
    }
}

/// Opens a file of the log and cuts it after its last line break. Also returns whether its header
/// is that of this version.
fn cut_to_whole_lines(path: &Path) -> io::Result<(File, bool)> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let mut head = Vec::new();
    (&mut file).take(HEADER.len() as u64 + 1).read_to_end(&mut head)?;
    if head.strip_suffix(b"\n") != Some(HEADER.as_bytes()) {
        return Ok((file, false));
    }
    let length = file.metadata()?.len();
    let mut end = length;
    let mut block = Vec::new();
    // The search ends at the line break of the header at the latest.
    let whole = loop {
        let start = end.saturating_sub(BLOCK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        (&mut file).take(end - start).read_to_end(&mut block)?;
        match block.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => break start + at as u64 + 1,
            None if start == 0 => break 0,
            None => end = start,
        }
    };
    if whole < length {
        file.set_len(whole)?;
    }
    Ok((file, true))
}

fn drop_file(folder: &Path, number: u64) -> io::Result<()> {
    for path in [path(folder, number), packed(folder, number)] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path, &error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Packs a file that has ended; leaves a packed file, and a file of another version, as it is. At
/// any time either the plain or the packed file exists and is whole.
fn pack(folder: &Path, number: u64) -> io::Result<()> {
    let (plain, packed) = (path(folder, number), packed(folder, number));
    let mut from = match File::open(&plain) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mut head = Vec::new();
    (&mut from).take(HEADER.len() as u64 + 1).read_to_end(&mut head)?;
    if head.strip_suffix(b"\n") != Some(HEADER.as_bytes()) {
        return Ok(());
    }
    let new = packed.with_extension("new");
    let written = write_packed(&new, &head, &mut from).and_then(|()| fs::rename(&new, &packed));
    if let Err(error) = written {
        let _ = fs::remove_file(&new);
        return Err(error);
    }
    fs::remove_file(&plain)
}

fn write_packed(path: &Path, head: &[u8], rest: &mut File) -> io::Result<()> {
    let mut to = GzEncoder::new(File::create(path)?, Compression::default());
    to.write_all(head)?;
    io::copy(rest, &mut to)?;
    // The packed file is synced, since the plain file is deleted next.
    to.finish()?.sync_all()
}

fn none_if_not_found(error: io::Error) -> io::Result<Option<OpenFile>> {
    if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) }
}
