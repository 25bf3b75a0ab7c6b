//! Model tests of memberships: random changes, definitions, crashes; checked against each record and query.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use collection::{GATHERER_ID, Options};
use settings::Document;

use super::*;

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
    Collection::open(dir, Options::default(), Stamp(1)).unwrap().0
}

fn record(n: usize, words: &str) -> Record {
    let mut record = Record::new("FILE", format!("http://h/{n}"));
    record.push(GATHERER_ID, "g");
    record.push("Title", words);
    record
}

/// Returns which objects each view has, by each query and record.
fn each(collection: &Collection, views: &Views) -> BTreeMap<String, BTreeSet<String>> {
    let of = |view: &super::super::View| {
        let live = (0..40)
            .filter_map(|n| collection.get(&Oid::new("g", &format!("http://h/{n}"))).unwrap());
        let matching = live.filter(|it| view.whole.matches(&it.record).is_some());
        (view.name.clone(), matching.map(|it| it.record.url).collect())
    };
    views.all().map(of).collect()
}

/// Returns the same as the notes have it.
fn noted(collection: &Collection, views: &Views) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> =
        views.all().map(|it| (it.name.clone(), BTreeSet::new())).collect();
    for note in collection.notes(OF) {
        let (key, value) = note.unwrap();
        let oid = Oid::from_key(&key[OF.len()..]).unwrap();
        for name in std::str::from_utf8(&value).unwrap().lines() {
            all.get_mut(name).unwrap().insert(oid.url.clone());
        }
    }
    all
}

/// What each view had at some serials, with its definition.
type History = HashMap<String, (String, Vec<(u64, BTreeSet<String>)>)>;

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let (present, mut collection) = (Present::default(), open(dir.path()));
    let mut keeper = Membership::new(collection.clone(), present.clone());
    let mut definitions = BTreeMap::new();
    let mut history: History = HashMap::new();
    for step in 0..120 {
        match random.u32(0..20) {
            0 => {
                let name = ["a", "b", "c"][random.usize(0..3)];
                let word = || WORDS[fastrand::usize(0..4)];
                let query = match random.u32(0..4) {
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
            _ => {
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
        }
        let views = views(&definitions);
        present.set(views.clone());
        if random.bool() {
            // It is stopped midway.
            let left = Cell::new(random.u32(0..30));
            keeper.round(&|| left.replace(left.get().saturating_sub(1)) == 0).unwrap();
            continue;
        }
        keeper.round(&|| false).unwrap();
        let version = collection.version();
        assert_eq!(keeper.reached(), Some(version), "seed {seed}, step {step}");
        let now = each(&collection, &views);
        // Another definition is another view.
        history.retain(|name, (query, _)| definitions.get(name.as_str()) == Some(query));
        assert_eq!(noted(&collection, &views), now, "seed {seed}, step {step}");
        let counts = keeper.counts().unwrap_or_default();
        for (name, members) in &now {
            let count = counts.get(name).copied().unwrap_or_default();
            assert_eq!(count, members.len() as u64, "seed {seed}, step {step}: {name}");
        }
        for (name, query) in &definitions {
            history.entry((*name).to_owned()).or_insert_with(|| (query.clone(), Vec::new()));
        }
        let what = format!("seed {seed}, step {step}");
        check_left(&keeper, (version.serial, &now), &mut history, &what);
    }
}

/// Checks who left each view since earlier serials.
fn check_left(
    keeper: &Membership,
    (serial, now): (u64, &BTreeMap<String, BTreeSet<String>>),
    history: &mut History,
    what: &str,
) {
    for (name, members) in now {
        let past = &mut history.get_mut(name).unwrap().1;
        past.retain(|(since, _)| keeper.left(name, *since, serial).unwrap().is_some());
        for (since, had) in past.iter() {
            let left = keeper.left(name, *since, serial).unwrap().unwrap();
            let left: BTreeSet<&String> = left.iter().map(|it| &it.url).collect();
            let missing: Vec<_> = had.difference(members).filter(|it| !left.contains(it)).collect();
            assert!(missing.is_empty(), "{what}: {missing:?} left {name} after {since}");
        }
        past.push((serial, members.clone()));
    }
}

#[test]
fn memberships_are_exact_whatever_happens() {
    (0..20).for_each(run);
}

#[test]
fn who_left_is_known_from_the_beginning_of_a_view() {
    let dir = tempfile::tempdir().unwrap();
    let (present, collection) = (Present::default(), open(dir.path()));
    let keeper = Membership::new(collection.clone(), present.clone());
    let commit = |changes: Vec<Change>| {
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap().serial
    };
    let update = |n, words| Change::Update(record(n, words));
    commit(vec![update(1, "apple"), update(2, "apple"), update(3, "pear")]);
    present.set(views(&BTreeMap::from([("a", "apple".to_owned())])));
    keeper.round(&|| false).unwrap();
    let begun = collection.version().serial;
    assert_eq!(keeper.left("a", begun - 1, begun).unwrap(), None, "not of before");
    // One leaves, one that never was in it changes, one comes.
    let then = commit(vec![update(1, "pear"), update(3, "quince"), update(4, "apple")]);
    keeper.round(&|| false).unwrap();
    let urls = |since, to| {
        let left = keeper.left("a", since, to).unwrap().unwrap();
        left.into_iter().map(|it| it.url).collect::<BTreeSet<String>>()
    };
    assert_eq!(urls(begun, then), BTreeSet::from(["http://h/1".to_owned()]));
    let last = commit(vec![Change::Delete(Oid::new("g", "http://h/4"))]);
    keeper.round(&|| false).unwrap();
    assert_eq!(urls(then, last), BTreeSet::from(["http://h/4".to_owned()]));
    assert_eq!(urls(begun, then).len(), 1);
    assert_eq!(keeper.left("b", begun, last).unwrap(), None);
}
