//! The access list: rules on who may join a group.
//!
//! Source: TR §8, where only the leader has the list.
//!
//! # Differences from the paper
//!
//! The list is in the charter, so that deputies apply it too.
//!
//! Sans-I/O.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

use crate::id::MemberId;
use crate::wire::{Reader, put_list};

/// Maximum number of rules in a list.
pub const RULES_MAX: usize = 512;

/// Subject of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The member with this id.
    Member(MemberId),
    /// All members that call from these addresses, or want to be reached at one of them.
    Prefix(IpNet),
}

/// Text that is no [`Rule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is neither an id (16 hex digits) nor a key (64) nor addresses (10.0.0.0/8, 2001:db8::1)"
)]
pub struct ParseRuleError(String);

impl FromStr for Rule {
    type Err = ParseRuleError;

    fn from_str(text: &str) -> Result<Self, ParseRuleError> {
        if let Some(key) = unhex(text) {
            return Ok(Self::Member(MemberId::of(&key)));
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Member(id));
        }
        let net = text.parse().or_else(|_unsaid| text.parse().map(|it: IpAddr| IpNet::from(it)));
        net.map(|it: IpNet| Self::Prefix(it.trunc())).map_err(|_unsaid| ParseRuleError(text.into()))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(id) => write!(f, "{id}"),
            Self::Prefix(net) => write!(f, "{net}"),
        }
    }
}

impl Rule {
    fn is_about(self, who: &Caller) -> bool {
        let within = |net: IpNet, it: IpAddr| net.contains(&it.to_canonical());
        match self {
            Self::Member(id) => id == who.member,
            Self::Prefix(net) => {
                [who.seen, who.claimed].into_iter().flatten().any(|it| within(net, it))
            }
        }
    }

    fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Member(id) => {
                bytes.push(0);
                bytes.extend(id.0.to_be_bytes());
            }
            Self::Prefix(IpNet::V4(net)) => {
                bytes.extend([4, net.prefix_len()]);
                bytes.extend(net.addr().octets());
            }
            Self::Prefix(IpNet::V6(net)) => {
                bytes.extend([6, net.prefix_len()]);
                bytes.extend(net.addr().octets());
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let address: (u8, IpAddr) = match from.u8()? {
            0 => return Some(Self::Member(MemberId(from.u64()?))),
            4 => (from.u8()?, IpAddr::from(from.array::<4>()?)),
            6 => (from.u8()?, IpAddr::from(from.array::<16>()?)),
            _ => return None,
        };
        let net = IpNet::new(address.1, address.0).ok()?;
        (net == net.trunc()).then_some(Self::Prefix(net))
    }
}

/// A member that asks to join.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) member: MemberId,
    /// The address at which it wants to be reached, if that is an IP address.
    pub(super) claimed: Option<IpAddr>,
    /// The address from which it calls, as reported by the member that it called.
    pub(super) seen: Option<IpAddr>,
    /// Whether it called the leader itself.
    pub(super) is_direct: bool,
    /// The key of its invitation, once the member has proved that it has that invitation.
    pub(super) invitation: Option<[u8; 32]>,
}

/// The access list. Members that match a rule of `deny` may not join. Of the others, those that
/// match a rule of `allow` may join, and so may those that have been invited ([`super::invited`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Rules on who may join. Address rules apply only to members that call the leader itself: for
    /// others, the leader knows the address only from the member that was called.
    pub allow: Vec<Rule>,
    /// Rules on who may not join, by id, by the address of the call, or by the address at which a
    /// member wants to be reached.
    pub deny: Vec<Rule>,
}

impl Access {
    pub(super) fn denies(&self, who: &Caller) -> bool {
        self.deny.iter().any(|it| it.is_about(who))
    }

    /// Returns the members that rules deny by their ids.
    pub(crate) fn denied_members(&self) -> impl Iterator<Item = MemberId> {
        self.deny.iter().filter_map(|it| match it {
            Rule::Member(member) => Some(*member),
            Rule::Prefix(_) => None,
        })
    }

    /// Returns whether a rule denies this id, at any address.
    pub(super) fn denies_member(&self, member: MemberId) -> bool {
        self.deny.contains(&Rule::Member(member))
    }

    /// Returns whether a rule admits a caller that has no invitation.
    pub(super) fn allows(&self, who: &Caller) -> bool {
        let counts = |it: &Rule| who.is_direct || matches!(it, Rule::Member(_));
        // The address that a caller claims is not proved, so it admits nobody.
        let seen = Caller { claimed: None, ..*who };
        !self.denies(who) && self.allow.iter().any(|it| counts(it) && it.is_about(&seen))
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.allow.len().max(self.deny.len()) <= RULES_MAX
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        for list in [&self.allow, &self.deny] {
            put_list(bytes, list, |bytes, it| it.write(bytes));
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            allow: from.list(RULES_MAX, Rule::read)?,
            deny: from.list(RULES_MAX, Rule::read)?,
        })
    }
}

/// Reads a key: 64 lower-case hex digits. Returns `None` for any other text.
pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}

pub(super) fn hex(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<Rule> {
        text.split_whitespace().map(|it| it.parse().unwrap()).collect()
    }

    #[track_caller]
    fn check(allow: &str, deny: &str, is_direct: bool, expected: bool) {
        let access = Access { allow: rules(allow), deny: rules(deny) };
        let who = Caller {
            member: MemberId(0xab),
            claimed: Some("192.0.2.9".parse().unwrap()),
            seen: Some("::ffff:10.1.2.3".parse().unwrap()),
            is_direct,
            invitation: None,
        };
        assert_eq!(access.allows(&who), expected, "allow {allow}, deny {deny}");
    }

    #[test]
    fn deny_wins_and_an_empty_list_lets_nobody_in() {
        check("", "", true, false);
        check("00000000000000ab", "", false, true);
        check("00000000000000ac", "", true, false);
        check("10.0.0.0/8", "", true, true);
        // Another member reports the address, or the caller claims it.
        check("10.0.0.0/8", "", false, false);
        check("192.0.2.9", "", true, false);
        check("0.0.0.0/0 00000000000000ab", "00000000000000ab", true, false);
        check("0.0.0.0/0", "10.1.0.0/16", true, false);
        check("0.0.0.0/0", "192.0.2.0/24", true, false);
        check("0.0.0.0/0", "10.2.0.0/16", true, true);
    }

    #[test]
    fn rules_are_read_as_they_are_shown() {
        let key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        let all = format!("00000000000000ab {key} 10.1.2.3/8 10.0.0.1 2001:db8::/32");
        let access = Access { allow: rules(&all), deny: Vec::new() };
        assert_eq!(access.allow[2], "10.0.0.0/8".parse().unwrap());
        for rule in &access.allow {
            assert_eq!(rule.to_string().parse(), Ok(*rule));
        }
        let mut bytes = Vec::new();
        access.write(&mut bytes);
        assert_eq!(Access::read(&mut Reader(&bytes)), Some(access));
        for wrong in ["", "10.0.0.0/33", "example.org", "AB"] {
            assert!(wrong.parse::<Rule>().is_err(), "{wrong}");
        }
    }
}
