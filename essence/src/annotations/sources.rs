//! Annotation files on disk, each with the content that it had when it was last valid.
//!
//! A file is read again when its size, time or inode has changed and its last change is a moment
//! ago ([`QUIET`]). A file that has mistakes, has become empty or cannot be read keeps its last
//! valid content. So do the files of a folder that cannot be read. Thus an editor in the middle of
//! a save removes nothing from the records. The annotations of a deleted file are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use settings::Mistake;

use super::{ANNOTATIONS_MAX, Annotation, Annotations, PATTERNS_MAX, is_source, read};

/// Maximum number of files.
pub const FILES_MAX: usize = 10_000;
/// Maximum number of bytes of all files together.
pub const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum depth of nested folders.
const DEPTH_MAX: usize = 8;
/// Minimum age of a file's last change before the file is read again.
pub const QUIET: Duration = Duration::from_secs(1);
/// Maximum number of mistakes of one file that are reported.
const MISTAKES_MAX: usize = 5;

/// Size, time and inode of a file, which show whether it has changed.
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

/// A file with its last valid content.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Its stamp when it was last read; `None` to read it at the next check.
    stamp: Option<Stamp>,
    /// Its device when it was last valid.
    device: Option<u64>,
    /// Its annotations when it was last valid.
    annotations: Arc<[Annotation]>,
    /// Length of the file when it was last valid, in bytes.
    bytes: u64,
    /// The mistake in its present content, and which content is used meanwhile.
    mistake: Option<String>,
}

/// Problem with a file or folder of annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file or folder.
    pub path: PathBuf,
    /// The mistake, its line, and which content is used meanwhile.
    pub message: String,
}

/// The files of a site's annotations.
#[derive(Debug, Default)]
pub struct Sources {
    files: BTreeMap<PathBuf, Source>,
    /// Files in order of precedence.
    order: Vec<PathBuf>,
    /// Whether the files have been read once.
    begun: bool,
}

/// Outcome of a check of the files.
#[derive(Debug)]
pub struct LookOutcome {
    /// The annotations, if they have changed.
    pub annotations: Option<Annotations>,
    /// Problems, by path.
    pub problems: Vec<FileProblem>,
    /// Number of annotation files, also those with mistakes.
    pub files: usize,
    /// Whether a file has changed so recently that another check is needed after [`QUIET`].
    pub again: bool,
}

impl Sources {
    /// Checks the files at `paths`, and reads those that have changed. A path is a file, or a
    /// folder, which stands for all its files with the extensions of annotations. The files are
    /// ordered as in `paths`, and within a folder by their paths. `now_ms` is in Unix milliseconds.
    /// The first check also reads files that have just changed. Blocks.
    pub fn look(&mut self, paths: &[PathBuf], now_ms: u64) -> LookOutcome {
        let mut listing = Listing::default();
        for path in paths {
            listing.add(path, &self.files);
        }
        let mut before = std::mem::take(&mut self.files);
        let mut changed = self.order != listing.files;
        let (mut all, mut totals) = (Vec::new(), Totals::default());
        let mut again = false;
        for path in &listing.files {
            let old = before.remove(path);
            let source = source(path, old.clone(), self.begun.then_some(now_ms), &mut again);
            let source = totals.take(source, old.as_ref());
            changed |= old.is_none_or(|old| !Arc::ptr_eq(&old.annotations, &source.annotations));
            if let Some(message) = &source.mistake {
                listing.problems.push(FileProblem { path: path.clone(), message: message.clone() });
            }
            all.push((Arc::from(path.as_path()), source.annotations.clone()));
            self.files.insert(path.clone(), source);
        }
        self.order = listing.files;
        let is_first = !std::mem::replace(&mut self.begun, true);
        listing.problems.sort_by(|a, b| a.path.cmp(&b.path));
        LookOutcome {
            annotations: (changed || is_first).then(|| Annotations::new(all)),
            problems: listing.problems,
            files: self.files.len(),
            again,
        }
    }
}

/// Files in order, each listed once, and problems with paths.
#[derive(Default)]
struct Listing {
    files: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
    problems: Vec<FileProblem>,
}

impl Listing {
    fn problem(&mut self, path: &Path, message: String) {
        self.problems.push(FileProblem { path: path.to_path_buf(), message });
    }

    fn add(&mut self, path: &Path, known: &BTreeMap<PathBuf, Source>) {
        let known = known.iter().filter(|(it, _)| it.starts_with(path));
        let mut files = Vec::new();
        let outcome = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => list(path, 0, &mut files).and_then(|()| {
                let devices: BTreeSet<_> = known.clone().map(|(_, it)| it.device).collect();
                let is_here = |it: &Option<u64>| it.is_none_or(|it| it == metadata.dev());
                if !files.is_empty() || devices.is_empty() || devices.iter().any(is_here) {
                    return Ok(());
                }
                let unmounted = "it is empty and on another device, like an unmounted folder (to \
                                 remove its annotations, remove it from the settings)";
                Err(io::Error::other(unmounted))
            }),
            Ok(_) if !is_source(path) => {
                let message =
                    "is no file of annotations: name one that ends in .soif, .iafa or .toml";
                return self.problem(path, message.to_owned());
            }
            Ok(_) => {
                files.push(path.to_path_buf());
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            // The folder's files may be back soon.
            files.extend(known.map(|(it, _)| it.clone()));
            files.sort();
            files.dedup();
            let before = "its earlier annotations count until then";
            self.problem(path, format!("cannot be read: {error}; {before}"));
        }
        files.retain(|it| !self.seen.contains(it));
        let room = FILES_MAX.saturating_sub(self.files.len());
        if room < files.len() {
            let message = format!("has too many files: with it there are more than {FILES_MAX}");
            self.problem(path, message);
            files.truncate(room);
        }
        self.seen.extend(files.iter().cloned());
        self.files.append(&mut files);
    }
}

/// Lists the annotation files in a folder and below it, in the order of their paths.
fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        // Hidden files often belong to an editor.
        if name.as_encoded_bytes().starts_with(b".") || FILES_MAX < files.len() {
            continue;
        }
        if entry.file_type()?.is_dir() {
            if depth < DEPTH_MAX {
                list(&path, depth + 1, files)?;
            }
        } else if is_source(&path) {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads a file if it has changed. Sets `again` instead if the file may still be changing and
/// `now_ms` is given.
fn source(path: &Path, old: Option<Source>, now_ms: Option<u64>, again: &mut bool) -> Source {
    let mut source = old.unwrap_or_default();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return source.unread(&error),
    };
    if !metadata.is_file() {
        // Reading a pipe would block.
        return source.unread(&io::Error::other("it is no regular file"));
    }
    let stamp = Stamp::of(&metadata);
    if source.stamp == Some(stamp) {
        return source;
    }
    let modified_ms = metadata.mtime() * 1_000 + metadata.mtime_nsec() / 1_000_000;
    let age_ms = |now: u64| now.checked_sub(u64::try_from(modified_ms).ok()?);
    if now_ms.and_then(age_ms).is_some_and(|age| Duration::from_millis(age) < QUIET) {
        *again = true;
        return source;
    }
    let bytes = match read_file(path) {
        Ok(bytes) => bytes,
        Err(error) => return source.unread(&error),
    };
    source.stamp = Some(stamp);
    if BYTES_MAX < bytes.len() as u64 {
        return source.reject(&format!("is longer than {BYTES_MAX} bytes"));
    }
    match read(path, &bytes) {
        Ok(new) if new.is_empty() && !source.annotations.is_empty() => {
            source.reject("is empty: delete it to remove its annotations")
        }
        Ok(new) => Source {
            stamp: Some(stamp),
            device: Some(metadata.dev()),
            annotations: new.into(),
            bytes: bytes.len() as u64,
            mistake: None,
        },
        Err(mistakes) => source.reject(&describe(&mistakes)),
    }
}

/// Reads a file, but at most one byte more than [`BYTES_MAX`].
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn describe(mistakes: &[Mistake]) -> String {
    let mut texts: Vec<String> =
        mistakes.iter().take(MISTAKES_MAX).map(ToString::to_string).collect();
    if MISTAKES_MAX < mistakes.len() {
        texts.push("and more".to_owned());
    }
    format!("line {}", texts.join("; line "))
}

impl Source {
    /// Returns the source with its last valid content, and with the mistake of the new content.
    fn reject(self, mistake: &str) -> Self {
        let meanwhile = if self.annotations.is_empty() {
            "nothing of it counts"
        } else {
            "its earlier annotations count"
        };
        Self { mistake: Some(format!("{mistake}; {meanwhile} until then")), ..self }
    }

    /// Does the same as [`Source::reject`], but the file will be read again at the next check.
    fn unread(self, error: &io::Error) -> Self {
        Self { stamp: None, ..self }.reject(&format!("cannot be read: {error}"))
    }
}

/// Totals of the files taken so far.
#[derive(Default)]
struct Totals {
    bytes: u64,
    annotations: usize,
    patterns: usize,
}

impl Totals {
    /// Returns the file with its new content; with its old content, or none, if the totals would
    /// exceed their maxima.
    fn take(&mut self, source: Source, old: Option<&Source>) -> Source {
        if let Err(mistake) = self.try_take(&source) {
            let kept = old.filter(|it| self.try_take(it).is_ok()).cloned().unwrap_or_default();
            // There may be room for the file at the next check, even if the file does not change.
            return Source { stamp: None, ..kept }.reject(&mistake);
        }
        source
    }

    fn try_take(&mut self, source: &Source) -> Result<(), String> {
        let bytes = self.bytes + source.bytes;
        let annotations = self.annotations + source.annotations.len();
        let patterns = self.patterns + source.annotations.iter().filter(|it| it.is_pattern).count();
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

/// Reads annotation files once, and returns their annotations and problems. `now_ms` is in Unix
/// milliseconds. Blocks.
pub fn read_once(paths: &[PathBuf], now_ms: u64) -> (Annotations, Vec<FileProblem>) {
    let outcome = Sources::default().look(paths, now_ms);
    (outcome.annotations.unwrap_or_default(), outcome.problems)
}

#[cfg(test)]
mod tests;
