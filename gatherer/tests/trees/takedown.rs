//! Tests of takedowns at a gatherer: lifted objects are gathered again.

use crate::support::{Bench, Tree};
use collection::{Author, Collection, Options, SUPPRESSED_FILE, Stamp, Subject};
use gatherer::spec;
use net::clock;
use net::identity::Identity;

#[tokio::test(flavor = "multi_thread")]
async fn objects_lifted_while_it_does_not_run_are_gathered_again() {
    let tree = Tree::with(&["a.txt", "b.txt"]);
    for name in ["a.txt", "b.txt"] {
        tree.date(name, 1_000_000_000);
    }
    let bench = Bench::start(tree).await;
    let url = spec::file_url(&bench.tree.root().join("a.txt"));
    let subject = Subject::parse(&url).unwrap();
    let id = bench.handle.id().to_owned();
    let done = bench.handle.suppress(subject.clone(), "by mistake".to_owned()).await.unwrap();
    assert_eq!(done.objects, 1);
    assert!(done.notice.is_of_signer(), "the id is made of the key");
    let (tree, _) = bench.stop().await;
    let bench = Bench::start(tree).await;
    assert_eq!(bench.handle.status().objects, 1);

    let (tree, _) = bench.stop().await;
    let data = tree.data();
    let options = Options { suppressed: Some(data.join(SUPPRESSED_FILE)), ..Options::default() };
    let now = Stamp(clock::now_ms());
    let (collection, _) = Collection::open(&data.join("collection"), options, now).unwrap();
    let author = Author { id, identity: Identity::load_or_create(&data).unwrap() };
    collection.lift(&author, subject, now).unwrap();
    drop(collection);
    let bench = Bench::start(tree).await;
    assert_eq!(bench.handle.status().objects, 2);
    assert!(bench.object(&url).await.is_some());
    // The lift is followed up only once.
    let (tree, _) = bench.stop().await;
    let bench = Bench::start(tree).await;
    assert_eq!((bench.handle.status().objects, bench.read()), (2, 0));
}
