//! Versions of trees and collections, signed by their origin: at most 200 bytes each on the wire.
//!
//! Source: TR §8 (mirror-d's version numbers).
//!
//! A **namespace** is a tree or a collection of one origin. Only that origin writes to it, so
//! versions are never merged: the greatest (epoch, sequence) is the newest. An origin that lost its
//! count goes on in a greater epoch. Two different versions of one number are *equivocation*. Both
//! are signed, so together they prove it to anybody.
//!
//! # Differences from the paper
//!
//! mirror-d believes its neighbors. Here a member that passes a version on cannot forge one.
//!
//! Sans-I/O.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use net::identity::{Identity, verify_raw};

use crate::id::MemberId;
use crate::wire::{Reader, put_text};

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 40;
/// Longest version in bytes, its signature included.
pub const VERSION_BYTES_MAX: usize = FIXED_BYTES + NAME_BYTES_MAX + SIGNATURE_BYTES;

/// Bytes of format, kind, origin, epoch, sequence, bytes, root, length of the name.
const FIXED_BYTES: usize = 1 + 1 + 8 + 8 + 8 + 8 + HASH_BYTES + 1;
/// Version of the wire form.
const FORMAT: u8 = 1;
const HASH_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;
/// Prefix of the signed bytes, so that the signature is valid for nothing else.
const DOMAIN: &[u8] = b"harvest replicator version\0";

/// A BLAKE3 hash, such as that of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Returns the hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Returns its first bytes, at most 32.
    pub(crate) fn first<const N: usize>(&self) -> [u8; N] {
        self.0.first_chunk().copied().unwrap_or([0; N])
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The name of a tree, a group or a site: 1 to 40 of a–z, 0–9, `-`, `_` and `.`, the first a letter
/// or a digit. It is safe in a path as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// Text that is not a [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to 40 of a-z, 0-9, `-`, `_` and `.`, and begins with a letter or a digit")]
pub struct ParseNameError;

impl Name {
    /// Makes a name of the text.
    pub fn new(text: &str) -> Result<Self, ParseNameError> {
        let first = |it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9');
        let any = |it: u8| first(it) || matches!(it, b'-' | b'_' | b'.');
        let is_name = text.len() <= NAME_BYTES_MAX
            && text.bytes().next().is_some_and(first)
            && text.bytes().all(any);
        if is_name { Ok(Self(text.into())) } else { Err(ParseNameError) }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of a namespace's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A directory with all that is below it.
    Tree,
    /// The log of a collection.
    Collection,
}

impl Kind {
    /// Returns its number on the wire and on disk.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Tree => 0,
            Self::Collection => 1,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        [Self::Tree, Self::Collection].into_iter().find(|it| it.number() == number)
    }
}

/// A tree or a collection of one origin, which has versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    /// The only writer.
    pub origin: MemberId,
    /// The name among the origin's namespaces.
    pub name: Name,
}

impl Namespace {
    /// Reads the text that `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, origin) = text.rsplit_once('@')?;
        Some(Self { origin: origin.parse().ok()?, name: Name::new(name).ok()? })
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.origin)
    }
}

/// A version's number. Of two versions the one with the greater number is newer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// Rises when an origin has lost its count, or has contradicted itself.
    pub epoch: u64,
    /// Rises by one with each version.
    pub sequence: u64,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.sequence)
    }
}

/// One version of a namespace, signed by its origin. Only [`Version::sign`] and
/// [`Version::from_bytes`] make one, so every version has a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The namespace.
    pub namespace: Namespace,
    /// The kind of its content.
    pub kind: Kind,
    /// The version's number.
    pub number: Number,
    /// Bytes of all content, for estimates and bounds. Files may share some of them.
    pub bytes: u64,
    /// The chunk that leads to all others.
    pub root: Hash,
    signature: [u8; SIGNATURE_BYTES],
}

/// Bytes that are not a valid version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The length or the name is wrong, or the format or the kind is unknown.
    #[error("these {0} bytes are no version of format {FORMAT}")]
    Form(usize),
    /// Somebody forged the version, or changed it on its way.
    #[error("a version is not signed by its origin {0}")]
    Forged(MemberId),
}

impl Version {
    /// Signs a version of a tree or collection whose origin is `identity`.
    #[must_use]
    pub fn sign(
        identity: &Identity,
        name: Name,
        kind: Kind,
        number: Number,
        bytes: u64,
        root: Hash,
    ) -> Self {
        let origin = MemberId::of(&identity.public());
        let namespace = Namespace { origin, name };
        let signature = [0; SIGNATURE_BYTES];
        let mut version = Self { namespace, kind, number, bytes, root, signature };
        version.signature = identity.sign_raw(&version.signed());
        version
    }

    /// Writes the version: format, kind, origin, epoch, sequence, bytes, root, length of the name,
    /// name, signature. Numbers are big-endian. At most [`VERSION_BYTES_MAX`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.unsigned();
        bytes.extend(self.signature);
        bytes
    }

    fn unsigned(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT, self.kind.number()];
        let Number { epoch, sequence } = self.number;
        for number in [self.namespace.origin.0, epoch, sequence, self.bytes] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.root.0);
        put_text(&mut bytes, self.namespace.name.as_str());
        bytes
    }

    fn signed(&self) -> Vec<u8> {
        [DOMAIN, &self.unsigned()].concat()
    }

    /// Reads exactly the output of [`Version::to_bytes`]. Checks that `key` is the origin's and has
    /// made the signature.
    ///
    /// # Errors
    ///
    /// The bytes are not a version, or not one of that origin: the sender is faulty or lies.
    pub fn from_bytes(bytes: &[u8], key: &[u8; 32]) -> Result<Self, VersionError> {
        let version = Self::parse(bytes).ok_or(VersionError::Form(bytes.len()))?;
        let origin = version.namespace.origin;
        let is_theirs =
            MemberId::of(key) == origin && verify_raw(key, &version.signed(), &version.signature);
        if is_theirs { Ok(version) } else { Err(VersionError::Forged(origin)) }
    }

    /// Reads the namespace that these bytes claim, to look up its key. Checks no signature.
    pub fn namespace_of(bytes: &[u8]) -> Option<Namespace> {
        Self::parse(bytes).map(|it| it.namespace)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        (from.u8()? == FORMAT).then_some(())?;
        let kind = Kind::of_number(from.u8()?)?;
        let (origin, number) = (MemberId(from.u64()?), from.number()?);
        let (bytes, root) = (from.u64()?, Hash(from.array()?));
        let namespace = Namespace { origin, name: from.name()? };
        let signature = from.array()?;
        from.end()?;
        Some(Self { namespace, kind, number, bytes, root, signature })
    }

    /// Returns whether the two prove that their origin signed different versions of one number.
    pub fn contradicts(&self, other: &Self) -> bool {
        let same = self.namespace == other.namespace && self.number == other.number;
        same && (self.root, self.kind, self.bytes) != (other.root, other.kind, other.bytes)
    }
}
