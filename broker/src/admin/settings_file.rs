//! The settings file, replaced whole.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

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
}
