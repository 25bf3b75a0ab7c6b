//! Tests of symbolic links that are gathered as such.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Bench, Tree, settings_of};
use gatherer::spec::Symlinks;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_has_a_record_with_its_target() {
    let tree = Tree::with(&["papers/one.txt", "two.txt"]);
    symlink("papers/one.txt", tree.path("newest.txt")).unwrap();
    symlink("papers", tree.path("all")).unwrap();
    symlink("/etc/hostname", tree.path("out")).unwrap();
    let mut config = tree.config();
    settings_of(&mut config).symlinks = Symlinks::Record;
    let bench = Bench::start_with(tree, config).await;
    let record = bench.file("newest.txt").await;
    assert_eq!(record.text("Type").as_deref(), Some("SymbolicLink"));
    assert_eq!(record.text("Title").as_deref(), Some("newest.txt"));
    assert_eq!(record.text("Link-Target").as_deref(), Some("papers/one.txt"));
    let one = bench.file("papers/one.txt").await;
    assert_eq!(record.text("URL-References").as_deref(), Some(one.url.as_str()));
    assert_eq!(bench.file("all").await.text("Link-Target").as_deref(), Some("papers"));
    bench.until("out", false).await;
    assert_eq!(bench.handle.status().objects, 4);

    // What the watch tells of the beginning may be read once more, but not at every pass.
    let mut passes = 0;
    loop {
        let read = bench.read();
        bench.gather().await;
        if bench.read() == read {
            break;
        }
        passes += 1;
        assert!(passes < 20, "what has not changed is read at every pass");
    }

    // Another link replaces the link, and then a file.
    fs::remove_file(bench.tree.path("newest.txt")).unwrap();
    symlink("two.txt", bench.tree.path("newest.txt")).unwrap();
    bench.until_text("newest.txt", "two").await;
    fs::remove_file(bench.tree.path("newest.txt")).unwrap();
    bench.tree.write("newest.txt", "words");
    bench.until_text("newest.txt", "words").await;
    assert_eq!(bench.file("newest.txt").await.text("Type").as_deref(), Some("Text"));
    bench.assert_conserved();
}
