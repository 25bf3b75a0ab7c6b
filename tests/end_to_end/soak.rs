//! Soak test: random changes under a watching `harvest up`. Then search finds exactly the files.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use net::clock;

use crate::harness::{Running, harvest, total, wait_for_total, write};

/// Maximum number of files at a time. The deletions between two walks (30 % and more than 100
/// files) would be held back if new files did not make up for them. The changes come so fast that
/// the watcher's queue overflows; then only a walk can find the files.
const FILES_MAX: usize = 200;

/// A small generator of random numbers: a seed gives the same run on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

#[test]
fn random_changes_for_a_while_end_in_agreement() {
    let seconds: u64 =
        std::env::var("HARVEST_SOAK_SECONDS").map_or(5, |text| text.parse().unwrap());
    let seed = 0x0005_0a4b_u64;
    println!("seed {seed}, {seconds} s");
    let mut random = Random(seed);
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(tree.path(), "first.txt", "alwaysthere\n");
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0"]);
    command.arg("--data").arg(data.path()).arg(tree.path());
    let mut running = Running::start(command);
    let page = running.gathered_url();
    wait_for_total(&page, "alwaysthere", 1);

    // The existing files: path → the word in it. Every word is used once.
    let mut model: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut gone: Vec<String> = Vec::new();
    let end = clock::monotonic() + Duration::from_secs(seconds);
    let mut changes = 0_u64;
    while clock::monotonic() < end {
        changes += 1;
        let word = format!("soakword{changes}x");
        let pick = |random: &mut Random, model: &BTreeMap<PathBuf, String>| {
            model.keys().nth(random.below(model.len())).cloned().unwrap()
        };
        match random.below(10) {
            0..=4 if model.len() < FILES_MAX => {
                let name = format!("d{}/e{}/f{changes}.txt", random.below(5), random.below(5));
                let path = write(tree.path(), &name, format!("{word} of a soak\n"));
                model.insert(path, word);
            }
            5 | 6 if !model.is_empty() => {
                let path = pick(&mut random, &model);
                // Another length each time: the same second and size must not hide a change.
                fs::write(&path, format!("{word} {}\n", "again ".repeat(1 + random.below(50))))
                    .unwrap();
                gone.extend(model.insert(path, word));
            }
            7 if !model.is_empty() => {
                let path = pick(&mut random, &model);
                fs::remove_file(&path).unwrap();
                gone.extend(model.remove(&path));
            }
            8 if !model.is_empty() => {
                let path = pick(&mut random, &model);
                let to = path.with_file_name(format!("r{changes}.txt"));
                fs::rename(&path, &to).unwrap();
                let word = model.remove(&path).unwrap();
                model.insert(to, word);
            }
            9 => {
                // A query in between slows the run to the pace of a busy folder.
                assert_eq!(total(&page, "alwaysthere"), 1);
            }
            _ => {}
        }
    }
    println!("{changes} changes, {} files, {} words gone", model.len(), gone.len());
    for word in model.values() {
        wait_for_total(&page, word, 1);
    }
    for word in gone.iter().rev().take(200) {
        wait_for_total(&page, word, 0);
    }
    wait_for_total(&page, "soak OR again", u64::try_from(model.len()).unwrap());
    assert!(running.stop("INT").success());
}
