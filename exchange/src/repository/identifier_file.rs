//! The identifier file: the repository part of identifiers, stored next to the file of the sets.
//!
//! Source: OAI-PMH §2.4 (an item's identifier stays the same); ours.
//!
//! Without a setting the repository part comes from the daemon's public address or else its id
//! (`default_id`). The address may change, for example if a proxy is added. The identifiers must
//! stay the same then, because harvesters would never learn that the old ones have ended. So the
//! first records that are served store the repository part in a file, and it is used from then on.
//! A setting takes precedence, and is stored when it is served. If the file is deleted, the present
//! address is used again from the next start on.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use disk::Disk;
use oai::RepositoryId;

/// Name of the file, which is next to the file of the sets.
const FILE_NAME: &str = "identifier";

/// Maximum length of the file that is read, in bytes: enough for a host name.
const FILE_BYTES_MAX: u64 = 1_024;

#[derive(Debug)]
pub(super) struct IdentifierFile {
    path: PathBuf,
    /// Content of the file: the outer `None` before it is read, the inner one if it has no name.
    known: Mutex<Option<Option<RepositoryId>>>,
}

impl IdentifierFile {
    pub(super) fn beside(sets: &Path) -> Self {
        Self { path: sets.with_file_name(FILE_NAME), known: Mutex::default() }
    }

    /// Returns the repository part: of the settings, else of the file, else the default. Blocks.
    pub(super) fn get(
        &self,
        set: Option<&RepositoryId>,
        default: impl FnOnce() -> Option<RepositoryId>,
    ) -> Option<RepositoryId> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| read(&self.path));
        set.cloned().or_else(|| known.clone()).or_else(default)
    }

    /// Stores the repository part of identifiers that are served. Blocks.
    pub(super) fn keep(&self, id: &RepositoryId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_some_and(|it| it.as_ref() == Some(id)) {
            return;
        }
        // Even if the file cannot be written, the repository part stays until the next start.
        *known = Some(Some(id.clone()));
        if let Err(error) = write(&self.path, id.name()) {
            let file = self.path.display();
            tracing::warn!(%file, %error, "cannot store the first part of OAI identifiers, which may change at the next \
                start: set repository_identifier in [oai]");
        }
    }
}

fn read(path: &Path) -> Option<RepositoryId> {
    let mut text = String::new();
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        other => other,
    };
    let read = file.and_then(|it| it.take(FILE_BYTES_MAX).read_to_string(&mut text));
    let found = read.ok().and_then(|_bytes| RepositoryId::parse(text.trim()));
    if found.is_none() {
        let file = path.display();
        tracing::warn!(%file, "cannot read a repository identifier from this file: unless \
            repository_identifier in [oai] is set, one is made from base_url");
    }
    found
}

fn write(path: &Path, name: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let (new, text) = (path.with_extension("new"), format!("{name}\n"));
    Disk::System.replace(path, &new, disk::MODE, text.as_bytes()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_name_stays() {
        let dir = tempfile::tempdir().unwrap();
        let id = |name: &str| RepositoryId::parse(name);
        let open = || IdentifierFile::beside(&dir.path().join("oai/sets"));
        let first = open();
        assert_eq!(first.get(None, || id("a.org")), id("a.org"));
        assert_eq!(first.get(None, || id("b.org")), id("b.org"), "nobody has used it");
        first.keep(&id("b.org").unwrap());
        for it in [first, open()] {
            assert_eq!(it.get(None, || id("c.org")), id("b.org"));
            assert_eq!(it.get(id("d.org").as_ref(), || None), id("d.org"));
        }
        open().keep(&id("d.org").unwrap());
        assert_eq!(open().get(None, || None), id("d.org"));
        fs::write(dir.path().join("oai/identifier"), "localhost").unwrap();
        assert_eq!(open().get(None, || id("e.org")), id("e.org"));
    }
}
