//! Tests of power cuts: after any loss of unsynced writes, the index has an earlier state of the
//! log with a known version, or is built anew without help.
//!
//! `HARVEST_CRASH_ROUNDS` is the number of rounds (default 6).

use std::env;

use super::disk::{Disk, Fault, Loss, Random};
use super::model::{check, check_whole, contents, expected, grow, try_apply};
use super::*;

/// The first seed; the seed of a round is the sum of this and the round's number.
const SEED: u64 = 20_261_122;

fn open(disk: &Disk, dir: &Path, commit_changes_max: usize) -> Result<Index, Error> {
    let options = IndexOptions { threads: 1, heap_bytes: 16 << 20, commit_changes_max };
    Index::open_at(dir, options, Storage::Disk(disk.clone()))
}

#[test]
fn after_a_power_cut_the_index_matches_its_version_and_catches_up() {
    let rounds = env::var("HARVEST_CRASH_ROUNDS").ok().and_then(|it| it.parse().ok());
    let rounds: u64 = rounds.unwrap_or(6);
    let dir = tempfile::tempdir().unwrap();
    for loss in [Loss::Whole, Loss::Halves] {
        let (mut disk, mut log) = (Disk::default(), Vec::new());
        let (mut cuts, mut kept) = (0, 0);
        for round in 0..rounds {
            let mut random = Random::new(SEED + round);
            let size = 3 + random.below(20);
            // In one round of four the power is cut while the index is opened, perhaps for the
            // first time.
            let early = round % 4 == 1;
            let after = if early { random.below(6) } else { random.below(250) };
            let point = format!("seed {} ({loss:?}), cut after {after} writes", SEED + round);
            if early {
                disk.fail(Fault::CutAfter(after));
            }
            let opened = open(&disk, dir.path(), size);
            disk.fail(Fault::CutAfter(after));
            if let Ok(index) = opened {
                for _ in 0..4 {
                    grow(&mut log, 5 + random.below(25), &mut random);
                    if try_apply(&index, &log).is_err() {
                        break;
                    }
                }
                // The index answers only from commits.
                check(&index, &log, &point);
            }
            cuts += usize::from(disk.is_cut());
            disk = disk.after_power_cut(loss, &mut random);

            let index = open(&disk, dir.path(), size).unwrap_or_else(|it| panic!("{point}: {it}"));
            kept += usize::from(index.covered().is_some());
            check(&index, &log, &point);
            assert_eq!(index.verify(&|| false).unwrap(), Vec::<PathBuf>::new(), "{point}");
            try_apply(&index, &log).unwrap_or_else(|error| panic!("{point}: {error}"));
            check_whole(&index, &log, &point);
        }
        println!("{loss:?}: {rounds} rounds, {cuts} cut, {kept} kept what was committed");
        assert!(0 < cuts && 0 < kept, "{loss:?}: {cuts} cuts, {kept} kept: this tests nothing");
    }
}

#[test]
fn a_covered_version_survives_a_power_cut() {
    // Every sync must come before the index reports its version.
    let dir = tempfile::tempdir().unwrap();
    let (mut log, mut random) = (Vec::new(), Random::new(SEED));
    for loss in [Loss::Whole, Loss::Halves] {
        let disk = Disk::default();
        let index = open(&disk, dir.path(), 7).unwrap();
        for _ in 0..12 {
            grow(&mut log, 10, &mut random);
            try_apply(&index, &log).unwrap();
            let later = disk.after_power_cut(loss, &mut random);
            let later = open(&later, dir.path(), 7).unwrap();
            assert_eq!(later.covered(), index.covered());
            assert_eq!(contents(&later), expected(&log));
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found_and_the_index_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::new(SEED);
    let mut log = Vec::new();
    grow(&mut log, 60, &mut random);
    let mut times = 0;
    for suffix in [".term", ".idx", ".pos", ".store", ".fast", ".fieldnorm", "meta.json"] {
        for _ in 0..8 {
            let disk = Disk::default();
            let index = open(&disk, dir.path(), 100).unwrap();
            try_apply(&index, &log).unwrap();
            assert!(disk.flip(suffix, &mut random), "no {suffix}");
            // Some bits have no effect: those of the engine's version at a file's end and of spaces
            // in the segment list.
            times += index.verify(&|| false).unwrap().len();
            try_apply(&index, &log).unwrap();
            assert_eq!(index.covered().unwrap().serial, 60, "{suffix}");
            assert_eq!(contents(&index), expected(&log), "{suffix}");
            drop(index);
            let index = open(&disk, dir.path(), 100).unwrap();
            try_apply(&index, &log).unwrap();
            assert_eq!(contents(&index), expected(&log), "{suffix}, opened again");
        }
    }
    assert!(40 < times, "{times} of 56 found");
}
