//! What there is a version of, and who says so: signed, at most 200 bytes on the wire.
//!
//! Source: TR §8 (mirror-d's version numbers).
//!
//! A **namespace** is a tree or a collection of one origin; nobody but that origin writes to it, so that
//! versions never have to be merged: the greatest (epoch, sequence) is the newest. An origin that lost what
//! it knew goes on in a greater epoch. Two versions of one number that differ are *equivocation*: both are
//! signed, so together they prove it to anybody.
//!
//! # Differences from the paper
//!
//! mirror-d believes its neighbors. Here whoever passes a version on cannot make one up.
//!
//! Sans-I/O.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use net::identity::{Identity, verify_raw};

use crate::id::MemberId;

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 40;
/// Longest version in bytes, its signature included.
pub const VERSION_BYTES_MAX: usize = FIXED_BYTES + NAME_BYTES_MAX + SIGNATURE_BYTES;

/// Format, kind, origin, epoch, sequence, bytes, root, length of the name.
const FIXED_BYTES: usize = 1 + 1 + 8 + 8 + 8 + 8 + HASH_BYTES + 1;
/// Of the wire form.
const FORMAT: u8 = 1;
const HASH_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;
/// What is signed begins with this, so that no signature serves for anything else.
const DOMAIN: &[u8] = b"harvest replicator version\0";

/// The BLAKE3 hash of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The first half of it.
    #[must_use]
    pub fn half(&self) -> [u8; 16] {
        self.0.first_chunk().copied().unwrap_or_default()
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

/// The name of a tree, of a group or of a site: 1 to 40 of a–z, 0–9, `-`, `_` and `.`, the first a letter or a
/// digit. It may stand in a path as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// Text that is no [`Name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to 40 of a-z, 0-9, `-`, `_` and `.`, and begins with a letter or a digit")]
pub struct ParseNameError;

impl Name {
    /// Takes the text if it is a name.
    ///
    /// # Errors
    ///
    /// It is none: ask for another.
    pub fn new(text: &str) -> Result<Self, ParseNameError> {
        let first = |it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9');
        let any = |it: u8| first(it) || matches!(it, b'-' | b'_' | b'.');
        let is_name = text.len() <= NAME_BYTES_MAX
            && text.bytes().next().is_some_and(first)
            && text.bytes().all(any);
        if is_name { Ok(Self(text.into())) } else { Err(ParseNameError) }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a namespace holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A directory with all that is below it.
    Tree,
    /// The log of a collection.
    Collection,
}

/// What versions are of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    /// Its only writer.
    pub origin: MemberId,
    /// Its name among those of the origin.
    pub name: Name,
}

impl Namespace {
    /// Reads what its `Display` writes.
    #[must_use]
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

/// Which of two versions is newer: the greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// Rises when an origin has lost count.
    pub epoch: u64,
    /// Rises by one with each version.
    pub sequence: u64,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.sequence)
    }
}

/// One version of a namespace, as its origin says it. Made by [`Version::sign`] and [`Version::from_bytes`]
/// alone, so that what there is has been signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Of what.
    pub namespace: Namespace,
    /// What that is.
    pub kind: Kind,
    /// Which one.
    pub number: Number,
    /// The bytes of all its content, for estimates and bounds; several files may share some.
    pub bytes: u64,
    /// The chunk from which all others are found.
    pub root: Hash,
    signature: [u8; SIGNATURE_BYTES],
}

/// Why bytes are no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Of another length than they say, a name that is none, or an unknown format or kind.
    #[error("these {bytes} bytes are no version of format {FORMAT}")]
    Form {
        /// How many there are.
        bytes: usize,
    },
    /// Somebody made it up, or changed it on its way.
    #[error("a version is not signed by its origin {0}")]
    Forged(MemberId),
}

impl Version {
    /// Signs a version of a tree or collection of one's own.
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

    /// Writes it: format, kind, origin, epoch, sequence, bytes, root, the name behind its length, signature;
    /// numbers with the greatest byte first. At most [`VERSION_BYTES_MAX`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.unsigned();
        bytes.extend(self.signature);
        bytes
    }

    fn unsigned(&self) -> Vec<u8> {
        let kind = match self.kind {
            Kind::Tree => 0,
            Kind::Collection => 1,
        };
        let mut bytes = vec![FORMAT, kind];
        let Number { epoch, sequence } = self.number;
        for number in [self.namespace.origin.0, epoch, sequence, self.bytes] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(self.root.0);
        let name = self.namespace.name.as_str();
        // Names have at most 40 bytes.
        bytes.push(u8::try_from(name.len()).unwrap_or_default());
        bytes.extend(name.as_bytes());
        bytes
    }

    fn signed(&self) -> Vec<u8> {
        [DOMAIN, &self.unsigned()].concat()
    }

    /// Reads what [`Version::to_bytes`] writes, and nothing else, and checks that whoever owns `key` signed it,
    /// which is that of its origin.
    ///
    /// # Errors
    ///
    /// The bytes are no version, or none of that origin: whoever sent them is broken, or lies.
    pub fn from_bytes(bytes: &[u8], key: &[u8; 32]) -> Result<Self, ParseError> {
        let version = Self::parse(bytes).ok_or(ParseError::Form { bytes: bytes.len() })?;
        let origin = version.namespace.origin;
        let is_theirs =
            MemberId::of(key) == origin && verify_raw(key, &version.signed(), &version.signature);
        if is_theirs { Ok(version) } else { Err(ParseError::Forged(origin)) }
    }

    /// Of which namespace these bytes claim to have a version, so that its origin's key can be looked up.
    #[must_use]
    pub fn namespace_of(bytes: &[u8]) -> Option<Namespace> {
        Self::parse(bytes).map(|it| it.namespace)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (&[format, kind], rest) = bytes.split_first_chunk()?;
        let kind = match kind {
            0 => Kind::Tree,
            1 => Kind::Collection,
            _ => return None,
        };
        let (origin, rest) = number(rest)?;
        let (epoch, rest) = number(rest)?;
        let (sequence, rest) = number(rest)?;
        let (all_bytes, rest) = number(rest)?;
        let (root, rest) = rest.split_first_chunk::<HASH_BYTES>()?;
        let (&length, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(length))?;
        let name = Name::new(std::str::from_utf8(name).ok()?).ok()?;
        let signature = <[u8; SIGNATURE_BYTES]>::try_from(rest).ok()?;
        (format == FORMAT).then_some(Self {
            namespace: Namespace { origin: MemberId(origin), name },
            kind,
            number: Number { epoch, sequence },
            bytes: all_bytes,
            root: Hash(*root),
            signature,
        })
    }

    /// Whether these two prove that their origin says different things of one number.
    #[must_use]
    pub fn contradicts(&self, other: &Self) -> bool {
        let same = self.namespace == other.namespace && self.number == other.number;
        same && (self.root, self.kind, self.bytes) != (other.root, other.kind, other.bytes)
    }
}

/// Takes a number off the front.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), rest))
}
