//! The overview of a member, as sentences for its page.
//!
//! Sans-I/O.

use daemon::ListenerStatus;
use daemon::overview::{Overview, Trouble};
use web::templates::grouped;

use crate::status::{Status, TreeStatus};

/// Pages of the administration besides the overview.
const LINKS: &[(&str, &str)] =
    &[("status", "Status"), ("topology.svg", "Topology"), ("metrics", "Metrics")];

pub(crate) fn overview(status: &Status, listening: &ListenerStatus) -> Overview {
    let listed = || status.trees.iter().filter(|it| it.is_listed);
    let collections = listed().filter(|it| it.collection.is_some()).count();
    let count = |it: usize| grouped(it as u64);
    Overview {
        kind: "Replicator",
        id: status.id.clone(),
        troubles: Trouble::of(&status.ready)
            .chain(listening.troubles())
            .chain(status.trees.iter().filter_map(damaged))
            .collect(),
        now: listed().filter_map(fetching).collect(),
        facts: vec![
            ("Groups", count(status.groups.iter().filter(|it| it.is_member).count())),
            ("Trees", count(listed().count() - collections)),
            ("Collections", count(collections)),
            ("Links that are up", count(status.links.len())),
        ],
        problems: Vec::new(),
        problems_total: 0,
        about: status.facts.lines(),
        links: LINKS.to_vec(),
    }
}

fn damaged(tree: &TreeStatus) -> Option<Trouble> {
    let first = tree.damaged.first()?;
    let what = format!(
        "{} of its files are damaged, the first is {first}; they are fetched again",
        grouped(tree.damaged.len() as u64)
    );
    let command = format!("harvest replicator verify {}@{}", tree.name, tree.writer);
    Some(Trouble::new(tree.name.clone(), what).with_command(command))
}

fn fetching(tree: &TreeStatus) -> Option<String> {
    let it = tree.fetching.as_ref()?;
    Some(format!("Version {} of {} is fetched.", it.version, tree.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::FetchStatus;

    #[test]
    fn damaged_and_fetched_trees_are_named() {
        let fetching = FetchStatus { version: "7".to_owned(), ..FetchStatus::default() };
        let tree = TreeStatus {
            name: "papers".to_owned(),
            writer: "0".repeat(16),
            is_listed: true,
            damaged: vec!["a/b".to_owned()],
            fetching: Some(fetching),
            ..TreeStatus::default()
        };
        let status = Status { trees: vec![tree], ..Status::default() };
        let shown = overview(&status, &ListenerStatus::default());
        let about: Vec<&str> = shown.troubles.iter().map(|it| it.about.as_str()).collect();
        assert_eq!(about, ["papers"]);
        assert!(shown.troubles[0].what.contains("a/b"));
        assert_eq!(shown.now, ["Version 7 of papers is fetched."]);
        assert_eq!(shown.facts[1], ("Trees", "1".to_owned()));
    }
}
