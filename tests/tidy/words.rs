//! The words of the code: names by docs/glossary.md, first lines that name their module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::code::{bare, is_word};
use crate::house::{House, has_extension};
use crate::shape;

/// Names of types and functions that tell a newcomer nothing; docs/glossary.md has better ones.
const REFUSED: [&str; 10] =
    ["Tract", "Vigil", "Ground", "Met", "Prints", "Lives", "Firsts", "Outlook", "said", "told"];

/// Words by which a first line asks a question instead of naming its module.
const QUESTIONS: [&str; 8] = ["What", "Which", "Who", "Whose", "When", "How", "Where", "Why"];

/// Maximum number of files of a crate that define a type of the same name.
const SAME_NAME_MAX: usize = 3;

/// Checks that no type or function has a refused name.
pub(crate) fn names(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    for path in shape::rust_files(house) {
        let bare = bare(&house.read(&path));
        for (line, name) in definitions(&bare, &[&["fn"], &TYPES[..]].concat()) {
            if REFUSED.contains(&name.as_str()) {
                problems.push(format!("{}:{line}: {name}: see docs/glossary.md", path.display()));
            }
        }
    }
    problems
}

/// Checks that few files of a crate define a type of the same name.
pub(crate) fn shared_names(house: &House) -> Vec<String> {
    let mut files: BTreeMap<(&str, String), BTreeSet<&Path>> = BTreeMap::new();
    let sources = house.sources();
    for source in sources.iter() {
        for (_, name) in definitions(&source.code.bare, &TYPES) {
            files.entry((&source.krate, name)).or_default().insert(&source.path);
        }
    }
    let crowded = files.into_iter().filter(|(_, files)| SAME_NAME_MAX < files.len());
    crowded.map(|((krate, name), files)| format!("{krate}: {name} in {files:?}")).collect()
}

/// Checks that the first line of a module names it.
pub(crate) fn first_lines(house: &House) -> Vec<String> {
    let mut problems = Vec::new();
    for path in shape::rust_files(house) {
        let text = house.read(&path);
        let Some(line) = text.lines().next().and_then(|line| line.strip_prefix("//! ")) else {
            continue;
        };
        if line.split(' ').next().is_some_and(|word| QUESTIONS.contains(&word)) {
            problems.push(format!("{}: \"{line}\" does not name the module", path.display()));
        }
    }
    problems
}

/// Checks that files which a document names in backticks exist.
pub(crate) fn named_files(house: &House) -> Vec<String> {
    let files = house.tracked_text_files();
    let mut problems = Vec::new();
    for document in files.iter().filter(|it| has_extension(it, "md")) {
        let text = house.read(document);
        for name in text.split('`').skip(1).step_by(2) {
            let is_file = name.ends_with(".rs")
                && !name.starts_with('.')
                && !name.contains([' ', '*', '…', '{']);
            if is_file && !files.iter().any(|it| it.ends_with(name)) {
                problems.push(format!("{}: no file is {name}", document.display()));
            }
        }
    }
    problems
}

const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];
const BEFORE_KEYWORDS: [&str; 7] = ["pub", "crate", "super", "in", "async", "const", "unsafe"];

/// Returns line and name of each function or type that a file defines, but no associated types.
fn definitions(bare: &str, keywords: &[&str]) -> Vec<(usize, String)> {
    let mut known = Vec::new();
    for (number, line) in bare.lines().enumerate() {
        let mut words = line.split(|it: char| !is_word(it)).filter(|it| !it.is_empty());
        let keyword = words.find(|it| !BEFORE_KEYWORDS.contains(it)).unwrap_or_default();
        let is_associated = keyword == "type" && line.starts_with(' ');
        if keywords.contains(&keyword) && !is_associated {
            known.extend(words.next().map(|name| (number + 1, name.to_owned())));
        }
    }
    known
}
