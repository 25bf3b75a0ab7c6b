//! The overview on the gatherer's admin pages, in words.
//!
//! Sans-I/O.

use daemon::overview::{Overview, PROBLEMS_MAX, Problem, Trouble};
use web::templates::grouped;

use crate::problems::{Entry, HARVEST_PROBLEM, ROOT_PROBLEM};
use crate::progress::{CrawlStatus, Hold, Phase, RootStatus, Status};

/// Links to the other routes of the admin listener.
const LINKS: &[(&str, &str)] =
    &[("status", "Status"), ("problems", "Problems"), ("metrics", "Metrics")];

/// Maximum number of hosts, and of traps, that are named of a crawl.
const NAMED_MAX: usize = 5;

/// Returns the overview: faults, the public facts `about` the gatherer, and the newest problems.
pub(super) fn overview(
    status: &Status,
    about: Vec<(&'static str, String)>,
    problems: Vec<Entry>,
) -> Overview {
    let held = status.roots.iter().filter_map(held);
    let fences = status.fences_missing.iter();
    let fences = fences
        .map(|it| Trouble::new("fences", format!("objects are read without one of them: {it}")));
    let is_root = |it: &&Entry| it.kind == HARVEST_PROBLEM || it.kind == ROOT_PROBLEM;
    let is_held =
        |it: &&Entry| status.roots.iter().any(|root| root.url == it.object && root.hold.is_some());
    let failing = problems.iter().filter(|it| is_root(it) && !is_held(it));
    let failing: Vec<Trouble> =
        failing.map(|it| Trouble::new(it.object.clone(), it.message.clone())).collect();
    let problem = |it: Entry| Problem { object: it.object, message: it.message };
    Overview {
        kind: "Gatherer",
        id: status.id.clone(),
        troubles: Trouble::of(&status.ready)
            .chain(status.listening.troubles())
            .chain(held)
            .chain(failing)
            .chain(fences)
            .collect(),
        now: now(status),
        facts: vec![
            ("Objects", grouped(status.objects)),
            ("Roots", grouped(status.roots.len() as u64)),
            ("Passes since the start", grouped(status.progress.passes_done)),
            ("Subscriptions", grouped(status.push.subscriptions)),
        ],
        problems: problems.into_iter().take(PROBLEMS_MAX).map(problem).collect(),
        problems_total: status.progress.problems,
        about,
        links: LINKS.to_vec(),
    }
}

fn held(root: &RootStatus) -> Option<Trouble> {
    let why = match root.hold.as_ref()? {
        Hold::Missing => "it is not there",
        Hold::Empty => "nothing is in it",
        Hold::OtherDevice => "it is on another device than before",
        Hold::Alike { .. } => "many of its pages have become one page",
        Hold::Lost { .. } => "much of it is gone at once",
        Hold::Removed => "it is no longer in the settings",
    };
    let (loss, act) = match root.hold {
        Some(Hold::Alike { .. }) => ("lose their records", "that"),
        _ => ("be deleted", "the deletion"),
    };
    let what = format!(
        "{why}; {} would {loss}: they are kept until an administrator confirms {act}",
        objects(root.held),
    );
    let command = format!("harvest gatherer confirm --root {}", root.url);
    Some(Trouble::new(root.url.clone(), what).with_command(command))
}

fn objects(count: u64) -> String {
    format!("{} {}", grouped(count), if count == 1 { "object" } else { "objects" })
}

fn now(status: &Status) -> Vec<String> {
    let progress = &status.progress;
    let (total, is_open) = progress.files_total();
    let least = if is_open { "at least " } else { "" };
    let files = format!("{} of {least}{} files", grouped(progress.files_done), grouped(total));
    let does = match progress.phase {
        Phase::Starting => "It is starting.".to_owned(),
        Phase::Walking => format!("Roots are walked: {files} are done."),
        Phase::Gathering => format!("Files are read: {files} are done."),
        Phase::Idle => "Everything is up to date.".to_owned(),
        Phase::Stopped => "It has stopped.".to_owned(),
    };
    let mut now = vec![does, format!("Changes are noticed by: {}.", status.watch)];
    if 0 < progress.harvests_due {
        now.push(format!("Harvests of repositories to come: {}.", grouped(progress.harvests_due)));
    }
    let harvests = status.roots.iter().filter_map(|it| Some((&it.url, it.harvest.as_ref()?)));
    now.extend(harvests.map(|(url, harvest)| format!("The harvest of {url} {harvest}.")));
    let crawls = status.roots.iter().filter_map(|it| Some((&it.url, it.crawl.as_ref()?)));
    now.extend(crawls.flat_map(|(url, crawl)| sentences(url, crawl)));
    now
}

/// Returns what a crawl is about: its queue, the hosts with most pages that wait, the slowest, and the traps.
fn sentences(url: &str, crawl: &CrawlStatus) -> Vec<String> {
    let number = |it: usize| grouped(it as u64);
    let mut all = vec![format!(
        "{url}: {} answered, {} wait, {} failed, {} kept out by robots.txt.",
        number(crawl.done),
        number(crawl.waiting),
        number(crawl.failed),
        number(crawl.refused),
    )];
    all.extend(crawl.hosts.iter().take(NAMED_MAX).map(|it| {
        let why = it.why.as_ref().map(|it| format!("; not asked now: {it}"));
        format!("{}: {} wait{}.", it.host, number(it.waiting), why.unwrap_or_default())
    }));
    let slowest = crawl.hosts.iter().filter_map(|it| Some((it.answer_ms?, &it.host))).max();
    all.extend(slowest.map(|(ms, host)| format!("Slowest: {host}, {} ms an answer.", grouped(ms))));
    all.extend(crawl.traps.iter().take(NAMED_MAX).map(|it| format!("Left out: {it}.")));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::HostStatus;

    #[test]
    fn a_crawl_is_told_by_its_queue_its_hosts_and_its_traps() {
        let host = |name: &str, waiting, answer_ms, why: Option<&str>| HostStatus {
            host: name.to_owned(),
            waiting,
            answer_ms,
            why: why.map(str::to_owned),
        };
        let paused = Some("an administrator paused the host");
        let crawl = CrawlStatus {
            waiting: 1_200,
            done: 30,
            failed: 2,
            refused: 1,
            hosts: vec![
                host("http://a", 1_100, Some(20), None),
                host("http://b", 100, Some(900), paused),
            ],
            traps: vec!["http://a/cal/…: a calendar without end".to_owned()],
        };
        let expected = [
            "http://a/: 30 answered, 1,200 wait, 2 failed, 1 kept out by robots.txt.",
            "http://a: 1,100 wait.",
            "http://b: 100 wait; not asked now: an administrator paused the host.",
            "Slowest: http://b, 900 ms an answer.",
            "Left out: http://a/cal/…: a calendar without end.",
        ];
        assert_eq!(sentences("http://a/", &crawl), expected);
    }
}
