//! The answers of a replicator, written for a person.

use replicator::status::{
    CollectionStatus, FailureStatus, GroupStatus, InvitationStanding, InvitationStatus,
    ListedStatus, MemberStatus, Published, Report, Standing, Standings, Status, TreeStatus,
    WatchStatus,
};
use web::templates::size;

use crate::output;

/// Maximum number of members without a newest version that are shown.
const MEMBERS_SHOWN: usize = 20;
/// Maximum number of invitations that are shown, the newest first.
const INVITATIONS_SHOWN: usize = 20;
/// Maximum number of versions that are shown for each member.
const VERSIONS_SHOWN: usize = 8;
/// Silence of a member from which its length is shown, in seconds; members report every 15 s.
const SILENCE_MIN: u64 = 60;

pub(super) fn render_published(published: &Published) -> String {
    let Published { tree, version, is_changed, entries, bytes, .. } = published;
    let size = size(*bytes);
    let mut lines = vec![match is_changed {
        true => format!("{tree} {version}: {}, {size}", output::counted(*entries, "entry")),
        false => format!("{tree} {version}: nothing has changed"),
    }];
    if !published.is_listed {
        lines.push("no group has the tree yet; it is sent as soon as one has".to_owned());
    }
    if 0 < published.left_out_total {
        lines.push(format!("left out, {} in all:", published.left_out_total));
        lines.extend(published.left_out.iter().map(|it| format!("  {it}")));
    }
    lines.join("\n")
}

pub(super) fn render_reports(reports: &[Report]) -> String {
    let mut lines = Vec::new();
    for it in reports {
        let (entries, size) = (output::counted(it.entries, "entry"), size(it.bytes));
        let damaged = match it.damaged_total {
            0 => "as they were written".to_owned(),
            count => format!("{count} damaged"),
        };
        lines.push(format!("{} of {}: {entries}, {size}, {damaged}", it.tree, it.writer));
        lines.extend(it.damaged.iter().map(|it| format!("  {it}")));
    }
    lines.join("\n")
}

pub(super) fn render(status: &Status) -> String {
    let Status { id, address, site, software, .. } = status;
    let mut lines = vec![format!("{id} at {address} in {site}, harvest {software}")];
    lines.extend(status.ready.faults());
    for group in &status.groups {
        lines.push(render_group(status, group));
    }
    lines.extend(status.trees.iter().map(render_tree));
    for link in &status.links {
        let (came, went) = (size(link.bytes_in), size(link.bytes_out));
        lines.push(format!(
            "link to {} at {}: {came} received, {went} sent",
            link.member, link.address
        ));
    }
    for note in status.notes.iter().take(10) {
        let times =
            if note.count == 1 { String::new() } else { format!(" ({} times in all)", note.count) };
        lines.push(format!("noted {} s ago: {}{times}", note.ago, note.text));
    }
    lines.join("\n")
}

fn render_group(status: &Status, group: &GroupStatus) -> String {
    let name = &group.name;
    if !group.is_member {
        return format!("group {name}: not in it yet, asking");
    }
    let silent = group.members.iter().filter(|it| it.is_silent).count();
    let leader = match &group.leader {
        Some(leader) if *leader == status.id => "led by this member".to_owned(),
        Some(leader) => format!("led by {leader}"),
        None => "led by nobody".to_owned(),
    };
    let members = output::counted(group.members.len() as u64, "member");
    let links = output::counted(group.topology.len() as u64, "link");
    let charter = format!("charter {}.{}", group.epoch, group.revision);
    let silent = if silent == 0 { String::new() } else { format!(" ({silent} silent)") };
    let mut lines = vec![format!("group {name}: {members}{silent}, {links}, {leader}, {charter}")];
    lines.extend(group.trees.iter().map(render_standings));
    lines.extend(group.invitations.iter().take(INVITATIONS_SHOWN).map(render_invitation));
    if INVITATIONS_SHOWN < group.invitations.len() {
        lines.push(format!("  … {} invitations in all", group.invitations.len()));
    }
    let is_behind = |it: &&MemberStatus| {
        let Standings { behind, nothing, unknown, .. } = it.versions.standings;
        0 < behind + nothing + unknown
    };
    let behind: Vec<&MemberStatus> = group.members.iter().filter(is_behind).collect();
    lines.extend(behind.iter().take(MEMBERS_SHOWN).map(|it| render_versions(it)));
    if MEMBERS_SHOWN < behind.len() {
        lines.push(format!("  … {} members in all", behind.len()));
    }
    lines.join("\n")
}

fn render_invitation(it: &InvitationStatus) -> String {
    let by = it.used_by.as_ref().map(|it| format!(" by {it}")).unwrap_or_default();
    let state = match it.standing {
        InvitationStanding::Open => format!("open for {}", span(it.left)),
        InvitationStanding::Used => format!("used{by}"),
        InvitationStanding::Withdrawn if it.used_by.is_some() => format!("used{by}, withdrawn"),
        InvitationStanding::Withdrawn => "withdrawn".to_owned(),
        InvitationStanding::Ended => "ended".to_owned(),
    };
    format!("  invitation {}: {state}", it.id)
}

/// Writes a duration in its best unit.
pub(super) fn span(seconds: u64) -> String {
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes @ 1..100 => format!("{minutes} min"),
        minutes @ 100..2_880 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / 1_440),
    }
}

/// Writes how many members have the newest version of a tree.
fn render_standings(tree: &ListedStatus) -> String {
    let Standings { newest, behind, nothing, unknown } = tree.standings;
    let Some(version) = &tree.newest else {
        return format!("  {}: nothing is published yet", tree.tree);
    };
    let all = output::counted(newest + behind + nothing + unknown, "member");
    let mut text = format!("  {} {version}: {newest} of {all}", tree.tree);
    for (count, what) in [(behind, "behind"), (nothing, "without"), (unknown, "not known")] {
        if count != 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

/// Writes the versions that a member lacks.
fn render_versions(member: &MemberStatus) -> String {
    let MemberStatus { id, address, versions, silence, .. } = member;
    let mut text = format!("  {id} at {address}:");
    for it in versions.named.iter().take(VERSIONS_SHOWN) {
        let version = it.version.as_deref().unwrap_or_default();
        let state = match (it.standing, it.behind) {
            (Standing::Newest | Standing::Ahead, _) => continue,
            (Standing::Unknown, _) => "not known".to_owned(),
            (Standing::Nothing, _) => "nothing yet".to_owned(),
            (Standing::Behind | Standing::EarlierEpoch, Some(by)) => {
                format!("{version}, behind by {by}")
            }
            (Standing::Behind | Standing::EarlierEpoch, None) => {
                format!("{version} of an earlier epoch")
            }
        };
        text.push_str(&format!(" {} {state};", it.tree));
    }
    let Standings { behind, nothing, unknown, .. } = versions.standings;
    text.push_str(&format!(" {} not the newest", behind + nothing + unknown));
    if SILENCE_MIN <= *silence {
        text.push_str(&format!(", as it was {silence} s ago"));
    }
    text
}

fn render_tree(tree: &TreeStatus) -> String {
    let TreeStatus { name, writer, held, newest, .. } = tree;
    let of = if tree.is_mine { "of this member".to_owned() } else { format!("of {writer}") };
    let held_text = held.as_deref().map_or_else(
        || "none yet".to_owned(),
        |it| {
            let (entries, size) = (output::counted(tree.entries, "entry"), size(tree.bytes));
            format!("{it} ({entries}, {size}) at {}", tree.path)
        },
    );
    let kind = &tree.kind;
    let mut text = format!("{kind} {name} {of}: {held_text}");
    if let Some(newest) = newest.as_ref().filter(|it| Some(*it) != held.as_ref()) {
        text.push_str(&format!("; newest is {newest}"));
    }
    if let Some(fetching) = &tree.fetching {
        let (came, missing) = (size(fetching.came), size(fetching.missing));
        text.push_str(&format!("; fetching {}: {came} came, {missing} to come", fetching.version));
    }
    if !tree.is_listed {
        text.push_str("; no group has it");
    }
    if tree.is_contradicted {
        text.push_str("; its writer contradicts itself");
    }
    for it in &tree.damaged {
        text.push_str(&format!("\n  damaged: {it}"));
    }
    if let Some(WatchStatus { every, problem: Some(problem), .. }) = &tree.watch {
        text.push_str(&format!("\n  looked at every {every} s, {problem}"));
    }
    if let Some(collection) = &tree.collection {
        text.push_str(&render_collection(collection));
    }
    text
}

fn render_collection(collection: &CollectionStatus) -> String {
    let CollectionStatus { reached, objects, path, url, feed, problem, unfolded, unpurged, .. } =
        collection;
    let objects = output::counted(*objects, "object");
    let reached = reached.as_deref().unwrap_or("nothing yet");
    let mut text = format!("\n  {reached}, {objects}, feed at {path}");
    if let Some(url) = url {
        text.push_str(&format!("\n  for others at {url}"));
    }
    if let Some(feed) = feed {
        text.push_str(&format!("\n  made from {feed}"));
    }
    if let Some(problem) = problem {
        text.push_str(&format!("\n  problem: {problem}"));
    }
    if let Some(FailureStatus { text: why, ago }) = unfolded {
        text.push_str(&format!("\n  its log could not be folded {ago} s ago: {why}"));
    }
    if let Some(why) = unpurged {
        text.push_str(&format!("\n  what was purged may be here yet: {why}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use replicator::status::{VersionStatus, VersionsStatus};

    use super::*;

    /// A collection with every possible problem.
    fn collection() -> TreeStatus {
        TreeStatus {
            kind: "collection".to_owned(),
            name: "t".to_owned(),
            writer: "w".to_owned(),
            held: Some("1.2".to_owned()),
            newest: Some("1.3".to_owned()),
            entries: 2,
            damaged: vec!["x".to_owned()],
            is_contradicted: true,
            watch: Some(WatchStatus {
                every: 10,
                problem: Some("no watches".to_owned()),
                unpublished: None,
            }),
            collection: Some(CollectionStatus {
                reached: Some("0f-7".to_owned()),
                objects: 5,
                url: Some("https://h/collections/t@w/".to_owned()),
                feed: Some("http://h/".to_owned()),
                problem: Some("no answer; next try in 4 s".to_owned()),
                unfolded: Some(FailureStatus { text: "no room".to_owned(), ago: 9 }),
                unpurged: Some("readers".to_owned()),
                ..CollectionStatus::default()
            }),
            ..TreeStatus::default()
        }
    }

    #[test]
    fn an_invitation_shows_its_state() {
        let rendered = |standing, used_by: Option<&str>| {
            let (id, used_by) = ("i".to_owned(), used_by.map(str::to_owned));
            let it = InvitationStatus { id, standing, left: 86_399, used_by, ..Default::default() };
            render_invitation(&it)
        };
        assert_eq!(rendered(InvitationStanding::Open, None), "  invitation i: open for 23 h");
        assert_eq!(rendered(InvitationStanding::Used, Some("b")), "  invitation i: used by b");
        let denied = rendered(InvitationStanding::Withdrawn, Some("c"));
        assert_eq!(denied, "  invitation i: used by c, withdrawn");
        assert_eq!(rendered(InvitationStanding::Withdrawn, None), "  invitation i: withdrawn");
        assert_eq!(rendered(InvitationStanding::Ended, None), "  invitation i: ended");
    }

    #[test]
    fn durations_have_fitting_units() {
        let text = [59, 60, 5_999, 6_000, 86_400, 172_800, 2_592_000].map(span);
        assert_eq!(text, ["59 s", "1 min", "99 min", "1 h", "24 h", "2 days", "30 days"]);
    }

    #[test]
    fn a_status_shows_what_an_administrator_needs() {
        let standings = |newest, behind| Standings { newest, behind, ..Standings::default() };
        let version = |tree: &str, version: Option<&str>, standing, behind| VersionStatus {
            tree: tree.to_owned(),
            version: version.map(str::to_owned),
            standing,
            behind,
        };
        let behind = MemberStatus {
            id: "b".to_owned(),
            address: "h:1".to_owned(),
            silence: 400,
            versions: VersionsStatus {
                standings: Standings { nothing: 1, ..standings(0, 1) },
                named: vec![
                    version("t@w", Some("1.1"), Standing::Behind, Some(2)),
                    version("u@w", None, Standing::Nothing, None),
                ],
                ..VersionsStatus::default()
            },
            ..MemberStatus::default()
        };
        let newest = VersionsStatus { standings: standings(2, 0), ..VersionsStatus::default() };
        let newest = MemberStatus { versions: newest, ..MemberStatus::default() };
        let listed = |tree: &str, newest: Option<&str>| ListedStatus {
            tree: tree.to_owned(),
            newest: newest.map(str::to_owned),
            standings: standings(1, 1),
        };
        let group = GroupStatus {
            name: "g".to_owned(),
            is_member: true,
            leader: Some("me".to_owned()),
            members: vec![behind, newest],
            invitations: vec![InvitationStatus { id: "i".to_owned(), ..Default::default() }],
            trees: vec![listed("t@w", Some("1.3")), listed("v@w", None)],
            ..GroupStatus::default()
        };
        let asking = GroupStatus { name: "h".to_owned(), ..GroupStatus::default() };
        let status = Status {
            id: "me".to_owned(),
            groups: vec![group, asking],
            trees: vec![collection()],
            ..Status::default()
        };
        let text = render(&status);
        for part in [
            "group g: 2 members, 0 links, led by this member",
            "t@w 1.3: 1 of 2 members, 1 behind",
            "v@w: nothing is published yet",
            "b at h:1: t@w 1.1, behind by 2; u@w nothing yet; 2 not the newest, as it was 400 s ago",
            "group h: not in it yet, asking",
            "invitation i: ended",
            "collection t of w: 1.2 (2 entries",
            "0f-7, 5 objects",
            "made from http://h/",
            "problem: no answer",
            "for others at https://h/collections/t@w/",
            "looked at every 10 s, no watches",
            "its log could not be folded 9 s ago: no room",
            "what was purged may be here yet: readers",
            "newest is 1.3",
            "no group has it",
            "its writer contradicts itself",
            "damaged: x",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
