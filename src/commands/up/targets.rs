//! The folders and repositories that `harvest up` gathers, and its data folder.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

/// Longest part of a folder's name in the name of its data folder, in characters.
const NAME_CHARS_MAX: usize = 40;

/// The folders and repositories to gather.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Targets {
    /// Absolute paths without links, sorted, each once.
    pub(super) folders: Vec<PathBuf>,
    /// Base URLs of repositories, sorted, each once.
    pub(super) repositories: Vec<Url>,
}

/// Returns the folders and repositories to gather; the current folder if none is named. Fails if a
/// path is missing, no folder, or no base URL.
pub(super) fn targets(paths: &[PathBuf]) -> anyhow::Result<Targets> {
    let is_url = |it: &&PathBuf| {
        let text = it.to_string_lossy().to_ascii_lowercase();
        text.starts_with("http://") || text.starts_with("https://")
    };
    let (urls, paths): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(is_url);
    let mut repositories = Vec::with_capacity(urls.len());
    for url in urls {
        let url = url.to_string_lossy();
        let read = exchange::source::base_url_of(&url);
        repositories.push(read.with_context(|| {
            format!("{url} is no base URL of an OAI-PMH repository: leave out \"?\" and the rest")
        })?);
    }
    repositories.sort();
    repositories.dedup();
    let here = PathBuf::from(".");
    let paths = if paths.is_empty() && repositories.is_empty() { vec![&here] } else { paths };
    Ok(Targets { folders: folders(&paths)?, repositories })
}

fn folders(paths: &[&PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
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

/// Returns the data folder for gathering `targets`; other targets have another one. Fails if the
/// user has no data directory.
pub(super) fn data_for(targets: &Targets) -> anyhow::Result<PathBuf> {
    let base = dirs::data_dir().context("you have no data directory: name a folder with --data")?;
    Ok(base.join("harvest").join("up").join(name_for(targets)))
}

/// Returns the name of the first folder or repository, for people, with a hash of them all.
fn name_for(targets: &Targets) -> String {
    let mut key = Vec::new();
    for folder in &targets.folders {
        key.extend_from_slice(folder.as_os_str().as_encoded_bytes());
        // No path holds a NUL.
        key.push(0);
    }
    for url in &targets.repositories {
        key.extend_from_slice(url.as_str().as_bytes());
        key.push(0);
    }
    let first = targets.folders.first().and_then(|it| it.file_name());
    let host = targets.repositories.first().and_then(Url::host_str).unwrap_or_default();
    let first = first.map_or(Cow::Borrowed(host), |it| it.to_string_lossy());
    let name: String = first
        .chars()
        .take(NAME_CHARS_MAX)
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    format!("{name}-{:016x}", xxh3_64(&key))
}

/// Returns the size of all readable files below `folder`, in bytes.
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
            name_for(&targets(&paths).unwrap())
        };
        assert_eq!(name(&[&a, &b]), name(&[&b, &a.join("."), &a]));
        assert_ne!(name(&[&a, &b]), name(&[&a]));
        assert!(name(&[&a]).starts_with("a-b-"), "{}", name(&[&a]));
    }

    #[test]
    fn a_path_that_is_no_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "123").unwrap();
        let error = |path: &Path| format!("{:#}", targets(&[path.to_owned()]).unwrap_err());
        assert!(error(&file).contains("is no folder"));
        assert!(error(&dir.path().join("none")).contains("cannot gather"));
        assert!(error(Path::new("http://h/oai?verb=Identify")).contains("no base URL"));
        assert_eq!(bytes_in(dir.path()), 3);
    }

    #[test]
    fn a_url_is_a_repository() {
        let dir = tempfile::tempdir().unwrap();
        let url = PathBuf::from("https://h.example/oai");
        let both = targets(&[url.clone(), dir.path().to_owned(), url.clone()]).unwrap();
        assert_eq!(both.repositories, [Url::parse("https://h.example/oai").unwrap()]);
        assert_eq!(both.folders.len(), 1);
        let alone = targets(&[url]).unwrap();
        assert_eq!(alone.folders, [] as [PathBuf; 0]);
        assert!(name_for(&alone).starts_with("h-example-"), "{}", name_for(&alone));
        assert_ne!(name_for(&alone), name_for(&both));
    }
}
