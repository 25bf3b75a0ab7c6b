//! Files of this machine that have public URLs by a map: they are read from the disk, and their host is not asked.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use url::Url;

use super::{Found, Sign, last_name, object};
use crate::validator::Validator;

/// Age from which on a file's time shows any later change, in seconds.
const SURE_SECONDS: i64 = 3;

/// Reads the file at `path`, unless it is that of `known`. `None`: there is no such file below `directory`, so its
/// host is asked. Blocks.
pub(in super::super) fn read(
    url: &Url,
    (path, directory): (PathBuf, &Path),
    known: Option<&Validator>,
    (bytes_max, now_seconds): (usize, i64),
) -> Option<Found> {
    // Links must not lead out of the directory.
    let (real, directory) = (path.canonicalize().ok()?, directory.canonicalize().ok()?);
    let file = File::open(&real).ok().filter(|_| real.starts_with(&directory))?;
    let about = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let sign = Sign {
        tag: about.len().to_string(),
        modified: Some(about.mtime()),
        is_sure: about.mtime().saturating_add(SURE_SECONDS) < now_seconds,
    };
    if known.is_some_and(|it| sign.is_of(it)) {
        return Some(Found::Unchanged);
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64).read_to_end(&mut bytes).ok()?;
    let is_cut = (bytes.len() as u64) < about.len();
    Some(object(url, last_name(url), (bytes, is_cut), Some(&sign)))
}
