//! Checks the shape of the workspace: what ARCHITECTURE.md promises, as a test.
//!
//! Every rule here is one that a reviewer would otherwise have to remember.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates, and for each the crates of ours that it may name. Read top to bottom: leaves first.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("soif", &[]),
    ("oai", &["soif"]),
    ("query", &["soif"]),
    ("freshness", &[]),
    ("net", &[]),
    ("settings", &[]),
    ("watcher", &[]),
    ("web", &["net", "settings"]),
    ("collection", &["soif", "net"]),
    ("exchange", &["soif", "oai", "collection", "net", "settings", "web"]),
    (
        "gatherer",
        &[
            "soif",
            "oai",
            "freshness",
            "collection",
            "exchange",
            "net",
            "settings",
            "watcher",
            "web",
        ],
    ),
    (
        "broker",
        &["soif", "oai", "query", "freshness", "collection", "exchange", "net", "settings", "web"],
    ),
    ("replicator", &["soif", "collection", "net", "settings", "watcher", "web"]),
];

/// Outside crates that only some of ours may name, so that each can be replaced in one place.
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
];

/// Outside names that may stand only in files whose path has one of the given parts.
const NAMED_ONLY_IN: &[(&str, &[&str])] = &[
    ("tantivy::", &["broker/src/index/"]),
    // The seam to the engines, and what feeds this one. (The collection has an index of its own.)
    (
        "crate::index::",
        &["broker/src/index/", "broker/src/engine.rs", "broker/src/indexer.rs", "collection/src/"],
    ),
    (
        "axum::",
        &[
            "web/src/",
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
const PURE_CRATES: &[&str] = &["soif", "oai", "query", "freshness", "settings"];

/// What a module that says `//! Sans-I/O.` must not mention outside its tests.
const IO_WORDS: &[&str] = &[
    "tokio",
    "hyper::",
    "sled",
    "std::net::Tcp",
    "std::net::Udp",
    "std::fs",
    "std::thread",
    "async fn",
    ".await",
    "Instant::now",
    "SystemTime::now",
    "clock::now_ms",
    "rand::rng",
    "println!",
];

/// Longest file, in lines before its tests; of those that are tests, in all.
const LINES_MAX: usize = 500;

#[test]
fn crates_depend_only_downwards() {
    let mut problems = Vec::new();
    for (krate, allowed) in MAY_DEPEND_ON {
        for dep in dependencies(&root().join(krate).join("Cargo.toml")) {
            let ours = MAY_DEPEND_ON.iter().any(|(name, _)| *name == dep);
            if ours && !allowed.contains(&dep.as_str()) {
                problems.push(format!("{krate} must not depend on {dep}"));
            }
        }
    }
    for (krate, manifest) in manifests() {
        for dep in dependencies(&manifest) {
            if let Some((_, homes)) = KEPT_TO.iter().find(|(name, _)| *name == dep)
                && !homes.contains(&krate.as_str())
            {
                problems.push(format!("{dep} belongs to {homes:?}, not {krate}"));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn the_table_above_has_no_cycle_and_misses_no_crate() {
    let mut seen = BTreeSet::new();
    for (krate, allowed) in MAY_DEPEND_ON {
        for dep in *allowed {
            assert!(seen.contains(dep), "{krate} is listed before its dependency {dep}");
        }
        seen.insert(*krate);
    }
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = text.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members: BTreeSet<&str> = members
        .split(',')
        .map(|name| name.trim().trim_matches('"'))
        .filter(|it| !it.is_empty())
        .collect();
    assert_eq!(members, seen);
}

#[test]
fn outside_names_stay_in_their_place() {
    let mut problems = Vec::new();
    for (krate, path) in sources() {
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        let place = format!("{krate}:{shown}");
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in before_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for (name, homes) in NAMED_ONLY_IN {
                if code.contains(name) && !homes.iter().any(|home| place.contains(home)) {
                    problems.push(format!("{shown}:{}: {name} stays in {homes:?}", number + 1));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn sans_io_modules_do_no_io() {
    let mut problems = Vec::new();
    let mut pure = 0;
    for (krate, path) in sources() {
        let text = fs::read_to_string(&path).unwrap();
        if !text.contains("//! Sans-I/O.") && !PURE_CRATES.contains(&krate.as_str()) {
            continue;
        }
        pure += 1;
        for (number, line) in before_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in IO_WORDS.iter().filter(|word| code.contains(**word)) {
                problems.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    assert!(pure > 10, "only {pure} pure modules: is the marker still in place?");
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn every_file_says_what_it_is_for_and_stays_short() {
    let mut problems = Vec::new();
    for (_, path) in sources() {
        let text = fs::read_to_string(&path).unwrap();
        if !text.starts_with("//!") {
            problems.push(format!("{}: no module comment", path.display()));
        }
        let lines = before_tests(&text).lines().count();
        if LINES_MAX < lines {
            problems.push(format!("{}: {lines} lines", path.display()));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn tests_and_examples_stay_short_too() {
    let product: BTreeSet<PathBuf> = sources().into_iter().map(|it| it.1).collect();
    let mut others = 0;
    let mut problems = Vec::new();
    for path in tracked_text_files().into_iter().filter(|path| has_extension(path, "rs")) {
        if product.contains(&path) {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        others += 1;
        let lines = text.lines().count();
        if LINES_MAX < lines {
            problems.push(format!("{}: {lines} lines", path.display()));
        }
    }
    assert!(others > 100, "only {others} files that are no product: are they still found?");
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn nothing_is_left_undone_or_switched_off() {
    // Put together at run time, so that this file does not find itself.
    let words: Vec<String> =
        [("TO", "DO"), ("FIX", "ME"), ("to", "do!("), ("unimplemented", "!("), ("#[ig", "nore")]
            .iter()
            .map(|(a, b)| format!("{a}{b}"))
            .collect();
    let mut problems = Vec::new();
    for path in tracked_text_files() {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                problems.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn every_fuzz_target_has_seeds() {
    let targets = root().join("fuzz/fuzz_targets");
    let mut problems = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(targets).unwrap() {
        let path = entry.unwrap().path();
        if !has_extension(&path, "rs") {
            continue;
        }
        count += 1;
        let seeds = root().join("fuzz/seeds").join(path.file_stem().unwrap());
        let files = fs::read_dir(&seeds).map(|it| it.flatten().collect::<Vec<_>>());
        let is_seed = |it: &fs::DirEntry| it.metadata().is_ok_and(|it| 0 < it.len());
        if !files.is_ok_and(|it| it.iter().any(is_seed)) {
            problems.push(format!("{}: put some inputs of the format there", seeds.display()));
        }
    }
    assert!(10 < count, "only {count} fuzz targets: are they still found?");
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let mut problems = Vec::new();
    for path in tracked_text_files().into_iter().filter(|path| has_extension(path, "md")) {
        let text = fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            if !path.parent().unwrap().join(file).exists() {
                problems.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn deflate_is_zlib_rs_alone() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let names: BTreeMap<&str, ()> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("name = "))
        .map(|name| (name.trim_matches('"'), ()))
        .collect();
    assert!(names.contains_key("zlib-rs"));
    for banned in ["libz-sys", "libz-ng-sys", "cloudflare-zlib-sys", "aws-lc-sys", "openssl-sys"] {
        assert!(!names.contains_key(banned), "{banned} came into the build");
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Whether the file belongs to a `mod tests` of its own.
fn is_test_file(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
        || path.file_name().is_some_and(|name| name == "tests.rs")
}

fn before_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().unwrap_or(text)
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn manifests() -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = MAY_DEPEND_ON
        .iter()
        .map(|(krate, _)| ((*krate).to_owned(), root().join(krate).join("Cargo.toml")))
        .collect();
    found.push(("harvest".to_owned(), root().join("Cargo.toml")));
    found
}

fn dependencies(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let mut inside = false;
    let mut names = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]" || line == "[build-dependencies]";
        } else if inside
            && let Some(name) = line.split(['.', '=', ' ']).next().filter(|name| !name.is_empty())
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Every Rust file of the product, with its crate.
fn sources() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for (krate, _) in MAY_DEPEND_ON {
        walk(krate, &root().join(krate).join("src"), &mut found);
    }
    walk("harvest", &root().join("src"), &mut found);
    assert!(!found.is_empty());
    found
}

fn walk(krate: &str, directory: &Path, found: &mut Vec<(String, PathBuf)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(krate, &path, found);
        } else if has_extension(&path, "rs") && !is_test_file(&path) {
            found.push((krate.to_owned(), path));
        }
    }
}

/// The files that the repository holds, by its own list.
fn tracked_text_files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args([
            "ls-files", "--", "*.rs", "*.md", "*.toml", "*.sh", "*.mjs", "*.html", "*.css", "test",
        ])
        .current_dir(root())
        .output()
        .expect("git is needed to list the project's files: apt-get install git");
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().lines().map(|line| root().join(line)).collect()
}
