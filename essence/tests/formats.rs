//! Tests of docs/formats.md: it agrees with the program.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod made;
#[path = "../examples/formats/samples/mod.rs"]
mod samples;
#[path = "../examples/formats/table.rs"]
mod table;

use std::path::Path;

const COMMAND: &str = "cargo run -p essence --example formats";

#[test]
fn every_type_has_a_sample_of_its_kind() {
    assert_eq!(table::missing(), Vec::<&str>::new(), "add one in essence/examples/formats/samples");
    assert_eq!(table::faults(), Vec::<String>::new());
}

#[test]
fn the_list_of_limits_agrees_with_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/essence.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let is_row = |it: &&str| it.starts_with("| `") && it.matches('|').count() == 4;
    let rows = page.lines().skip_while(|it| !it.starts_with("| line in `Truncated`")).skip(2);
    let rows: Vec<&str> = rows.take_while(is_row).collect();
    let made = table::limits();
    assert_eq!(rows, made.lines().collect::<Vec<_>>(), "write it anew by `{COMMAND} -- limits`");
}

#[test]
fn the_page_agrees_with_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/formats.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    let made = table::page();
    let differs = page.lines().zip(made.lines()).find(|(page, made)| page != made);
    assert!(
        page == made,
        "docs/formats.md is old, first here: {differs:#?}\nwrite it anew by `{COMMAND} > docs/formats.md`"
    );
}
