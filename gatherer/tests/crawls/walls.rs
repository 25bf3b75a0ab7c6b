//! Tests of sites behind each of the recorded walls: no record is lost, no rule is forgotten.

#[path = "../../../crawl/src/walls/recorded.rs"]
mod recorded;

use crawl::walls::{Kind, Vendor};
use recorded::ROWS;

use crate::support::site::{Site, again, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_site_behind_any_wall_loses_no_record_and_keeps_its_rules() {
    let pages = [("/", "<a href=a>a</a> <a href=private>p</a>"), ("/a", "A"), ("/private", "P")];
    let site = Site::start(&pages).await;
    let rules = "User-agent: *\nDisallow: /private\n";
    site.answer("/robots.txt", 200, &[("content-type", "text/plain")], rules);
    let bench = start(&site).await;
    assert_eq!(bench.handle.status().objects, 2);
    let walls =
        ROWS.iter().filter_map(|(status, field, body, wall)| Some((status, field, body, (*wall)?)));
    let walls: Vec<(&u16, _, _, (Vendor, Kind))> = walls.collect();
    assert!(12 <= walls.len());
    // No page has any grace: a second pass in a row would delete what seems to be gone.
    for (status, field, body, wall) in &walls {
        site.answer_all(**status, &[**field], body);
        again(&bench).await;
        assert_eq!(bench.handle.status().objects, 2, "{wall:?}");
        let problems = bench.handle.problems();
        let is_named = |it: &gatherer::problems::Entry| {
            it.kind == "wall" && it.message.contains(wall.0.name())
        };
        assert!(problems.iter().any(is_named), "{wall:?}: {problems:?}");
    }
    site.take_asked();
    // In place of robots.txt, too: nothing else is asked for.
    for (status, field, body, wall) in &walls {
        site.answer("/robots.txt", **status, &[**field], body);
        again(&bench).await;
        assert_eq!(bench.handle.status().objects, 2, "{wall:?}");
        let asked = site.take_asked();
        assert!(asked.iter().all(|it| it.0 == "/robots.txt"), "{wall:?}: {asked:?}");
    }
    bench.assert_conserved();
    bench.stop().await;
}
