//! The broker's id: made once of its key, and kept in a file.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use net::identity::Identity;

use crate::error::Error;

/// Bits of a broker's id, as hex digits.
const ID_DIGITS: usize = 16;

/// Reads the id in `path`, or writes that of `identity` there: 16 hex digits, kept for good. Blocks.
pub(super) fn load_or_create(path: &Path, identity: &Identity) -> Result<String, Error> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let id = text.trim();
            let valid = id.len() == ID_DIGITS && id.bytes().all(|it| it.is_ascii_hexdigit());
            valid.then(|| id.to_owned()).ok_or_else(|| Error::Id { path: path.to_owned() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = identity.id();
            // Whole or not at all: a disk may be full, a process killed.
            let new = path.with_extension("new");
            let write = || {
                let mut file = fs::File::create(&new)?;
                writeln!(file, "{id}")?;
                file.sync_all()?;
                fs::rename(&new, path)
            };
            write().map_err(|source| io_error("write", path, source))?;
            Ok(id)
        }
        Err(source) => Err(io_error("read", path, source)),
    }
}

pub(super) fn io_error(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { action, path: path.to_owned(), source }
}
