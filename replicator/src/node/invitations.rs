//! Invitations: the first one, which `init` prints before its group exists, and those made later.
//!
//! `DATA/groups/GROUP.invitation` holds the first one, with its secret, its start and its end,
//! until the group's saved state contains that invitation. The secrets of other invitations are not
//! saved.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::identity::Identity;

use super::notes::Notes;
use super::own::Own;
use super::state_files::{StateFiles, read, replace};
use crate::config::GroupEntry;
use crate::error::Error;
use crate::group::Group;
use crate::group::charter::Address;
use crate::group::invited::{Invited, VALID};
use crate::group::join::Invitation;
use crate::id::{GroupId, MemberId};
use crate::status::{InvitationStanding, InvitationStatus};
use crate::version::Name;

/// An invitation to print.
#[derive(Clone, Debug)]
pub struct InvitationLine {
    /// The line.
    pub invitation: Invitation,
    /// Time at which it ends, in seconds since 1970 (UTC); none if it has no secret, and so admits
    /// only members on the access list.
    pub ends: Option<u64>,
}

/// Makes the first invitation of the group that this member will found. It is for one member, and
/// valid for a day. Returns this member's id and the invitation.
pub fn invitation(
    data: &Path,
    name: &Name,
    address: &Address,
) -> Result<(MemberId, InvitationLine), Error> {
    let _files = StateFiles::open(data)?;
    let key = Identity::load_or_create(data)?.public();
    let secret = net::identity::random_secret()?;
    let made = net::clock::now_ms() / 1_000;
    let ends = made.saturating_add(VALID.as_secs());
    let numbers = [made, ends].map(u64::to_be_bytes);
    let group = GroupEntry::Found(name.clone()).group(&key);
    replace(&path(data, group), &[secret.as_slice(), numbers.as_flattened()].concat())?;
    let (name, address, secret) = (name.clone(), address.clone(), Some(secret));
    let invitation = Invitation { name, founder: key, address, key, secret };
    Ok((MemberId::of(&key), InvitationLine { invitation, ends: Some(ends) }))
}

fn path(data: &Path, group: GroupId) -> PathBuf {
    data.join("groups").join(format!("{group}.invitation"))
}

/// Reads the invitation that `init` printed for a group; none if its file is gone or has another
/// format.
fn first(data: &Path, group: GroupId) -> Result<Option<Invited>, Error> {
    let Some(bytes) = read(&path(data, group))? else { return Ok(None) };
    let parsed = || {
        let (secret, rest) = bytes.split_first_chunk::<32>()?;
        let (numbers, rest) = rest.as_chunks();
        let &[made, ends] = numbers else { return None };
        let (made, ends) = (u64::from_be_bytes(made), u64::from_be_bytes(ends));
        let key = Identity::of(secret)?.public();
        let invited = Invited { key, made, ends, used_by: None, is_withdrawn: false };
        (rest.is_empty() && made < ends).then_some(invited)
    };
    Ok(parsed())
}

pub(super) fn statuses(group: &Group, all: &[Invited], now: Duration) -> Vec<InvitationStatus> {
    let unix = net::clock::now_ms() / 1_000;
    let status = all.iter().rev().map(|it| {
        let standing = match it {
            _ if it.is_withdrawn => InvitationStanding::Withdrawn,
            _ if it.used_by.is_some() => InvitationStanding::Used,
            _ if group.is_over(it, now) => InvitationStanding::Ended,
            _ => InvitationStanding::Open,
        };
        let is_open = standing == InvitationStanding::Open;
        InvitationStatus {
            id: it.id().to_string(),
            standing,
            made: it.made,
            ends: it.ends,
            left: if is_open { it.ends.saturating_sub(unix) } else { 0 },
            used_by: it.used_by.map(|it| it.to_string()),
        }
    });
    status.collect()
}

/// Adds the first invitation to a group that was just founded.
pub(super) fn invite_first(
    id: GroupId,
    group: &mut Group,
    own: &Own,
    notes: &mut Notes,
) -> Result<(), Error> {
    let now = own.now();
    let Some(invited) = first(&own.config.daemon.data, id)? else { return Ok(()) };
    if let Err(error) = group.add_invited(invited, now) {
        notes.add(format!("the invitation that `init` printed is not valid: {error}"), now);
    }
    Ok(())
}

/// Deletes the secret of a group's first invitation, which the group's charter contains by now.
pub(super) fn forget_first(id: GroupId, own: &Own, notes: &mut Notes) {
    let path = path(&own.config.daemon.data, id);
    let is_of_before = fs::metadata(&path).is_ok_and(|it| it.len() == 32);
    // If the file cannot be removed, the charter still limits the invitation.
    let is_gone = fs::remove_file(path).is_ok();
    if is_gone && is_of_before {
        let text = "the old invitation, which was for anybody and had no end, is withdrawn; each is for one \
                    member now, and ends: `invite` prints a new one";
        notes.add(text.to_owned(), own.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_invitation_that_init_prints_is_kept_until_its_group_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (name, address) = (Name::new("g").unwrap(), Address::new("h:1").unwrap());
        let (_, printed) = invitation(dir.path(), &name, &address).unwrap();
        let group = printed.invitation.group();
        let found = first(dir.path(), group).unwrap().unwrap();
        assert_eq!(Some(found.key), printed.invitation.public());
        assert_eq!((Some(found.ends), found.ends - found.made), (printed.ends, VALID.as_secs()));
        assert_eq!(first(dir.path(), GroupId(7)).unwrap(), None);
        // In the older format, the file had only the secret.
        fs::write(path(dir.path(), group), [7; 32]).unwrap();
        assert_eq!(first(dir.path(), group).unwrap(), None);
    }
}
