//! What a member says of itself, and of what it was asked to do: plain data, for its administrator, its page, its metrics
//! and its readiness.

use collection::feed::Counters;
use daemon::describe::Facts;
use daemon::health::Readiness;
use serde::{Deserialize, Serialize};

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
    /// What everybody is told.
    #[serde(default)]
    pub facts: Facts,
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

/// How the version that somebody has stands to the newest that is known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Nothing was heard of it.
    #[default]
    Unknown,
    /// It has none yet.
    Nothing,
    /// It has one of an earlier epoch.
    EarlierEpoch,
    /// It has an earlier one.
    Behind,
    /// It has a newer one.
    Ahead,
    /// It has the newest.
    Newest,
}

/// Members, or trees, by how their versions stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standings {
    /// Those that have the newest version that is known here, or a newer one; or none, if there is none.
    pub newest: u64,
    /// Those that have an earlier one.
    pub behind: u64,
    /// Those that have none yet.
    pub nothing: u64,
    /// Those of which nothing was heard.
    pub unknown: u64,
}

impl Standings {
    pub(crate) fn count(&mut self, standing: Standing) {
        *match standing {
            Standing::Unknown => &mut self.unknown,
            Standing::Nothing => &mut self.nothing,
            Standing::EarlierEpoch | Standing::Behind => &mut self.behind,
            Standing::Ahead | Standing::Newest => &mut self.newest,
        } += 1;
    }
}

/// What a member has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionsStatus {
    /// How many seconds ago it came here what the member says of that. It says so whenever anything changes: so for as
    /// long as the member is not silent it holds, however long ago it came. None of this member, and of those of which
    /// it was not heard since they started.
    pub heard: Option<u64>,
    /// Of all trees and collections of the group.
    pub standings: Standings,
    /// One by one, by their names, but first those that are not the newest; only so many as there is room for.
    pub named: Vec<VersionStatus>,
}

/// What a member has of a tree or a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionStatus {
    /// Name and writer, with an `@` between them.
    pub tree: String,
    /// The version that readers see there; none if there is none, or it is not known.
    pub version: Option<String>,
    /// How it stands to the newest.
    pub standing: Standing,
    /// By how many versions it is behind, if both are of one epoch.
    pub behind: Option<u64>,
}

/// A tree or a collection of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedStatus {
    /// Name and writer, with an `@` between them.
    pub tree: String,
    /// The newest version that is known here.
    pub newest: Option<String>,
    /// Of all members of the group.
    pub standings: Standings,
}

/// An invitation to a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InvitationStatus {
    /// Its id, by which it is withdrawn.
    pub id: String,
    /// Whether it lets one member in.
    pub standing: InvitationStanding,
    /// When it was made, in seconds since 1970 (UTC).
    pub made: u64,
    /// When it ends, in the same.
    pub ends: u64,
    /// How long that is from now, in seconds; 0 if it is not open.
    pub left: u64,
    /// Who came by it.
    pub used_by: Option<String>,
}

/// What an invitation is good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvitationStanding {
    /// It lets one member in.
    Open,
    /// Somebody came by it.
    Used,
    /// It was withdrawn, or who came by it is denied.
    Withdrawn,
    /// Its time is over.
    #[default]
    Ended,
}

/// What a feed has done since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeedStatus {
    /// Deltas that were answered.
    pub deltas: u64,
    /// Requests that were sent to a snapshot.
    pub redirects: u64,
    /// Answers with a snapshot, or a part of one.
    pub snapshots: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Bytes of all answers that were begun.
    pub bytes: u64,
    /// Requests that wait for something new.
    pub waiting: u64,
}

impl From<Counters> for FeedStatus {
    fn from(counters: Counters) -> Self {
        let Counters { deltas, redirects, snapshot_answers, refused, bytes, waiting, .. } =
            counters;
        Self { deltas, redirects, snapshots: snapshot_answers, refused, bytes, waiting }
    }
}

/// What came of publishing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The tree, or the collection.
    pub tree: String,
    /// Epoch and sequence of the version that readers see now, with a point between.
    pub version: String,
    /// Whether there was anything new.
    pub is_changed: bool,
    /// Files, folders and symbolic links.
    pub entries: u64,
    /// Of all files.
    pub bytes: u64,
    /// What was left out, and why: at most 100.
    pub left_out: Vec<String>,
    /// How many things were left out.
    pub left_out_total: u64,
    /// Whether a group has the tree already; if not, the version goes out as soon as one has.
    pub is_listed: bool,
}

/// What was found of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its name.
    pub tree: String,
    /// Who writes to it.
    pub writer: String,
    /// Entries that were looked at.
    pub entries: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// What is not as it was written, at most 100 files.
    pub damaged: Vec<String>,
    /// How many there are.
    pub damaged_total: u64,
}
