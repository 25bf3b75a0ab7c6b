//! The list of objects that could not be gathered as they should: bounded, newest kept, counted.
//!
//! A problem is data, never an aborted run. The counts are of all problems since the start; the list
//! holds the newest ones, each object at most once.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Serialize;

/// How many problems are kept with their names. The counts go on beyond it.
pub const PROBLEMS_MAX: usize = 1_000;

/// Longest message kept, in bytes; a longer one is cut.
const MESSAGE_BYTES_MAX: usize = 500;

/// One thing that went wrong with one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// URL of the object (a file, a directory or a member of a container).
    pub object: String,
    /// The kind of problem, in kebab case, such as `unreadable`, `link-loop` or `truncated`.
    pub kind: String,
    /// What happened, and where it helps, what to do.
    pub message: String,
    /// When, in Unix seconds.
    pub at: u64,
}

/// The problems of a gatherer.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    newest: VecDeque<Entry>,
    /// How many of `newest` each object has; members count with their container.
    objects: HashMap<String, usize>,
    by_kind: BTreeMap<String, u64>,
    total: u64,
}

impl Problems {
    /// Adds a problem. The same problem of the same object again takes the older one's place.
    pub fn push(&mut self, mut entry: Entry) {
        if MESSAGE_BYTES_MAX < entry.message.len() {
            let mut end = MESSAGE_BYTES_MAX;
            while !entry.message.is_char_boundary(end) {
                end -= 1;
            }
            entry.message.truncate(end);
            entry.message.push('…');
        }
        let same = |it: &Entry| it.object == entry.object && it.kind == entry.kind;
        let whole = container(&entry.object);
        let seen = self.objects.contains_key(whole);
        if let Some(place) = seen.then(|| self.newest.iter().position(same)).flatten() {
            self.newest.remove(place);
        } else {
            self.total += 1;
            *self.by_kind.entry(entry.kind.clone()).or_default() += 1;
            *self.objects.entry(whole.to_owned()).or_default() += 1;
        }
        self.newest.push_back(entry);
        if PROBLEMS_MAX < self.newest.len()
            && let Some(oldest) = self.newest.pop_front()
        {
            self.release(container(&oldest.object));
        }
    }

    /// Takes the problems of an object, and of its members, off the list: it was gathered anew. The
    /// counts stay.
    pub fn resolve(&mut self, object: &str) {
        if self.objects.remove(object).is_some() {
            self.newest.retain(|it| container(&it.object) != object);
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

    /// Returns the number of problems so far, beyond those that are kept too.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of problems of each kind so far.
    pub fn by_kind(&self) -> &BTreeMap<String, u64> {
        &self.by_kind
    }

    /// Returns the kept problems, newest first.
    pub fn newest(&self) -> impl Iterator<Item = &Entry> {
        self.newest.iter().rev()
    }
}

/// Returns `text`, its middle left out where it is longer than `bytes_max`.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= bytes_max {
        return text.into();
    }
    let half = bytes_max / 2;
    let front = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let end = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    format!("{front}…{end}").into()
}

/// Returns the URL of the file that an object is, or is a member of.
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
    fn the_newest_are_kept_and_all_are_counted() {
        let mut problems = Problems::default();
        for n in 0..PROBLEMS_MAX as u64 + 5 {
            problems.push(entry(&format!("file:///{n}"), "unreadable", n));
        }
        assert_eq!(problems.newest().count(), PROBLEMS_MAX);
        assert_eq!(problems.newest().next().unwrap().at, PROBLEMS_MAX as u64 + 4);
        assert_eq!(problems.total(), PROBLEMS_MAX as u64 + 5);
        assert_eq!(problems.by_kind()["unreadable"], PROBLEMS_MAX as u64 + 5);
    }

    #[test]
    fn a_problem_seen_again_is_one_problem() {
        let mut problems = Problems::default();
        problems.push(entry("file:///a", "unreadable", 1));
        problems.push(entry("file:///b", "unreadable", 2));
        problems.push(entry("file:///a", "unreadable", 3));
        let seen: Vec<_> = problems.newest().map(|it| (it.object.as_str(), it.at)).collect();
        assert_eq!(seen, [("file:///a", 3), ("file:///b", 2)]);
        assert_eq!(problems.total(), 2);
    }

    #[test]
    fn an_object_gathered_anew_is_off_the_list() {
        let mut problems = Problems::default();
        for object in ["file:///a", "file:///a#b", "file:///ab", "file:///a"] {
            problems.push(entry(object, "broken", 1));
        }
        problems.resolve("file:///a");
        problems.resolve("file:///none");
        let left: Vec<_> = problems.newest().map(|it| it.object.as_str()).collect();
        assert_eq!((left, problems.total()), (vec!["file:///ab"], 3));
        problems.push(entry("file:///a", "broken", 2));
        assert_eq!(problems.newest().next().unwrap().at, 2);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let mut problems = Problems::default();
        problems.push(Entry { message: "é".repeat(400), ..entry("file:///a", "x", 1) });
        let kept = problems.newest().next().unwrap();
        assert!(kept.message.len() <= MESSAGE_BYTES_MAX + 3 && kept.message.ends_with("é…"));
    }
}
