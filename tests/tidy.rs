//! The test of the workspace's shape: the rules of ARCHITECTURE.md, and those of reviewers.
//!
//! The test needs the standard library only, so that `rustc --test` can build it alone.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "says what can be lowered, for who asks with --nocapture")]

use std::path::PathBuf;

use crate::house::{House, Tables};

#[path = "tidy/broken.rs"]
mod broken;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/house.rs"]
mod house;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/walls.rs"]
mod walls;
#[path = "tidy/words.rs"]
mod words;

/// The crates, each with those of ours that it may name. A crate comes after all that it names.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("soif", &[]),
    ("oai", &["soif"]),
    ("query", &["soif"]),
    ("freshness", &[]),
    ("study", &["freshness"]),
    ("crawl", &[]),
    ("net", &[]),
    ("settings", &[]),
    ("watcher", &[]),
    ("disk", &[]),
    ("formats", &["soif", "oai", "settings"]),
    ("essence", &["soif", "settings", "formats"]),
    ("web", &["settings"]),
    ("daemon", &["net", "settings", "disk", "web"]),
    ("collection", &["soif", "net", "disk"]),
    (
        "exchange",
        &["soif", "oai", "crawl", "collection", "disk", "net", "settings", "web", "daemon"],
    ),
    (
        "gatherer",
        &[
            "soif",
            "oai",
            "formats",
            "essence",
            "crawl",
            "freshness",
            "collection",
            "exchange",
            "disk",
            "net",
            "settings",
            "watcher",
            "web",
            "daemon",
        ],
    ),
    (
        "broker",
        &[
            "soif",
            "oai",
            "query",
            "freshness",
            "collection",
            "exchange",
            "net",
            "settings",
            "web",
            "daemon",
        ],
    ),
    ("replicator", &["soif", "collection", "disk", "net", "settings", "watcher", "web", "daemon"]),
    ("cache", &["net", "settings", "disk", "web", "daemon"]),
    ("registry", &["collection", "exchange", "broker", "net", "settings", "web", "daemon"]),
];

/// Outside crates that any of ours may depend on. Any other outside crate is for one of ours only,
/// or for those that the next table names.
const COMMON: &[&str] = &[
    "axum",
    "bytes",
    "flate2",
    "http",
    "jiff",
    "rustix",
    "serde",
    "serde_json",
    "thiserror",
    "tokio",
    "tracing",
    "url",
];

/// Outside crates with those of ours that may use them: crates that several need, and crates that
/// the architecture gives one home, so that they can be replaced in one place.
const KEPT_TO: &[(&str, &[&str])] = &[
    ("tantivy", &["broker"]),
    ("sled", &["collection"]),
    ("notify", &["watcher"]),
    ("hyper", &["net"]),
    ("hyper-util", &["net"]),
    ("rustls", &["net"]),
    ("minijinja", &["web"]),
    ("clap", &["harvest"]),
    ("anyhow", &["harvest"]),
    ("tracing-subscriber", &["harvest"]),
    ("indicatif", &["harvest"]),
    ("base64", &["net", "soif", "oai"]),
    ("blake3", &["collection", "replicator"]),
    ("encoding_rs", &["oai", "formats"]),
    ("getrandom", &["collection", "exchange"]),
    ("globset", &["essence", "gatherer"]),
    ("hashbrown", &["crawl", "formats", "cache"]),
    ("http-body", &["net", "cache"]),
    ("http-body-util", &["net", "exchange"]),
    ("httpdate", &["crawl", "net"]),
    // The replicator signs networks of addresses.
    ("ipnet", &["net", "replicator"]),
    ("memchr", &["soif", "oai", "formats", "essence", "gatherer"]),
    ("percent-encoding", &["query", "formats", "gatherer", "broker", "harvest"]),
    ("quick-xml", &["oai", "crawl", "formats", "broker"]),
    ("regex", &["query", "formats", "essence", "broker", "cache"]),
    ("ring", &["net", "exchange"]),
    ("roaring", &["collection", "exchange"]),
    ("tempfile", &["collection", "broker", "cache", "harvest"]),
    ("tokio-util", &["net", "cache"]),
    ("toml", &["settings", "formats"]),
    ("tower", &["net", "daemon", "cache"]),
    ("unicode-normalization", &["query", "replicator"]),
    ("xxhash-rust", &["collection", "formats", "cache", "harvest"]),
    ("zstd", &["net", "formats"]),
];

/// Dependencies that no code names: our crate, the outside crate, and the reason.
const UNNAMED: &[(&str, &str, &str)] = &[
    ("essence", "lzma-rust2", "its tests make containers as those of formats do: made.rs"),
    ("essence", "tar", "the same"),
    ("essence", "zip", "the same"),
    ("gatherer", "fastrand", "its bench makes pages as a test of papers does: prose.rs"),
    ("cache", "rcgen", "its tests make certificates as those of net do: certificates/mod.rs"),
    ("harvest", "rcgen", "the same"),
];

/// Outside names that may stand only in files whose path has one of the given parts.
const NAMED_ONLY_IN: &[(&str, &[&str])] = &[
    ("tantivy::", &["broker/src/index/"]),
    // engine.rs is the interface of all engines; indexer.rs feeds this one.
    ("crate::index::", &["broker/src/index/", "broker/src/engine.rs", "broker/src/indexer.rs"]),
    (
        "axum::",
        &[
            "web/src/",
            "daemon/src/",
            "exchange/src/",
            "/page",
            "/api",
            "/admin",
            "/serve",
            "/server",
            "/object_page",
        ],
    ),
    ("std::env::", &["harvest:src/"]),
];

/// Crates that never touch a runtime, a socket, a disk or a clock.
const PURE_CRATES: &[&str] =
    &["soif", "oai", "query", "freshness", "study", "crawl", "settings", "formats"];

fn ours() -> House {
    let tables = Tables {
        may_depend_on: MAY_DEPEND_ON,
        common: COMMON,
        kept_to: KEPT_TO,
        named_only_in: NAMED_ONLY_IN,
        unnamed: UNNAMED,
        pure_crates: PURE_CRATES,
    };
    House::new(PathBuf::from(env!("CARGO_MANIFEST_DIR")), tables)
}

#[track_caller]
fn check(rule: fn(&House) -> Vec<String>) {
    let problems = rule(&ours());
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn crates_depend_only_downwards() {
    check(walls::downwards);
}

#[test]
fn the_table_above_has_no_cycle_and_misses_no_crate() {
    check(walls::all_crates);
}

#[test]
fn outside_crates_are_at_home_in_one_of_ours() {
    check(walls::at_home);
}

#[test]
fn dependencies_are_named_by_who_depends_on_them() {
    check(walls::all_named);
}

#[test]
fn outside_names_stay_in_their_place() {
    check(walls::in_their_place);
}

#[test]
fn sans_io_modules_do_no_io() {
    check(walls::sans_io);
    let sources = ours().sources();
    let pure = sources.iter().filter(|it| it.text.contains("//! Sans-I/O.")).count();
    assert!(pure > 10, "only {pure} pure modules: is the marker still in place?");
}

#[test]
fn imports_go_in_no_large_circles() {
    check(circles::large);
}

#[test]
fn every_file_says_what_it_is_for_and_stays_short() {
    check(shape::product_files);
}

#[test]
fn tests_and_examples_stay_short_too() {
    check(shape::other_files);
    let (all, product) = (shape::rust_files(&ours()).len(), ours().sources().len());
    assert!(product + 100 < all, "{product} of {all} are product: are the others still found?");
}

#[test]
fn folders_can_be_looked_over() {
    check(shape::folders);
}

#[test]
fn nothing_is_left_undone_or_switched_off() {
    check(shape::undone);
}

#[test]
fn every_fuzz_target_has_seeds() {
    check(shape::seeds);
    let count = shape::fuzz_targets(&ours()).len();
    assert!(10 < count, "only {count} fuzz targets: are they still found?");
}

#[test]
fn names_are_those_of_the_glossary() {
    check(words::names);
}

#[test]
fn few_types_of_a_crate_share_a_name() {
    check(words::shared_names);
}

#[test]
fn first_lines_name_their_module() {
    check(words::first_lines);
}

#[test]
fn files_named_in_documents_exist() {
    check(words::named_files);
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    check(shape::links);
}

#[test]
fn deflate_is_zlib_rs_alone() {
    check(shape::deflate);
}
