//! Model tests of memberships: random changes, definitions, crashes; checked against each record and query, and by
//! consumers that are told who left.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use collection::{GATHERER_ID, Options};
use settings::Document;

use super::*;
use crate::views::Views;

/// By which consumers pull.
const QUERIES: [&str; 3] = ["apple AND NOT pear", "quince OR medlar", "pear"];
const WORDS: [&str; 4] = ["apple", "pear", "quince", "medlar"];

fn views(definitions: &BTreeMap<&'static str, String>) -> Views {
    let view =
        |(name, query): (&&str, &String)| format!("[[view]]\nname = {name:?}\nquery = {query:?}\n");
    let text: String = definitions.iter().map(view).collect();
    let document = Document::parse(&text).unwrap();
    let views = Views::read(&document.root());
    document.finish().unwrap();
    views
}

fn open(dir: &Path) -> Collection {
    let horizon = Duration::from_millis(20);
    Collection::open(dir, Options { horizon, ..Options::default() }, Stamp(1)).unwrap().0
}

fn record(n: usize, words: &str) -> Record {
    let mut record = Record::new("FILE", format!("http://h/{n}"));
    record.push(GATHERER_ID, "g");
    record.push("Title", words);
    record
}

/// Returns which objects a query has, by each record.
fn matching(collection: &Collection, query: &Query) -> BTreeSet<String> {
    let urls = (0..40).map(|n| format!("http://h/{n}"));
    let live = urls.filter_map(|it| collection.get(&Oid::new("g", &it)).unwrap());
    live.filter(|it| query.matches(&it.record).is_some()).map(|it| it.record.url).collect()
}

/// Returns which objects each view and each pulled query has.
fn each(collection: &Collection, all: &Wanted) -> BTreeMap<String, BTreeSet<String>> {
    all.all().map(|(name, query)| (name.to_owned(), matching(collection, query))).collect()
}

/// Returns the same as the notes have it.
fn noted(collection: &Collection, all: &Wanted) -> BTreeMap<String, BTreeSet<String>> {
    let mut noted: BTreeMap<String, BTreeSet<String>> =
        all.all().map(|it| (it.0.to_owned(), BTreeSet::new())).collect();
    for note in collection.notes(OF) {
        let (key, value) = note.unwrap();
        let oid = Oid::from_key(&key[OF.len()..]).unwrap();
        for name in Standing::read(&value).within {
            noted.get_mut(&name).unwrap().insert(oid.url.clone());
        }
    }
    noted
}

/// Consumers, as the feed serves them: what each has, and its cursor under the name of what it takes.
#[derive(Default)]
struct Consumers(BTreeMap<String, (String, Version, BTreeSet<String>)>);

impl Consumers {
    /// Lets a consumer pull the selection of this name, of whose objects `kept` is known. Returns of how many objects it
    /// was told that they left.
    fn pull(
        &mut self,
        (consumer, name, query): (&str, String, &Query),
        kept: Option<KeptSubset>,
        collection: &Collection,
    ) -> usize {
        let (to, mut told) = (collection.version(), 0);
        let known = self.0.remove(consumer);
        let continues = |it: &(String, Version, _)| {
            it.0 == name && it.1.epoch == to.epoch && collection.horizon() <= it.1.serial
        };
        let (since, mut has) = match known.filter(continues) {
            Some((_, version, has)) => (Some(version.serial), has),
            None => (None, BTreeSet::new()),
        };
        let kept = kept.filter(|it| since.is_none_or(|since| it.is_of_use_after(since)));
        let subset = kept.map(|it| it.now().unwrap());
        for scanned in collection.scan(since.unwrap_or_default()).unwrap() {
            let scanned = scanned.unwrap();
            let Some(oid) = scanned.change.oid() else { continue };
            let live = collection.serial(&oid).unwrap();
            let has_left = since.is_some_and(|since| {
                subset.as_ref().is_none_or(|it| it.has_lost(scanned.serial, since))
            });
            let is_there = match scanned.change {
                Change::Update(record) if live == Some(scanned.serial) => {
                    let is_member =
                        subset.as_ref().is_none_or(|it| it.members.contains(scanned.serial));
                    is_member && query.matches(&record).is_some()
                }
                Change::Delete(_) => false,
                Change::Update(_)
                    if subset.as_ref().is_some_and(|it| it.leaves.contains(scanned.serial)) =>
                {
                    false
                }
                _ => continue,
            };
            if is_there {
                has.insert(oid.url);
            } else if has_left {
                told += 1;
                has.remove(&oid.url);
            }
        }
        self.0.insert(consumer.to_owned(), (name, to, has));
        told
    }

    /// Lets the consumers of all views pull, and that of one query, and checks what they have. Returns how many times
    /// the former were told that an object left, and the latter if that is known.
    fn pull_all(
        &mut self,
        random: &mut fastrand::Rng,
        (keeper, collection): (&Membership, &Collection),
        (views, now): (&Views, &BTreeMap<String, BTreeSet<String>>),
    ) -> [usize; 2] {
        let mut told = [0; 2];
        for view in views.all() {
            let (name, kept) = keeper.subset(view).unwrap();
            told[0] += self.pull((&view.name, name, &view.whole), Some(kept), collection);
            assert_eq!(self.0[&view.name].2, now[&view.name], "{}", view.name);
        }
        let text = QUERIES[random.usize(0..QUERIES.len())];
        let query = query::parse(text).unwrap();
        let kept = keeper.pulled(&query, 1);
        let since = self.0.get(text).map(|it| it.1.serial).unwrap_or_default();
        let is_known = kept.as_ref().is_some_and(|it| it.is_of_use_after(since));
        let left = self.pull((text, name_of(&query), &query), kept, collection);
        told[1] += left * usize::from(is_known);
        assert_eq!(self.0[text].2, matching(collection, &query), "{text}");
        told
    }
}

/// Changes some objects.
fn change(random: &mut fastrand::Rng, collection: &Collection, step: u64) {
    let mut changes = BTreeMap::new();
    for _ in 0..=random.usize(0..6) {
        let n = random.usize(0..40);
        let oid = Oid::new("g", &format!("http://h/{n}"));
        let words: Vec<&str> = WORDS.into_iter().filter(|_| random.bool()).collect();
        let is_gone = random.u32(0..5) == 0;
        let update = || Change::Update(record(n, &words.join(" ")));
        changes.insert(n, if is_gone { Change::Delete(oid) } else { update() });
    }
    let changes = changes.into_values().collect();
    collection.commit(Batch { changes, notes: Vec::new() }, Stamp(step + 2)).unwrap();
}

/// Returns how many times a consumer of a view, and one of a query since it is kept, was told that an object left.
fn run(seed: u64) -> [usize; 2] {
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let (present, mut collection) = (Present::default(), open(dir.path()));
    let mut keeper = Membership::new(collection.clone(), present.clone());
    let (mut definitions, mut consumers, mut told) =
        (BTreeMap::new(), Consumers::default(), [0; 2]);
    for step in 0..120 {
        match random.u32(0..20) {
            0 => {
                let name = ["a", "b", "c"][random.usize(0..3)];
                let kind = random.u32(0..4);
                let mut word = || WORDS[random.usize(0..4)];
                let query = match kind {
                    0 => format!("{} AND NOT {}", word(), word()),
                    1 => format!("{} OR {}", word(), word()),
                    _ => word().to_owned(),
                };
                definitions.insert(name, query);
            }
            1 => drop(definitions.pop_first()),
            2 => {
                // As after a kill: what was not committed is gone.
                collection.close();
                drop((keeper, collection));
                collection = open(dir.path());
                keeper = Membership::new(collection.clone(), present.clone());
            }
            3 => drop(collection.compact(Stamp(step + 2)).unwrap()),
            4 => drop(collection.new_epoch(Stamp(step + 2)).unwrap()),
            _ => change(&mut random, &collection, step),
        }
        let views = views(&definitions);
        present.set(views.clone());
        if random.bool() {
            // It is stopped midway.
            let left = Cell::new(random.u32(0..30));
            keeper.round(&|| left.replace(left.get().saturating_sub(1)) == 0).unwrap();
            continue;
        }
        // An object changes while a round is under way.
        let late = Cell::new(random.bool());
        let during = || {
            if late.replace(false) {
                change(&mut fastrand::Rng::with_seed(step), &collection, step);
            }
            false
        };
        keeper.round(&during).unwrap();
        let reached = keeper.round(&|| false).unwrap();
        assert_eq!(reached, Some(collection.version()), "seed {seed}, step {step}");
        let queries = keeper.0.queries.borrow().clone();
        let all = Wanted { views: views.clone(), queries };
        let now = each(&collection, &all);
        assert_eq!(noted(&collection, &all), now, "seed {seed}, step {step}");
        let counts = keeper.counts().unwrap_or_default();
        for (name, members) in now.iter().filter(|it| pulled::is_view(it.0)) {
            let count = counts.get(name).copied().unwrap_or_default();
            assert_eq!(count, members.len() as u64, "seed {seed}, step {step}: {name}");
        }
        // Some pull seldom.
        if random.u32(0..3) == 0 {
            let [of_views, of_queries] =
                consumers.pull_all(&mut random, (&keeper, &collection), (&views, &now));
            told = [told[0] + of_views, told[1] + of_queries];
        }
    }
    told
}

#[test]
fn nobody_is_told_twice_that_an_object_left() {
    let dir = tempfile::tempdir().unwrap();
    let (present, collection) = (Present::default(), open(dir.path()));
    let keeper = Membership::new(collection.clone(), present.clone());
    let views = views(&BTreeMap::from([("a", "apple".to_owned())]));
    present.set(views.clone());
    let (view, mut consumers) = (views.get("a").unwrap(), BTreeMap::<_, Consumers>::new());
    let commit = |n: usize, words: &str| {
        let changes = vec![Change::Update(record(n, words))];
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        keeper.round(&|| false).unwrap();
    };
    let mut pull = |consumer: &'static str| {
        let (name, kept) = keeper.subset(view).unwrap();
        let consumer = consumers.entry(consumer).or_default();
        consumer.pull(("a", name, &view.whole), Some(kept), &collection)
    };
    commit(1, "apple");
    commit(2, "apple");
    assert_eq!((pull("often"), pull("seldom")), (0, 0));
    commit(1, "pear");
    assert_eq!((pull("often"), pull("often")), (1, 0));
    for words in ["quince", "medlar", "pear"] {
        commit(1, words);
        assert_eq!(pull("often"), 0);
        collection.compact(Stamp(2)).unwrap();
    }
    // The change by which it left is not there any more.
    assert_eq!((pull("seldom"), pull("seldom"), pull("often")), (1, 0, 0));
    commit(1, "apple");
    assert_eq!((pull("seldom"), pull("often")), (0, 0));
    commit(1, "pear");
    commit(2, "pear");
    commit(1, "quince");
    // By its leaving, and by its last change.
    assert_eq!((pull("seldom"), pull("often")), (3, 3));
    assert_eq!((pull("seldom"), pull("often")), (0, 0));
}

#[test]
fn memberships_are_exact_whatever_happens() {
    let [of_views, of_queries] = (0..40).map(run).fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
    assert!(100 < of_views && 100 < of_queries, "{of_views}, {of_queries}");
}
