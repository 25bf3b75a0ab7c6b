//! The walls between crates, and around modules without input or output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::code::{bare, is_word};
use crate::house::{House, Kind, has_extension};

/// Names that a module marked `//! Sans-I/O.` must not have outside its tests.
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

/// Packages whose library has another name.
const LIBRARIES: &[(&str, &str)] = &[("md-5", "md5"), ("kamadak-exif", "exif")];

/// Checks that crates name only crates below them.
pub(crate) fn downwards(house: &House) -> Vec<String> {
    let table = house.tables.may_depend_on;
    let mut problems = Vec::new();
    for (krate, allowed) in table {
        for dep in house.dependencies(Path::new(krate), Kind::Product) {
            let ours = table.iter().any(|(name, _)| *name == dep);
            if ours && !allowed.contains(&dep.as_str()) {
                problems.push(format!("{krate} must not depend on {dep}"));
            }
        }
    }
    problems
}

/// Checks that the table of crates has no cycle and misses no crate.
pub(crate) fn all_crates(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (krate, allowed) in house.tables.may_depend_on {
        for dep in allowed.iter().filter(|dep| !seen.contains(*dep)) {
            problems.push(format!("{krate} is listed before its dependency {dep}"));
        }
        seen.insert(*krate);
    }
    let text = house.read("Cargo.toml");
    let members = text.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members = members.split(',').map(|name| name.trim().trim_matches('"'));
    let members: BTreeSet<&str> = members.filter(|it| !it.is_empty()).collect();
    problems
        .extend(members.symmetric_difference(&seen).map(|it| format!("{it}: in one list only")));
    problems
}

/// Checks that each outside crate is common, or of one of our crates, or of those in the table.
pub(crate) fn at_home(house: &House) -> Vec<String> {
    let mut users: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (krate, folder) in house.crates() {
        for dep in house.dependencies(&folder, Kind::Product) {
            if !house.crates().iter().any(|(name, _)| *name == dep) {
                users.entry(dep).or_default().insert(krate);
            }
        }
    }
    let mut problems = Vec::new();
    for (dep, users) in &users {
        let home = house.tables.kept_to.iter().find(|(name, _)| name == dep).map(|it| it.1);
        let known: BTreeSet<&str> = home.unwrap_or_default().iter().copied().collect();
        match home {
            Some(_) if *users != known => {
                problems.push(format!("{dep} belongs to {known:?}, and {users:?} depend on it"));
            }
            None => {
                let common = house.tables.common.contains(&dep.as_str());
                if 1 < users.len() && !common {
                    problems.push(format!("{dep} is at home in one, and {users:?} depend on it"));
                } else if users.len() == 1 && common {
                    problems.push(format!("{dep} is not common: {users:?} alone depends on it"));
                }
            }
            _ => {}
        }
    }
    let known =
        house.tables.kept_to.iter().map(|it| it.0).chain(house.tables.common.iter().copied());
    problems
        .extend(known.filter(|it| !users.contains_key(*it)).map(|it| format!("nobody needs {it}")));
    problems
}

/// Checks that code names each of its dependencies.
pub(crate) fn all_named(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    let mut wanted = BTreeSet::new();
    for (krate, folder) in house.crates() {
        let sources = house.sources();
        let own = sources.iter().filter(|it| it.krate == krate);
        let product: Vec<&str> = own.map(|it| it.code.bare.as_str()).collect();
        let all = everything_of(house, &folder);
        let excused =
            |dep: &str| house.tables.unnamed.iter().any(|it| (it.0, it.1) == (krate, dep));
        for dep in house.dependencies(&folder, Kind::Product) {
            if !excused(&dep) && !product.iter().any(|text| names(text, &dep)) {
                problems.push(format!("{krate} never names {dep}, which it depends on"));
            }
            wanted.insert(dep);
        }
        for dep in house.dependencies(&folder, Kind::Tests) {
            if !excused(&dep) && !all.iter().any(|text| names(text, &dep)) {
                problems.push(format!("the tests of {krate} never name {dep}"));
            }
            wanted.insert(dep);
        }
    }
    let offered = house.dependencies(Path::new(""), Kind::Workspace);
    let mut kept: BTreeSet<String> = house.crates().iter().map(|it| it.0.to_owned()).collect();
    kept.append(&mut wanted);
    problems.extend(
        offered
            .iter()
            .filter(|it| !kept.contains(*it))
            .map(|it| format!("no crate of ours needs {it}")),
    );
    problems
}

/// Returns all texts of a crate, with tests, benches and examples.
fn everything_of(house: &House, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: Vec<_> =
        ["src", "tests", "benches", "examples"].iter().map(|it| folder.join(it)).collect();
    while let Some(folder) = folders.pop() {
        for path in house.files(&folder) {
            if house.root.join(&path).is_dir() {
                folders.push(path);
            } else if has_extension(&path, "rs") {
                found.push(bare(&house.read(path)));
            }
        }
    }
    found
}

/// Returns whether the code has a path that begins with the library of that package.
fn names(code: &str, package: &str) -> bool {
    let known = LIBRARIES.iter().find(|(name, _)| *name == package).map(|it| it.1.to_owned());
    let library = known.unwrap_or_else(|| package.replace('-', "_"));
    code.match_indices(&library).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + library.len()..]);
        let is_first = match before.strip_suffix("::") {
            Some(before) => !before.ends_with(|it| is_word(it) || it == '>'),
            None => !before.ends_with(is_word),
        };
        let is_used = before.ends_with("use ") && after.starts_with([';', ' ']);
        is_first && (after.starts_with("::") || is_used)
    })
}

/// Checks that outside names stand only in the files of the table.
pub(crate) fn in_their_place(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    for source in house.sources().iter() {
        let place = format!("{}:{}", source.krate, source.shown());
        for (number, line) in source.code.bare.lines().enumerate() {
            for (name, homes) in house.tables.named_only_in {
                if line.contains(name) && !homes.iter().any(|home| place.contains(home)) {
                    let at = number + 1;
                    problems.push(format!("{}:{at}: {name} stays in {homes:?}", source.shown()));
                }
            }
        }
    }
    problems
}

/// Checks that marked modules and pure crates do no input or output.
pub(crate) fn sans_io(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    for source in house.sources().iter() {
        let is_pure = house.tables.pure_crates.contains(&source.krate.as_str());
        if !is_pure && !source.text.contains("//! Sans-I/O.") {
            continue;
        }
        for (number, line) in source.code.bare.lines().enumerate() {
            for word in IO_WORDS.iter().filter(|word| line.contains(**word)) {
                problems.push(format!("{}:{}: {word}", source.shown(), number + 1));
            }
        }
    }
    problems
}
