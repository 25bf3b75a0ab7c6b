//! The data folder: a daemon's id, key and token.

use std::fs;
use std::io;
use std::path::Path;

use disk::Disk;
use net::identity::Identity;

use crate::Error;
use crate::auth::AdminToken;

/// Name of the file with the id.
const ID: &str = "id";
const ID_DIGITS: usize = 16;

/// A daemon's identity, from its data folder.
#[derive(Debug)]
pub struct Data {
    /// The id: 16 lower-case hex digits, derived from the first key. It stays if the key changes.
    pub id: String,
    /// The key.
    pub identity: Identity,
    /// The administrator's token.
    pub token: AdminToken,
}

impl Data {
    /// Opens the data folder, or makes it. Blocks. Fails if the folder, its id, key or token cannot
    /// be used; the message says what to do.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Data { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let identity = Identity::load_or_create(folder)?;
        let id = load_or_create_id(&folder.join(ID), &identity)?;
        Ok(Self { id, identity, token: AdminToken::load_or_create(folder)? })
    }
}

/// Reads the id in the file at `path`, or writes that of `identity` there, whole or not at all.
fn load_or_create_id(path: &Path, identity: &Identity) -> Result<String, Error> {
    let failed = |source| Error::Data { path: path.to_path_buf(), source };
    match fs::read_to_string(path) {
        Ok(text) => {
            let id = text.trim();
            let is_digit = |it: u8| it.is_ascii_digit() || matches!(it, b'a'..=b'f');
            let is_id = id.len() == ID_DIGITS && id.bytes().all(is_digit);
            is_id.then(|| id.to_owned()).ok_or_else(|| Error::Id { path: path.to_path_buf() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = identity.id();
            let (new, bytes) = (path.with_extension("new"), format!("{id}\n"));
            Disk::System.replace(path, &new, disk::MODE, bytes.as_bytes()).map_err(failed)?;
            Ok(id)
        }
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_once_and_wrong_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(&folder.path().join("new/data")).unwrap();
        assert_eq!(Data::open(&folder.path().join("new/data")).unwrap().id, data.id);
        assert_eq!(data.id, data.identity.id());
        let id = folder.path().join("new/data/id");
        for wrong in ["", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdefg"] {
            fs::write(&id, wrong).unwrap();
            let message = Data::open(id.parent().unwrap()).unwrap_err().to_string();
            assert!(message.contains("data/id") && message.contains("backup"), "{message}");
        }
        // The id stays when the key changes.
        fs::write(&id, "0123456789abcdef\n").unwrap();
        assert_eq!(Data::open(id.parent().unwrap()).unwrap().id, "0123456789abcdef");
    }
}
