//! Earlier versions of `harvest up`: what they left in a data folder.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};
use collection::SUPPRESSED_FILE;

use crate::output;

/// Removes the second collection that earlier versions kept for searching, with its index. In a
/// folder that the user has `named`, a folder of the same name may be another's, such as the data of
/// a broker, and only a note is written. Blocks.
///
/// # Errors
///
/// Takedowns were made there, which must not be lost; or the folder cannot be removed.
pub(super) fn handle(data: &Path, named: bool) -> anyhow::Result<()> {
    let folder = data.join("broker");
    if named {
        if folder.join("collection").is_dir() {
            output::note(&format!(
                "note: {} is not used: if an earlier `harvest up` made it, repeat the takedowns that you \
                 made there, and remove it",
                folder.display()
            ));
        }
        return Ok(());
    }
    let takedowns = folder.join(SUPPRESSED_FILE);
    if collection::has_list(&takedowns) {
        bail!(
            "{} has the takedowns of an earlier version: repeat them with `harvest collection suppress` \
             in {}, then remove {}",
            takedowns.display(),
            data.join("gatherer").display(),
            folder.display()
        );
    }
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_collection_is_removed_unless_it_has_takedowns() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path();
        handle(data, false).unwrap();
        fs::create_dir_all(data.join("broker/collection")).unwrap();
        let list = data.join("broker").join(SUPPRESSED_FILE);
        fs::write(&list, "any\n").unwrap();
        let error = handle(data, false).unwrap_err().to_string();
        assert!(error.contains(&*list.to_string_lossy()), "{error}");
        fs::remove_file(&list).unwrap();
        handle(data, true).unwrap();
        assert!(data.join("broker/collection").exists(), "it may be another's");
        handle(data, false).unwrap();
        assert!(!data.join("broker").exists());
    }
}
