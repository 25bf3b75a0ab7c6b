//! The list of objects that could not be gathered as they should: bounded, newest kept, counted.
//!
//! A problem is data, never an aborted run. The counts are of all problems since the start; the list
//! holds the newest ones, each object at most once.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Serialize;

use crate::known::Walk;

/// How many problems are kept with their names. The counts go on beyond it.
pub const PROBLEMS_MAX: usize = 1_000;

/// Kind of the problem of a root that is not there.
pub const ROOT_PROBLEM: &str = "root-missing";

/// Kind of the problem that a repository could not be harvested to its end.
pub const HARVEST_PROBLEM: &str = "harvest";

/// Longest message kept, in bytes; of a longer one the middle is left out.
const MESSAGE_BYTES_MAX: usize = 500;

/// Longest name of an object kept, in bytes; of a longer one the middle is left out.
const OBJECT_BYTES_MAX: usize = 1_000;

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

/// A problem on the list.
#[derive(Clone, Debug)]
struct Kept {
    entry: Entry,
    /// The walk that has met it, and at which URL, if a walk over that place tells whether it is cured.
    met: Option<(Walk, String)>,
}

/// The problems of a gatherer.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    newest: VecDeque<Kept>,
    /// How many of `newest` each object has; members count with their container.
    objects: HashMap<String, usize>,
    by_kind: BTreeMap<String, u64>,
    total: u64,
}

impl Problems {
    /// Adds a problem. The same problem of the same object again takes the older one's place.
    pub fn push(&mut self, entry: Entry) {
        self.keep(entry, None);
    }

    /// Adds a problem of an object that `walk` has met at its place; see [`Problems::settle`].
    pub fn push_met(&mut self, entry: Entry, walk: Walk) {
        let place = entry.object.clone();
        self.keep(entry, Some((walk, place)));
    }

    fn keep(&mut self, mut entry: Entry, met: Option<(Walk, String)>) {
        entry.message = shortened(&entry.message, MESSAGE_BYTES_MAX).into_owned();
        entry.object = shortened(&entry.object, OBJECT_BYTES_MAX).into_owned();
        let same = |it: &Kept| it.entry.object == entry.object && it.entry.kind == entry.kind;
        let whole = container(&entry.object);
        let seen = self.objects.contains_key(whole);
        if let Some(place) = seen.then(|| self.newest.iter().position(same)).flatten() {
            self.newest.remove(place);
        } else {
            self.total += 1;
            *self.by_kind.entry(entry.kind.clone()).or_default() += 1;
            *self.objects.entry(whole.to_owned()).or_default() += 1;
        }
        self.newest.push_back(Kept { entry, met });
        if PROBLEMS_MAX < self.newest.len()
            && let Some(oldest) = self.newest.pop_front()
        {
            self.release(container(&oldest.entry.object));
        }
    }

    /// Takes off the list what earlier walks than `walk`, which is over, have met at places where it
    /// has looked too: it is cured, or was met again.
    pub fn settle(&mut self, walk: Walk, has_looked: impl Fn(&str) -> bool) {
        self.take_off(|it| {
            it.met.as_ref().is_some_and(|(met, url)| *met < walk && has_looked(url))
        });
    }

    /// Takes one problem of an object off the list.
    pub fn cure(&mut self, object: &str, kind: &str) {
        let object = shortened(object, OBJECT_BYTES_MAX);
        self.take_off(|it| it.entry.object == object && it.entry.kind == kind);
    }

    fn take_off(&mut self, is_over: impl Fn(&Kept) -> bool) {
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

    /// Takes the problems of an object, and of its members, off the list: it was gathered anew. The
    /// counts stay.
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
        self.newest.iter().rev().map(|it| &it.entry)
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
    fn what_a_later_walk_does_not_meet_again_is_cured() {
        let mut problems = Problems::default();
        let met = |problems: &mut Problems, name: &str, walk| {
            let entry = entry(&format!("file:///r/{name}"), "link-broken", 1);
            problems.push_met(entry, walk);
        };
        met(&mut problems, "a", 1);
        met(&mut problems, "b", 1);
        met(&mut problems, "d/c", 1);
        problems.push(entry("file:///r/a", "broken", 1));
        met(&mut problems, "b", 2);
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
    fn what_is_long_is_shortened_in_the_middle_between_characters() {
        let mut problems = Problems::default();
        let long = format!("file:///{}/end", "x".repeat(4_000));
        problems.push(Entry { message: "é".repeat(400), ..entry(&long, "x", 1) });
        let kept = problems.newest().next().unwrap();
        assert!(kept.message.len() <= MESSAGE_BYTES_MAX + 3 && kept.message.contains("é…é"));
        assert!(kept.object.len() <= OBJECT_BYTES_MAX + 3 && kept.object.ends_with("x/end"));
        problems.resolve(&long);
        assert!(problems.newest().next().is_none());
    }
}
