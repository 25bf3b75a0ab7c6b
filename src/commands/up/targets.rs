//! The folders, web sites and repositories that `harvest up` gathers, and its data folder.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use gatherer::spec::{self, Protocol};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::records;

/// Longest part of a folder's name in the name of its data folder, in characters.
const NAME_CHARS_MAX: usize = 40;

/// What to gather.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Targets {
    /// Absolute paths without links, sorted, each once.
    pub(super) folders: Vec<PathBuf>,
    /// Addresses of web sites and base URLs of repositories, sorted, each once.
    pub(super) urls: Vec<Url>,
}

/// Returns what to gather; the current folder if nothing is named. Fails if a path is missing, no
/// folder, or no address.
pub(super) fn targets(paths: &[PathBuf]) -> anyhow::Result<Targets> {
    let is_url = |it: &&PathBuf| {
        let url = Url::parse(&it.to_string_lossy());
        url.is_ok_and(|it| it.scheme() == "nntp" || Protocol::of(&it).is_some())
    };
    let (named, paths): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(is_url);
    let mut urls = Vec::with_capacity(named.len());
    for url in named {
        let url = url.to_string_lossy();
        urls.push(
            spec::start(&url, None)
                .map_err(|fault| anyhow!("cannot gather this address: {fault}"))?,
        );
    }
    urls.sort();
    urls.dedup();
    let here = PathBuf::from(".");
    let paths = if paths.is_empty() && urls.is_empty() { vec![&here] } else { paths };
    Ok(Targets { folders: folders(&paths)?, urls })
}

fn folders(paths: &[&PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = Vec::with_capacity(paths.len());
    for path in paths {
        if path.to_string_lossy().contains("://") {
            bail!(
                "{} cannot be gathered: an address begins with http://, https://, ftp://, gopher:// or news://",
                path.display()
            );
        }
        let folder =
            fs::canonicalize(path).with_context(|| format!("cannot gather {}", path.display()))?;
        if !folder.is_dir() {
            bail!("{} is no folder: name the folder that it is in", path.display());
        }
        // Its names must be readable, and what is in it reachable.
        let readable = fs::read_dir(&folder).and_then(|_| fs::metadata(folder.join(".")));
        readable.with_context(|| format!("cannot read {}", path.display()))?;
        folders.push(folder);
    }
    folders.sort();
    folders.dedup();
    Ok(folders)
}

/// Returns the data folder for gathering `targets`; other targets have another one. Fails if the
/// user has no data directory.
pub(super) fn data_for(targets: &Targets) -> anyhow::Result<PathBuf> {
    Ok(records::base()?.join(name_for(targets)))
}

/// Returns the absolute path of the data folder that the user has named. Fails if it is in a folder
/// to gather: each change of the data would be a change there, and copies of the folder would have
/// it.
pub(super) fn outside(data: &Path, targets: &Targets) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(data)?;
    // Of a folder that does not exist yet, what is above it counts.
    let existing = absolute.ancestors().find_map(|it| Some((it, fs::canonicalize(it).ok()?)));
    let real = match existing {
        Some((above, real)) => {
            real.join(absolute.strip_prefix(above).unwrap_or_else(|_| Path::new("")))
        }
        None => absolute.clone(),
    };
    if let Some(folder) = targets.folders.iter().find(|it| real.starts_with(it)) {
        bail!(
            "--data {} is in {}, which is gathered: name a folder outside of it, or leave --data out",
            data.display(),
            folder.display()
        );
    }
    Ok(absolute)
}

/// Returns the command that prints all problems with `targets`, for a shell.
pub(super) fn problems_command(targets: &Targets, data: Option<&Path>) -> String {
    let mut command = "harvest up --problems".to_owned();
    if let Some(data) = data {
        command += &format!(" --data {}", quoted(&data.display().to_string()));
    }
    let folders = targets.folders.iter().map(|it| it.display().to_string());
    for path in folders.chain(targets.urls.iter().map(Url::to_string)) {
        command += &format!(" {}", quoted(&path));
    }
    command
}

/// Quotes a word for a POSIX shell, if it needs it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_alphanumeric() || "/._-+:,@%".contains(it);
    if word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Returns the name of the first folder or host, for people, with a hash of them all.
fn name_for(targets: &Targets) -> String {
    let mut key = Vec::new();
    for folder in &targets.folders {
        key.extend_from_slice(folder.as_os_str().as_encoded_bytes());
        // No path holds a NUL.
        key.push(0);
    }
    for url in &targets.urls {
        key.extend_from_slice(url.as_str().as_bytes());
        key.push(0);
    }
    let first = targets.folders.first().and_then(|it| it.file_name());
    let host = targets.urls.first().and_then(Url::host_str).unwrap_or_default();
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
        assert_eq!(bytes_in(dir.path()), 3);
    }

    #[test]
    fn data_in_a_folder_to_gather_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("a tree");
        fs::create_dir(&tree).unwrap();
        std::os::unix::fs::symlink(&tree, dir.path().join("link")).unwrap();
        let targets = targets(std::slice::from_ref(&tree)).unwrap();
        for inside in ["a tree", "a tree/new/data", "link/data"] {
            let error = outside(&dir.path().join(inside), &targets).unwrap_err().to_string();
            assert!(error.contains("outside of it"), "{error}");
        }
        let data = dir.path().join("a tree's data");
        assert_eq!(outside(&data, &targets).unwrap(), data);
        let command = problems_command(&targets, Some(&data));
        let data = data.display().to_string().replace('\'', r"'\''");
        let tree = targets.folders[0].display();
        assert_eq!(command, format!("harvest up --problems --data '{data}' '{tree}'"));
    }

    #[test]
    fn an_address_is_a_target() {
        let dir = tempfile::tempdir().unwrap();
        let url = PathBuf::from("https://h.example/oai");
        let both = targets(&[url.clone(), dir.path().to_owned(), url.clone()]).unwrap();
        assert_eq!(both.urls, [Url::parse("https://h.example/oai").unwrap()]);
        assert_eq!(both.folders.len(), 1);
        let alone = targets(&[url]).unwrap();
        assert_eq!(alone.folders, [] as [PathBuf; 0]);
        assert!(name_for(&alone).starts_with("h-example-"), "{}", name_for(&alone));
        assert_ne!(name_for(&alone), name_for(&both));
        let secret = targets(&["https://ann:secret@h.example/".into()]).unwrap_err().to_string();
        assert!(secret.contains("h.example") && !secret.contains("secret"), "{secret}");
        assert!(targets(&["https://".into()]).is_err());
        let group = targets(&["nntp://N.example/a.b".into()]).unwrap();
        assert_eq!(group.urls, [Url::parse("news://n.example/a.b").unwrap()]);
        let unknown = targets(&["smb://h.example/".into()]).unwrap_err().to_string();
        assert!(unknown.contains("https://"), "{unknown}");
    }
}
