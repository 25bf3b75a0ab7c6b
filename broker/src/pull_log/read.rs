//! The reader of the log of pulls; it also works while the log is being written.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::{CLOCK_SET, HEADER, LINE_BYTES_MAX, Problem, Pull, numbers, packed, path};

const BUFFER_BYTES: usize = 64 * 1024;

/// A place in the log that cannot be read. The rest of the log can.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}: {kind}", path.display())]
pub struct Malformed {
    /// The file.
    pub path: PathBuf,
    /// Number of the line, from 1.
    pub line: u64,
    /// The cause.
    pub kind: MalformedKind,
}

/// Cause of a malformed place in the log.
#[derive(Debug, thiserror::Error)]
pub enum MalformedKind {
    /// The line does not describe a pull.
    #[error(transparent)]
    Line(Problem),
    /// The file does not have the header of this version and is left out.
    #[error("the first line is not that of a log of pulls of this version")]
    Header,
    /// The file cannot be read from here on.
    #[error(transparent)]
    Read(io::Error),
}

/// Reads the log in `folder`, oldest pull first. Holds only one buffer in memory, whatever the
/// length of the log.
///
/// Ignores other files. Skips a last line without a line break, since it may still be in the middle
/// of being written, and a file that is deleted meanwhile.
///
/// # Errors
///
/// The folder cannot be read; the error is of kind `NotFound` if there is no log. It names the
/// folder.
pub fn read(folder: &Path) -> io::Result<PullLogReader> {
    let mut files = VecDeque::new();
    for number in numbers(folder)? {
        let there = path(folder, number).metadata();
        let there = there.or_else(|_| packed(folder, number).metadata());
        files.push_back((number, there.map_or(0, |it| it.len())));
    }
    let bytes = files.iter().map(|(_, length)| length).sum();
    Ok(PullLogReader {
        folder: folder.to_owned(),
        files,
        bytes,
        bytes_done: 0,
        clock_sets: 0,
        open: None,
    })
}

/// Reads the log of pulls; see [`read`].
#[derive(Debug)]
pub struct PullLogReader {
    folder: PathBuf,
    /// Numbers and lengths of the files that are not yet read.
    files: VecDeque<(u64, u64)>,
    bytes: u64,
    /// Number of bytes of the files that have been read.
    bytes_done: u64,
    clock_sets: u64,
    /// The open file and its length.
    open: Option<(Lines<BufReader<LogFile>>, u64)>,
}

impl PullLogReader {
    /// Returns the length that the log had on the disk when the reader was opened, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of clock jumps read so far.
    pub fn clock_sets(&self) -> u64 {
        self.clock_sets
    }

    /// Returns the number of bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |(lines, _)| lines.from.get_ref().position());
        self.bytes_done + open
    }
}

impl Iterator for PullLogReader {
    type Item = Result<Pull, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((lines, length)) = &mut self.open {
                let before = lines.clock_sets;
                let item = lines.next();
                self.clock_sets += lines.clock_sets - before;
                if item.is_some() {
                    return item;
                }
                self.bytes_done += *length;
                self.open = None;
            }
            let (number, length) = self.files.pop_front()?;
            match LogFile::open(&self.folder, number) {
                Ok(Some((file, path))) => {
                    let file = BufReader::with_capacity(BUFFER_BYTES, file);
                    self.open = Some((Lines::new(file, path), length));
                }
                Ok(None) => self.bytes_done += length,
                Err((error, path)) => {
                    return Some(Err(Malformed {
                        path,
                        line: 1,
                        kind: MalformedKind::Read(error),
                    }));
                }
            }
        }
    }
}

/// A file of the log, packed or not.
#[derive(Debug)]
enum LogFile {
    Plain(File),
    Packed(Box<MultiGzDecoder<File>>),
}

impl LogFile {
    /// Opens the file with the given number; `None` if it is gone.
    fn open(folder: &Path, number: u64) -> Result<Option<(Self, PathBuf)>, (io::Error, PathBuf)> {
        // The plain file is tried first: it may be packed meanwhile, but one of the two always
        // exists.
        let (plain, packed) = (path(folder, number), packed(folder, number));
        match File::open(&plain) {
            Ok(file) => return Ok(Some((Self::Plain(file), plain))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err((error, plain)),
        }
        match File::open(&packed) {
            Ok(file) => Ok(Some((Self::Packed(Box::new(MultiGzDecoder::new(file))), packed))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err((error, packed)),
        }
    }

    /// Returns the number of bytes on the disk that have been read from the file.
    fn position(&self) -> u64 {
        let mut file = match self {
            Self::Plain(file) => file,
            Self::Packed(packed) => packed.get_ref(),
        };
        file.stream_position().unwrap_or_default()
    }
}

impl io::Read for LogFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(into),
            Self::Packed(packed) => packed.read(into),
        }
    }
}

/// The pulls of one file.
#[derive(Debug)]
pub(super) struct Lines<R> {
    from: R,
    path: PathBuf,
    line: u64,
    clock_sets: u64,
    buffer: Vec<u8>,
    done: bool,
}

/// Content of the buffer after a read.
enum Read {
    /// A whole line, without its end.
    Line,
    /// The beginning of a line that is too long.
    Long,
    /// Nothing, or a line without its end.
    End,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(from: R, path: PathBuf) -> Self {
        Self { from, path, line: 0, clock_sets: 0, buffer: Vec::new(), done: false }
    }

    fn fill(&mut self) -> io::Result<Read> {
        let mut is_long = false;
        loop {
            self.buffer.clear();
            // There is room for the longest line and either form of a line end.
            let room = LINE_BYTES_MAX as u64 + 2;
            let count = (&mut self.from).take(room).read_until(b'\n', &mut self.buffer)?;
            if self.buffer.pop_if(|last| *last == b'\n').is_none() {
                if (count as u64) < room {
                    return Ok(Read::End);
                }
                is_long = true;
                continue;
            }
            self.line += 1;
            // An editor on another system writes CRLF.
            self.buffer.pop_if(|last| *last == b'\r');
            let is_long = is_long || LINE_BYTES_MAX < self.buffer.len();
            return Ok(if is_long { Read::Long } else { Read::Line });
        }
    }

    fn malformed(&self, line: u64, kind: MalformedKind) -> Option<Result<Pull, Malformed>> {
        Some(Err(Malformed { path: self.path.clone(), line, kind }))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Pull, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            let problem = match self.fill() {
                Err(error) => {
                    self.done = true;
                    return self.malformed(self.line + 1, MalformedKind::Read(error));
                }
                Ok(Read::End) => {
                    self.done = true;
                    return None;
                }
                Ok(_) if self.line == 1 && self.buffer != HEADER.as_bytes() => {
                    self.done = true;
                    return self.malformed(1, MalformedKind::Header);
                }
                Ok(Read::Line) => match std::str::from_utf8(&self.buffer) {
                    // The line is the header, a jump of the clock, or a comment.
                    Ok(text) if text.starts_with('#') => {
                        self.clock_sets += u64::from(text.starts_with(CLOCK_SET));
                        continue;
                    }
                    Ok(text) => match text.parse() {
                        Ok(pull) => return Some(Ok(pull)),
                        Err(problem) => problem,
                    },
                    Err(_) => Problem::Utf8,
                },
                Ok(Read::Long) => Problem::Long,
            };
            return self.malformed(self.line, MalformedKind::Line(problem));
        }
        None
    }
}
