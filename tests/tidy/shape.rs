//! The shape of files and folders: lengths, numbers, first lines, and unfinished work.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::house::{House, has_extension};

/// Maximum number of lines of a file; in a file of the product, lines of tests do not count.
const LINES_MAX: usize = 500;

/// Maximum number of Rust files directly in a folder.
const FILES_MAX: usize = 25;

/// Checks that every file of the product begins with its purpose and is short.
pub(crate) fn product_files(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    for source in house.sources().iter() {
        if !source.text.starts_with("//!") {
            problems.push(format!("{}: no module comment", source.shown()));
        }
        if LINES_MAX < source.code.lines {
            problems.push(format!("{}: {} lines", source.shown(), source.code.lines));
        }
    }
    problems
}

/// Checks that tests, benches and examples are short, too.
pub(crate) fn other_files(house: &House) -> Vec<String> {
    let sources = house.sources();
    let product: BTreeSet<&PathBuf> = sources.iter().map(|it| &it.path).collect();
    let mut problems = Vec::new();
    for path in rust_files(house).iter().filter(|it| !product.contains(it)) {
        let lines = house.read(path).lines().count();
        if LINES_MAX < lines {
            problems.push(format!("{}: {lines} lines", path.display()));
        }
    }
    problems
}

/// Checks that no folder has too many files.
pub(crate) fn folders(house: &House) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in rust_files(house) {
        let folder = path.parent().unwrap_or_else(|| Path::new("")).display().to_string();
        *counts.entry(folder).or_default() += 1;
    }
    let crowded = counts.into_iter().filter(|(_, count)| FILES_MAX < *count);
    crowded.map(|(folder, count)| format!("{folder}: {count} files in a folder")).collect()
}

/// Returns the Rust files of the repository.
pub(crate) fn rust_files(house: &House) -> Vec<PathBuf> {
    house.tracked_text_files().into_iter().filter(|path| has_extension(path, "rs")).collect()
}

/// Checks that nothing is left undone or switched off.
pub(crate) fn undone(house: &House) -> Vec<String> {
    // Put together at run time, so that the words are not found in this file.
    let words: Vec<String> =
        [("TO", "DO"), ("FIX", "ME"), ("to", "do!("), ("unimplemented", "!("), ("#[ig", "nore")]
            .iter()
            .map(|(a, b)| format!("{a}{b}"))
            .collect();
    let mut problems = Vec::new();
    for path in house.tracked_text_files() {
        let Ok(text) = fs::read_to_string(house.root.join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                problems.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    problems
}

/// Returns the names of the fuzz targets; those in a folder begin with the folder's name.
pub(crate) fn fuzz_targets(house: &House) -> Vec<String> {
    let all = rust_files(house).into_iter().filter_map(|path| {
        let path = path.strip_prefix("fuzz/fuzz_targets").ok()?.with_extension("");
        // Modules that targets share are no targets.
        (!path.ends_with("mod")).then(|| path.display().to_string().replace('/', "_"))
    });
    all.collect()
}

/// Checks that every fuzz target has seeds.
pub(crate) fn seeds(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    for target in fuzz_targets(house) {
        let folder = Path::new("fuzz/seeds").join(target);
        let is_seed = |it: &PathBuf| house.root.join(it).metadata().is_ok_and(|it| 0 < it.len());
        if !house.files(&folder).iter().any(is_seed) {
            problems.push(format!("{}: put some inputs of the format there", folder.display()));
        }
    }
    problems
}

/// Checks that the links in documents lead to files that exist. Headings are not checked.
pub(crate) fn links(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    let files = house.tracked_text_files();
    for path in files.iter().filter(|path| has_extension(path, "md")) {
        let text = house.read(path);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            if !house.root.join(path).parent().unwrap().join(file).exists() {
                problems.push(format!("{}: {link}", path.display()));
            }
        }
    }
    problems
}

/// Checks that zlib-rs is the only deflate, and that TLS brings no C code.
pub(crate) fn deflate(house: &House) -> Vec<String> {
    const BANNED: [&str; 5] =
        ["libz-sys", "libz-ng-sys", "cloudflare-zlib-sys", "aws-lc-sys", "openssl-sys"];
    let lock = house.read("Cargo.lock");
    let names = lock.lines().filter_map(|line| line.strip_prefix("name = "));
    let names: BTreeSet<&str> = names.map(|name| name.trim_matches('"')).collect();
    let banned = BANNED.iter().filter(|it| names.contains(*it));
    let mut problems: Vec<String> = banned.map(|it| format!("{it} came into the build")).collect();
    if !names.contains("zlib-rs") {
        problems.push("zlib-rs went out of the build".to_owned());
    }
    problems
}
