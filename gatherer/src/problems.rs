//! The list of problems with objects: bounded to the newest, with counts of all.
//!
//! A problem is data; it never aborts a run. The counts include all problems since the start; the
//! list has the newest ones, at most one for each object and kind.
//!
//! Sans-I/O, but for the file.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::known::Walk;

/// Name of the file of the problems, in the gatherer's data folder.
pub const FILE: &str = "problems.json";

/// Maximum number of problems on the list. The counts include further problems.
pub const PROBLEMS_MAX: usize = 1_000;

/// Kind of the problem that a root is missing.
pub const ROOT_PROBLEM: &str = "root-missing";

/// Kind of the problem that a repository could not be harvested to its end.
pub const HARVEST_PROBLEM: &str = "harvest";

/// Kind of the problem that a web site could not be crawled.
pub const CRAWL_PROBLEM: &str = "crawl";

/// Maximum length of a message, in bytes; the middle of a longer one is left out.
const MESSAGE_BYTES_MAX: usize = 500;

/// Maximum length of an object's name, in bytes; the middle of a longer one is left out.
const OBJECT_BYTES_MAX: usize = 1_000;

/// Problem with one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// URL of the object (a file, a directory or a member of a container).
    pub object: String,
    /// The kind of problem, in kebab case, such as `unreadable`, `link-loop` or `truncated`.
    pub kind: String,
    /// The problem in words, with advice where it helps.
    pub message: String,
    /// Time of the problem, in Unix seconds.
    pub at: u64,
}

/// Returns whether problems of this kind are notes: what was done, and what is no fault of an object.
/// All others are failures to read something whole.
pub fn is_note(kind: &str) -> bool {
    matches!(
        kind,
        "limit" | "special" | "vanished" | "recovered" | "unwatched" | "missing" | "trap"
    ) || kind.starts_with("link-")
}

#[derive(Clone, Debug)]
struct ListedProblem {
    entry: Entry,
    /// The walk that found the problem, and the problem's URL, if a later walk can show that it is
    /// cured.
    found_by: Option<(Walk, String)>,
}

/// The problems as a file has them, from one start of the gatherer to the next.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Stored {
    /// The problems on the list, newest first.
    pub newest: Vec<Entry>,
    /// URLs of those that a later walk can show to be cured.
    walked: BTreeSet<String>,
}

/// Returns the problems in a file; none if it cannot be read.
pub(crate) fn read(file: &Path) -> Problems {
    let mut problems = Problems::default();
    let stored = fs::read(file).ok().and_then(|it| serde_json::from_slice(&it).ok());
    problems.restore(stored.unwrap_or_default());
    problems
}

/// Writes a file, whole or not at all. It names private files, so that only its owner may read it.
pub(crate) fn write(stored: &Stored, file: &Path) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut open = OpenOptions::new();
    open.write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?
        .write_all(&serde_json::to_vec(stored)?)?;
    fs::rename(new, file)
}

/// The problems of a gatherer.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    newest: VecDeque<ListedProblem>,
    /// Number of entries in `newest` by object, of members by their container.
    objects: HashMap<String, usize>,
    by_kind: BTreeMap<String, u64>,
    total: u64,
}

impl Problems {
    /// Returns what to store.
    pub fn to_store(&self) -> Stored {
        let walked = self.newest.iter().filter(|it| it.found_by.is_some());
        Stored {
            walked: walked.map(|it| it.entry.object.clone()).collect(),
            newest: self.newest().cloned().collect(),
        }
    }

    /// Takes what was stored before the last stop; walks of this process are later than those that found it.
    pub fn restore(&mut self, stored: Stored) {
        for entry in stored.newest.into_iter().take(PROBLEMS_MAX).rev() {
            let walk = stored.walked.contains(&entry.object).then_some(0);
            self.push(entry, walk);
        }
    }

    /// Adds a problem. It replaces an older problem of the same kind and object, except that an object may go
    /// beyond several limits. `found_by` is the
    /// walk that found it at the object's URL; see [`Problems::settle`].
    pub fn push(&mut self, mut entry: Entry, found_by: Option<Walk>) {
        let found_by = found_by.map(|walk| (walk, entry.object.clone()));
        entry.message = shortened(&entry.message, MESSAGE_BYTES_MAX).into_owned();
        entry.object = shortened(&entry.object, OBJECT_BYTES_MAX).into_owned();
        let same = |it: &ListedProblem| {
            it.entry.object == entry.object
                && it.entry.kind == entry.kind
                && (entry.kind != "limit" || it.entry.message == entry.message)
        };
        let whole = container(&entry.object);
        let seen = self.objects.contains_key(whole);
        if let Some(position) = seen.then(|| self.newest.iter().position(same)).flatten() {
            self.newest.remove(position);
        } else {
            self.total += 1;
            *self.by_kind.entry(entry.kind.clone()).or_default() += 1;
            *self.objects.entry(whole.to_owned()).or_default() += 1;
        }
        self.newest.push_back(ListedProblem { entry, found_by });
        if PROBLEMS_MAX < self.newest.len()
            && let Some(oldest) = self.newest.pop_front()
        {
            self.release(container(&oldest.entry.object));
        }
    }

    /// Removes problems that earlier walks found at URLs that `walk`, which has ended, has visited,
    /// too: they are cured, or `walk` has found them again.
    pub fn settle(&mut self, walk: Walk, has_looked: impl Fn(&str) -> bool) {
        self.remove(|it| {
            it.found_by.as_ref().is_some_and(|(found_by, url)| *found_by < walk && has_looked(url))
        });
    }

    /// Removes one problem of an object from the list.
    pub fn cure(&mut self, object: &str, kind: &str) {
        let object = shortened(object, OBJECT_BYTES_MAX);
        self.remove(|it| it.entry.object == object && it.entry.kind == kind);
    }

    fn remove(&mut self, is_over: impl Fn(&ListedProblem) -> bool) {
        let mut over = Vec::new();
        self.newest.retain(|it| {
            let is_over = is_over(it);
            if is_over {
                over.push(container(&it.entry.object).to_owned());
            }
            !is_over
        });
        for object in over {
            self.release(&object);
        }
    }

    /// Removes the problems of an object and of its members from the list, since the object was
    /// gathered anew. The counts stay the same.
    pub fn resolve(&mut self, object: &str) {
        let object = &*shortened(object, OBJECT_BYTES_MAX);
        if self.objects.remove(object).is_some() {
            self.newest.retain(|it| container(&it.entry.object) != object);
        }
    }

    fn release(&mut self, object: &str) {
        if let Some(count) = self.objects.get_mut(object) {
            *count -= 1;
            if *count == 0 {
                self.objects.remove(object);
            }
        }
    }

    /// Returns the number of problems so far, including those no longer on the list.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of problems of each kind so far.
    pub fn by_kind(&self) -> &BTreeMap<String, u64> {
        &self.by_kind
    }

    /// Returns the problems on the list, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Entry> {
        self.newest.iter().rev().map(|it| &it.entry)
    }
}

/// Returns `text`, without its middle if it is longer than `bytes_max`.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= bytes_max {
        return text.into();
    }
    let half = bytes_max / 2;
    let front = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let end = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    format!("{front}…{end}").into()
}

/// Returns the URL of an object's file: its own, or that of its container.
fn container(object: &str) -> &str {
    object.split_once('#').map_or(object, |(file, _member)| file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(object: &str, kind: &str, at: u64) -> Entry {
        Entry { object: object.into(), kind: kind.into(), message: "x".into(), at }
    }

    #[test]
    fn what_is_stored_is_cured_as_before() {
        let mut before = Problems::default();
        before.push(entry("file:///a", "unreadable", 1), Some(7));
        before.push(entry("file:///b#c", "broken", 2), None);
        let text = serde_json::to_vec(&before.to_store()).unwrap();
        let mut problems = Problems::default();
        problems.restore(serde_json::from_slice(&text).unwrap());
        assert!(problems.newest().eq(before.newest()));
        assert_eq!(problems.by_kind(), before.by_kind());
        problems.settle(1, |_| true);
        assert_eq!(problems.newest().count(), 1, "an object is read again when it changes");
        problems.resolve("file:///b");
        assert_eq!(problems.newest().count(), 0);
    }

    #[test]
    fn only_the_owner_reads_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let mut problems = Problems::default();
        problems.push(entry("file:///a", "broken", 1), None);
        for _ in 0..2 {
            write(&problems.to_store(), &file).unwrap();
        }
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(read(&file).newest().eq(problems.newest()));
        fs::write(&file, "{").unwrap();
        assert_eq!(read(&file).total(), 0);
    }

    #[test]
    fn the_newest_are_kept_and_all_are_counted() {
        let mut problems = Problems::default();
        for n in 0..PROBLEMS_MAX as u64 + 5 {
            problems.push(entry(&format!("file:///{n}"), "unreadable", n), None);
        }
        assert_eq!(problems.newest().count(), PROBLEMS_MAX);
        assert_eq!(problems.newest().next().unwrap().at, PROBLEMS_MAX as u64 + 4);
        assert_eq!(problems.total(), PROBLEMS_MAX as u64 + 5);
        assert_eq!(problems.by_kind()["unreadable"], PROBLEMS_MAX as u64 + 5);
    }

    #[test]
    fn a_problem_seen_again_is_one_problem() {
        let mut problems = Problems::default();
        problems.push(entry("file:///a", "unreadable", 1), None);
        problems.push(entry("file:///b", "unreadable", 2), None);
        problems.push(entry("file:///a", "unreadable", 3), None);
        let seen: Vec<_> = problems.newest().map(|it| (it.object.as_str(), it.at)).collect();
        assert_eq!(seen, [("file:///a", 3), ("file:///b", 2)]);
        assert_eq!(problems.total(), 2);
    }

    #[test]
    fn problems_of_an_object_gathered_anew_are_removed() {
        let mut problems = Problems::default();
        for object in ["file:///a", "file:///a#b", "file:///ab", "file:///a"] {
            problems.push(entry(object, "broken", 1), None);
        }
        problems.resolve("file:///a");
        problems.resolve("file:///none");
        let left: Vec<_> = problems.newest().map(|it| it.object.as_str()).collect();
        assert_eq!((left, problems.total()), (vec!["file:///ab"], 3));
        problems.push(entry("file:///a", "broken", 2), None);
        assert_eq!(problems.newest().next().unwrap().at, 2);
    }

    #[test]
    fn a_problem_that_a_later_walk_does_not_find_is_removed() {
        let mut problems = Problems::default();
        let found = |problems: &mut Problems, name: &str, walk| {
            let entry = entry(&format!("file:///r/{name}"), "link-broken", 1);
            problems.push(entry, Some(walk));
        };
        found(&mut problems, "a", 1);
        found(&mut problems, "b", 1);
        found(&mut problems, "d/c", 1);
        problems.push(entry("file:///r/a", "broken", 1), None);
        found(&mut problems, "b", 2);
        problems.settle(2, |url| url.starts_with("file:///r/d"));
        assert_eq!(problems.newest().count(), 3, "only what lies there");
        problems.settle(2, |_| true);
        let left: Vec<_> =
            problems.newest().map(|it| (it.object.as_str(), it.kind.as_str())).collect();
        assert_eq!(left, [("file:///r/b", "link-broken"), ("file:///r/a", "broken")]);
        problems.cure("file:///r/a", "link-broken");
        problems.cure("file:///r/a", "broken");
        assert_eq!((problems.newest().count(), problems.total()), (1, 4));
        problems.resolve("file:///r/b");
        assert!(problems.newest().next().is_none() && problems.objects.is_empty());
    }

    #[test]
    fn long_texts_are_shortened_in_the_middle_between_characters() {
        let mut problems = Problems::default();
        let long = format!("file:///{}/end", "x".repeat(4_000));
        problems.push(Entry { message: "é".repeat(400), ..entry(&long, "x", 1) }, None);
        let kept = problems.newest().next().unwrap();
        assert!(kept.message.len() <= MESSAGE_BYTES_MAX + 3 && kept.message.contains("é…é"));
        assert!(kept.object.len() <= OBJECT_BYTES_MAX + 3 && kept.object.ends_with("x/end"));
        problems.resolve(&long);
        assert!(problems.newest().next().is_none());
    }
}
