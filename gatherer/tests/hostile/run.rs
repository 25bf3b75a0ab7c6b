//! One run of a gatherer over hostile files, good files, and files that change during the read.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use gatherer::config::Watch as Watching;
use gatherer::{Config, spec};

use crate::peak::Watch;
use crate::support::{Bench, Tree};
use crate::{Case, LOOK, OWN_BYTES_MAX, WORKER_BYTES_MAX, all, alone, apart, worker};

const GOOD: usize = 200;
/// Number of files of each kind that change all the time.
const RESTLESS: usize = 10;
const CHANGES: &[&str] = &["growing", "shrinking", "vanishing", "replaced"];
/// Time between two changes of a restless file.
const REST: Duration = Duration::from_millis(2);
/// Maximum length of a hostile file in the run, in bytes: other tests read each file alone.
const CASE_BYTES_MAX: usize = 2 << 20;
/// Longer files that are in the run nevertheless.
const LONG: &[&str] = &["letter.txt", "value.html", "hole.dat", "string.json", "pushes.dvi"];
/// Maximum time of the run.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// Changes the restless files until the other end of the channel is dropped.
fn disturb(root: &Path, over: &Receiver<()>) {
    let words = b"some words of a file that does not stay as it is\n".repeat(4_000);
    let mut round = 0;
    while over.recv_timeout(REST) == Err(RecvTimeoutError::Timeout) {
        round += 1;
        for number in 0..RESTLESS {
            for kind in CHANGES {
                let path = root.join(format!("restless/{kind}{number}.txt"));
                // The file of an earlier change may not exist for the next.
                let _outcome = change(kind, &path, round + number, &words);
            }
        }
    }
}

fn change(kind: &str, path: &Path, round: usize, words: &[u8]) -> io::Result<()> {
    match (kind, round % 3) {
        ("growing", _) if fs::metadata(path)?.len() < 8 << 20 => {
            File::options().append(true).open(path)?.write_all(words)
        }
        ("growing", _) => File::create(path)?.write_all(words),
        ("shrinking", 0) => fs::write(path, words),
        ("shrinking", left) => File::options().write(true).open(path)?.set_len(left as u64 * 100),
        ("vanishing", 0) => fs::write(path, words),
        ("vanishing", _) => fs::remove_file(path),
        (_, 0) => {
            let other = path.with_extension("other");
            fs::write(&other, words)?;
            fs::rename(&other, path)
        }
        (_, 1) => {
            fs::remove_file(path)?;
            std::os::unix::fs::symlink("/etc/passwd", path)
        }
        _ => {
            fs::remove_file(path)?;
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU)?;
            Ok(())
        }
    }
}

/// Writes the hostile files of the run.
pub(crate) fn make(folder: &Path) {
    for case in all() {
        let bytes = (case.make)();
        if bytes.len() <= CASE_BYTES_MAX || LONG.contains(&case.name) {
            fs::write(folder.join(case.name), bytes).unwrap();
        }
    }
}

/// Writes the tree; returns its hostile files, and the good ones.
fn grow(tree: &Tree) -> (Vec<Case>, Vec<String>) {
    let hostile = tree.path("hostile");
    fs::create_dir(&hostile).unwrap();
    fs::create_dir(tree.path("restless")).unwrap();
    apart("a_maker", &hostile, "").unwrap();
    for number in 0..RESTLESS {
        for kind in CHANGES {
            tree.write(&format!("restless/{kind}{number}.txt"), "some words\n");
        }
    }
    let good: Vec<String> = (0..GOOD).map(|it| format!("good/{}/{it}.txt", it % 10)).collect();
    for name in &good {
        tree.write(name, &format!("A good file\n\nIts name is {name}.\n"));
    }
    (all().filter(|it| hostile.join(it.name).exists()).collect(), good)
}

#[test]
fn a_run_over_all_of_them_ends_with_every_good_file() {
    let _alone = alone();
    // In a process of its own, without the memory of other tests.
    apart("a_gatherer", Path::new(""), "").unwrap_or_else(|text| panic!("{text}"));
}

pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(gather());
}

async fn gather() {
    let tree = Tree::new();
    let (cases, good) = grow(&tree);
    let (go_on, over) = mpsc::channel();
    let root: PathBuf = tree.root();
    let disturber = thread::spawn(move || disturb(&root, &over));
    let watch = Watch::start(LOOK);
    // Without a watch the run is one pass.
    let config = Config { worker: Some(worker()), watch: Watching::Off, ..tree.config() };
    let bench = Bench::start_within(tree, config, PATIENCE).await;
    drop(go_on);
    disturber.join().unwrap();
    for name in &good {
        let record = bench.file(name).await;
        assert_eq!(record.text("Title").as_deref(), Some("A good file"), "{name}");
    }
    let problems = bench.handle.problems();
    for case in cases {
        let url = spec::file_url(&bench.tree.path("hostile").join(case.name));
        let has_problem = problems.iter().any(|it| it.object.starts_with(&url));
        assert!(bench.object(&url).await.is_some(), "{} has no record", case.name);
        assert!(has_problem || case.problems.is_empty(), "{} has no problem", case.name);
    }
    assert!(problems.iter().all(|it| it.kind != "fault"), "{problems:#?}");
    bench.assert_conserved();
    bench.tree.write("good/late.txt", "A good file\n\nthat came later\n");
    bench.gather().await;
    bench.file("good/late.txt").await;
    bench.stop().await;
    let peak = watch.stop();
    println!("{peak:?}, {} problems", problems.len());
    assert!(peak.own <= OWN_BYTES_MAX && peak.workers <= WORKER_BYTES_MAX, "{peak:?}");
}
