//! What a member says of itself: to its administrator, to its page, and to metrics.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use daemon::health::Readiness;
use serde::{Deserialize, Serialize};

use super::core::Core;
use super::feeds::FeedStatus;
use super::invitations::{self, InvitationStatus};
use super::versions::{ListedStatus, VersionsStatus};
use crate::estimate::{Entry, Row};
use crate::group::Group;
use crate::id::MemberId;
use crate::ready;
use crate::topology::Topology;
use crate::tree::folding::Unfolded;
use crate::version::{Kind, Name, Namespace, Number};

/// Everything that an administrator asks first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The member's id.
    pub id: String,
    /// Its public key, in hex digits.
    pub key: String,
    /// Where the others reach it.
    pub address: String,
    /// Its site.
    pub site: String,
    /// The program's version.
    pub software: String,
    /// Whether it can do what it is for.
    #[serde(default)]
    pub ready: Readiness,
    /// When it was started, in seconds since 1970 (UTC).
    pub started: u64,
    /// Its groups, in the order of the settings.
    pub groups: Vec<GroupStatus>,
    /// All trees and collections of its groups, by name.
    pub trees: Vec<TreeStatus>,
    /// Its links that are up.
    pub links: Vec<LinkStatus>,
    /// What happened, the newest first.
    pub notes: Vec<NoteStatus>,
    /// How often something was noted since the start.
    pub notes_total: u64,
}

/// A group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Whether this member is in it.
    pub is_member: bool,
    /// Who leads it.
    pub leader: Option<String>,
    /// How often another has begun to lead.
    pub epoch: u64,
    /// Charters since then.
    pub revision: u64,
    /// Who takes over, one after another.
    pub deputies: Vec<String>,
    /// Its members, by id.
    pub members: Vec<MemberStatus>,
    /// Its invitations, the newest first; of many, those that are not open are forgotten first.
    pub invitations: Vec<InvitationStatus>,
    /// Its trees and collections, by name.
    pub trees: Vec<ListedStatus>,
    /// Its links.
    pub topology: Vec<TopologyLink>,
    /// Links that are measured and not used.
    pub measured: Vec<TopologyLink>,
    /// Whether this member would choose the same.
    pub is_as_computed: bool,
    /// Messages that were forged or malformed.
    pub lies: u64,
}

/// A member of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its id.
    pub id: String,
    /// Where it is reached.
    pub address: String,
    /// Its site.
    pub site: String,
    /// Whether the group counts it as silent.
    pub is_silent: bool,
    /// For how long nothing was heard of it, in seconds.
    pub silence: u64,
    /// Whether there is a link to it.
    pub is_linked: bool,
    /// The invitation by which it came; none if the access list let it in, or it is not known.
    pub invitation: Option<String>,
    /// Which versions it has.
    pub versions: VersionsStatus,
}

/// A link of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopologyLink {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Whether it is one of the tree.
    pub is_tree: bool,
    /// There and back, in milliseconds: the worse of what the two ends say.
    pub round_trip_ms: Option<f64>,
    /// In bytes a second: the worse of what the two ends say.
    pub bandwidth: Option<u64>,
}

/// A tree, or a collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeStatus {
    /// `tree` or `collection`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The id of who writes to it.
    pub writer: String,
    /// Whether that is this member.
    pub is_mine: bool,
    /// The version that readers see.
    pub held: Option<String>,
    /// The newest version that was heard of.
    pub newest: Option<String>,
    /// Whether any group has it; if none does any more, what is on disk of it may be removed.
    pub is_listed: bool,
    /// Whether its writer has contradicted itself.
    pub is_contradicted: bool,
    /// What is being fetched.
    pub fetching: Option<FetchStatus>,
    /// Which version could not be taken the last time, and why; none since one was.
    #[serde(default)]
    pub failure: Option<String>,
    /// Where readers find it.
    pub path: String,
    /// Files, folders and symbolic links of what readers see.
    pub entries: u64,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Files that are not as they were written.
    pub damaged: Vec<String>,
    /// The version that each neighbor has said to hold.
    pub held_by: Vec<(String, String)>,
    /// How its changes are noticed, if it is published by itself.
    pub watch: Option<WatchStatus>,
    /// What there is to say of a collection alone.
    pub collection: Option<CollectionStatus>,
}

/// How changes of a tree are noticed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchStatus {
    /// A change waits no longer until it is published, in seconds; and so often the tree is looked at if its changes
    /// are not heard of.
    pub every: u64,
    /// Why they are not heard of, and what to do about it; none if they are.
    pub problem: Option<String>,
    /// Why the tree could not be published the last time, and what to do about it; none if it could.
    #[serde(default)]
    pub unpublished: Option<String>,
}

/// A collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectionStatus {
    /// Epoch and serial that its feed has reached here, with a hyphen between; none before anything is there.
    pub reached: Option<String>,
    /// Objects that live in it.
    pub objects: u64,
    /// The path of its feed at this member's listeners.
    pub path: String,
    /// The URL by which others have it as a source, through a proxy, if that is known.
    pub url: Option<String>,
    /// What that has done since the start.
    pub served: FeedStatus,
    /// The feed that it is made from, if this member publishes it.
    pub feed: Option<String>,
    /// What is wrong with that, and what is done about it.
    pub problem: Option<String>,
    /// Its log could not be folded here the last time that was due.
    pub unfolded: Option<FailureStatus>,
    /// Why bytes that were purged at the origin may be here yet.
    pub unpurged: Option<String>,
}

/// Something that could not be done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureStatus {
    /// What, why, and what to do about it.
    pub text: String,
    /// How long ago, in seconds.
    pub ago: u64,
}

/// A version on its way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FetchStatus {
    /// Which.
    pub version: String,
    /// Bytes that came.
    pub came: u64,
    /// Bytes that are missing, as far as is known.
    pub missing: u64,
}

/// A link that is up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// To whom.
    pub member: String,
    /// Where that is.
    pub address: String,
    /// For how long, in seconds.
    pub up: u64,
    /// Bytes that came over it.
    pub bytes_in: u64,
    /// Bytes that went over it.
    pub bytes_out: u64,
    /// Bytes that wait to be sent.
    pub waiting: u64,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NoteStatus {
    /// What.
    pub text: String,
    /// How often.
    pub count: u64,
    /// When last, in seconds since 1970 (UTC).
    pub at: u64,
    /// How long ago that is, in seconds.
    pub ago: u64,
}

impl Core {
    pub(super) fn status(&self) -> Status {
        let now = self.now();
        let key = self.identity.public();
        let ids = self.config.groups.iter().map(|it| (it.entry.group(&key), it.entry.name()));
        let groups = ids.filter_map(|(id, name)| {
            let group = self.groups.get(&id)?;
            Some(self.group_status(name.to_string(), group, now))
        });
        let (groups, trees) = (groups.collect::<Vec<_>>(), self.tree_status(now));
        let at = |it: Duration| (self.started_ms + millis(it)) / 1_000;
        Status {
            id: self.me.to_string(),
            key: self.identity.key().to_owned(),
            address: self.config.address.to_string(),
            site: self.config.site.to_string(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started_ms / 1_000,
            ready: ready::readiness(&groups, &trees),
            groups,
            trees,
            links: self.link_status(now),
            notes: self
                .notes
                .newest()
                .map(|it| NoteStatus {
                    text: it.text.clone(),
                    count: it.count,
                    at: at(it.last),
                    ago: now.saturating_sub(it.last).as_secs(),
                })
                .collect(),
            notes_total: self.notes.total(),
        }
    }

    fn group_status(&self, name: String, group: &Group, now: Duration) -> GroupStatus {
        let id = group.id().to_string();
        let lies = group.counts().lies;
        let Some(charter) = group.charter() else {
            return GroupStatus { name, id, lies, ..GroupStatus::default() };
        };
        let body = charter.body();
        let ids: Vec<MemberId> =
            body.members.iter().map(crate::group::charter::Member::id).collect();
        let (versions, trees) = self.versions(group, &ids, now);
        let members = body.members.iter().zip(versions).map(|(it, versions)| MemberStatus {
            id: it.id().to_string(),
            address: it.address.to_string(),
            site: it.site.to_string(),
            is_silent: it.silent.is_some(),
            silence: group.silence(it.id(), now).as_secs(),
            is_linked: self.links.contains_key(&it.id()),
            invitation: it.invitation.map(|it| it.to_string()),
            versions,
        });
        let said = said(&group.all_rows());
        let topology = links(&body.topology, &ids, &said);
        let used: HashSet<(usize, usize)> =
            body.topology.links().map(|it| (it.a().min(it.b()), it.a().max(it.b()))).collect();
        let mut measured = Vec::new();
        for (at, a) in ids.iter().enumerate() {
            for (other, b) in ids.iter().enumerate().skip(at + 1) {
                let is_said = said.contains_key(&(a.0, b.0)) || said.contains_key(&(b.0, a.0));
                if is_said && !used.contains(&(at, other)) {
                    measured.push(link(*a, *b, false, &said));
                }
            }
        }
        GroupStatus {
            name,
            id,
            is_member: group.is_member(),
            leader: Some(charter.leader().to_string()),
            epoch: charter.epoch(),
            revision: charter.revision(),
            deputies: charter.deputies().iter().map(|it| MemberId::of(it).to_string()).collect(),
            members: members.collect(),
            invitations: invitations::told(group, &body.invitations, now),
            trees,
            is_as_computed: group.computed().is_some_and(|it| it == body.topology),
            topology,
            measured,
            lies,
        }
    }

    fn tree_status(&self, now: Duration) -> Vec<TreeStatus> {
        let mut all = self.replica.flood().namespaces();
        all.extend(self.spaces.keys().cloned());
        let own = |it: &Name| Namespace { origin: self.me, name: it.clone() };
        all.extend(self.following.names().map(own));
        all.sort_unstable_by(|a, b| (&a.name, a.origin).cmp(&(&b.name, b.origin)));
        all.dedup();
        all.iter().map(|it| self.one_tree(it, now)).collect()
    }

    fn one_tree(&self, of: &Namespace, now: Duration) -> TreeStatus {
        let shown = |it: Number| it.to_string();
        let store = self.spaces.get(of).map(|it| it.store());
        let held = store.and_then(|it| it.current());
        let totals = held.as_ref().map(|it| it.meta().totals).unwrap_or_default();
        let damaged = store.map(|it| it.damaged()).unwrap_or_default();
        let flood = self.replica.flood();
        let fetching = self.replica.progress(of).map(|it| FetchStatus {
            version: shown(it.version.number),
            came: it.came,
            missing: it.missing.saturating_sub(it.came.min(it.missing)),
        });
        let held_by = self.links.keys().filter_map(|it| {
            let number = self.replica.held_by(*it, of)?;
            Some((it.to_string(), shown(number)))
        });
        let collection = self.collection_status(of, now);
        let kind = if collection.is_some() { "collection" } else { "tree" };
        TreeStatus {
            kind: kind.to_owned(),
            name: of.name.to_string(),
            writer: of.origin.to_string(),
            is_mine: of.origin == self.me,
            held: held.map(|it| shown(it.meta().number)),
            newest: flood.newest(of).map(|it| shown(it.number)),
            is_listed: flood.is_listed(of),
            is_contradicted: flood.contradiction(of).is_some(),
            fetching,
            failure: self.failures.get(of).cloned(),
            path: store.map(|it| it.current_link().display().to_string()).unwrap_or_default(),
            entries: totals.entries,
            bytes: totals.bytes,
            damaged: damaged.iter().map(|it| it.display().to_string()).collect(),
            held_by: held_by.collect(),
            watch: self.watching.status(&of.name).filter(|_| of.origin == self.me),
            collection,
        }
    }

    /// What there is to say of a collection; none of a tree.
    fn collection_status(&self, of: &Namespace, now: Duration) -> Option<CollectionStatus> {
        let is_mine = of.origin == self.me;
        let told = self.following.told(&of.name, now).filter(|_| is_mine);
        let kind = self.spaces.get(of).map(|it| it.store().kind());
        let kind = kind.or_else(|| self.replica.flood().newest(of).map(|it| it.kind));
        if told.is_none() && kind != Some(Kind::Collection) {
            return None;
        }
        let reached = self.feeds.reached(of);
        let (feed, problem, unfolded) =
            told.map_or((None, None, None), |it| (Some(it.feed), it.problem, it.unfolded));
        let here = || self.spaces.get(of).and_then(|it| it.store().unfolded());
        let unfolded = unfolded.or_else(|| {
            let Unfolded { why, at_ms } = here()?;
            let ago = net::clock::now_ms().saturating_sub(at_ms) / 1_000;
            let remedy = "all of it came from others; free some room, or `verify` it";
            Some(FailureStatus { text: format!("{why}; {remedy}"), ago })
        });
        let base_url = self.config.base_url.as_ref();
        Some(CollectionStatus {
            reached: reached.map(|it| it.version.to_string()),
            objects: reached.map_or(0, |it| it.objects),
            path: format!("/collections/{of}/feed"),
            url: base_url.map(|it| format!("{it}collections/{of}/")),
            served: reached.map(|it| it.counters.into()).unwrap_or_default(),
            feed,
            problem,
            unfolded,
            unpurged: self.unpurged(of, reached.is_some_and(|it| it.holds_purged)),
        })
    }

    /// Why what was purged at the origin of a collection may be here yet.
    fn unpurged(&self, of: &Namespace, holds_purged: bool) -> Option<String> {
        if holds_purged {
            return Some("it goes with the next version: the origin folds its log".to_owned());
        }
        let old = self.old.get(of)?;
        Some(format!("{} former versions are in use by readers: end them", old.left))
    }

    fn link_status(&self, now: Duration) -> Vec<LinkStatus> {
        let all = self.links.iter().map(|(member, it)| {
            let traffic = it.link.traffic();
            LinkStatus {
                member: member.to_string(),
                address: it.link.address().to_string(),
                up: now.saturating_sub(it.since).as_secs(),
                bytes_in: traffic.bytes_in,
                bytes_out: traffic.bytes_out,
                waiting: it.link.waiting() as u64,
            }
        });
        all.collect()
    }
}

fn millis(it: Duration) -> u64 {
    u64::try_from(it.as_millis()).unwrap_or(u64::MAX)
}

/// What each end says of a link to another.
type Said = HashMap<(u64, u64), Entry>;

fn said(rows: &[Row]) -> Said {
    let entries = |it: &Row| {
        let from = it.from;
        it.entries.clone().into_iter().map(move |it| ((from, it.to), it))
    };
    rows.iter().flat_map(entries).collect()
}

fn links(topology: &Topology, ids: &[MemberId], said: &Said) -> Vec<TopologyLink> {
    let tree = topology.tree().iter().map(|it| (it, true));
    let beside = topology.beside().iter().map(|it| (it, false));
    let all = tree.chain(beside).filter_map(|(it, is_tree)| {
        let (a, b) = (*ids.get(it.a())?, *ids.get(it.b())?);
        Some(link(a.min(b), a.max(b), is_tree, said))
    });
    all.collect()
}

/// What the two ends say of a link: the worse counts, as for the topology.
fn link(a: MemberId, b: MemberId, is_tree: bool, said: &Said) -> TopologyLink {
    let both = [said.get(&(a.0, b.0)), said.get(&(b.0, a.0))];
    let trips = both.iter().flatten().filter_map(|it| it.round_trip());
    let rates = both.iter().flatten().filter_map(|it| it.bandwidth());
    TopologyLink {
        a: a.to_string(),
        b: b.to_string(),
        is_tree,
        round_trip_ms: trips.max().map(|it| it.as_secs_f64() * 1_000.0),
        bandwidth: rates.min(),
    }
}
