//! Tests of sites and repositories behind each of the recorded walls: no record is lost or gained,
//! and no rule is forgotten.

#[path = "../../../crawl/src/walls/recorded.rs"]
mod recorded;

use std::collections::BTreeMap;

use gatherer::Config;
use gatherer::config::Watch;
use gatherer::problems::Entry;
use gatherer::spec::{Repository, Root};
use oai::crosswalk::SourceIdentity;
use recorded::Recorded;
use soif::Record;

use crate::support::archive::Archive;
use crate::support::site::{Site, again, start, start_with};
use crate::support::{Bench, Tree};

/// Returns the walls, each with the beginning of the message that names it.
fn walls() -> Vec<(String, Recorded)> {
    let named = |it: Recorded| Some((it.named.clone()?, it));
    let walls: Vec<(String, Recorded)> = recorded::all().into_iter().filter_map(named).collect();
    assert!(12 <= walls.len());
    walls
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_behind_any_wall_loses_no_record_and_keeps_its_rules() {
    let pages = [("/", "<a href=a>a</a> <a href=private>p</a>"), ("/a", "A"), ("/private", "P")];
    let site = Site::start(&pages).await;
    let rules = "User-agent: *\nDisallow: /private\n";
    site.answer("/robots.txt", 200, &[("content-type", "text/plain")], rules);
    let bench = start(&site).await;
    let before = [bench.object(&site.at("/")).await, bench.object(&site.at("/a")).await];
    assert_eq!(bench.handle.status().objects, 2);
    // No page has any grace: a second pass in a row would delete what seems to be gone.
    for (named, wall) in walls() {
        site.answer_all(wall.status, &wall.fields, wall.body);
        again(&bench).await;
        assert_eq!(bench.handle.status().objects, 2, "{named}");
        let problems = bench.handle.problems();
        let is_named = |it: &Entry| it.kind == "wall" && it.message.contains(&named);
        assert!(problems.iter().any(is_named), "{named}: {problems:?}");
    }
    site.take_asked();
    // In place of robots.txt, too: nothing else is asked for.
    for (named, wall) in walls() {
        site.answer("/robots.txt", wall.status, &wall.fields, wall.body);
        again(&bench).await;
        assert_eq!(bench.handle.status().objects, 2, "{named}");
        let asked = site.take_asked();
        assert!(asked.iter().all(|it| it.0 == "/robots.txt"), "{named}: {asked:?}");
    }
    let after = [bench.object(&site.at("/")).await, bench.object(&site.at("/a")).await];
    assert_eq!(before, after);
    bench.assert_conserved();
    bench.stop().await;
}

/// Returns the records of an archive by the number of their object.
async fn records(bench: &Bench, archive: &Archive, count: u32) -> BTreeMap<u32, Option<Record>> {
    let id = SourceIdentity::new(archive.url.as_str()).gatherer_id;
    let mut records = BTreeMap::new();
    for number in 0..count {
        let oid = format!("{} {id}", Archive::object(number));
        records.insert(number, bench.object(&oid).await);
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_behind_any_wall_loses_no_record_and_gains_none() {
    const COUNT: u32 = 5;
    let archive = Archive::start(COUNT).await;
    let tree = Tree::new();
    let roots = vec![Root::Repository(Repository::new(archive.url.clone()))];
    let settings = Config { watch: Watch::Off, roots, ..tree.config() };
    let bench = start_with(tree, settings).await;
    let before = records(&bench, &archive, COUNT).await;
    assert!(before.values().all(Option::is_some), "{:#?}", bench.handle.problems());
    let failed = |bench: &Bench| {
        let problems = bench.handle.problems();
        problems.into_iter().find(|it| it.kind == "harvest").map(|it| it.message)
    };
    for (named, wall) in walls() {
        archive.answer_all(Some((wall.status, wall.fields, wall.body)));
        bench.handle.gather();
        bench.status(|_| failed(&bench).is_some_and(|it| it.contains(&named))).await;
        assert_eq!(bench.handle.status().objects, u64::from(COUNT), "{named}");
        // Once the wall is gone, the harvest goes on, and the problem goes.
        archive.answer_all(None);
        bench.handle.gather();
        bench.status(|_| failed(&bench).is_none()).await;
        assert_eq!(records(&bench, &archive, COUNT).await, before, "{named}");
    }
    assert_eq!(bench.handle.status().objects, u64::from(COUNT));
    bench.stop().await;
}
