//! Records of each `harvest up`, running or stopped, in the user's data directory.
//!
//! Each data folder has one, also a folder that `--data` names: a file of JSON beside the data
//! folders. The process keeps its record locked while it lives, so a lock tells for certain that it
//! runs. Records are readable by their owner alone, as they name private folders.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use gatherer::spec;
use serde::{Deserialize, Serialize};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::targets::{self, Targets};

/// The end of a record's name.
const ENDING: &str = "json";

/// Largest record, in bytes: some thousands of folders.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// Longest wait for another process to write where it listens; it may be repairing its data.
const START_MAX: Duration = Duration::from_secs(30);

/// Time between two looks at a process that starts.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Number of looks at a locked record before its process is believed to run: whoever lists the
/// records locks each for a moment.
const LOOKS: u32 = 200;

/// What is known of one `harvest up`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The `file:` URLs of its folders.
    pub(crate) folders: Vec<String>,
    /// The addresses of its web sites, and the base URLs of its repositories.
    #[serde(rename = "repositories")]
    pub(crate) urls: Vec<Url>,
    /// The `file:` URL of its data folder.
    data: String,
    /// The search page; `None` until it listens.
    pub(crate) page: Option<Url>,
    /// The administration listener; `None` until it listens.
    pub(crate) admin: Option<SocketAddr>,
    /// The id of its gatherer; empty until the first start has opened the data.
    pub(crate) id: String,
}

/// A record with what is seen of its process.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) record: Record,
    pub(crate) is_running: bool,
    /// The last start or end.
    pub(crate) used: Option<SystemTime>,
    /// The record's file; `None` for a data folder of an earlier version.
    file: Option<PathBuf>,
}

/// The record of this process, locked.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    record: Record,
}

/// Whether a data folder is free.
#[derive(Debug)]
pub(super) enum Claim {
    /// It is ours now.
    Ours(Held),
    /// A running process has it.
    Running(Record),
}

impl Record {
    fn new(targets: &Targets, data: &Path) -> Self {
        Self {
            folders: targets.folders.iter().map(|it| spec::file_url(it)).collect(),
            urls: targets.urls.clone(),
            data: spec::file_url(data),
            ..Self::default()
        }
    }

    /// Returns its data folder.
    pub(crate) fn data(&self) -> PathBuf {
        spec::file_path(&self.data)
    }

    /// Returns its folders and addresses, for people.
    pub(crate) fn roots(&self) -> Vec<String> {
        let folders = self.folders.iter().map(|it| spec::file_path(it).display().to_string());
        folders.chain(self.urls.iter().map(ToString::to_string)).collect()
    }

    /// Returns whether it gathers exactly `targets`.
    pub(super) fn is_of(&self, targets: &Targets) -> bool {
        let other = Self::new(targets, Path::new("/"));
        (&self.folders, &self.urls) == (&other.folders, &other.urls)
    }

    /// Returns the length of its longest folder that `path` is or lies in.
    fn reach(&self, path: &Path) -> Option<usize> {
        let folders = self.folders.iter().map(|it| spec::file_path(it));
        folders.filter(|it| path.starts_with(it)).map(|it| it.components().count()).max()
    }
}

impl Held {
    /// Writes where the process listens, and its gatherer's id.
    pub(super) fn announce(
        &mut self,
        page: Option<Url>,
        admin: SocketAddr,
        id: &str,
    ) -> anyhow::Result<()> {
        self.record = Record { page, admin: Some(admin), id: id.to_owned(), ..self.record.clone() };
        self.write()
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let bytes = serde_json::to_vec(&self.record)?;
        // In this order the file is never empty for who reads it meanwhile.
        self.file.rewind()?;
        self.file.write_all(&bytes)?;
        Ok(self.file.set_len(bytes.len() as u64)?)
    }
}

impl Drop for Held {
    /// Notes the time of the end.
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            tracing::debug!(%error, "the end is not noted");
        }
    }
}

/// Returns the folder of the records and of the data folders. Fails if the user has no data
/// directory.
pub(super) fn base() -> anyhow::Result<PathBuf> {
    let base = dirs::data_dir().context("you have no data directory: name a folder with --data")?;
    Ok(base.join("harvest").join("up"))
}

/// Takes the record of a data folder, unless a running process has it. Blocks.
pub(super) fn claim(targets: &Targets, data: &Path) -> anyhow::Result<Claim> {
    let base = base()?;
    DirBuilder::new().recursive(true).mode(0o700).create(&base)?;
    let record = Record::new(targets, data);
    let path = base.join(format!("{:016x}.{ENDING}", xxh3_64(record.data.as_bytes())));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path)?;
    for _ in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => {
                let id = read(&mut file).map(|it| it.id).unwrap_or_default();
                let mut held = Held { file, record: Record { id, ..record } };
                held.write()?;
                return Ok(Claim::Ours(held));
            }
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    Ok(Claim::Running(read(&mut file).unwrap_or(record)))
}

/// Waits until the process that has `record` says where it listens; returns its record and page.
pub(super) async fn started(record: &Record) -> anyhow::Result<(Record, Url)> {
    for _ in 0..START_MAX.as_millis() / LOOK_EVERY.as_millis() {
        let now = all().into_iter().find(|it| it.is_running && it.record.data == record.data);
        if let Some(now) = now
            && let Some(page) = now.record.page.clone()
        {
            return Ok((now.record, page));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    bail!("another `harvest up` of the same is starting or stopping: try again")
}

/// Returns all records, and data folders without one, in order. Forgets records of data folders
/// that are gone. Blocks.
pub(crate) fn all() -> Vec<Seen> {
    let Ok(base) = base() else { return Vec::new() };
    let entries = fs::read_dir(&base).into_iter().flatten().flatten();
    let (files, folders): (Vec<PathBuf>, Vec<PathBuf>) =
        entries.map(|it| it.path()).partition(|it| it.extension().is_some_and(|it| it == ENDING));
    let mut all: Vec<Seen> = files.iter().filter_map(|it| look(it)).collect();
    for folder in folders.into_iter().filter(|it| it.join("gatherer").is_dir()) {
        let data = spec::file_url(&folder);
        if all.iter().all(|it| it.record.data != data) {
            let used = fs::metadata(&folder).and_then(|it| it.modified()).ok();
            let record = Record { data, ..Record::default() };
            all.push(Seen { record, is_running: false, used, file: None });
        }
    }
    all.sort_by(|one, two| {
        let key = |it: &Seen| (it.record.folders.clone(), it.record.data.clone());
        key(one).cmp(&key(two))
    });
    all
}

/// Reads one record; removes it if its data folder is gone.
fn look(path: &Path) -> Option<Seen> {
    let mut file = File::open(path).ok()?;
    let is_running = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let used = file.metadata().and_then(|it| it.modified()).ok();
    let record = read(&mut file)?;
    if !is_running && !record.data().is_dir() {
        // Another process may have removed it.
        let _ = fs::remove_file(path);
        return None;
    }
    Some(Seen { record, is_running, used, file: Some(path.to_owned()) })
}

fn read(file: &mut File) -> Option<Record> {
    file.rewind().ok()?;
    let mut bytes = Vec::new();
    file.take(RECORD_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns the search page of the running `harvest up` that a query from the folder `here` is for:
/// the one whose folder it is in, else the only one; `None` if none runs. Fails if that is not
/// clear, and names them. Blocks.
pub(crate) fn page_for(here: &Path) -> anyhow::Result<Option<Url>> {
    let running = all().into_iter().filter(|it| it.is_running).map(|it| it.record);
    let mut running: Vec<Record> = running.filter(|it| it.page.is_some()).collect();
    let reach = running.iter().filter_map(|it| it.reach(here)).max();
    if reach.is_some() {
        running.retain(|it| it.reach(here) == reach);
    }
    match running.as_slice() {
        [] => Ok(None),
        [one] => Ok(one.page.clone()),
        several => {
            let name = |it: &Record| {
                let page = it.page.as_ref().map(Url::as_str).unwrap_or_default();
                format!("\n  --broker {page}  {}", it.roots().join(" "))
            };
            let names: String = several.iter().map(name).collect();
            bail!(
                "several `harvest up` run, and none of this folder alone; say which to ask:{names}"
            )
        }
    }
}

/// Removes what `harvest up` made in a data folder, and its record; returns the size in bytes.
/// Blocks.
///
/// # Errors
///
/// A process runs on it; or the folder has another gatherer's data; or the system refuses.
pub(super) fn remove(seen: &Seen) -> anyhow::Result<u64> {
    let (record, data) = (&seen.record, seen.record.data());
    let lock = seen.file.as_deref().map(File::open).transpose()?;
    if seen.is_running || lock.as_ref().is_some_and(|it| it.try_lock().is_err()) {
        let page = record.page.as_ref().map(|it| format!(" at {it}")).unwrap_or_default();
        bail!("{} is in use by the `harvest up`{page}: stop it first", data.display());
    }
    let bytes = targets::bytes_in(&data);
    let failed = || format!("cannot remove {}", data.display());
    if data.parent() == Some(base()?.as_path()) {
        fs::remove_dir_all(&data).with_context(failed)?;
    } else {
        // The user has named the folder: what is in it may be another's.
        let id = fs::read_to_string(data.join("gatherer/id")).unwrap_or_default();
        if record.id.is_empty() || id.trim() != record.id {
            bail!(
                "{} is not what `harvest up` made: remove it by hand",
                data.join("gatherer").display()
            );
        }
        for made in ["index", "gatherer"] {
            fs::remove_dir_all(data.join(made)).with_context(failed)?;
        }
        // It may have other files.
        let _ = fs::remove_dir(&data);
    }
    if let Some(file) = &seen.file {
        fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_folder_is_asked() {
        let record = |folders: &[&str]| Record {
            folders: folders.iter().map(|it| spec::file_url(Path::new(it))).collect(),
            ..Record::default()
        };
        let one = record(&["/a b/c", "/a b"]);
        let reach = |path: &str| one.reach(Path::new(path));
        assert_eq!(
            [reach("/a b/c/d"), reach("/a b/d"), reach("/a b"), reach("/a bc"), reach("/")],
            [Some(3), Some(2), Some(2), None, None]
        );
        assert_eq!(one.roots(), ["/a b/c", "/a b"]);
    }

    #[test]
    fn a_record_is_written_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let targets = Targets { folders: vec![dir.path().to_owned()], ..Targets::default() };
        let record = Record::new(&targets, &dir.path().join("data"));
        let path = dir.path().join("it.json");
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
        file.try_lock().unwrap();
        let mut held = Held { file, record: record.clone() };
        let page = Url::parse("http://127.0.0.1:8501/").unwrap();
        held.announce(Some(page.clone()), "127.0.0.1:1".parse().unwrap(), "id").unwrap();
        let seen = look(&path).unwrap();
        assert!(seen.is_running && seen.record.is_of(&targets));
        assert_eq!(seen.record.page, Some(page));
        drop(held);
        assert!(look(&path).is_none() && !path.exists(), "its data folder is gone");
    }
}
