//! The invitations to the groups that a member has founded: one secret each, made once.
//!
//! `DATA/groups/GROUP.invitation` has it; whoever removes the file withdraws the invitation at the next start.

use std::collections::BTreeMap;
use std::path::Path;

use net::identity::Identity;

use super::kept;
use crate::config::Entry;
use crate::error::Error;
use crate::id::GroupId;

/// The secrets, by group.
#[derive(Clone, Debug, Default)]
pub(super) struct Invitations(BTreeMap<GroupId, [u8; 32]>);

impl Invitations {
    /// Reads the secrets of groups that are founded here, and makes those that are missing.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub(super) fn load_or_create<'a>(
        data: &Path,
        entries: impl Iterator<Item = &'a Entry>,
        key: &[u8; 32],
    ) -> Result<Self, Error> {
        let mut all = BTreeMap::new();
        for entry in entries.filter(|it| matches!(it, Entry::Found(_))) {
            let group = entry.group(key);
            let path = data.join("groups").join(format!("{group}.invitation"));
            let known = kept::read(&path)?.and_then(|it| <[u8; 32]>::try_from(it).ok());
            let secret = match known {
                Some(secret) => secret,
                None => {
                    let secret = net::identity::random_secret()?;
                    kept::replace(&path, &secret)?;
                    secret
                }
            };
            all.insert(group, secret);
        }
        Ok(Self(all))
    }

    pub(super) fn secret(&self, group: GroupId) -> Option<[u8; 32]> {
        self.0.get(&group).copied()
    }

    /// The keys that the access list of a group has.
    pub(super) fn keys(&self, group: GroupId) -> Vec<[u8; 32]> {
        let identity = self.secret(group).and_then(|it| Identity::of(&it));
        identity.map(|it| it.public()).into_iter().collect()
    }
}
