//! The file of a hub's subscriptions: written atomically, and readable only by its owner, because
//! it contains secrets.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use disk::Disk;

use super::hub::SavedHub;

/// The file in the data folder.
pub const FILE_NAME: &str = "subscriptions.json";

/// Permission bits: the owner may read and write.
const MODE: u32 = 0o600;

/// Maximum size of a file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// The file cannot be read or written. Give the daemon's user access to its data folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}")]
pub struct Error {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// Reads the subscriptions in `data`; none if there is no file. A file with invalid content, or one
/// that is too large, is moved aside: subscribers renew their subscriptions before their leases end
/// anyway. Blocks.
///
/// # Errors
///
/// [`Error`]: the daemon should not start.
pub fn load(data: &Path) -> Result<SavedHub, Error> {
    let path = data.join(FILE_NAME);
    let failed = |action, source| Error { action, path: path.clone(), source };
    let text = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SavedHub::default()),
        Err(error) => return Err(failed("read", error)),
        Ok(found) if FILE_BYTES_MAX < found.len() => Vec::new(),
        Ok(_) => fs::read(&path).map_err(|error| failed("read", error))?,
    };
    serde_json::from_slice(&text).or_else(|error| {
        let aside = path.with_extension("json.bad");
        fs::rename(&path, &aside).map_err(|error| failed("move", error))?;
        tracing::warn!(%error, file = %aside.display(), "the subscriptions are unreadable, and were moved aside");
        Ok(SavedHub::default())
    })
}

/// Writes the subscriptions to `data`. Blocks.
///
/// # Errors
///
/// [`Error`]: the old file is unchanged; try again.
pub fn store(data: &Path, saved: &SavedHub) -> Result<(), Error> {
    let path = data.join(FILE_NAME);
    let new = path.with_extension("json.new");
    let write = || {
        let text = serde_json::to_vec_pretty(saved)?;
        // A temporary file of an interrupted run may have other permissions.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Disk::System.replace(&path, &new, MODE, &text).map(drop)
    };
    write().map_err(|source| Error { action: "write", path: path.clone(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use url::Url;

    use super::super::hub::SavedSubscription;
    use super::super::signature::Secret;
    use super::*;

    #[test]
    fn a_written_file_is_read_back_and_private() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(load(data.path()).unwrap(), SavedHub::default());
        let one = SavedSubscription {
            topic: "http://s/feed".to_owned(),
            host: None,
            callback: Url::parse("http://c/").unwrap(),
            secret: Secret::new("s"),
            consumer: Some("union".to_owned()),
            lease_until_ms: 7,
            notified: None,
        };
        for subscriptions in [vec![one], Vec::new()] {
            let saved = SavedHub { subscriptions };
            store(data.path(), &saved).unwrap();
            assert_eq!(load(data.path()).unwrap(), saved);
        }
        let mode = fs::metadata(data.path().join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!((mode & 0o777, data.path().read_dir().unwrap().count()), (MODE, 1));
    }

    /// Brokers of older versions could ask for the changes themselves, with `content`.
    #[test]
    fn a_file_of_an_older_version_is_read() {
        let data = tempfile::tempdir().unwrap();
        let text = r#"{"subscriptions": [{"topic": "http://s/feed", "callback": "http://c/",
            "host": "192.0.2.1", "secret": "s", "content": "fat", "consumer": "union",
            "lease_until_ms": 7, "told": "00000000000000ff-7"}]}"#;
        fs::write(data.path().join(FILE_NAME), text).unwrap();
        let expected = SavedSubscription {
            topic: "http://s/feed".to_owned(),
            host: Some("192.0.2.1".to_owned()),
            callback: Url::parse("http://c/").unwrap(),
            secret: Secret::new("s"),
            consumer: Some("union".to_owned()),
            lease_until_ms: 7,
            notified: Some("00000000000000ff-7".to_owned()),
        };
        assert_eq!(load(data.path()).unwrap().subscriptions, [expected]);
    }

    #[test]
    fn an_unreadable_file_is_moved_aside() {
        let data = tempfile::tempdir().unwrap();
        for broken in [&b"no JSON"[..], b"{\"subscriptions\":[\xff"] {
            fs::write(data.path().join(FILE_NAME), broken).unwrap();
            assert_eq!(load(data.path()).unwrap(), SavedHub::default());
            assert_eq!(fs::read(data.path().join("subscriptions.json.bad")).unwrap(), broken);
        }
        assert!(load(&data.path().join("none")).is_ok());
        assert!(store(&data.path().join("none"), &SavedHub::default()).is_err());
    }
}
