//! Tests of OAI-PMH repositories as roots: harvested, followed, held, resumed and forgotten.

use crate::support::archive::{Archive, PAGE};
use crate::support::{Bench, Tree};
use collection::{Change, Collection, Options, Stamp};
use gatherer::Config;
use gatherer::config::Watch;
use gatherer::progress::{Hold, RootStatus};
use gatherer::spec::{Repository, Root};
use oai::crosswalk::SourceIdentity;

fn config(tree: &Tree, archive: &Archive) -> Config {
    let mut config = Config { watch: Watch::Off, name: "Gatherer".to_owned(), ..tree.config() };
    config.roots.push(Root::Repository(Repository::new(archive.url.clone())));
    config
}

async fn start(tree: Tree, archive: &Archive) -> Bench {
    let config = config(&tree, archive);
    let bench = Bench::start_with(tree, config).await;
    harvested(&bench).await;
    bench
}

/// Waits until all due harvests have ended.
async fn harvested(bench: &Bench) {
    bench.progress(|it| it.harvests_due == 0).await;
}

fn root(bench: &Bench, archive: &Archive) -> RootStatus {
    let roots = bench.handle.status().roots;
    roots.into_iter().find(|it| it.url == archive.url.as_str()).unwrap()
}

/// Returns the OID of a record in the form of `/object`.
fn oid(archive: &Archive, number: u32) -> String {
    let id = SourceIdentity::new(archive.url.as_str()).gatherer_id;
    format!("{} {id}", Archive::object(number))
}

/// Requests a harvest, and waits until `is_over`.
async fn again(bench: &Bench, is_over: impl Fn(&gatherer::Status) -> bool) {
    let before = bench.handle.status().version;
    bench.handle.gather();
    bench.status(|it| it.version != before && is_over(it)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_gathered_and_followed() {
    let archive = Archive::start(25).await;
    let bench = start(Tree::with(&["a.txt"]), &archive).await;
    let status = bench.handle.status();
    assert_eq!(status.objects, 26, "a file and the records: {status:#?}");
    assert_eq!(status.problems.values().sum::<u64>(), 0, "{:?}", bench.handle.problems());
    let root_of_it = root(&bench, &archive);
    assert_eq!((root_of_it.files, root_of_it.hold.clone()), (25, None));
    assert!(root_of_it.confirmed.is_some());

    let record = bench.object(&oid(&archive, 7)).await.unwrap();
    let text = |name: &str| record.text(name).map(|it| it.into_owned());
    assert_eq!(record.url, Archive::object(7));
    assert_eq!(text("Title").as_deref(), Some("Item 7"));
    assert_eq!(text("Landing-Page").as_deref(), Some("https://archive.test/7"));
    assert_eq!(text("Gatherer-Root").as_deref(), Some(archive.url.as_str()));
    assert_eq!(text("Gatherer-Name").as_deref(), Some("Gatherer"));
    assert_eq!(text("Time-to-Live").as_deref(), Some("2592000"));
    assert_eq!(text("Update-Time").as_deref(), Some("1767225600"));

    // The next harvest finds changed, new and deleted records, and requests no others.
    archive.take_queries();
    archive.set(7, Some("Another title"));
    archive.set(8, None);
    archive.set(100, Some("New"));
    again(&bench, |it| it.objects == 26).await;
    bench.until_url(&oid(&archive, 8), |it| it.is_none()).await;
    let title = |it: &soif::Record| it.text("Title").is_some_and(|it| it == "Another title");
    bench.until_url(&oid(&archive, 7), |it| it.is_some_and(title)).await;
    assert!(bench.object(&oid(&archive, 100)).await.is_some());
    let lists: Vec<String> =
        archive.take_queries().into_iter().filter(|it| it.contains("ListRecords")).collect();
    assert!(lists.iter().all(|it| it.contains("from=")), "{lists:?}");
    assert_eq!(bench.handle.progress().borrow().updated, 2, "the others are as they were");
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_harvest_confirms_live_records() {
    let archive = Archive::start(3).await;
    let (tree, _) = start(Tree::new(), &archive).await.stop().await;
    let (dir, now) = (tree.data().join("collection"), Stamp(net::clock::now_ms()));
    let (collection, _) = Collection::open(&dir, Options::default(), now).unwrap();
    let id = SourceIdentity::new(archive.url.as_str()).gatherer_id;
    let confirms = collection.scan(0).unwrap().filter(|it| {
        matches!(&it.as_ref().unwrap().change, Change::Confirm { gatherer, root, .. }
            if *gatherer == id && root == archive.url.as_str())
    });
    assert_eq!(confirms.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_amid_a_harvest_is_quick_and_the_next_start_goes_on() {
    let archive = Archive::start(45).await;
    let page_4 = format!("{}", 3 * PAGE);
    archive.stall(Some(&page_4));
    let tree = Tree::new();
    let config = config(&tree, &archive);
    let bench = Bench::start_with(tree, config).await;
    archive.stalled().await;
    // Records received before the stop are published already.
    bench.status(|it| it.objects == 30).await;
    let does = root(&bench, &archive).harvest.unwrap();
    assert!(does.starts_with("asks for part 4 of the records"), "{does}");
    assert!(does.ends_with("30 records so far"), "{does}");
    let (tree, took) = bench.stop().await;
    assert!(took.as_secs() < 2, "{took:?}");
    archive.stall(None);
    let first = archive.take_queries();
    let bench = start(tree, &archive).await;
    assert_eq!(bench.handle.status().objects, 45);
    let second = archive.take_queries();
    assert!(first.last().is_some_and(|it| it.contains("resumptionToken")), "{first:?}");
    assert_eq!(first.last(), second.first(), "it goes on with the page that was not answered");
    assert_eq!(root(&bench, &archive).harvest, None, "it has ended");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_record_is_a_problem_until_it_was_read() {
    let archive = Archive::start(5).await;
    archive.repair(3, "An element <i>without its end");
    let mut bench = start(Tree::new(), &archive).await;
    assert_eq!(bench.handle.status().objects, 4);
    let is_named = |bench: &Bench| {
        let problems = bench.handle.problems();
        problems.iter().any(|it| it.kind == "quarantined" && it.object == Archive::object(3))
    };
    assert!(is_named(&bench), "{:?}", bench.handle.problems());
    // A new start, whose harvest lists no record, still knows it.
    let (tree, _) = bench.stop().await;
    bench = start(tree, &archive).await;
    assert!(is_named(&bench), "{:?}", bench.handle.problems());
    archive.repair(3, "An element with its end");
    again(&bench, |it| it.objects == 5).await;
    bench.status(|_| !is_named(&bench)).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_loss_is_held_until_it_is_confirmed() {
    let archive = Archive::start(150).await;
    let bench = start(Tree::with(&["a.txt"]), &archive).await;
    archive.lose(|number| 5 <= number);
    // With `keep_original` the same metadata give other records: everything is harvested again.
    let mut settings = config(&bench.tree, &archive);
    let mut repository = Repository::new(archive.url.clone());
    repository.oai.keep_original = true;
    settings.roots[1] = Root::Repository(repository);
    bench.handle.reload(settings).unwrap();
    let hold = Some(Hold::Lost { lost: 145, of: 150 });
    bench.status(|it| it.roots.iter().any(|it| it.hold == hold)).await;
    assert_eq!(bench.handle.status().objects, 151, "nothing is deleted");
    assert_eq!(root(&bench, &archive).held, 145);
    let (_, text) = bench.get_admin("problems").await;
    assert!(text.contains("145 of 150 records are gone"), "{text}");

    let (status, text) = bench.post(&format!("confirm?root={}", archive.url)).await;
    assert_eq!(status, 202, "{text}");
    harvested(&bench).await;
    assert_eq!(bench.handle.status().objects, 6);
    assert_eq!(root(&bench, &archive).hold, None);
    let record = bench.object(&oid(&archive, 0)).await.unwrap();
    assert!(record.text("Original-Metadata").unwrap().contains("<dc:title>Item 0</dc:title>"));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_fails_is_reported_and_delays_nothing() {
    let archive = Archive::start(5).await;
    archive.fail(Some(404));
    let bench = start(Tree::with(&["a.txt"]), &archive).await;
    assert_eq!(bench.handle.status().objects, 1, "the tree is gathered all the same");
    let problem = bench.handle.problems().into_iter().find(|it| it.kind == "harvest").unwrap();
    assert_eq!(problem.object, archive.url.as_str());
    assert!(problem.message.contains("404"), "{}", problem.message);
    assert_eq!(root(&bench, &archive).confirmed, None);
    // When it works again, the problem is removed from the list.
    archive.fail(None);
    again(&bench, |it| it.objects == 6).await;
    bench.status(|it| it.roots.iter().all(|it| it.confirmed.is_some())).await;
    // The list follows the status.
    bench.status(|_| bench.handle.problems().iter().all(|it| it.kind != "harvest")).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_is_no_longer_a_root_is_forgotten() {
    let (small, large) = (Archive::start(5).await, Archive::start(120).await);
    let tree = Tree::with(&["a.txt"]);
    let mut settings = config(&tree, &small);
    settings.roots.insert(0, Root::Repository(Repository::new(large.url.clone())));
    let urls: Vec<String> = settings.roots.iter().map(Root::url).collect();
    let bench = Bench::start_with(tree, settings).await;
    harvested(&bench).await;
    let status = bench.handle.status();
    assert_eq!(status.objects, 126);
    let shown: Vec<String> = status.roots.into_iter().map(|it| it.url).collect();
    assert_eq!(shown, urls, "in the order of the settings");
    let mut settings = config(&bench.tree, &small);
    settings.roots.truncate(1);
    bench.handle.reload(settings).unwrap();
    let is_held = |it: &RootStatus| it.hold == Some(Hold::Removed) && it.held == 120;
    bench.status(|it| it.objects == 121 && it.roots.iter().any(is_held)).await;
    assert_eq!(bench.handle.confirm(None), [large.url.as_str()]);
    bench.status(|it| it.objects == 1 && it.roots.len() == 1).await;
    bench.stop().await;
}

/// Requests harvests until there are so many objects: a repository does not list changes of the
/// present second.
async fn until_objects(bench: &Bench, count: u64) {
    let tick = std::cell::Cell::new(0_u32);
    bench
        .status(|it| {
            tick.set(tick.get() + 1);
            if tick.get().is_multiple_of(20) {
                bench.handle.gather();
            }
            it.objects == count
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gatherer_is_a_root_of_another() {
    let origin = Bench::start(Tree::with(&["a.txt", "b.txt"])).await;
    let tree = Tree::with(&["own.txt"]);
    let base = origin.public.join("oai").unwrap();
    let mut soif = Repository::new(base);
    soif.oai.prefixes = vec!["soif".to_owned()];
    let mut settings = Config { watch: Watch::Off, ..tree.config() };
    settings.roots.push(Root::Repository(soif));
    let bench = Bench::start_with(tree, settings).await;
    until_objects(&bench, 3).await;
    // The object has the same record as at its origin, except for two attributes.
    let url = gatherer::spec::file_url(&origin.tree.path("a.txt"));
    let there = origin.object(&url).await.unwrap();
    let mut here = bench.object(&format!("{url} {}", origin.handle.id())).await.unwrap();
    assert_eq!(here.remove("Origin-Version"), 1);
    let mut expected = there.clone();
    // This gatherer does not confirm the record, which lives until the repository deletes it.
    expected.set("Time-to-Live", (100 * 365 * 86_400_u64).to_string());
    assert_eq!(here, expected);

    std::fs::remove_file(origin.tree.path("a.txt")).unwrap();
    origin.until("a.txt", false).await;
    until_objects(&bench, 2).await;
    assert!(bench.object(&format!("{url} {}", origin.handle.id())).await.is_none());
    assert!(bench.file("own.txt").await.text("Title").is_some());
    bench.stop().await;
    origin.stop().await;
}
