//! Power cuts at any operation on the disk: what was synced and is not committed is there, and all that is there is
//! whole.
//!
//! `HARVEST_CRASH_ROUNDS` is the number of cuts (default 6, and twenty times as many here); `HARVEST_CRASH_SEED` repeats
//! a run.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use disk::faulty::{Faulty, Target, restore};

use super::*;

/// Words in the name of the operation that is cut, each with the highest number of operations before the cut.
const POINTS: [(&str, u64); 7] = [
    ("", 150),
    ("write", 100),
    ("sync", 40),
    ("sync spool", 12),
    ("create", 12),
    ("make directory", 2),
    ("remove", 12),
];

/// Number of processes before the cut, and of acts of each.
const PROCESSES: usize = 3;
const ACTS: usize = 70;

const URLS: u64 = 12;
const SEGMENT_BYTES: u64 = 12_000;

/// What has to be there after the cut, by what was done before.
struct Run {
    random: fastrand::Rng,
    /// The time, which is that of the last answer.
    now_ms: u64,
    /// Begin of the pass.
    began_ms: u64,
    /// Answers that are kept, by URL: the last one is wanted.
    kept: BTreeMap<u64, Vec<(u64, Kept)>>,
    /// The last answer for each URL that was synced, and that was committed.
    synced: BTreeMap<u64, u64>,
    committed: BTreeMap<u64, u64>,
}

fn at(url: u64) -> Url {
    Url::parse(&format!("http://h.example/{url}")).unwrap()
}

fn head(url: u64, at_ms: u64) -> Head {
    let (status, headers) = (200, vec![("etag".to_owned(), at_ms.to_string())]);
    let kind = Kind::Page { status, headers, is_cut: false, sent_bytes: 1, address: None };
    Head { url: at(url).into(), at_ms, kind }
}

fn body(url: u64, at_ms: u64) -> Vec<u8> {
    let length = at_ms * 7_919 % 4_000;
    (0..length).map(|it| u8::try_from((it * 31 + url + at_ms) % 251).unwrap()).collect()
}

impl Run {
    fn new(seed: u64) -> Self {
        let (kept, synced, committed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let random = fastrand::Rng::with_seed(seed);
        Self { random, now_ms: 0, began_ms: 0, kept, synced, committed }
    }

    /// Returns the spool as the next process finds it, whatever has ended the last one.
    fn recover(&self, disk: Disk, folder: &Path) -> Spool {
        let spool = Spool::on(disk, folder.to_owned(), SEGMENT_BYTES);
        spool.recover(|head| {
            let url = head.url.rsplit('/').next().unwrap().parse().unwrap();
            let answered_ms = self.committed.get(&url).copied().unwrap_or_default();
            self.began_ms <= head.at_ms && answered_ms < head.at_ms
        });
        spool
    }

    /// Takes what is left of all URLs, and checks that it is whole, and that nothing is missing of `needed`.
    fn check(&mut self, spool: &Spool, needed: &BTreeMap<u64, u64>, point: &str) {
        self.kept.clear();
        for url in 0..URLS {
            let needed = needed.get(&url).copied().unwrap_or_default();
            let Some((found, bytes, kept)) = spool.take(&at(url)) else {
                assert_eq!(needed, 0, "{point}: {url} is lost");
                continue;
            };
            assert_eq!(found, head(url, found.at_ms), "{point}");
            assert!(bytes == body(url, found.at_ms), "{point}: {url} has a wrong byte");
            assert!(needed <= found.at_ms, "{point}: {url} is an older one");
            self.kept.insert(url, vec![(found.at_ms, kept)]);
        }
    }

    /// Does what a crawl does until the power is cut, or the process is killed.
    fn act(&mut self, spool: &Spool, faulty: &Faulty) {
        for _ in 0..ACTS {
            match self.random.u32(..100) {
                0..70 => {
                    self.now_ms += 1;
                    let (url, at_ms) = (self.random.u64(..URLS), self.now_ms);
                    let kept = spool.keep(&head(url, at_ms), &body(url, at_ms));
                    self.kept.entry(url).or_default().extend(kept.map(|it| (at_ms, it)));
                }
                70..80 => {
                    spool.sync();
                    if !faulty.is_cut() {
                        self.synced = last(&self.kept);
                    }
                }
                80..98 => {
                    // A commit is durable before what it has is let go.
                    let Some(url) = self.random.choice(self.kept.keys().copied()) else { continue };
                    let all = self.kept.remove(&url).unwrap_or_default();
                    self.committed.extend(all.last().map(|it| (url, it.0)));
                    self.synced.remove(&url);
                    drop(all);
                    spool.sweep(&|| false);
                }
                _ => {
                    // The pass is over, and another one begins.
                    self.kept.clear();
                    self.synced.clear();
                    spool.clear();
                    self.began_ms = self.now_ms + 1;
                }
            }
            if faulty.is_cut() {
                return;
            }
        }
    }
}

/// Returns the last answer for each URL.
fn last(kept: &BTreeMap<u64, Vec<(u64, Kept)>>) -> BTreeMap<u64, u64> {
    kept.iter().filter_map(|(url, all)| Some((*url, all.last()?.0))).collect()
}

#[test]
fn a_power_cut_at_any_act_costs_no_more_than_what_was_not_synced() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let rounds = number("HARVEST_CRASH_ROUNDS").unwrap_or(6) * 20;
    let seed = number("HARVEST_CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("HARVEST_CRASH_SEED={seed}");
    let mut lost = 0;
    for round in 0..rounds {
        let mut run = Run::new(seed.wrapping_add(round));
        let dir = tempfile::tempdir().unwrap();
        let faulty = Faulty::new(dir.path(), run.random.u64(..));
        let (word, most) = POINTS[run.random.usize(..POINTS.len())];
        faulty.cut_at(Target { phase: "", word, acts: run.random.u64(1..=most) });
        let folder = dir.path().join("spool").join("root");
        for _ in 0..PROCESSES {
            let spool = run.recover(Disk::Faulty(faulty.clone()), &folder);
            // A kill alone loses nothing.
            let needed = last(&run.kept);
            run.check(&spool, &needed, "killed");
            run.act(&spool, &faulty);
            if faulty.is_cut() {
                break;
            }
        }
        let (point, left) = faulty.cut();
        let point = format!("round {round}, {point}");
        let after = tempfile::tempdir().unwrap();
        restore(&left, after.path()).unwrap();
        let folder = after.path().join("spool").join("root");
        let spool = run.recover(Disk::Hasty, &folder);
        let (before, needed) = (run.kept.len(), run.synced.clone());
        run.check(&spool, &needed, &point);
        lost += before - run.kept.len();
        // It goes on as any other.
        run.now_ms += 1;
        let (head, body) = (head(0, run.now_ms), body(0, run.now_ms));
        drop(spool.keep(&head, &body).unwrap());
        drop((run.kept.clear(), spool));
        let spool = run.recover(Disk::Hasty, &folder);
        assert_eq!(spool.take(&at(0)).unwrap().0, head, "{point}");
    }
    assert!(0 < lost, "no cut has lost anything");
}
