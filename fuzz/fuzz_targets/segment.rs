//! Fuzzing of a segment: any bytes overwrite a part of a sound segment, are inserted into it, or
//! replace its end. The collection opens or returns an error; its objects can be read or are named
//! as damaged; and a second opening finds the same state.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use collection::{Batch, Change, Collection, Note, Options, Stamp};
use libfuzzer_sys::fuzz_target;
use soif::Record;

const SEGMENT: &str = "segment-00000001.gz";
/// Number of objects of the sound collection, two to a commit.
const OBJECTS: u64 = 12;

fn open(dir: &Path) -> Result<Collection, collection::Error> {
    let options = Options { member_bytes_max: 256, ..Options::default() };
    Collection::open(dir, options, Stamp(5)).map(|(collection, _)| collection)
}

/// Returns the folder for the rounds of this process, in memory if the system can.
fn temp(name: &str) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    base.join(format!("harvest-fuzz-{}-{name}", std::process::id()))
}

/// Returns the manifest and the segment of a sound collection.
fn sound() -> &'static (Vec<u8>, Vec<u8>) {
    static SOUND: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
    SOUND.get_or_init(|| {
        let dir = temp("sound");
        let collection = open(&dir).expect("an empty folder");
        for first in (0..OBJECTS).step_by(2) {
            let changes = [first, first + 1].map(|n| {
                let mut record = Record::new("FILE", format!("http://h/{n}"));
                record.push("Gatherer-Id", "g");
                record.push("Title", n.to_string());
                Change::Update(record)
            });
            let note = Note { key: b"n".to_vec(), value: Some(vec![first as u8]) };
            let batch = Batch { changes: changes.to_vec(), notes: vec![note] };
            collection.commit(batch, Stamp(5)).expect("there is room");
        }
        collection.close();
        let read = |name: &str| fs::read(dir.join(name)).expect("it is there");
        let files = (read("MANIFEST"), read(SEGMENT));
        drop(fs::remove_dir_all(&dir));
        files
    })
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    let (how, at, bytes) = input;
    let (manifest, segment) = sound();
    let at = usize::from(at) % (segment.len() + 1);
    let end = (at + bytes.len()).min(segment.len());
    let rest = match how % 3 {
        0 => &segment[end..],
        1 => &segment[at..],
        _ => &[],
    };
    let dir = temp("round");
    drop(fs::remove_dir_all(&dir));
    fs::create_dir_all(&dir).expect("there is room");
    fs::write(dir.join("MANIFEST"), manifest).expect("there is room");
    fs::write(dir.join(SEGMENT), [&segment[..at], bytes, rest].concat()).expect("there is room");
    if let Ok(collection) = open(&dir) {
        let (objects, version) = (collection.len(), collection.version());
        let report = collection.verify();
        let sound = collection.scan(0).expect("it is open").all(|it| it.is_ok());
        let named = report.map_or(true, |it| !it.problems.is_empty());
        assert!(
            sound || named || 0 < collection.health().damaged_total,
            "damage that is not reported"
        );
        collection.close();
        drop(collection);
        let again = open(&dir).expect("an opened collection opens again");
        assert_eq!((again.len(), again.version()), (objects, version));
        again.close();
    }
});
