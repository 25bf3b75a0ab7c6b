//! Earlier versions of `harvest up`: what they left in a data folder.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};
use collection::SUPPRESSED_FILE;

/// Removes the second collection that earlier versions kept for searching, with its index. Blocks.
///
/// # Errors
///
/// Takedowns were made there, which must not be lost; or the folder cannot be removed.
pub(super) fn remove(data: &Path) -> anyhow::Result<()> {
    let folder = data.join("broker");
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
        remove(data).unwrap();
        fs::create_dir_all(data.join("broker/collection")).unwrap();
        let list = data.join("broker").join(SUPPRESSED_FILE);
        fs::write(&list, "any\n").unwrap();
        let error = remove(data).unwrap_err().to_string();
        assert!(error.contains(&*list.to_string_lossy()), "{error}");
        fs::remove_file(&list).unwrap();
        remove(data).unwrap();
        assert!(!data.join("broker").exists());
    }
}
