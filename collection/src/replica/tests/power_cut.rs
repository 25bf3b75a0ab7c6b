//! Power cuts at any disk operation during writes of a log folder: the folder is complete, in its
//! old or its new state.
//!
//! `HARVEST_CRASH_ROUNDS` is the number of cuts (default 6, and ten times as many here);
//! `HARVEST_CRASH_SEED` repeats a run.

use std::env;
use std::fs;
use std::path::Path;

use disk::Disk;
use disk::faulty::{Faulty, Target, restore, world};

use super::{World as Source, take, titles, update};
use crate::replica::fold::fold;
use crate::replica::writer::{Stream, Writer};
use crate::replica::{CHAIN, Chain, Replica, check};

const PHASES: [(&str, &str); 6] = [
    ("append", ""),
    ("append", "log-"),
    ("append", "CHAIN"),
    ("anew", ""),
    ("fold", ""),
    ("open", ""),
];

fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) % below.max(1)
}

fn chain(dir: &Path) -> Option<Chain> {
    let text = fs::read(dir.join(CHAIN)).ok()?;
    Some(Chain::parse(&text).unwrap())
}

#[test]
fn a_power_cut_at_any_act_leaves_a_whole_log() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let rounds = number("HARVEST_CRASH_ROUNDS").unwrap_or(6) * 10;
    let seed = number("HARVEST_CRASH_SEED").unwrap_or_else(|| getrandom::u64().unwrap()).max(1);
    let mut state = seed;
    let mut source = Source::new();
    source.commit((0..40).map(|n| update(n, "first")).collect());
    source.follow(Some(1));
    let mut left = world(&source.log());
    for round in 0..rounds {
        let dir = tempfile::tempdir().unwrap();
        restore(&left, dir.path()).unwrap();
        let before = chain(dir.path());
        let changed = 1 + random(&mut state, 30);
        let changes = (0..changed).map(|_| {
            let n = u32::try_from(random(&mut state, 60)).unwrap();
            update(n, &format!("round {round}"))
        });
        source.commit(changes.collect());

        let (phase, word) = PHASES[usize::try_from(random(&mut state, 6)).unwrap()];
        let acts = 1 + random(&mut state, 14);
        let faulty = Faulty::new(dir.path(), random(&mut state, u64::MAX));
        faulty.cut_at(Target { phase, word, acts });
        faulty.enter("open");
        let disk = Disk::Faulty(faulty.clone());
        let mut acknowledged = before.clone();
        if let Ok(mut writer) = Writer::open(&disk, dir.path()) {
            assert!(faulty.is_cut() || writer.chain() == before.as_ref(), "seed {seed}");
            let since = writer.chain().map_or(0, |it| it.version.serial);
            let life = (phase == "anew" || writer.chain().is_none()).then_some(round + 2);
            let (bytes, to) = source.stream(if life.is_some() { 0 } else { since });
            let objects = source.collection.len();
            faulty.enter(if life.is_some() { "anew" } else { "append" });
            if take(&mut writer, Stream { life, to, objects, owner: None, purged: 0 }, &bytes)
                .is_ok()
                && !faulty.is_cut()
            {
                acknowledged = writer.chain().cloned();
            }
            faulty.enter("fold");
            if phase == "fold" && !faulty.is_cut() {
                let present = writer.chain().unwrap().clone();
                let folded = fold(&disk, dir.path(), &present, dir.path());
                if folded.and_then(|it| writer.replace(it)).is_ok() && !faulty.is_cut() {
                    acknowledged = writer.chain().cloned();
                }
            }
        }
        let (point, there) = faulty.cut();
        println!("seed {seed}, round {round}: power cut in {phase} at {point}");
        let after = tempfile::tempdir().unwrap();
        restore(&there, after.path()).unwrap();
        let mut writer = Writer::open(&Disk::System, after.path()).unwrap();
        let found = writer.chain().cloned();
        assert!(found.is_some(), "an existing log was begun anew");
        let (known, is) = (acknowledged.unwrap(), found.unwrap());
        assert!((known.version, known.base) <= (is.version, is.base), "{known:?}\n{is:?}");
        check(after.path(), None).unwrap();
        let replica = Replica::open(after.path()).unwrap();
        assert_eq!(replica.version(), is.version);
        // The log can be continued.
        let (bytes, to) = source.stream(is.version.serial);
        let stream =
            Stream { life: None, to, objects: source.collection.len(), owner: None, purged: 0 };
        take(&mut writer, stream, &bytes).unwrap();
        check(after.path(), None).unwrap();
        let replica = Replica::open(after.path()).unwrap();
        assert_eq!(titles(replica.view()), source.titles(), "seed {seed}, round {round}");
        left = world(after.path());
    }
}
