//! The reader of local files: bounded, never blocked by writers, aware of changes during the read.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt as _, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use formats::code::link::LINK_MARK;
use formats::object::{ReadAt, Rest};
use rustix::fs::OFlags;
use soif::digest::{Md5, Md5Writer};

use crate::validator::Stat;

/// Number of bytes read at once; between two such pieces, a run can be cancelled.
const PIECE_BYTES: u64 = 256 * 1024;

/// Memory that is reserved for a file even if it takes less space on disk, in bytes: the size of a
/// sparse file says little.
const RESERVE_BYTES_MAX: u64 = 1024 * 1024;

/// Unit of [`MetadataExt::blocks`], in bytes.
const BLOCK_BYTES: u64 = 512;

/// Age below which a file may change again without getting a new modification time, in
/// milliseconds: file systems take times from a coarse clock.
const CLOCK_MS: u64 = 20;

/// The same age for times in whole seconds: some file systems store even seconds only.
const COARSE_CLOCK_MS: u64 = 2_000;

/// A file's content.
#[derive(Clone, Debug)]
pub struct Content {
    /// The content, or its beginning.
    pub bytes: Bytes,
    /// MD5 of `bytes`.
    pub md5: Md5,
    /// Metadata at the time of opening.
    pub stat: Stat,
    /// Whether later changes will show in the metadata; false if the file changed during the read
    /// or shortly before.
    pub sure: bool,
    /// Whether the file is longer than `bytes`.
    pub truncated: bool,
    /// The open file if it is longer than `bytes`: some formats need more of it.
    pub file: Option<Arc<OpenFile>>,
}

impl Content {
    /// Returns the bytes behind the front, for formats that need them.
    pub fn rest(&self) -> Option<Rest> {
        self.file.clone().map(|file| Rest::new(file))
    }
}

/// A file of which more may be read later.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    /// Metadata when its front was read.
    stat: Stat,
    was_read: AtomicBool,
    has_failed: AtomicBool,
}

impl OpenFile {
    /// Returns the file, whose front was read when it had these metadata.
    pub fn new(file: File, stat: Stat) -> Self {
        Self { file, stat, was_read: AtomicBool::default(), has_failed: AtomicBool::default() }
    }

    /// Returns whether no read behind the front has seen a change of the file.
    pub fn is_unchanged(&self) -> bool {
        let is_same = || self.file.metadata().is_ok_and(|it| stat_of(&it) == self.stat);
        !self.was_read.load(Relaxed) || is_same()
    }

    /// Returns whether the system refused a read behind the front.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }
}

impl ReadAt for OpenFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.was_read.store(true, Relaxed);
        let mut count = 0;
        while let Some(room) = into.get_mut(count..).filter(|it| !it.is_empty()) {
            match self.file.read_at(room, offset.saturating_add(count as u64)) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.has_failed.store(true, Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(count)
    }
}

/// Where a file really is.
#[derive(Debug)]
pub(crate) struct Place {
    /// The path without links.
    pub(crate) path: PathBuf,
    pub(crate) metadata: Metadata,
    /// The first bytes.
    pub(crate) front: Vec<u8>,
}

/// Reason why a file was not read.
#[derive(Debug)]
pub enum Refused {
    /// The file no longer exists.
    Gone,
    /// The path is not a regular file (any more).
    NotAFile,
    /// The file lies outside the root, or in the gatherer's own folder: a link has replaced a
    /// directory in its path.
    Outside,
    /// The run was stopped.
    Cancelled,
    /// The system refused the read.
    Unreadable(io::Error),
}

/// Returns the part of a file's metadata that validators use.
pub fn stat_of(metadata: &Metadata) -> Stat {
    Stat {
        size: metadata.size(),
        modified: metadata.mtime(),
        modified_nanos: u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
        inode: metadata.ino(),
    }
}

/// Reads the file at `path`, but at most `bytes_max` of it, at `now_ms` (Unix milliseconds).
/// Follows a symbolic link only with `follow`, and never out of the directory `within` or into
/// `without`; the paths of both have no links. Otherwise a user who may write in the root could
/// publish any file that the gatherer may read.
///
/// # Errors
///
/// Returns the reason why there is nothing to summarize.
pub fn read(
    path: &Path,
    (within, without): (&Path, &Path),
    bytes_max: u64,
    follow: bool,
    now_ms: u64,
    cancelled: &dyn Fn() -> bool,
) -> Result<Content, Refused> {
    let mut file = open(path, follow)?;
    let metadata = file.metadata().map_err(Refused::Unreadable)?;
    if !metadata.is_file() {
        return Err(Refused::NotAFile);
    }
    if !lies_within(&file, within, without) {
        return Err(Refused::Outside);
    }
    let stat = stat_of(&metadata);
    // Most files are small: reading one byte more than the size shows whether a file has grown.
    let stored = metadata.blocks().saturating_mul(BLOCK_BYTES);
    let reserve = stat.size.min(bytes_max).min(stored.max(RESERVE_BYTES_MAX)).saturating_add(1);
    let mut bytes = Vec::with_capacity(usize::try_from(reserve).unwrap_or(0));
    let mut digest = Md5Writer::new();
    let mut truncated = false;
    loop {
        if cancelled() {
            return Err(Refused::Cancelled);
        }
        let start = bytes.len();
        let count = (&mut file).take(PIECE_BYTES).read_to_end(&mut bytes);
        let count = count.map_err(Refused::Unreadable)?;
        if let Ok(most) = usize::try_from(bytes_max)
            && most < bytes.len()
        {
            truncated = true;
            bytes.truncate(most);
        }
        digest.update(bytes.get(start..).unwrap_or_default());
        if truncated || (count as u64) < PIECE_BYTES {
            break;
        }
    }
    let after = file.metadata().map_err(Refused::Unreadable)?;
    let sure = stat_of(&after) == stat && is_old(&stat, now_ms);
    let file = truncated.then(|| Arc::new(OpenFile::new(file, stat)));
    Ok(Content { bytes: bytes.into(), md5: digest.finish(), stat, sure, truncated, file })
}

/// Opens the regular file at `path`, with the limits of [`read`]; returns where the open file really
/// is, and at most `bytes_max` of its beginning. Follows no link in the last name.
///
/// # Errors
///
/// The same as for [`read`].
pub(crate) fn place(
    path: &Path,
    (within, without): (&Path, &Path),
    bytes_max: usize,
) -> Result<Place, Refused> {
    let file = open(path, false)?;
    let metadata = file.metadata().map_err(Refused::Unreadable)?;
    if !metadata.is_file() {
        return Err(Refused::NotAFile);
    }
    if !lies_within(&file, within, without) {
        return Err(Refused::Outside);
    }
    let mut front = Vec::with_capacity(bytes_max);
    let read = (&file).take(bytes_max as u64).read_to_end(&mut front);
    read.map_err(Refused::Unreadable)?;
    // Without `/proc`, the path must do.
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .or_else(|_| std::fs::canonicalize(path))
        .map_err(Refused::Unreadable)?;
    if path.starts_with(within) && !path.starts_with(without) {
        Ok(Place { path, metadata, front })
    } else {
        Err(Refused::Outside)
    }
}

/// Reads the symbolic link at `path` itself, with the limits of [`read`], at `now_ms` (Unix
/// milliseconds). Its content is `LINK_MARK` and the link's target.
///
/// # Errors
///
/// The same as for [`read`]; [`Refused::NotAFile`] if the path is not a link.
pub fn read_link(
    path: &Path,
    (within, without): (&Path, &Path),
    now_ms: u64,
) -> Result<Content, Refused> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW;
    let link = rustix::fs::open(path, flags | OFlags::CLOEXEC, rustix::fs::Mode::empty());
    let link = File::from(link.map_err(|errno| match errno {
        rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR => Refused::Gone,
        errno => Refused::Unreadable(errno.into()),
    })?);
    let metadata = link.metadata().map_err(Refused::Unreadable)?;
    if !metadata.is_symlink() {
        return Err(Refused::NotAFile);
    }
    if !lies_within(&link, within, without) {
        return Err(Refused::Outside);
    }
    let target = rustix::fs::readlinkat(&link, "", Vec::new());
    let target = target.map_err(|errno| Refused::Unreadable(errno.into()))?;
    let bytes = Bytes::from([LINK_MARK, target.to_bytes()].concat());
    let stat = stat_of(&metadata);
    // The target of a link never changes: a new link replaces it.
    let sure = is_old(&stat, now_ms);
    Ok(Content { md5: Md5::of(&bytes), bytes, stat, sure, truncated: false, file: None })
}

/// Returns whether an open file lies below `within` and not below `without`, by its present path.
/// On a system without `/proc`, returns true.
fn lies_within(file: &File, within: &Path, without: &Path) -> bool {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::read_link(link).is_ok_and(|it| it.starts_with(within) && !it.starts_with(without))
        || !Path::new("/proc/self/fd").exists()
}

/// Opens a file for reading without blocking, since a FIFO may have replaced it.
fn open(path: &Path, follow: bool) -> Result<File, Refused> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if !follow {
        flags |= OFlags::NOFOLLOW;
    }
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(file),
        Err(error) => {
            let errno = rustix::io::Errno::from_io_error(&error);
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Err(Refused::Gone),
                _ if errno == Some(rustix::io::Errno::LOOP) => Err(Refused::NotAFile),
                // A socket can never be opened.
                _ if errno == Some(rustix::io::Errno::NXIO) => Err(Refused::NotAFile),
                _ => Err(Refused::Unreadable(error)),
            }
        }
    }
}

/// Returns whether a change now would result in another modification time.
fn is_old(stat: &Stat, now_ms: u64) -> bool {
    let clock_ms = if stat.modified_nanos == 0 { COARSE_CLOCK_MS } else { CLOCK_MS };
    modified_ms(stat).saturating_add(clock_ms) < now_ms
}

/// Returns the modification time in Unix milliseconds; a time before 1970 is taken for 1970.
fn modified_ms(stat: &Stat) -> u64 {
    let seconds = u64::try_from(stat.modified).unwrap_or(0);
    seconds.saturating_mul(1_000).saturating_add(u64::from(stat.modified_nanos) / 1_000_000)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    const LATER: u64 = u64::MAX;

    fn anywhere() -> (&'static Path, &'static Path) {
        (Path::new("/"), Path::new("/none"))
    }

    #[track_caller]
    fn check(path: &Path, follow: bool, expected: &str) {
        let shown = match read(path, anywhere(), 4, follow, LATER, &|| false) {
            Ok(content) => {
                assert_eq!(content.md5, Md5::of(&content.bytes));
                let text = String::from_utf8_lossy(&content.bytes).into_owned();
                format!("{text}{}", if content.truncated { " truncated" } else { "" })
            }
            Err(Refused::Unreadable(error)) => error.kind().to_string(),
            Err(refused) => format!("{refused:?}"),
        };
        assert_eq!(shown, expected, "{}", path.display());
    }

    #[test]
    fn only_the_beginning_of_a_large_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for (content, expected) in [("", ""), ("abcd", "abcd"), ("abcde", "abcd truncated")] {
            let path = folder.path().join("f");
            fs::write(&path, content).unwrap();
            check(&path, false, expected);
        }
    }

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        check(&path("gone"), false, "Gone");
        check(folder.path(), false, "NotAFile");
        fs::write(path("f"), "x").unwrap();
        symlink("f", path("link")).unwrap();
        check(&path("link"), false, "NotAFile");
        check(&path("link"), true, "x");
        check(&path("f").join("below"), false, "Gone");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        check(&path("fifo"), false, "NotAFile");
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        check(&path("socket"), false, "NotAFile");
    }

    #[test]
    fn the_place_of_a_file_is_where_it_really_is() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let path = |name: &str| top.join(name);
        for name in ["root", "root/d", "other", "root/own"] {
            fs::create_dir(path(name)).unwrap();
        }
        for name in ["root/d/f", "other/f", "root/own/f"] {
            fs::write(path(name), name).unwrap();
        }
        symlink(path("root/d/f"), path("root/link")).unwrap();
        symlink(path("root/d"), path("root/inside")).unwrap();
        symlink(path("other"), path("root/outside")).unwrap();
        let check = |name: &str, expected: &str| {
            let place = place(&path(name), (&path("root"), &path("root/own")), 6);
            let shown = match place {
                Ok(Place { path, front, .. }) => {
                    format!("{} {}", path.display(), String::from_utf8_lossy(&front))
                }
                Err(refused) => format!("{refused:?}"),
            };
            assert_eq!(shown, expected, "{name}");
        };
        let real = format!("{} root/d", path("root/d/f").display());
        check("root/d/f", &real);
        check("root/inside/f", &real);
        check("root/link", "NotAFile");
        check("root/d", "NotAFile");
        check("root/outside/f", "Outside");
        check("root/own/f", "Outside");
        check("root/none", "Gone");
    }

    #[test]
    fn a_link_is_read_by_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("d")).unwrap();
        fs::write(path("f"), "x").unwrap();
        symlink("../f", path("d/link")).unwrap();
        symlink("d", path("around")).unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let none = Path::new("/none");
        let read = |name: &str, within: &Path| match read_link(&path(name), (within, none), LATER) {
            Ok(content) => {
                assert_eq!(content.md5, Md5::of(&content.bytes));
                assert!(content.sure);
                assert_eq!(content.stat.size, content.bytes.len() as u64 - 10);
                String::from_utf8_lossy(&content.bytes).into_owned()
            }
            Err(refused) => format!("{refused:?}"),
        };
        assert_eq!(read("d/link", &root), "!<symlink>../f");
        assert_eq!(read("around/link", &root), "!<symlink>../f");
        assert_eq!(read("around/link", &root.join("around")), "Outside");
        assert_eq!(read("f", &root), "NotAFile");
        assert_eq!(read("d", &root), "NotAFile");
        assert_eq!(read("gone", &root), "Gone");
    }

    #[test]
    fn a_file_modified_just_now_is_unsure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "x").unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let sure = |now_ms| {
            read(&path, (&root, Path::new("/none")), 4, false, now_ms, &|| false).unwrap().sure
        };
        let date = |at| File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        for (nanos, clock_ms) in [(5_000_000, CLOCK_MS), (0, COARSE_CLOCK_MS)] {
            date(UNIX_EPOCH + Duration::new(1_000_000, nanos));
            let modified = modified_ms(&stat_of(&fs::metadata(&path).unwrap()));
            assert!(!sure(modified + clock_ms) && sure(modified + clock_ms + 1));
        }
    }

    #[test]
    fn links_in_the_path_do_not_lead_outside() {
        let folder = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(folder.path()).unwrap();
        for name in ["root/in", "root/own", "outside", "root-b"] {
            fs::create_dir_all(real.join(name)).unwrap();
            fs::write(real.join(name).join("f"), "x").unwrap();
        }
        symlink("../outside", real.join("root/d")).unwrap();
        symlink("../root-b", real.join("root/e")).unwrap();
        symlink("in", real.join("root/g")).unwrap();
        symlink("own", real.join("root/h")).unwrap();
        let cases =
            [("in", true), ("d", false), ("e", false), ("g", true), ("h", false), ("own", false)];
        for (name, expected) in cases {
            for follow in [false, true] {
                let path = real.join("root").join(name).join("f");
                let (within, without) = (real.join("root"), real.join("root/own"));
                let found = read(&path, (&within, &without), 4, follow, LATER, &|| false);
                let outside = matches!(found, Err(Refused::Outside));
                assert!(found.is_ok() == expected && outside != expected, "{name}");
            }
        }
    }

    #[test]
    fn a_stopped_run_cancels_the_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "x").unwrap();
        let refused = read(&path, anywhere(), 4, false, LATER, &|| true).unwrap_err();
        assert!(matches!(refused, Refused::Cancelled));
    }
}
