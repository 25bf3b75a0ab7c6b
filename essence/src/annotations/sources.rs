//! The files of annotations on disk, as they were when they were last right.
//!
//! A file is read again when its size, time or inode has changed, once it has been quiet for a moment. A
//! file that is wrong, or has become empty, or cannot be read counts as it was before, and so do the files
//! of a folder that cannot be read: an editor that is in the middle of a save takes nothing from anybody's
//! records. What is deleted goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use settings::Mistake;

use super::{ANNOTATIONS_MAX, Annotation, Annotations, PATTERNS_MAX, Sort, read};

/// Most files.
pub const FILES_MAX: usize = 10_000;
/// Most bytes of all files together.
pub const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most folders within folders.
const DEPTH_MAX: usize = 8;
/// How long a file must not have changed before it is read again.
pub const QUIET: Duration = Duration::from_secs(1);
/// Most mistakes of one file that are told.
const MISTAKES_MAX: usize = 5;

/// What tells that a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: (i64, i64),
    inode: (u64, u64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            inode: (metadata.dev(), metadata.ino()),
        }
    }
}

/// A file as it was when it was last looked at.
#[derive(Clone, Debug, Default)]
struct Source {
    /// What it was when it was last read.
    stamp: Option<Stamp>,
    /// The device that it was on then.
    device: Option<u64>,
    /// What it says, or said when it was last right, and how many bytes that took.
    said: Arc<[Annotation]>,
    bytes: u64,
    /// What is wrong with it now.
    wrong: Option<String>,
}

/// What a file or folder cannot be used for, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong and where, and what counts meanwhile.
    pub message: String,
}

/// The files of a site's annotations.
#[derive(Debug, Default)]
pub struct Sources {
    files: BTreeMap<PathBuf, Source>,
    /// Their order.
    order: Vec<PathBuf>,
    /// Whether they have been read once.
    begun: bool,
}

/// What came of a look at the files.
#[derive(Debug)]
pub struct Looked {
    /// What they say, if that is not what it was.
    pub annotations: Option<Annotations>,
    /// What is wrong with them, by path.
    pub wrong: Vec<Wrong>,
    /// How many files count.
    pub files: usize,
    /// Whether a file has changed so lately that it is to be looked at again after [`QUIET`].
    pub again: bool,
}

impl Sources {
    /// Looks at the files at `paths` (files, and folders with all files in them whose names end as those of
    /// annotations do), and reads those that have changed. Those named first count first; in a folder, they
    /// are in the order of their paths. `now_ms` is in Unix milliseconds. Blocks.
    pub fn look(&mut self, paths: &[PathBuf], now_ms: u64) -> Looked {
        let mut found = Found::default();
        for path in paths {
            found.add(path, &self.files);
        }
        let mut before = std::mem::take(&mut self.files);
        let mut changed = self.order != found.files;
        let (mut looked, mut budget) = (Vec::new(), Budget::default());
        let mut again = false;
        for path in &found.files {
            let old = before.remove(path);
            let source = match source(path, old.clone(), self.begun.then_some(now_ms)) {
                Read::Same(source) => source,
                Read::Fresh(source) => {
                    again = true;
                    source
                }
                Read::Anew(source) => source,
            };
            let source = budget.take(source, old.as_ref());
            changed |= old.is_none_or(|old| !Arc::ptr_eq(&old.said, &source.said));
            if let Some(message) = &source.wrong {
                found.wrong.push(Wrong { path: path.clone(), message: message.clone() });
            }
            looked.push((Arc::from(path.as_path()), source.said.clone()));
            self.files.insert(path.clone(), source);
        }
        self.order = found.files;
        let is_first = !std::mem::replace(&mut self.begun, true);
        found.wrong.sort_by(|a, b| a.path.cmp(&b.path));
        Looked {
            annotations: (changed || is_first).then(|| Annotations::new(looked)),
            wrong: found.wrong,
            files: self.files.len(),
            again,
        }
    }
}

/// The files that are there, in order, each once.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    wrong: Vec<Wrong>,
}

impl Found {
    fn add(&mut self, path: &Path, known: &BTreeMap<PathBuf, Source>) {
        let known = known.iter().filter(|(it, _)| it.starts_with(path));
        let mut files = Vec::new();
        let found = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => list(path, 0, &mut files).and_then(|()| {
                let devices: BTreeSet<_> = known.clone().map(|(_, it)| it.device).collect();
                let is_here = |it: &Option<u64>| it.is_none_or(|it| it == metadata.dev());
                if !files.is_empty() || devices.is_empty() || devices.iter().any(is_here) {
                    return Ok(());
                }
                let unmounted = "it is empty and on another device, as what is not mounted is (to \
                                 take away what it said, take it out of the settings)";
                Err(io::Error::other(unmounted))
            }),
            Ok(_) if Sort::of(path).is_none() => {
                let message =
                    "is no file of annotations: name one that ends in .soif, .iafa or .toml";
                self.wrong.push(Wrong { path: path.to_path_buf(), message: message.to_owned() });
                return;
            }
            Ok(_) => {
                files.push(path.to_path_buf());
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = found {
            // What lay there may be back soon.
            files.extend(known.map(|(it, _)| it.clone()));
            files.sort();
            files.dedup();
            let message = format!("cannot be read: {error}; what it said before counts until then");
            self.wrong.push(Wrong { path: path.to_path_buf(), message });
        }
        files.retain(|it| !self.seen.contains(it));
        let room = FILES_MAX.saturating_sub(self.files.len());
        if room < files.len() {
            let message = format!("has too many files: with it there are more than {FILES_MAX}");
            self.wrong.push(Wrong { path: path.to_path_buf(), message });
            files.truncate(room);
        }
        self.seen.extend(files.iter().cloned());
        self.files.append(&mut files);
    }
}

/// Lists the files of annotations in a folder and below it, in the order of their paths.
fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        // What editors keep beside a file.
        if name.as_encoded_bytes().starts_with(b".") || FILES_MAX < files.len() {
            continue;
        }
        if entry.file_type()?.is_dir() {
            if depth < DEPTH_MAX {
                list(&path, depth + 1, files)?;
            }
        } else if Sort::of(&path).is_some() {
            files.push(path);
        }
    }
    Ok(())
}

/// What came of a look at one file.
enum Read {
    /// It has not changed.
    Same(Source),
    /// It has, and may go on changing.
    Fresh(Source),
    /// It was read.
    Anew(Source),
}

/// Looks at a file; without `now_ms` one that changes at this moment is read as well.
fn source(path: &Path, old: Option<Source>, now_ms: Option<u64>) -> Read {
    let mut source = old.unwrap_or_default();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Read::Anew(source.unread(&error)),
    };
    if !metadata.is_file() {
        // A pipe would be waited for.
        return Read::Anew(source.unread(&io::Error::other("it is no regular file")));
    }
    let stamp = Stamp::of(&metadata);
    if source.stamp == Some(stamp) {
        return Read::Same(source);
    }
    let modified_ms = metadata.mtime() * 1_000 + metadata.mtime_nsec() / 1_000_000;
    let age_ms = |now: u64| now.checked_sub(u64::try_from(modified_ms).ok()?);
    if now_ms.and_then(age_ms).is_some_and(|age| Duration::from_millis(age) < QUIET) {
        return Read::Fresh(source);
    }
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) => return Read::Anew(source.unread(&error)),
    };
    source.stamp = Some(stamp);
    if BYTES_MAX < bytes.len() as u64 {
        return Read::Anew(source.kept(&format!("is longer than {BYTES_MAX} bytes")));
    }
    match read(path, &bytes) {
        Ok(said) if said.is_empty() && !source.said.is_empty() => {
            Read::Anew(source.kept("is empty: to take away what it said, delete it"))
        }
        Ok(said) => {
            let said = said.into();
            let (stamp, bytes) = (Some(stamp), bytes.len() as u64);
            Read::Anew(Source { stamp, device: Some(metadata.dev()), said, bytes, wrong: None })
        }
        Err(mistakes) => Read::Anew(source.kept(&told(&mistakes))),
    }
}

/// Reads a file, and no more of it than shows that it is too long.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn told(mistakes: &[Mistake]) -> String {
    let mut said: Vec<String> =
        mistakes.iter().take(MISTAKES_MAX).map(ToString::to_string).collect();
    if MISTAKES_MAX < mistakes.len() {
        said.push("and more".to_owned());
    }
    format!("line {}", said.join("; line "))
}

impl Source {
    /// Returns it as it was, with what is wrong with it now.
    fn kept(self, wrong: &str) -> Self {
        let meanwhile = if self.said.is_empty() {
            "nothing of it counts"
        } else {
            "what it said before counts"
        };
        Self { wrong: Some(format!("{wrong}; {meanwhile} until then")), ..self }
    }

    /// As [`Source::kept`], for one to be read whatever its time is.
    fn unread(self, error: &io::Error) -> Self {
        Self { stamp: None, ..self }.kept(&format!("cannot be read: {error}"))
    }
}

/// How much there is of all files before one.
#[derive(Default)]
struct Budget {
    bytes: u64,
    annotations: usize,
    patterns: usize,
}

impl Budget {
    /// Returns the file as it counts: if it is too much, as it was before.
    fn take(&mut self, source: Source, old: Option<&Source>) -> Source {
        if let Err(wrong) = self.try_take(&source) {
            let kept = old.filter(|it| self.try_take(it).is_ok()).cloned().unwrap_or_default();
            // There may be room for it next time, although it is as it is now.
            return Source { stamp: None, ..kept }.kept(&wrong);
        }
        source
    }

    fn try_take(&mut self, source: &Source) -> Result<(), String> {
        let bytes = self.bytes + source.bytes;
        let annotations = self.annotations + source.said.len();
        let patterns = self.patterns + source.said.iter().filter(|it| it.is_pattern).count();
        let too_much = |what: &str, most: u64| {
            Err(format!("is too much: with it there are more than {most} {what} of annotations"))
        };
        if BYTES_MAX < bytes {
            return too_much("bytes", BYTES_MAX);
        }
        if ANNOTATIONS_MAX < annotations {
            return too_much("objects", ANNOTATIONS_MAX as u64);
        }
        if PATTERNS_MAX < patterns {
            return too_much("patterns", PATTERNS_MAX as u64);
        }
        *self = Self { bytes, annotations, patterns };
        Ok(())
    }
}

/// Returns what files of annotations say, and what is wrong with them, for whoever looks once. `now_ms` is in
/// Unix milliseconds. Blocks.
pub fn read_once(paths: &[PathBuf], now_ms: u64) -> (Annotations, Vec<Wrong>) {
    let looked = Sources::default().look(paths, now_ms);
    (looked.annotations.unwrap_or_default(), looked.wrong)
}

#[cfg(test)]
mod tests;
