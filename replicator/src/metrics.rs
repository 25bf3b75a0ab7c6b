//! What a member says of itself to Prometheus.
//!
//! Sans-I/O.

use daemon::metrics::Sample;

use crate::status::{CollectionStatus, GroupStatus, ListedStatus, Standings, Status, TreeStatus};

/// Returns all samples.
pub(crate) fn samples(status: &Status) -> Vec<Sample> {
    let mut samples = Vec::new();
    let notes = status.notes_total as f64;
    let help = "What an administrator may want to know, since the start.";
    samples.push(Sample::counter("harvest_replicator_notes_total", help, notes));
    samples.extend(status.ready.samples());
    for group in &status.groups {
        let gauge = |name, help, value: f64| {
            Sample::gauge(name, help, value).with("group", group.name.as_str())
        };
        let members = group.members.len() as f64;
        samples.push(gauge("harvest_replicator_members", "Members of a group.", members));
        let silent = group.members.iter().filter(|it| it.is_silent).count() as f64;
        let help = "Members of a group that nothing is heard of.";
        samples.push(gauge("harvest_replicator_members_silent", help, silent));
        let help = "How often another has begun to lead a group.";
        samples.push(gauge("harvest_replicator_epoch", help, group.epoch as f64));
        let help = "1 while this member leads a group.";
        let leads = group.leader.as_ref() == Some(&status.id);
        samples.push(gauge("harvest_replicator_leads", help, f64::from(leads)));
        let help = "Messages of a group that were forged or malformed.";
        let lies = Sample::counter("harvest_replicator_lies_total", help, group.lies as f64);
        samples.push(lies.with("group", group.name.as_str()));
        samples.extend(group.trees.iter().flat_map(|it| standings(group, it)));
    }
    for tree in &status.trees {
        let gauge = |name, help, value: f64| {
            let sample = Sample::gauge(name, help, value).with("tree", tree.name.as_str());
            sample.with("writer", tree.writer.as_str())
        };
        let help = "1 while readers see the newest version that was heard of.";
        let is_newest = tree.held.is_some() && (tree.newest.is_none() || tree.held == tree.newest);
        samples.push(gauge("harvest_replicator_tree_newest", help, f64::from(is_newest)));
        let help = "Bytes of all files that readers see.";
        samples.push(gauge("harvest_replicator_tree_bytes", help, tree.bytes as f64));
        let missing = tree.fetching.as_ref().map_or(0, |it| it.missing) as f64;
        let help = "Bytes of a newer version that are to come, as far as is known.";
        samples.push(gauge("harvest_replicator_tree_missing_bytes", help, missing));
        let damaged = tree.damaged.len() as f64;
        let help = "Files that are not as they were written.";
        samples.push(gauge("harvest_replicator_tree_damaged", help, damaged));
        if let Some(watch) = &tree.watch {
            let help = "1 while changes of a tree are heard of, and not just looked for.";
            let is_heard = f64::from(watch.problem.is_none());
            samples.push(gauge("harvest_replicator_tree_watched", help, is_heard));
        }
        samples.extend(tree.collection.iter().flat_map(|it| collection(tree, it)));
    }
    for link in &status.links {
        let labeled = |sample: Sample| sample.with("member", link.member.as_str());
        let counter = |name, help, value: u64| labeled(Sample::counter(name, help, value as f64));
        let help = "Bytes that came over the present link, without what TLS adds.";
        samples.push(counter("harvest_replicator_link_in_bytes_total", help, link.bytes_in));
        let help = "Bytes that went over the present link, without what TLS adds.";
        samples.push(counter("harvest_replicator_link_out_bytes_total", help, link.bytes_out));
        let waiting = link.waiting as f64;
        let help = "Bytes that wait to be sent.";
        samples.push(labeled(Sample::gauge(
            "harvest_replicator_link_waiting_bytes",
            help,
            waiting,
        )));
    }
    samples
}

/// How many members of a group have which version of a tree.
fn standings(group: &GroupStatus, tree: &ListedStatus) -> Vec<Sample> {
    let Standings { newest, behind, nothing, unknown } = tree.standings;
    let (name, writer) = tree.tree.split_once('@').unwrap_or((&tree.tree, ""));
    let help = "Members of a group by what they have of a tree: the newest version, an older one, \
                nothing, or what is not known.";
    let one = |(standing, count): (&'static str, u64)| {
        let sample = Sample::gauge("harvest_replicator_tree_members", help, count as f64);
        let sample = sample.with("group", group.name.as_str()).with("tree", name);
        sample.with("writer", writer).with("standing", standing)
    };
    let all = [("newest", newest), ("behind", behind), ("nothing", nothing), ("unknown", unknown)];
    all.into_iter().map(one).collect()
}

fn collection(tree: &TreeStatus, status: &CollectionStatus) -> Vec<Sample> {
    let labeled = |sample: Sample| {
        sample.with("collection", tree.name.as_str()).with("writer", tree.writer.as_str())
    };
    let gauge = |name, help, value: u64| labeled(Sample::gauge(name, help, value as f64));
    let counter = |name, help, value: u64| labeled(Sample::counter(name, help, value as f64));
    let served = &status.served;
    let help = "Objects of a collection, as far as it has come here.";
    let mut samples = vec![gauge("harvest_replicator_collection_objects", help, status.objects)];
    if status.feed.is_some() {
        let help = "1 while the feed that a collection is made from can be followed and published.";
        let is_well = u64::from(status.problem.is_none());
        samples.push(gauge("harvest_replicator_collection_followed", help, is_well));
    }
    let help = "1 while nothing is here of what was purged at the origin of a collection.";
    let is_purged = u64::from(status.unpurged.is_none());
    samples.push(gauge("harvest_replicator_collection_purged", help, is_purged));
    let help = "1 while the log of a collection can be folded here; status says why not.";
    let is_folded = u64::from(status.unfolded.is_none());
    samples.push(gauge("harvest_replicator_collection_folded", help, is_folded));
    let help = "Deltas that the feed of a collection has answered here.";
    samples.push(counter("harvest_replicator_feed_deltas_total", help, served.deltas));
    let help = "Requests that the feed of a collection has sent to a snapshot.";
    samples.push(counter("harvest_replicator_feed_redirects_total", help, served.redirects));
    let help = "Answers with a snapshot of a collection, or a part of one.";
    samples.push(counter("harvest_replicator_feed_snapshots_total", help, served.snapshots));
    let help = "Requests that the feed of a collection has refused.";
    samples.push(counter("harvest_replicator_feed_refused_total", help, served.refused));
    let help = "Bytes of all answers of the feed of a collection that were begun.";
    samples.push(counter("harvest_replicator_feed_bytes_total", help, served.bytes));
    let help = "Requests that wait for something new in a collection.";
    samples.push(gauge("harvest_replicator_feed_waiting", help, served.waiting));
    samples
}
