//! Power cuts at any operation on the disk: what was durable is there, or what came after it, and no byte that
//! is read is wrong.

use disk::faulty::{Faulty, Target, restore};
use http_body_util::BodyExt as _;
use tempfile::TempDir;

use super::record::WHOLE_BYTES_MAX;
use super::tests::{object, put};
use super::*;
use crate::policy::range::Part;
use crate::transfer::{End, Transfer};

/// Number of cuts with room for all, and of cuts where objects make room.
const ROUNDS: u64 = 12;

/// Number of times that the store is opened and closed before the cut, and of changes in each.
const SESSIONS: usize = 3;
const CHANGES: usize = 60;

const URLS: u64 = 25;

/// Words in the name of the operation that is cut.
const POINTS: [&str; 6] = ["", "write", "sync", "create", "list-", "remove"];

/// What may be read of a URL after the cut: versions, and that nothing is stored.
type Possible = Vec<Option<u64>>;

struct Run {
    random: u64,
    /// The last version of an object that was made.
    version: u64,
    possible: Vec<Possible>,
}

/// Returns the body of a version of an object, which begins with the two.
fn body(url: u64, version: u64) -> Vec<u8> {
    // Some are longer than a block, and some so long that they are read in blocks.
    let length = match version {
        it if it % 21 == 0 => WHOLE_BYTES_MAX as u64 + 50_000,
        it if it % 7 == 0 => BLOCK_BYTES as u64 + 40_000,
        it => 500 + it * 7_919 % 9_000,
    };
    let mut text = format!("{url} {version} ").into_bytes();
    text.extend((0..length).map(|at| u8::try_from((at * 31 + url + version) % 251).unwrap()));
    text
}

fn at(url: u64) -> String {
    format!("http://h/{url}")
}

impl Run {
    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below
    }

    /// Stores another version of an object, or removes it.
    async fn change(&mut self, store: &Store, folder: &Path) {
        let url = self.random(URLS);
        let named = at(url);
        let last = if self.random(6) == 0 {
            store.remove(&named);
            None
        } else {
            self.version += 1;
            let bytes = body(url, self.version);
            let small = object("1", "");
            if WHOLE_BYTES_MAX < bytes.len() {
                let transfer = Transfer::new(folder.to_owned(), store.quota());
                for piece in bytes.chunks(100_000) {
                    transfer.append(Bytes::copy_from_slice(piece)).await.unwrap();
                }
                transfer.end(End::Whole);
                put(store, &named, &Arc::new(small.with_body(Content::Transfer(transfer))));
            } else {
                put(store, &named, &Arc::new(small.with_body(Content::Memory(bytes.into()))));
            }
            Some(self.version)
        };
        self.possible[usize::try_from(url).unwrap()].push(last);
        // What is used moves when its segment makes room.
        let used = self.random(URLS);
        store.touch(&at(used));
    }

    /// Works until the power is cut, in the last session at the latest. Returns what is left then.
    async fn work(&mut self, folder: &Path, bytes_max: u64) -> (String, TempDir) {
        let faulty = Faulty::new(folder, self.random);
        for session in 0..SESSIONS {
            if session + 1 == SESSIONS {
                let word = POINTS[usize::try_from(self.random(6)).unwrap()];
                let acts = 1 + self.random(40);
                faulty.cut_at(Target { phase: "", word, acts });
            }
            let disk = Disk::Faulty(Arc::clone(&faulty));
            let Ok(store) = Store::open(disk, folder, bytes_max) else { break };
            for _ in 0..CHANGES {
                self.change(&store, folder).await;
            }
            store.close().await;
            if faulty.is_cut() {
                break;
            }
            // All of it is durable now.
            assert_eq!(store.problem(), None);
            for it in &mut self.possible {
                drop(it.drain(..it.len() - 1));
            }
        }
        let (point, left) = faulty.cut();
        let after = tempfile::tempdir().unwrap();
        restore(&left, after.path()).unwrap();
        (point, after)
    }
}

/// Returns the version of an object that is stored; `None`: none, or one that is damaged.
async fn found(store: &Store, url: u64) -> Option<u64> {
    let read = store.read(&at(url), |_| Rules::default());
    let [Read { object, .. }] = &read[..] else {
        assert!(read.is_empty(), "{read:?}");
        return None;
    };
    let part = Part { start: 0, end: object.body.len() };
    let came = object.body.part(part).collect().await.ok()?.to_bytes();
    let mut words = came.split(|it| *it == b' ');
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<u64>().ok();
    let (named, version) = (number(), number());
    assert_eq!(named, Some(url), "another object's body");
    let version = version.unwrap();
    assert!(came == body(url, version), "a wrong byte in version {version} of {url}");
    Some(version)
}

/// Cuts the power in stores with this room; they lose nothing that is durable if `has_room`.
async fn check(bytes_max: u64, has_room: bool) {
    for round in 1..=ROUNDS {
        let folder = tempfile::tempdir().unwrap();
        let possible = vec![vec![None]; usize::try_from(URLS).unwrap()];
        let random = round.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut run = Run { random, version: 0, possible };
        let (point, after) = run.work(folder.path(), bytes_max).await;
        let mut before = Vec::new();
        // The second time it was closed in order.
        for _ in 0..2 {
            let store = Store::open(Disk::Hasty, after.path(), bytes_max).unwrap();
            let mut seen = Vec::new();
            for (url, possible) in (0..).zip(&run.possible) {
                let version = found(&store, url).await;
                // One that is damaged has replaced what was before it.
                let may_lack = !has_room || 1 < possible.len() || possible.contains(&None);
                let is_right = version.map_or(may_lack, |it| possible.contains(&Some(it)));
                assert!(is_right, "round {round}, {point}: {url} is {version:?} of {possible:?}");
                seen.push(version);
            }
            let is_same = before.is_empty() || before == seen;
            assert!(is_same || !has_room, "round {round}, {point}");
            before = seen;
            store.close().await;
        }
        // It goes on as any other.
        let store = Store::open(Disk::Hasty, after.path(), bytes_max).unwrap();
        put(&store, &at(0), &object("1", "new"));
        store.close().await;
        let store = Store::open(Disk::Hasty, after.path(), bytes_max).unwrap();
        let read = store.read(&at(0), |_| Rules::default());
        assert_eq!(read[0].object.body.in_memory().unwrap(), "new");
        store.close().await;
    }
}

#[tokio::test]
async fn a_power_cut_costs_nothing_that_was_durable() {
    check(32 << 20, true).await;
}

#[tokio::test]
async fn a_power_cut_brings_nothing_back_that_made_room() {
    check(2 << 20, false).await;
}
