//! Circles of imports: files of a crate that name each other in a circle.
//!
//! Paths from `crate`, `super` and `self` count, but not those in tests. A file's *room* is the
//! folder of its modules. Paths from a room to a room above or below it are ignored; the root of
//! the crate is above all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::code::is_word;
use crate::house::{House, room};

/// Largest circle that is allowed, in files.
const CIRCLE_MAX: usize = 3;

type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Checks that no circle of a crate has more than three files.
pub(crate) fn large(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    for (krate, folder) in house.crates() {
        let circles = circles(&graph(house, krate, &folder.join("src")));
        let large = circles.iter().filter(|it| CIRCLE_MAX < it.len());
        let said = large.map(|it| format!("{krate}: {} files in a circle: {it:?}", it.len()));
        problems.extend(said);
    }
    problems
}

/// Returns for each room of a crate the rooms that its files name, but none above or below it.
fn graph(house: &House, krate: &str, src: &std::path::Path) -> Graph {
    let sources = house.sources();
    let own: Vec<_> = sources.iter().filter(|it| it.krate == krate).collect();
    let rooms: BTreeSet<PathBuf> = own.iter().map(|it| room(&it.path)).collect();
    let mut graph = Graph::new();
    for source in own {
        let here = room(&source.path);
        let named = graph.entry(here.clone()).or_default();
        for path in paths(&source.code.bare) {
            let Some(there) = resolve(&path, src, &here, &rooms) else { continue };
            if !there.starts_with(&here) && !here.starts_with(&there) {
                named.insert(there);
            }
        }
    }
    graph
}

/// Returns the room of the file to which a path leads.
fn resolve(
    path: &[String],
    src: &std::path::Path,
    here: &std::path::Path,
    rooms: &BTreeSet<PathBuf>,
) -> Option<PathBuf> {
    let mut at = here.to_owned();
    for part in path {
        match part.as_str() {
            "crate" => src.clone_into(&mut at),
            "self" => {}
            "super" => at = at.parent()?.to_owned(),
            name => {
                let below = at.join(name);
                if !rooms.contains(&below) {
                    break;
                }
                at = below;
            }
        }
    }
    Some(at)
}

/// Returns the paths from `crate`, `super` and `self`; a group (`{a, b}`) gives several.
fn paths(code: &str) -> Vec<Vec<String>> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let begins = matches!(tokens[at], "crate" | "super" | "self")
            && tokens.get(at + 1) == Some(&"::")
            && at.checked_sub(1).is_none_or(|before| tokens[before] != "::");
        at = if begins { path(&tokens, at, &[], &mut found) } else { at + 1 };
    }
    found
}

/// Reads a path, or a group of paths, and returns the index of the token after it.
fn path(tokens: &[&str], from: usize, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut whole = before.to_vec();
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        if *token == "{" {
            at += 1;
            while tokens.get(at).is_some_and(|it| *it != "}") {
                at = if tokens[at] == "," { at + 1 } else { path(tokens, at, &whole, found) };
            }
            return at + 1;
        }
        whole.push((*token).to_owned());
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    found.push(whole);
    // `as other`
    if tokens.get(at) == Some(&"as") { at + 2 } else { at.max(from + 1) }
}

/// Splits code into words, `::`, and single other characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.find(|it| !is_word(it)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        found.push(token);
        rest = after.trim_start();
    }
    found
}

/// Returns the sets of files in which every file leads to every other.
fn circles(graph: &Graph) -> Vec<BTreeSet<PathBuf>> {
    let reached: Graph = graph.keys().map(|from| (from.clone(), reached(graph, from))).collect();
    let mut found: Vec<BTreeSet<PathBuf>> = Vec::new();
    for (from, to) in &reached {
        if found.iter().any(|it| it.contains(from)) {
            continue;
        }
        let back = |it: &&PathBuf| reached.get(*it).is_some_and(|of| of.contains(from));
        let circle: BTreeSet<PathBuf> = to.iter().filter(back).cloned().collect();
        if !circle.is_empty() {
            found.push(circle);
        }
    }
    found
}

fn reached(graph: &Graph, from: &PathBuf) -> BTreeSet<PathBuf> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(at) = left.pop() {
        for next in graph.get(at).into_iter().flatten() {
            if seen.insert(next.clone()) {
                left.push(next);
            }
        }
    }
    seen
}

#[test]
fn paths_are_found_in_groups_and_in_code() {
    let code =
        "use crate::{a::{self, B}, c as d}; fn f() -> super::E { self::g::h(self.x, $crate::y) }";
    let found: Vec<String> = paths(code).iter().map(|it| it.join("::")).collect();
    assert_eq!(
        found,
        ["crate::a::self", "crate::a::B", "crate::c", "super::E", "self::g::h", "crate::y"]
    );
}
