//! Prometheus metrics of a member.
//!
//! Sans-I/O.

use daemon::metrics::Sample;

use crate::status::{CollectionStatus, GroupStatus, ListedStatus, Standings, Status, TreeStatus};

pub(crate) fn samples(status: &Status) -> Vec<Sample> {
    let mut samples = Vec::new();
    let notes = status.notes_total as f64;
    let help = "Notes for the administrator, since the start.";
    samples.push(Sample::counter("harvest_replicator_notes_total", help, notes));
    samples.extend(status.ready.samples());
    for group in &status.groups {
        let gauge = |name, help, value: f64| {
            Sample::gauge(name, help, value).with("group", group.name.as_str())
        };
        let members = group.members.len() as f64;
        samples.push(gauge("harvest_replicator_members", "Members of a group.", members));
        let silent = group.members.iter().filter(|it| it.is_silent).count() as f64;
        let help = "Silent members of a group.";
        samples.push(gauge("harvest_replicator_members_silent", help, silent));
        let help = "Number of changes of a group's leader.";
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
        let help = "1 while readers see the newest known version.";
        let is_newest = tree.held.is_some() && (tree.newest.is_none() || tree.held == tree.newest);
        samples.push(gauge("harvest_replicator_tree_newest", help, f64::from(is_newest)));
        let help = "Bytes of all files that readers see.";
        samples.push(gauge("harvest_replicator_tree_bytes", help, tree.bytes as f64));
        let missing = tree.fetching.as_ref().map_or(0, |it| it.missing) as f64;
        let help = "Bytes of a newer version that are missing, as far as known.";
        samples.push(gauge("harvest_replicator_tree_missing_bytes", help, missing));
        let damaged = tree.damaged.len() as f64;
        let help = "Damaged files.";
        samples.push(gauge("harvest_replicator_tree_damaged", help, damaged));
        if let Some(watch) = &tree.watch {
            let help = "1 while a tree is watched by events, and not only by regular walks.";
            let is_heard = f64::from(watch.problem.is_none());
            samples.push(gauge("harvest_replicator_tree_watched", help, is_heard));
        }
        samples.extend(tree.collection.iter().flat_map(|it| collection(tree, it)));
    }
    for link in &status.links {
        let labeled = |sample: Sample| sample.with("member", link.member.as_str());
        let counter = |name, help, value: u64| labeled(Sample::counter(name, help, value as f64));
        let help = "Bytes received over the present link, without those of TLS.";
        samples.push(counter("harvest_replicator_link_in_bytes_total", help, link.bytes_in));
        let help = "Bytes sent over the present link, without those of TLS.";
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

/// Returns the numbers of a group's members with the newest version of a tree, an older one, ….
fn standings(group: &GroupStatus, tree: &ListedStatus) -> Vec<Sample> {
    let Standings { newest, behind, nothing, unknown } = tree.standings;
    let (name, writer) = tree.tree.split_once('@').unwrap_or((&tree.tree, ""));
    let help = "Members of a group by their version of a tree: the newest, an older one, none, or \
                an unknown one.";
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
    let help = "1 while no data is here that was purged at the origin of a collection.";
    let is_purged = u64::from(status.unpurged.is_none());
    samples.push(gauge("harvest_replicator_collection_purged", help, is_purged));
    let help = "1 while the log of a collection can be folded here; the status tells why not.";
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
