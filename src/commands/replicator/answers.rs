//! What a replicator answers, in words.

use replicator::node::{
    CollectionStatus, FailureStatus, GroupStatus, Published, Report, Status, TreeStatus,
    WatchStatus,
};

use crate::output;

/// What came of publishing.
pub(super) fn said(published: &Published) -> String {
    let Published { tree, version, is_changed, entries, bytes, .. } = published;
    let size = web::templates::size(*bytes);
    let mut lines = vec![match is_changed {
        true => format!("{tree} {version}: {}, {size}", output::counted(*entries, "entry")),
        false => format!("{tree} {version}: nothing has changed"),
    }];
    if !published.is_listed {
        lines.push("no group has the tree yet; it goes out as soon as one has".to_owned());
    }
    if 0 < published.left_out_total {
        lines.push(format!("left out, {} in all:", published.left_out_total));
        lines.extend(published.left_out.iter().map(|it| format!("  {it}")));
    }
    lines.join("\n")
}

/// What was found of trees that were read.
pub(super) fn verified(reports: &[Report]) -> String {
    let mut lines = Vec::new();
    for it in reports {
        let (entries, size) =
            (output::counted(it.entries, "entry"), web::templates::size(it.bytes));
        let damaged = match it.damaged_total {
            0 => "as they were written".to_owned(),
            count => format!("{count} damaged"),
        };
        lines.push(format!("{} of {}: {entries}, {size}, {damaged}", it.tree, it.writer));
        lines.extend(it.damaged.iter().map(|it| format!("  {it}")));
    }
    lines.join("\n")
}

/// What a member says of itself.
pub(super) fn render(status: &Status) -> String {
    let Status { id, address, site, software, .. } = status;
    let mut lines = vec![format!("{id} at {address} in {site}, harvest {software}")];
    for group in &status.groups {
        lines.push(render_group(status, group));
    }
    lines.extend(status.trees.iter().map(render_tree));
    for link in &status.links {
        let (came, went) =
            (web::templates::size(link.bytes_in), web::templates::size(link.bytes_out));
        lines.push(format!(
            "link to {} at {}: {came} received, {went} sent",
            link.member, link.address
        ));
    }
    for note in status.notes.iter().take(10) {
        let times =
            if note.count == 1 { String::new() } else { format!(" ({} times)", note.count) };
        lines.push(format!("note: {}{times}", note.text));
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
    format!("group {name}: {members}{silent}, {links}, {leader}, {charter}")
}

fn render_tree(tree: &TreeStatus) -> String {
    let TreeStatus { name, writer, held, newest, .. } = tree;
    let of = if tree.is_mine { "of this member".to_owned() } else { format!("of {writer}") };
    let held_said = held.as_deref().map_or_else(
        || "none yet".to_owned(),
        |it| {
            let (entries, size) =
                (output::counted(tree.entries, "entry"), web::templates::size(tree.bytes));
            format!("{it} ({entries}, {size}) at {}", tree.path)
        },
    );
    let kind = &tree.kind;
    let mut said = format!("{kind} {name} {of}: {held_said}");
    if let Some(newest) = newest.as_ref().filter(|it| Some(*it) != held.as_ref()) {
        said.push_str(&format!("; newest is {newest}"));
    }
    if let Some(fetching) = &tree.fetching {
        let (came, missing) =
            (web::templates::size(fetching.came), web::templates::size(fetching.missing));
        said.push_str(&format!("; fetching {}: {came} came, {missing} to come", fetching.version));
    }
    if tree.is_contradicted {
        said.push_str("; its writer contradicts itself");
    }
    for it in &tree.damaged {
        said.push_str(&format!("\n  damaged: {it}"));
    }
    if let Some(WatchStatus { every, problem: Some(problem) }) = &tree.watch {
        said.push_str(&format!("\n  looked at every {every} s, {problem}"));
    }
    if let Some(collection) = &tree.collection {
        said.push_str(&render_collection(collection));
    }
    said
}

fn render_collection(collection: &CollectionStatus) -> String {
    let CollectionStatus { reached, objects, path, url, feed, problem, unfolded, unpurged, .. } =
        collection;
    let objects = output::counted(*objects, "object");
    let reached = reached.as_deref().unwrap_or("nothing yet");
    let mut said = format!("\n  {reached}, {objects}, feed at {path}");
    if let Some(url) = url {
        said.push_str(&format!("\n  for others at {url}"));
    }
    if let Some(feed) = feed {
        said.push_str(&format!("\n  made from {feed}"));
    }
    if let Some(problem) = problem {
        said.push_str(&format!("\n  problem: {problem}"));
    }
    if let Some(FailureStatus { text, ago }) = unfolded {
        said.push_str(&format!("\n  its log could not be folded {ago} s ago: {text}"));
    }
    if let Some(why) = unpurged {
        said.push_str(&format!("\n  what was purged may be here yet: {why}"));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_what_an_admin_must_know() {
        let group = GroupStatus {
            name: "g".to_owned(),
            is_member: true,
            leader: Some("me".to_owned()),
            ..GroupStatus::default()
        };
        let asking = GroupStatus { name: "h".to_owned(), ..GroupStatus::default() };
        let tree = TreeStatus {
            kind: "collection".to_owned(),
            name: "t".to_owned(),
            writer: "w".to_owned(),
            held: Some("1.2".to_owned()),
            newest: Some("1.3".to_owned()),
            entries: 2,
            damaged: vec!["x".to_owned()],
            is_contradicted: true,
            watch: Some(WatchStatus { every: 10, problem: Some("no watches".to_owned()) }),
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
        };
        let status = Status {
            id: "me".to_owned(),
            groups: vec![group, asking],
            trees: vec![tree],
            ..Status::default()
        };
        let text = render(&status);
        for part in [
            "group g: 0 members, 0 links, led by this member",
            "group h: not in it yet, asking",
            "collection t of w: 1.2 (2 entries",
            "0f-7, 5 objects",
            "made from http://h/",
            "problem: no answer",
            "for others at https://h/collections/t@w/",
            "looked at every 10 s, no watches",
            "its log could not be folded 9 s ago: no room",
            "what was purged may be here yet: readers",
            "newest is 1.3",
            "its writer contradicts itself",
            "damaged: x",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
