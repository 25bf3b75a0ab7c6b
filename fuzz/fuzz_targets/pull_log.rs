//! Fuzzing of the log of pulls: any bytes in two files. Pulls that are read survive writing and
//! reading, no line is read twice, and an appended pull is read after all earlier ones.

#![no_main]

use std::fs;
use std::path::PathBuf;

use broker::pull_log::{self, HEADER, LINE_BYTES_MAX, Malformed, Outcome, Pull, PullLog};
use libfuzzer_sys::fuzz_target;

/// Returns the folder for the rounds of this process, in memory if the system can.
fn rounds_folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    base.join(format!("harvest-fuzz-{}-pulls", std::process::id()))
}

fn sound(items: &[Result<Pull, Malformed>]) -> Vec<&Pull> {
    items.iter().flatten().collect()
}

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (how, first, second) = input;
    let folder = rounds_folder();
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("there is room");
    let mut lines = 0;
    for (nth, bytes) in [first, second].into_iter().enumerate() {
        let header = if how >> nth & 1 == 1 { format!("{HEADER}\n") } else { String::new() };
        let bytes = [header.as_bytes(), bytes].concat();
        lines += bytes.iter().filter(|it| **it == b'\n').count();
        let name = format!("pulls-{:010}.tsv", nth + 1);
        fs::write(folder.join(name), bytes).expect("there is room");
    }
    let before: Vec<_> = pull_log::read(&folder).expect("it is there").collect();
    assert!(before.len() <= lines);
    for pull in sound(&before) {
        let line = pull.to_string();
        assert!(line.len() <= LINE_BYTES_MAX);
        assert_eq!(line.parse().as_ref(), Ok(pull));
    }
    let pull = Pull {
        ended_ms: 1,
        source: "a".to_owned(),
        outcome: Outcome::Snapshot,
        changes: 2,
        elements: None,
        bytes: 3,
        took_ms: 4,
    };
    let mut log = PullLog::open(&folder).expect("it is there");
    log.append(&pull).expect("there is room");
    let after: Vec<_> = pull_log::read(&folder).expect("it is there").collect();
    let mut expected = sound(&before);
    expected.push(&pull);
    assert_eq!(sound(&after), expected);
});
