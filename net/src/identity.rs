//! A daemon's identity: an ed25519 key in a file, its signatures, and the id derived from it.
//!
//! The key is in `DATA/identity.key` (64 hex digits, readable by the daemon's user alone) and is
//! made once. A daemon's id is a digest of its public key ([`id_of`]). So a reader of a signature,
//! a key and an id can check that they belong together without having seen the key before.
//!
//! Source: RFC 8032 (ed25519), by ring, which the build has for TLS already; RFC 3972 for names
//! derived from keys.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Name of the file in the data directory.
pub const FILE_NAME: &str = "identity.key";
/// Length of an id, in bytes. To forge an id takes about 2^64 keys, divided by the number of ids
/// that suit the forger.
const ID_BYTES: usize = 8;
/// Length of a secret key and of a public key, in bytes.
const KEY_BYTES: usize = 32;
/// Length of a signature, in bytes.
const SIGNATURE_BYTES: usize = 64;
/// Permission bits: the owner may read and write.
const MODE: u32 = 0o600;

/// Failure to load or make an identity.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read or made. Give the daemon's user the rights to its data directory.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others can read the key. Run `chmod 600` on it.
    #[error("{path} can be read by others (mode {mode:o}): run `chmod 600` on it")]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds no key. Restore it from a backup. If it is deleted, the daemon gets another
    /// id, and others regard its signatures as those of another daemon.
    #[error("{path} holds no key (64 hex digits): restore it from a backup")]
    Text {
        /// The file.
        path: PathBuf,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers for a key")]
    Random,
}

/// A key that signs. Its `Debug` form shows the public half alone.
pub struct Identity {
    pair: Ed25519KeyPair,
    key: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.key)
    }
}

impl Identity {
    /// Reads `data_dir/identity.key`, or makes it (mode 0600, whole or not at all). Blocks.
    ///
    /// # Errors
    ///
    /// The message says what to do; the daemon should not start.
    pub fn load_or_create(data_dir: &Path) -> Result<Self, Error> {
        let path = data_dir.join(FILE_NAME);
        match Self::load(&path) {
            Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                place_secret(&path, &random_secret()?)
                    .map_err(|source| Error::File { path: path.clone(), source })?;
                Self::load(&path)
            }
            other => other,
        }
    }

    fn load(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(Error::Mode { path: path.to_owned(), mode });
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let wrong = || Error::Text { path: path.to_owned() };
        let seed: [u8; KEY_BYTES] = unhex(text.trim()).ok_or_else(wrong)?;
        Self::of(&seed).ok_or_else(wrong)
    }

    /// Makes the identity of a secret, or returns `None` if the secret is not valid; for tests and
    /// for secrets that are kept elsewhere.
    #[must_use]
    pub fn of(secret: &[u8; 32]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(secret).ok()?;
        let key = hex(pair.public_key().as_ref());
        Some(Self { pair, key })
    }

    /// Returns the public key: 64 lower-case hex digits.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the id of this key; see [`id_of`].
    #[must_use]
    pub fn id(&self) -> String {
        id_of(&self.key)
    }

    /// Returns the public key as bytes.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        // All keys have this length.
        <[u8; KEY_BYTES]>::try_from(self.pair.public_key().as_ref()).unwrap_or_default()
    }

    /// Signs `text`; returns the signature as 128 lower-case hex digits.
    #[must_use]
    pub fn sign(&self, text: &[u8]) -> String {
        hex(self.pair.sign(text).as_ref())
    }

    /// Signs `text`; returns the signature as bytes.
    #[must_use]
    pub fn sign_raw(&self, text: &[u8]) -> [u8; 64] {
        let mut signature = [0; SIGNATURE_BYTES];
        let made = self.pair.sign(text);
        // All signatures have this length.
        for (to, from) in signature.iter_mut().zip(made.as_ref()) {
            *to = *from;
        }
        signature
    }
}

/// Returns whether `signature` is the signature of `text` by `key`; both in hex digits.
#[must_use]
pub fn verify(key: &str, text: &[u8], signature: &str) -> bool {
    let (Some(key), Some(signature)) =
        (unhex::<KEY_BYTES>(key), unhex::<SIGNATURE_BYTES>(signature))
    else {
        return false;
    };
    verify_raw(&key, text, &signature)
}

/// Verifies as [`verify`] does, with key and signature as bytes.
#[must_use]
pub fn verify_raw(key: &[u8; 32], text: &[u8], signature: &[u8; 64]) -> bool {
    UnparsedPublicKey::new(&ED25519, key).verify(text, signature).is_ok()
}

/// Returns the id of the public key `key`: the first 16 hex digits of the SHA-256 of its 64 digits.
#[must_use]
pub fn id_of(key: &str) -> String {
    hex(digest(&SHA256, key.as_bytes()).as_ref().get(..ID_BYTES).unwrap_or_default())
}

/// Returns 32 bytes from the system's random generator, for an [`Identity`] or another secret.
///
/// # Errors
///
/// The system has no random numbers.
pub fn random_secret() -> Result<[u8; KEY_BYTES], Error> {
    let mut secret = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut secret).map_err(|_unsaid| Error::Random)?;
    Ok(secret)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads lower-case hex digits only, so that each key has one spelling.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Writes `secret` in hex digits to a new file (mode 0600) under another name and links it to
/// `path`, so a reader sees the whole file or none. If two processes do so at once, the file of the
/// first stays.
///
/// # Errors
///
/// The file cannot be made or linked.
pub fn place_secret(path: &Path, secret: &[u8; 32]) -> io::Result<()> {
    let mut name = [0; 4];
    SystemRandom::new()
        .fill(&mut name)
        .map_err(|_unsaid| io::Error::other("the system gives no random numbers"))?;
    let new = path.with_extension(format!("{}.new", hex(&name)));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(MODE).open(&new)?;
    let written = writeln!(file, "{}", hex(secret)).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| link_as(&new, path));
    // A secret under a temporary name must not stay, for whatever reason the link failed.
    let _ = fs::remove_file(&new);
    placed?;
    let above = path.parent().filter(|it| !it.as_os_str().is_empty());
    fs::File::open(above.unwrap_or_else(|| Path::new("."))).and_then(|it| it.sync_all())
}

/// Gives the file `new` the name `path`, unless that exists.
fn link_as(new: &Path, path: &Path) -> io::Result<()> {
    let linked = match fs::hard_link(new, path) {
        // Not every file system has links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            renameat_with(CWD, new, CWD, path, RenameFlags::NOREPLACE).map_err(io::Error::from)
        }
        outcome => outcome,
    };
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems cannot do this either: there, an existing file is replaced.
        Err(_) => fs::rename(new, path),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032 §7.1, TEST 2.
    #[test]
    fn signs_as_the_standard_says() {
        let secret = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
        let identity = Identity::of(&unhex(secret).unwrap()).unwrap();
        let key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        assert_eq!(identity.key(), key);
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(identity.sign(&[0x72]), signature);
        assert_eq!(hex(&identity.sign_raw(&[0x72])), signature);
        assert_eq!(hex(&identity.public()), key);
        assert!(verify(key, &[0x72], signature));
        assert!(!verify(key, &[0x73], signature));
        assert!(!verify(key, &[0x72], &signature.to_uppercase()));
        assert!(!verify(secret, &[0x72], signature));
        assert!(!verify("", b"", ""));
    }

    #[test]
    fn a_key_is_made_once_and_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let made = Identity::load_or_create(dir.path()).unwrap();
        let read = Identity::load_or_create(dir.path()).unwrap();
        assert_eq!(made.key(), read.key());
        assert!(!format!("{made:?}").contains(&fs::read_to_string(file(&dir)).unwrap()[..64]));
        assert_eq!(dir.path().read_dir().unwrap().count(), 1, "nothing is left behind");
        let mode = fs::metadata(file(&dir)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        fs::set_permissions(file(&dir), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Identity::load_or_create(dir.path()), Err(Error::Mode { .. })));
        fs::set_permissions(file(&dir), fs::Permissions::from_mode(MODE)).unwrap();
        fs::write(file(&dir), "no key\n").unwrap();
        assert!(matches!(Identity::load_or_create(dir.path()), Err(Error::Text { .. })));
    }

    #[test]
    fn a_key_that_cannot_be_placed_is_not_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format!("key.{}", "name-too-long".repeat(30)));
        assert!(place_secret(&path, &[1; 32]).is_err());
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn of_two_keys_the_first_stays() {
        let dir = tempfile::tempdir().unwrap();
        let made = Identity::load_or_create(dir.path()).unwrap();
        place_secret(&file(&dir), &[1; 32]).unwrap();
        assert_eq!(Identity::load_or_create(dir.path()).unwrap().key(), made.key());
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }

    fn file(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join(FILE_NAME)
    }

    #[test]
    fn an_id_is_made_of_the_key() {
        let identity = Identity::of(&[1; 32]).unwrap();
        // printf %s KEY | sha256sum
        assert_eq!(identity.id(), "95bbfbb1f0ef8f23");
        assert_eq!(identity.id(), id_of(identity.key()));
        assert_ne!(Identity::of(&[2; 32]).unwrap().id(), identity.id());
    }
}
