//! The settings file, changed: replaced whole, read by the broker, and put back if it is refused.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::reload::read_again;
use crate::blocking::blocking;
use crate::error::Error;
use crate::server::Handle;

/// Replaces the text of a settings file, durably, whole or not at all; owner and permissions stay. Blocks.
///
/// # Errors
///
/// The system's, with the name of the file.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let failed = |error: io::Error| {
        io::Error::new(error.kind(), format!("{} cannot be changed: {error}", path.display()))
    };
    replaced(path, text).map_err(failed)
}

fn replaced(path: &Path, text: &str) -> io::Result<()> {
    // A symbolic link stays, and its target is replaced.
    let path = fs::canonicalize(path)?;
    let folder = path.parent().ok_or(io::ErrorKind::IsADirectory)?;
    let before = fs::metadata(&path)?;
    // The name cannot be guessed, and nobody else can read the file: settings hold tokens.
    let mut new = tempfile::Builder::new().prefix(".harvest-settings-").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    let file = new.as_file();
    if (before.uid(), before.gid()) != (file.metadata()?.uid(), file.metadata()?.gid()) {
        std::os::unix::fs::fchown(file, Some(before.uid()), Some(before.gid()))?;
    }
    file.set_permissions(before.permissions())?;
    file.sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    fs::File::open(folder)?.sync_all()
}

/// Writes `new` in the place of `old` into the settings file, and has the broker read it; if the broker refuses it, the
/// old text is put back. One change at a time.
///
/// # Errors
///
/// The reason in words for people; the file is as it was, unless they say otherwise.
pub(super) async fn change(
    handle: &Handle,
    path: &Path,
    (old, new): (&str, &str),
) -> Result<(), String> {
    put_in_place(path, old, new).await?;
    let refused = match read_again(handle).await {
        Ok(later) => {
            tracing::info!(?later, "settings changed, and read again");
            return Ok(());
        }
        Err(error) => error.to_string(),
    };
    tracing::error!(refused, "the old settings are put back");
    put_in_place(path, new, old).await.map_err(|error| {
        format!("{refused}; and what was there before could not be put back: {error}")
    })?;
    // A part of the refused settings may be in force.
    match read_again(handle).await {
        Ok(_) => Err(format!("{refused}. What was there before is there again.")),
        Err(error) => Err(format!("{refused}. What was there before is there again, but: {error}")),
    }
}

/// Writes `new` in the place of `old`, and nothing in the place of another text.
async fn put_in_place(path: &Path, old: &str, new: &str) -> Result<(), String> {
    let (path, old, new) = (path.to_owned(), old.to_owned(), new.to_owned());
    let work = move || {
        let name = path.display();
        Ok::<_, Error>(match fs::read_to_string(&path) {
            Ok(now) if now == old => replace(&path, &new).map_err(|error| error.to_string()),
            Ok(_) => Err(format!("somebody else has changed {name} meanwhile: look at it again")),
            Err(error) => Err(format!("{name} cannot be read: {error}")),
        })
    };
    blocking("settings", work).await.map_err(|error| error.to_string())?
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_links_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("b.toml"), dir.path().join("link.toml"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left behind");
        let missing = replace(&dir.path().join("none"), "x").unwrap_err().to_string();
        assert!(missing.contains("none cannot be changed"), "{missing}");
    }

    #[tokio::test]
    async fn a_file_that_others_changed_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("b.toml");
        fs::write(&file, "theirs").unwrap();
        let refused = put_in_place(&file, "old", "new").await.unwrap_err();
        assert!(refused.contains("somebody else"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        put_in_place(&file, "theirs", "new").await.unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }
}
