//! What a member says of itself to Prometheus.
//!
//! Sans-I/O.

use web::metrics::Sample;

use crate::node::Status;

/// Returns all samples.
pub(crate) fn samples(status: &Status) -> Vec<Sample> {
    let mut samples = Vec::new();
    let notes = status.notes_total as f64;
    let help = "What an administrator may want to know, since the start.";
    samples.push(Sample::counter("harvest_replicator_notes_total", help, notes));
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
    }
    for tree in &status.trees {
        let gauge = |name, help, value: f64| {
            let sample = Sample::gauge(name, help, value).with("tree", tree.name.as_str());
            sample.with("writer", tree.writer.as_str())
        };
        let help = "1 while readers see the newest version that was heard of.";
        let is_newest = tree.held.is_some() && tree.held >= tree.newest;
        samples.push(gauge("harvest_replicator_tree_newest", help, f64::from(is_newest)));
        let help = "Bytes of all files that readers see.";
        samples.push(gauge("harvest_replicator_tree_bytes", help, tree.bytes as f64));
        let missing = tree.fetching.as_ref().map_or(0, |it| it.missing) as f64;
        let help = "Bytes of a newer version that are to come, as far as is known.";
        samples.push(gauge("harvest_replicator_tree_missing_bytes", help, missing));
        let damaged = tree.damaged.len() as f64;
        let help = "Files that are not as they were written.";
        samples.push(gauge("harvest_replicator_tree_damaged", help, damaged));
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
