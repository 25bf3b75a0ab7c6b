//! The file system, as a collection writes to it: one thin layer, so that tests can stand in for
//! the disk and drop what was not made durable, or fail as a disk does.
//!
//! `sled` writes past this layer, but its file is made durable through
//! it (see keys/store.rs), and all that it holds can be made anew.
//!
//! Source: ours; Pillai et al., "All file systems are not created equal" (OSDI 2014), for what a
//! power cut may leave.

#[cfg(test)]
pub(crate) mod faulty;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What files are written to.
#[derive(Clone, Debug, Default)]
pub(crate) enum Disk {
    /// The operating system's.
    #[default]
    System,
    /// The same with faults.
    #[cfg(test)]
    Faulty(Arc<faulty::Faulty>),
}

impl Disk {
    /// Makes an empty file, or empties the one that is there, to read and write.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        #[cfg(test)]
        if let Self::Faulty(faulty) = self {
            return faulty.create(path);
        }
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(true).clone();
        Ok(File::of(options.open(path)?))
    }

    /// Opens a file to read and write.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        #[cfg(test)]
        if let Self::Faulty(faulty) = self {
            return faulty.open(path, true);
        }
        Ok(File::of(OpenOptions::new().read(true).write(true).open(path)?))
    }

    /// Opens a file to read.
    pub(crate) fn open_to_read(&self, path: &Path) -> io::Result<File> {
        #[cfg(test)]
        if let Self::Faulty(faulty) = self {
            return faulty.open(path, false);
        }
        Ok(File::of(fs::File::open(path)?))
    }

    /// Opens a directory, or a file that somebody else writes, to make it durable.
    pub(crate) fn open_to_sync(&self, path: &Path) -> io::Result<File> {
        #[cfg(test)]
        if let Self::Faulty(faulty) = self {
            return faulty.open(path, false);
        }
        Ok(File::of(fs::File::open(path)?))
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        #[cfg(test)]
        if let Self::Faulty(faulty) = self {
            return faulty.rename(from, to);
        }
        fs::rename(from, to)
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        #[cfg(test)]
        if let Self::Faulty(faulty) = self {
            return faulty.remove(path);
        }
        fs::remove_file(path)
    }

    /// Returns how much more may be written to the file system that a file is on, in bytes.
    pub(crate) fn free_bytes(&self, file: &File) -> io::Result<u64> {
        #[cfg(test)]
        if let Self::Faulty(faulty) = self
            && let Some(bytes) = faulty.free_bytes()
        {
            return Ok(bytes);
        }
        let found = rustix::fs::fstatvfs(&file.real)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    /// Makes a directory with all above it, durably.
    pub(crate) fn make_directory(&self, dir: &Path) -> io::Result<()> {
        let missing: Vec<PathBuf> =
            dir.ancestors().take_while(|it| !it.exists()).map(Path::to_path_buf).collect();
        fs::create_dir_all(dir)?;
        for made in missing.iter().rev() {
            let above = made.parent().filter(|it| !it.as_os_str().is_empty());
            self.open_to_sync(above.unwrap_or_else(|| Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}

/// An open file or directory. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct File {
    real: Arc<fs::File>,
    #[cfg(test)]
    faulty: Option<(Arc<faulty::Faulty>, faulty::Id)>,
}

impl File {
    fn of(real: fs::File) -> Self {
        Self {
            real: Arc::new(real),
            #[cfg(test)]
            faulty: None,
        }
    }

    /// Returns the file itself, to be read from.
    pub(crate) fn real(&self) -> &Arc<fs::File> {
        &self.real
    }

    /// Reads some of the bytes, as many as there are, and can be read; 0 at the end of the file.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        #[cfg(test)]
        if let Some((faulty, _)) = &self.faulty {
            return faulty.read(&self.real, bytes, offset);
        }
        self.real.read_at(bytes, offset)
    }

    /// Reads as many of the bytes as are there; returns how many, and what kept it from reading the
    /// others, unless the file ends there.
    pub(crate) fn read_up_to(&self, bytes: &mut [u8], offset: u64) -> (usize, Option<io::Error>) {
        let mut read = 0;
        while read < bytes.len() {
            match self.read_at(&mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (read, Some(error)),
            }
        }
        (read, None)
    }

    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_up_to(bytes, offset) {
            (_, Some(error)) => Err(error),
            (read, None) if read < bytes.len() => Err(io::ErrorKind::UnexpectedEof.into()),
            (_, None) => Ok(()),
        }
    }

    /// Returns how long the file is, in bytes.
    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.real.metadata()?.len())
    }

    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        #[cfg(test)]
        if let Some((faulty, id)) = &self.faulty {
            return faulty.write((&self.real, *id), bytes, offset);
        }
        self.real.write_all_at(bytes, offset)
    }

    pub(crate) fn set_len(&self, bytes: u64) -> io::Result<()> {
        #[cfg(test)]
        if let Some((faulty, id)) = &self.faulty {
            return faulty.set_len((&self.real, *id), bytes);
        }
        self.real.set_len(bytes)
    }

    /// Makes the bytes durable, and the length.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        #[cfg(test)]
        if let Some((faulty, id)) = &self.faulty {
            return faulty.sync(&self.real, *id);
        }
        self.real.sync_data()
    }

    /// Makes all of it durable; of a directory, which names it has.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        #[cfg(test)]
        if let Some((faulty, id)) = &self.faulty {
            return faulty.sync(&self.real, *id);
        }
        self.real.sync_all()
    }
}

/// Writes a file from its start on.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    at: u64,
}

impl Output {
    pub(crate) fn new(file: File) -> Self {
        Self { file, at: 0 }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
