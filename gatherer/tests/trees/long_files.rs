//! Tests of files that are longer than `read_max`: what a format needs of their rest is read.

use std::fs;

use crate::made::zip;
use crate::support::{Bench, Tree};
use gatherer::Config;
use gatherer::spec;

/// Limit of the tests on what is read of one file, in bytes.
const READ_BYTES_MAX: u64 = 4_096;

/// Returns a zip whose last member is far behind the limit.
fn long_zip(name: &str, words: &str) -> Vec<u8> {
    zip(&[("filler", &[0x90; 300_000]), (name, words.as_bytes())])
}

fn document(words: &str) -> Vec<u8> {
    let text = format!("<w:document><w:body><w:p><w:t>{words}</w:t></w:p></w:body></w:document>");
    long_zip("word/document.xml", &text)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_at_the_end_of_a_long_file_is_read() {
    let tree = Tree::with(&["a.txt"]);
    fs::write(tree.path("words.zip"), long_zip("b.txt", "one two three")).unwrap();
    fs::write(tree.path("words.docx"), document("four five six")).unwrap();
    for name in ["words.zip", "words.docx"] {
        tree.date(name, 1_000_000);
    }
    let config = Config { read_bytes_max: READ_BYTES_MAX, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    assert_eq!(bench.problems(), Vec::<String>::new());
    let archive = bench.file("words.zip").await;
    assert_eq!(archive.text("Members").as_deref(), Some("2"));
    assert!(archive.number("File-Size").unwrap() > 300_000 && archive.get("MD5").is_none());
    let member = format!("{}#b.txt", spec::file_url(&bench.tree.path("words.zip")));
    let text = |record: &soif::Record| record.text("Partial-Text").unwrap_or_default().into_owned();
    assert_eq!(text(&bench.object(&member).await.unwrap()), "one two three");
    assert_eq!(text(&bench.file("words.docx").await), "four five six");

    // Neither the size nor the front changes.
    fs::write(bench.tree.path("words.zip"), long_zip("b.txt", "one two seven")).unwrap();
    let is_new =
        |record: Option<&soif::Record>| record.is_some_and(|it| text(it) == "one two seven");
    bench.until_url(&member, is_new).await;
    bench.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_file_that_cannot_be_sought_is_told_by_the_limit() {
    let tree = Tree::with(&["a.txt"]);
    fs::write(
        tree.path("words.ar"),
        crate::made::ar(&[("one", &[b'x'; 3_000]), ("two", &[b'x'; 3_000])]),
    )
    .unwrap();
    let config = Config { read_bytes_max: READ_BYTES_MAX, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    assert_eq!(bench.problems(), ["limit words.ar"]);
    let (_, list) = bench.get_admin("problems").await;
    assert!(list.contains("only its first 4096 bytes were read"), "{list}");
    assert!(list.contains("read_max"), "{list}");
}
