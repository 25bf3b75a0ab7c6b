//! Versions of each member of a group: which version it has of each tree and collection, as far as
//! this member knows.

use std::time::Duration;

use crate::group::Group;
use crate::group::held::Tag;
use crate::id::MemberId;
use crate::replica::Replica;
use crate::status::{ListedStatus, Standing, Standings, VersionStatus, VersionsStatus};
use crate::version::{Namespace, Number};

/// Maximum number of versions that the status of a group names; the others are only counted. Of
/// each member [`OF_ONE_MIN`] may be named, even if that is more in all.
const NAMED_MAX: usize = 4_096;
/// See [`NAMED_MAX`].
const OF_ONE_MIN: usize = 8;

/// A member's version of a tree, `None` if it has none; an error if that is not known.
type Version = Result<Option<Number>, Unheard>;

#[derive(Clone, Copy, Debug)]
struct Unheard;

fn standing(version: Version, newest: Option<Number>) -> Standing {
    match (version, newest) {
        (Err(Unheard), _) => Standing::Unknown,
        // If a tree was never published, having no version counts as having the newest one.
        (Ok(held), newest) if held == newest => Standing::Newest,
        (Ok(None), _) => Standing::Nothing,
        (Ok(held), newest) if newest < held => Standing::Ahead,
        (Ok(Some(held)), Some(newest)) if held.epoch < newest.epoch => Standing::EarlierEpoch,
        (Ok(Some(_)), _) => Standing::Behind,
    }
}

struct Listed {
    namespace: Namespace,
    tag: Tag,
    newest: Option<Number>,
    standings: Standings,
}

impl Listed {
    fn version_status(&self, version: Version, standing: Standing) -> VersionStatus {
        let version = version.ok().flatten();
        let behind = match (version, self.newest) {
            (Some(held), Some(newest)) if standing == Standing::Behind => {
                Some(newest.sequence - held.sequence)
            }
            _ => None,
        };
        let version = version.map(|it| it.to_string());
        VersionStatus { tree: self.namespace.to_string(), version, standing, behind }
    }
}

/// Returns, as far as the member `me` knows, the versions of a group's members in the order of
/// `members`, and for each tree the number of members of each standing.
pub(super) fn versions(
    group: &Group,
    members: &[MemberId],
    (me, replica): (MemberId, &Replica),
    now: Duration,
) -> (Vec<VersionsStatus>, Vec<ListedStatus>) {
    let flood = replica.flood();
    let listed = |namespace: Namespace| Listed {
        tag: Tag::of(&namespace),
        newest: flood.newest(&namespace).map(|it| it.number),
        standings: Standings::default(),
        namespace,
    };
    let mut trees: Vec<Listed> = group.trees().map(|it| listed(it.namespace())).collect();
    trees.sort_unstable_by(|a, b| {
        let id = |it: &Listed| (it.namespace.name.clone(), it.namespace.origin);
        id(a).cmp(&id(b))
    });
    let room = (NAMED_MAX / members.len().max(1)).max(OF_ONE_MIN);
    let one = |it: &MemberId| versions_of(group, *it, (me, replica), &mut trees, room, now);
    let all = members.iter().map(one).collect();
    let trees = trees.into_iter().map(|it| ListedStatus {
        tree: it.namespace.to_string(),
        newest: it.newest.map(|it| it.to_string()),
        standings: it.standings,
    });
    (all, trees.collect())
}

fn versions_of(
    group: &Group,
    member: MemberId,
    (me, replica): (MemberId, &Replica),
    trees: &mut [Listed],
    room: usize,
    now: Duration,
) -> VersionsStatus {
    let held = group.held_by(member);
    let version = |it: &Listed| -> Version {
        if member == me {
            return Ok(replica.held(&it.namespace).map(|it| it.number));
        }
        // A neighbor reports its version directly and at once.
        let direct = replica.held_by(member, &it.namespace);
        let reported = held.as_ref().and_then(|held| held.number(it.tag));
        let is_all = held.as_ref().is_some_and(|it| it.left_out() == 0);
        match direct.max(reported) {
            None if !is_all => Err(Unheard),
            version => Ok(version),
        }
    };
    let mut standings = Standings::default();
    let mut found: Vec<(bool, usize, Version, Standing)> = Vec::with_capacity(trees.len());
    for (at, it) in trees.iter_mut().enumerate() {
        let version = version(it);
        let standing = standing(version, it.newest);
        standings.count(standing);
        it.standings.count(standing);
        found.push((Standing::Ahead <= standing, at, version, standing));
    }
    found.sort_unstable_by_key(|it| (it.0, it.1));
    let named = found.iter().take(room).filter_map(|(_, at, version, standing)| {
        trees.get(*at).map(|it| it.version_status(*version, *standing))
    });
    let heard = held.map(|it| it.age(now).as_secs());
    VersionsStatus { heard, standings, named: named.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_with_the_newest() {
        let number = |epoch, sequence| Some(Number { epoch, sequence });
        for (version, newest, expected) in [
            (Err(Unheard), number(1, 1), Standing::Unknown),
            (Ok(None), number(1, 1), Standing::Nothing),
            (Ok(None), None, Standing::Newest),
            (Ok(number(1, 1)), number(1, 1), Standing::Newest),
            (Ok(number(1, 1)), number(1, 4), Standing::Behind),
            (Ok(number(1, 9)), number(2, 1), Standing::EarlierEpoch),
            (Ok(number(1, 2)), number(1, 1), Standing::Ahead),
            (Ok(number(1, 2)), None, Standing::Ahead),
        ] {
            assert_eq!(standing(version, newest), expected, "{version:?} of {newest:?}");
        }
    }

    #[test]
    fn a_member_behind_has_a_count_of_versions() {
        let namespace = "t@0000000000000007";
        let (name, origin) = namespace.split_once('@').unwrap();
        let it = Namespace {
            name: crate::version::Name::new(name).unwrap(),
            origin: origin.parse().unwrap(),
        };
        let newest = Some(Number { epoch: 1, sequence: 7 });
        let (tag, standings) = (Tag::of(&it), Standings::default());
        let listed = Listed { namespace: it, tag, newest, standings };
        let named = |epoch, sequence| {
            let version = Ok(Some(Number { epoch, sequence }));
            let named = listed.version_status(version, standing(version, newest));
            assert_eq!(named.tree, namespace);
            (named.version.unwrap(), named.standing, named.behind)
        };
        assert_eq!(named(1, 4), ("1.4".to_owned(), Standing::Behind, Some(3)));
        assert_eq!(named(0, 9), ("0.9".to_owned(), Standing::EarlierEpoch, None));
        assert_eq!(named(1, 7), ("1.7".to_owned(), Standing::Newest, None));
    }
}
