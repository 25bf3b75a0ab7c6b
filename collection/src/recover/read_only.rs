//! A temporary key index for a collection that is opened only to read.
//!
//! Runs never change, so links to them are made; the few other files are copied.
//!
//! Source: ours.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::replay::KEYS;
use crate::error::Error;

/// Makes a temporary folder with a copy of the key index of `dir`, which can then be written.
pub(crate) fn overlay(dir: &Path) -> Result<TempDir, Error> {
    let made = tempfile::Builder::new().prefix("harvest-keys-").tempdir();
    let made =
        made.map_err(|error| Error::io("cannot make", Path::new("a temporary folder"), error))?;
    let (from, to) = (dir.join(KEYS), made.path().join(KEYS));
    if from.is_dir() {
        copy(&from, &to).map_err(|error| Error::io("cannot copy", &from, error))?;
    }
    Ok(made)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, from) = (entry?, fs::canonicalize(from)?);
        let (source, target) = (from.join(entry.file_name()), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&source, &target)?;
        } else if entry.file_name().to_string_lossy().starts_with("run-") {
            symlink(&source, &target)?;
        } else {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
