//! The name that identifiers begin with, remembered where the sets are.
//!
//! Source: OAI-PMH §2.4 (an item's identifier stays the same); ours.
//!
//! Unless settings say otherwise the name is made of the daemon's address, which may change: a proxy is put in
//! front, a host is renamed. Identifiers must not change with it, since nobody would ever be told that those
//! from before are gone. So the name under which the first identifier was handed out is written to a file, and
//! kept. Settings that name another have it written anew; a file that is deleted is made of the
//! present address with the next identifier.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use oai::RepositoryId;

/// The file, beside the sets.
const FILE_NAME: &str = "identifier";

/// Longest file that is read, in bytes; no name is as long.
const FILE_BYTES_MAX: u64 = 1_024;

/// The name, as far as it is known.
#[derive(Debug)]
pub(super) struct Remembered {
    path: PathBuf,
    /// `None` until the file has been looked for; then what is in it.
    known: Mutex<Option<Option<RepositoryId>>>,
}

impl Remembered {
    /// The name that stands beside `sets`.
    pub(super) fn beside(sets: &Path) -> Self {
        Self { path: sets.with_file_name(FILE_NAME), known: Mutex::default() }
    }

    /// The name: what settings say, what was remembered, or what is made now. Blocks.
    pub(super) fn get(
        &self,
        set: Option<&RepositoryId>,
        made: impl FnOnce() -> Option<RepositoryId>,
    ) -> Option<RepositoryId> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| read(&self.path));
        set.cloned().or_else(|| known.clone()).or_else(made)
    }

    /// Remembers the name under which identifiers are handed out. Blocks.
    pub(super) fn keep(&self, id: &RepositoryId) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_some_and(|it| it.as_ref() == Some(id)) {
            return;
        }
        // Until the next start it is known without the file.
        *known = Some(Some(id.clone()));
        if let Err(error) = write(&self.path, id.name()) {
            let file = self.path.display();
            tracing::warn!(%file, %error, "what identifiers begin with is not remembered: set \
                repository_identifier of [oai]");
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
        tracing::warn!(%file, "no name of a repository is in it; one is made of the address");
    }
    found
}

fn write(path: &Path, name: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(format!("{name}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_once_it_was_used() {
        let dir = tempfile::tempdir().unwrap();
        let id = |name: &str| RepositoryId::parse(name);
        let open = || Remembered::beside(&dir.path().join("oai/sets"));
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
