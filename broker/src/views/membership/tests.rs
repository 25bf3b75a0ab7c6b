//! Model tests of memberships: random changes, definitions, crashes; checked against each record and query, and by
//! consumers that are told who left.

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
    let horizon = Duration::from_millis(20);
    Collection::open(dir, Options { horizon, ..Options::default() }, Stamp(1)).unwrap().0
}

fn record(n: usize, words: &str) -> Record {
    let mut record = Record::new("FILE", format!("http://h/{n}"));
    record.push(GATHERER_ID, "g");
    record.push("Title", words);
    record
}

/// Returns which objects each view has, by each query and record.
fn each(collection: &Collection, views: &Views) -> BTreeMap<String, BTreeSet<String>> {
    let of = |view: &View| {
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
        for name in Standing::read(&value).within {
            all.get_mut(&name).unwrap().insert(oid.url.clone());
        }
    }
    all
}

/// Consumers of the views, as the feed serves them: what each has, and its cursor under the name of what it takes.
#[derive(Default)]
struct Consumers(BTreeMap<String, (String, Version, BTreeSet<String>)>);

impl Consumers {
    /// Lets all of them pull, and returns how many were told of objects that left.
    fn pull(&mut self, keeper: &Membership, collection: &Collection, views: &Views) -> usize {
        let (to, mut told) = (collection.version(), 0);
        for view in views.all() {
            let (name, kept) = keeper.subset(view).unwrap();
            let subset = kept.now().unwrap();
            let known = self.0.remove(&view.name);
            let continues = |it: &(String, Version, _)| {
                it.0 == name && it.1.epoch == to.epoch && collection.horizon() <= it.1.serial
            };
            let (since, mut has) = match known.filter(continues) {
                Some((_, version, has)) => (Some(version.serial), has),
                None => (None, BTreeSet::new()),
            };
            for scanned in collection.scan(since.unwrap_or_default()).unwrap() {
                let scanned = scanned.unwrap();
                let Some(oid) = scanned.change.oid() else { continue };
                let live = collection.serial(&oid).unwrap();
                match scanned.change {
                    Change::Update(_) if live == Some(scanned.serial) => {
                        if subset.members.contains(scanned.serial) {
                            has.insert(oid.url);
                        } else if since.is_some() && subset.left.contains(scanned.serial) {
                            told += 1;
                            has.remove(&oid.url);
                        }
                    }
                    Change::Delete(_)
                        if since.is_some() && subset.left.contains(scanned.serial) =>
                    {
                        told += 1;
                        has.remove(&oid.url);
                    }
                    _ => {}
                }
            }
            self.0.insert(view.name.clone(), (name, to, has));
        }
        told
    }
}

/// Returns how many times a consumer was told that an object left.
fn run(seed: u64) -> usize {
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let (present, mut collection) = (Present::default(), open(dir.path()));
    let mut keeper = Membership::new(collection.clone(), present.clone());
    let (mut definitions, mut consumers, mut told) = (BTreeMap::new(), Consumers::default(), 0);
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
        // Some pull seldom.
        if random.u32(0..3) == 0 {
            told += consumers.pull(&keeper, &collection, &views);
            for (name, members) in &now {
                assert_eq!(&consumers.0[name].2, members, "seed {seed}, step {step}: {name}");
            }
        }
    }
    told
}

#[test]
fn memberships_are_exact_whatever_happens() {
    let told: usize = (0..40).map(run).sum();
    assert!(100 < told, "{told}");
}
