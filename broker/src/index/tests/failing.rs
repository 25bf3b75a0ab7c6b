//! Tests of a disk that is full or read-only, and of too many open files: the index reports the
//! fault, still answers, and goes on once the fault is gone.

use super::disk::{Disk, Fault, Random};
use super::model::{check, contents, expected, grow, try_apply};
use super::*;

fn open(disk: &Disk, dir: &Path) -> Index {
    let options = IndexOptions { threads: 1, heap_bytes: 16 << 20, commit_changes_max: 10 };
    Index::open_at(dir, options, Storage::Disk(disk.clone())).unwrap()
}

/// Makes the disk fail while changes are applied, and checks that an error begins with `said`.
/// Returns whether there was an error.
fn check_fault(
    fault: Fault,
    said: &str,
    log: &mut Vec<Change>,
    disk: &Disk,
    index: &Index,
) -> bool {
    let mut random = Random::new(log.len() as u64);
    let before = log.len();
    grow(log, 35, &mut random);
    disk.fail(fault);
    let outcome = try_apply(index, log);
    // The index still answers, from whole commits only.
    assert!(before as u64 <= index.covered().unwrap().serial, "{fault:?}");
    check(index, log, &format!("{fault:?}"));
    let failed = match outcome {
        Ok(_) => false,
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with(said), "{fault:?}: {text}");
            // Apply a second time, without any change in between.
            if fault != Fault::None {
                assert!(try_apply(index, log).is_err() || matches!(fault, Fault::Full(_)));
            }
            true
        }
    };
    disk.fail(Fault::None);
    try_apply(index, log).unwrap();
    assert_eq!(contents(index), expected(log), "{fault:?}");
    assert!(!index.is_suspect(), "{fault:?}: a fault of the disk is no damage");
    failed
}

#[test]
fn the_index_reports_a_full_disk_at_any_write_and_recovers() {
    let (disk, dir) = (Disk::default(), tempfile::tempdir().unwrap());
    let index = open(&disk, dir.path());
    let mut log = Vec::new();
    grow(&mut log, 10, &mut Random::new(1));
    try_apply(&index, &log).unwrap();
    let mut failed = 0;
    for bytes in (0..24_000).step_by(600) {
        let said = "no space left for the full-text index in /";
        failed += u32::from(check_fault(Fault::Full(bytes), said, &mut log, &disk, &index));
    }
    assert!(20 < failed, "{failed} failed");
}

#[test]
fn the_index_reports_a_read_only_folder_or_too_many_files_and_recovers() {
    let (disk, dir) = (Disk::default(), tempfile::tempdir().unwrap());
    let index = open(&disk, dir.path());
    let mut log = Vec::new();
    grow(&mut log, 10, &mut Random::new(1));
    try_apply(&index, &log).unwrap();
    for _ in 0..3 {
        assert!(check_fault(Fault::ReadOnly, "the full-text index in /", &mut log, &disk, &index));
        assert!(check_fault(Fault::NoFiles, "too many open files", &mut log, &disk, &index));
    }
}

#[test]
fn an_index_opens_on_a_read_only_disk_and_answers() {
    let (disk, dir) = (Disk::default(), tempfile::tempdir().unwrap());
    let mut log = Vec::new();
    grow(&mut log, 30, &mut Random::new(1));
    try_apply(&open(&disk, dir.path()), &log).unwrap();
    disk.fail(Fault::ReadOnly);
    let index = open(&disk, dir.path());
    assert_eq!(contents(&index), expected(&log));
    grow(&mut log, 30, &mut Random::new(2));
    let said = try_apply(&index, &log).unwrap_err().to_string();
    assert!(said.contains("cannot be written"), "{said}");
    disk.fail(Fault::None);
    try_apply(&index, &log).unwrap();
    assert_eq!(contents(&index), expected(&log));
}
