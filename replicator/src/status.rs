//! Status and reports of a member: plain data for administrator, page, metrics and readiness.

use collection::feed::Counters;
use daemon::describe::Facts;
use daemon::health::Readiness;
use serde::{Deserialize, Serialize};

/// Status of a member, for its administrator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The member's id.
    pub id: String,
    /// Its public key, in hex digits.
    pub key: String,
    /// Address at which the others reach it.
    pub address: String,
    /// Its site.
    pub site: String,
    /// The program's version.
    pub software: String,
    /// Whether it can do its work.
    #[serde(default)]
    pub ready: Readiness,
    /// Time of its start, in seconds since 1970 (UTC).
    pub started: u64,
    /// Its groups, in the order of the settings.
    pub groups: Vec<GroupStatus>,
    /// All trees and collections of its groups, by name.
    pub trees: Vec<TreeStatus>,
    /// Its links that are up.
    pub links: Vec<LinkStatus>,
    /// Notes of events and problems, the newest first.
    pub notes: Vec<NoteStatus>,
    /// How many notes were added since the start, repeated ones included.
    pub notes_total: u64,
    /// Facts that everybody may know.
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
    /// Its leader.
    pub leader: Option<String>,
    /// The charter's epoch, which rises when the leader changes.
    pub epoch: u64,
    /// The charter's revision: number of charters in this epoch before it.
    pub revision: u64,
    /// Its deputies, in the order in which they take over.
    pub deputies: Vec<String>,
    /// Its members, by id.
    pub members: Vec<MemberStatus>,
    /// Its invitations, the newest first. Of too many, those that are not open are dropped first.
    pub invitations: Vec<InvitationStatus>,
    /// Its trees and collections, by name.
    pub trees: Vec<ListedStatus>,
    /// Its links.
    pub topology: Vec<TopologyLink>,
    /// Links that are measured and not used.
    pub measured: Vec<TopologyLink>,
    /// Whether this member would choose the same links.
    pub is_as_computed: bool,
    /// Messages that were forged or malformed.
    pub lies: u64,
}

/// A member of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its id.
    pub id: String,
    /// Its address.
    pub address: String,
    /// Its site.
    pub site: String,
    /// Whether the group counts it as silent.
    pub is_silent: bool,
    /// Seconds since its last sign of life.
    pub silence: u64,
    /// Whether there is a link to it.
    pub is_linked: bool,
    /// The invitation by which it came; `None` if a rule admitted it, or it is not known.
    pub invitation: Option<String>,
    /// The versions that it has.
    pub versions: VersionsStatus,
}

/// A link of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopologyLink {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// Whether it is a link of the tree.
    pub is_tree: bool,
    /// Round trip in milliseconds: the worse one of the two ends' reports.
    pub round_trip_ms: Option<f64>,
    /// Bytes a second: the worse one of the two ends' reports.
    pub bandwidth: Option<u64>,
}

/// A tree, or a collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeStatus {
    /// `tree` or `collection`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The id of its writer.
    pub writer: String,
    /// Whether that is this member.
    pub is_mine: bool,
    /// The version that readers see.
    pub held: Option<String>,
    /// The newest known version.
    pub newest: Option<String>,
    /// Whether any group lists it; if none does, its files may be removed.
    pub is_listed: bool,
    /// Whether its writer has contradicted itself.
    pub is_contradicted: bool,
    /// The version being fetched.
    pub fetching: Option<FetchStatus>,
    /// The last version that could not be taken, and why; `None` after a version was taken.
    #[serde(default)]
    pub failure: Option<String>,
    /// Its path for readers.
    pub path: String,
    /// Count of files, folders and symbolic links that readers see.
    pub entries: u64,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Damaged files.
    pub damaged: Vec<String>,
    /// The neighbors, with the version that each reports to have.
    pub held_by: Vec<(String, String)>,
    /// How its changes are noticed, if it is published without a command.
    pub watch: Option<WatchStatus>,
    /// Status of a collection; none of a tree.
    pub collection: Option<CollectionStatus>,
}

/// The watching of a tree for changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchStatus {
    /// Longest time until a change is published, and interval of walks without events, in seconds.
    pub every: u64,
    /// Why there are no events, and the remedy; `None` if there are events.
    pub problem: Option<String>,
    /// Why the last attempt to publish the tree failed, and the remedy; `None` if it did not fail.
    #[serde(default)]
    pub unpublished: Option<String>,
}

/// A collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectionStatus {
    /// Epoch and serial that its feed has reached here, joined by a hyphen; none at first.
    pub reached: Option<String>,
    /// Count of live objects.
    pub objects: u64,
    /// The path of its feed at this member's listeners.
    pub path: String,
    /// The URL of the feed for others, through a proxy, if known.
    pub url: Option<String>,
    /// Counters of the feed since the start.
    pub served: FeedStatus,
    /// The feed that it is made from, if this member publishes it.
    pub feed: Option<String>,
    /// The problem with that feed, and what is done about it.
    pub problem: Option<String>,
    /// The last failed folding of its log here.
    pub unfolded: Option<FailureStatus>,
    /// Why data purged at the origin may still be here.
    pub unpurged: Option<String>,
}

/// A failure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureStatus {
    /// The failure, its reason and the remedy.
    pub text: String,
    /// How long ago, in seconds.
    pub ago: u64,
}

/// A version on its way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FetchStatus {
    /// The version.
    pub version: String,
    /// Bytes that came.
    pub came: u64,
    /// Bytes that are missing, as far as known.
    pub missing: u64,
}

/// A link that is up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// The member at its other end.
    pub member: String,
    /// Address of that member.
    pub address: String,
    /// Seconds since it came up.
    pub up: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes that wait to be sent.
    pub waiting: u64,
}

/// A note of an event or a problem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NoteStatus {
    /// Its text.
    pub text: String,
    /// How often it occurred.
    pub count: u64,
    /// Time of its last occurrence, in seconds since 1970 (UTC).
    pub at: u64,
    /// Seconds since its last occurrence.
    pub ago: u64,
}

/// Comparison of a member's version with the newest one known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// No report of the member has come.
    #[default]
    Unknown,
    /// The member has no version yet.
    Nothing,
    /// The member has a version of an earlier epoch.
    EarlierEpoch,
    /// The member has an earlier version of the same epoch.
    Behind,
    /// The member has a newer version.
    Ahead,
    /// The member has the newest version, or none if none is known here.
    Newest,
}

/// Counts of members, or of trees, by the standing of their versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standings {
    /// Number with [`Standing::Newest`] or [`Standing::Ahead`].
    pub newest: u64,
    /// Number with [`Standing::Behind`] or [`Standing::EarlierEpoch`].
    pub behind: u64,
    /// Number with [`Standing::Nothing`].
    pub nothing: u64,
    /// Number with [`Standing::Unknown`].
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

/// Versions that a member has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionsStatus {
    /// Seconds since the member's last report came here. A member reports every change, so even an
    /// old report is valid while the member is not silent. `None` for this member, and for members
    /// without a report since their start.
    pub heard: Option<u64>,
    /// Counts over all trees and collections of the group.
    pub standings: Standings,
    /// First the versions that are not the newest, then the others, each by the names of their
    /// trees; only as many as there is room for.
    pub named: Vec<VersionStatus>,
}

/// Version that a member has of a tree or a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionStatus {
    /// Name and writer, joined by `@`.
    pub tree: String,
    /// The version that readers see there; `None` if there is none, or it is not known.
    pub version: Option<String>,
    /// Its standing.
    pub standing: Standing,
    /// By how many versions it is behind the newest, if both are of one epoch.
    pub behind: Option<u64>,
}

/// A tree or a collection of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedStatus {
    /// Name and writer, joined by `@`.
    pub tree: String,
    /// The newest version known here.
    pub newest: Option<String>,
    /// Counts over all members of the group.
    pub standings: Standings,
}

/// An invitation to a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InvitationStatus {
    /// Its id, by which it is withdrawn.
    pub id: String,
    /// Whether it still admits a member.
    pub standing: InvitationStanding,
    /// Time of its making, in seconds since 1970 (UTC).
    pub made: u64,
    /// Its end, in the same unit.
    pub ends: u64,
    /// Seconds until its end; 0 if it is not open.
    pub left: u64,
    /// The member that came by it.
    pub used_by: Option<String>,
}

/// Standing of an invitation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvitationStanding {
    /// It admits one member.
    Open,
    /// A member came by it.
    Used,
    /// It was withdrawn, or the member that came by it is denied.
    Withdrawn,
    /// It has ended.
    #[default]
    Ended,
}

/// Counters of a feed since the start.
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

/// Result of publishing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// The tree, or the collection.
    pub tree: String,
    /// Epoch and sequence of the version that readers see now, joined by a point.
    pub version: String,
    /// Whether a new version was made.
    pub is_changed: bool,
    /// Files, folders and symbolic links.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Entries that were left out, with the reasons: at most 100.
    pub left_out: Vec<String>,
    /// Count of entries that were left out.
    pub left_out_total: u64,
    /// Whether a group lists the tree; if not, the version is flooded once one does.
    pub is_listed: bool,
}

/// Result of verifying a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its name.
    pub tree: String,
    /// Its writer.
    pub writer: String,
    /// Entries that were compared.
    pub entries: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Damaged files, at most 100.
    pub damaged: Vec<String>,
    /// Count of damaged files.
    pub damaged_total: u64,
}
