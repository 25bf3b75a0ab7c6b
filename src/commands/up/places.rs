//! Where `harvest up` reads, and where it stores.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use xxhash_rust::xxh3::xxh3_64;

/// Longest part of a folder's name in the name of its data folder, in characters.
const NAME_CHARS_MAX: usize = 40;

/// Returns the folders to gather, absolute, without links, sorted, each once; the current one if none
/// is named.
///
/// # Errors
///
/// One is not there, or is no folder.
pub(super) fn folders(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let here = [PathBuf::from(".")];
    let paths = if paths.is_empty() { &here } else { paths };
    let mut folders = Vec::with_capacity(paths.len());
    for path in paths {
        let folder =
            fs::canonicalize(path).with_context(|| format!("cannot gather {}", path.display()))?;
        if !folder.is_dir() {
            bail!("{} is no folder: name the folder that it is in", path.display());
        }
        folders.push(folder);
    }
    folders.sort();
    folders.dedup();
    Ok(folders)
}

/// Returns the data folder for gathering `folders`: the same for the same folders, another for others.
///
/// # Errors
///
/// The user has no data directory.
pub(super) fn data_for(folders: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let base = dirs::data_dir().context("you have no data directory: name a folder with --data")?;
    Ok(base.join("harvest").join("up").join(name_for(folders)))
}

/// The first folder's name, for people, and a hash of them all.
fn name_for(folders: &[PathBuf]) -> String {
    let mut key = Vec::new();
    for folder in folders {
        key.extend_from_slice(folder.as_os_str().as_encoded_bytes());
        // No path holds a NUL.
        key.push(0);
    }
    let first = folders.first().and_then(|it| it.file_name()).unwrap_or_default();
    let name: String = first
        .to_string_lossy()
        .chars()
        .take(NAME_CHARS_MAX)
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    format!("{name}-{:016x}", xxh3_64(&key))
}

/// Returns how many bytes the files below `folder` have; what cannot be read counts nothing.
pub(super) fn bytes_in(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut ahead = vec![folder.to_owned()];
    while let Some(folder) = ahead.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => ahead.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_folders_have_the_same_data_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a b"), dir.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        let name = |paths: &[&PathBuf]| {
            let paths: Vec<PathBuf> = paths.iter().map(|it| (*it).clone()).collect();
            name_for(&folders(&paths).unwrap())
        };
        assert_eq!(name(&[&a, &b]), name(&[&b, &a.join("."), &a]));
        assert_ne!(name(&[&a, &b]), name(&[&a]));
        assert!(name(&[&a]).starts_with("a-b-"), "{}", name(&[&a]));
    }

    #[test]
    fn what_is_no_folder_is_said_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "123").unwrap();
        let said = |path: &Path| format!("{:#}", folders(&[path.to_owned()]).unwrap_err());
        assert!(said(&file).contains("is no folder"));
        assert!(said(&dir.path().join("none")).contains("cannot gather"));
        assert_eq!(bytes_in(dir.path()), 3);
    }
}
