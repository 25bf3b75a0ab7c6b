//! Fuzzing of the feed's consumer: gzip members of a sound source are left out, repeated,
//! reordered, cut and altered, with wrong end marks and random bytes. The collection takes members
//! that are sound and in order, reports why it stops, has no cursor beyond the given changes, and
//! stays whole.

#![no_main]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use collection::fuzzing::{SOURCE, take_in};
use collection::member::{Decoder, end_mark};
use collection::{Batch, Change, Collection, Epoch, Oid, Options, Stamp, Version};
use libfuzzer_sys::fuzz_target;
use soif::Record;

/// Number of commits of the sound source, of two changes each.
const COMMITS: u64 = 8;
/// Maximum number of parts of one stream.
const PARTS_MAX: usize = 24;

fn open(dir: &Path) -> Collection {
    let options = Options { member_bytes_max: 256, ..Options::default() };
    Collection::open(dir, options, Stamp(5)).expect("there is room").0
}

/// Returns the folder for the rounds of this process, in memory if the system can.
fn temp(name: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    base.join(format!("harvest-fuzz-{}-{name}", std::process::id()))
}

/// Returns the gzip members of a sound source, and its version.
fn sound() -> &'static (Vec<Vec<u8>>, Version) {
    static SOUND: OnceLock<(Vec<Vec<u8>>, Version)> = OnceLock::new();
    SOUND.get_or_init(|| {
        let dir = temp("sound");
        let collection = open(&dir);
        for commit in 0..COMMITS {
            let url = |n: u64| format!("http://h/{}", n % 9);
            let mut record = Record::new("FILE", url(commit));
            record.push("Gatherer-Id", "g");
            record.push("Title", commit.to_string());
            let gone = Oid { gatherer: "g".to_owned(), url: url(commit + 6) };
            let changes = vec![Change::Update(record), Change::Delete(gone)];
            collection
                .commit(Batch { changes, notes: Vec::new() }, Stamp(5))
                .expect("there is room");
        }
        let version = collection.version();
        collection.close();
        let segment = std::fs::read(dir.join("segment-00000001.gz")).expect("it is there");
        drop(std::fs::remove_dir_all(&dir));
        let mut decoder = Decoder::new(1 << 20);
        decoder.feed(&segment);
        let mut members = Vec::new();
        while let Some(member) = decoder.next_member().expect("it is sound") {
            let at = member.offset as usize;
            members.push(segment[at..at + member.length as usize].to_vec());
        }
        (members, version)
    })
}

/// Makes one part of a stream.
fn part((way, which, noise): (u8, u8, &[u8])) -> Vec<u8> {
    let (members, version) = sound();
    let mut member = members[usize::from(which) % members.len()].clone();
    match way % 8 {
        // Mostly sound members, so that a stream makes progress.
        0..=3 => member,
        4 => {
            member.truncate(usize::from(which).min(member.len()));
            member
        }
        5 => {
            for (byte, noise) in member.iter_mut().zip(noise) {
                *byte ^= noise;
            }
            member
        }
        6 => end_mark(Version { serial: u64::from(which), ..*version }),
        _ => noise.to_vec(),
    }
}

fuzz_target!(|input: (u8, u8, u8, Vec<(u8, u8, &[u8])>)| {
    let (snapshot, to, epochs, mut parts) = input;
    parts.truncate(PARTS_MAX);
    let dir = temp("round");
    drop(std::fs::remove_dir_all(&dir));
    let collection = open(&dir);
    let (_, version) = sound();
    let epoch = if epochs == 0 { Epoch(7) } else { version.epoch };
    let to = Version { epoch, serial: u64::from(to) };
    let stream: Vec<Vec<u8>> = parts.into_iter().map(part).collect();
    let pieces: Vec<&[u8]> = stream.iter().map(Vec::as_slice).collect();
    for round in 0..2 {
        let generation = (snapshot % 2 == 1).then_some(1 + round);
        let outcome = take_in(&collection, generation, to, &pieces);
        let cursor = collection.cursor(SOURCE).expect("it is open");
        let serial = cursor.as_ref().map_or(0, |it| it.serial);
        assert!(serial <= to.serial, "the cursor is beyond the feed");
        if outcome.is_ok() {
            assert_eq!((serial, cursor.map(|it| it.epoch)), (to.serial, Some(epoch)));
        }
    }
    assert!(collection.scan(0).expect("it is open").all(|it| it.is_ok()));
    let report = collection.verify().expect("it can be read");
    assert!(report.problems.is_empty(), "{report:?}");
    collection.close();
});
