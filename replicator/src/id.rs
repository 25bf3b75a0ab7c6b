//! Identifiers of members, groups and invitations.
//!
//! Sans-I/O.

use std::fmt;
use std::str::FromStr;

use crate::version::Hash;

/// A member's id: the number whose 16 hex digits `net::identity::id_of` returns for its public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

/// A group's id: a digest of its name and its founder's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// An invitation's id, made of its public key like a member's. It is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InvitationId(pub u64);

/// The error for text that is not an id. An id is 16 hex digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id has 16 hex digits, in lower case")]
pub struct ParseIdError;

impl MemberId {
    /// Returns the id of the member with this public key.
    pub fn of(key: &[u8; 32]) -> Self {
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        // id_of returns 16 hex digits.
        Self(u64::from_str_radix(&net::identity::id_of(&digits), 16).unwrap_or_default())
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for MemberId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let is_hex = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 16 || !text.bytes().all(is_hex) {
            return Err(ParseIdError);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_unsaid| ParseIdError)
    }
}

impl InvitationId {
    /// Returns the id of the invitation with this public key.
    pub fn of(key: &[u8; 32]) -> Self {
        Self(MemberId::of(key).0)
    }
}

impl fmt::Display for InvitationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        MemberId(self.0).fmt(f)
    }
}

impl FromStr for InvitationId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        text.parse().map(|it: MemberId| Self(it.0))
    }
}

impl GroupId {
    /// Returns the id of the group that the owner of this public key founded under this name.
    pub fn of(founder: &[u8; 32], name: &str) -> Self {
        let parts = [&b"harvest replicator group\0"[..], founder, name.as_bytes()];
        Self(u64::from_be_bytes(Hash::of(&parts.concat()).first()))
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_members_id_is_made_of_its_key() {
        let identity = net::identity::Identity::of(&[7; 32]).unwrap();
        let id = MemberId::of(&identity.public());
        assert_eq!(id.to_string(), identity.id());
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "0", "000000000000000A", "+00000000000000a", "00000000000000000"] {
            assert_eq!(wrong.parse::<MemberId>(), Err(ParseIdError), "{wrong}");
        }
    }

    #[test]
    fn groups_of_one_name_differ_by_founder() {
        let all = [(&[1; 32], "a"), (&[1; 32], "b"), (&[2; 32], "a")];
        let ids: std::collections::HashSet<GroupId> =
            all.map(|(founder, name)| GroupId::of(founder, name)).into();
        assert_eq!(ids.len(), 3);
    }
}
