//! Model tests of memberships: random changes, definitions, crashes; checked against each record and query.

use std::cell::Cell;
use std::collections::BTreeMap;
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

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let (present, mut collection) = (Present::default(), open(dir.path()));
    let mut keeper = Membership::new(collection.clone(), present.clone());
    let mut definitions = BTreeMap::new();
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
        let reached = keeper.round(&|| false).unwrap();
        assert_eq!(reached, Some(collection.version()), "seed {seed}, step {step}");
        let now = each(&collection, &views);
        assert_eq!(noted(&collection, &views), now, "seed {seed}, step {step}");
        let counts = keeper.counts().unwrap_or_default();
        for (name, members) in &now {
            let count = counts.get(name).copied().unwrap_or_default();
            assert_eq!(count, members.len() as u64, "seed {seed}, step {step}: {name}");
        }
    }
}

#[test]
fn memberships_are_exact_whatever_happens() {
    (0..20).for_each(run);
}
