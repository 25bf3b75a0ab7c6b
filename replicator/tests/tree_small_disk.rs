//! Tests on a real disk that gets full: a file system of a few megabytes, mounted by a child in its
//! own namespace. Readers see the same as before, the error names a path on the disk, and work goes
//! on once there is room. Few chunks are fetched twice.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use net::identity::Identity;
use replicator::tree::error::Error;
use replicator::tree::fetch::{Fetch, WANTED_MAX};
use replicator::tree::publish::{Draft, Publishing};
use replicator::tree::store::{Options, Store};
use replicator::version::{Kind, Name, Number, Version};

/// Environment of the child: the paths of the small disk and of a large one.
const DISK: &str = "HARVEST_SMALL_DISK";
const ROOM: &str = "HARVEST_LARGE_DISK";
/// Size of the small disk, in MiB; a version has 3.
const DISK_MIB: usize = 12;
const FILE_BYTES: usize = 256 << 10;
const FILES: u64 = 12;

type Files = BTreeMap<String, Vec<u8>>;

fn identity() -> Identity {
    Identity::of(&[3; 32]).unwrap()
}

fn files(seed: u64) -> Files {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut noise = || (0..FILE_BYTES).map(|_| random.u8(..)).collect();
    (0..FILES).map(|n| (format!("{seed}-{n}"), noise())).collect()
}

fn read(dir: &Path) -> Files {
    let one = |entry: fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
    };
    fs::read_dir(dir).unwrap().map(|it| one(it.unwrap())).collect()
}

/// Replaces the directory by the files of a version and publishes it.
fn publish(store: &Arc<Store>, directory: &Path, sequence: u64) -> Result<Version, Error> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).unwrap();
    for (name, bytes) in files(sequence) {
        fs::write(directory.join(name), bytes).unwrap();
    }
    let publishing = Publishing { accepts_loss: true, ..Publishing::default() };
    let draft = Draft::make(store, directory, publishing)?;
    let (name, number) = (Name::new("a").unwrap(), Number { epoch: 1, sequence });
    let bytes = draft.totals().bytes;
    let version = Version::sign(&identity(), name, Kind::Tree, number, bytes, draft.root());
    draft.commit(&version)?;
    Ok(version)
}

/// Fetches a version. Returns the number of chunks that came.
fn fetch(origin: &Store, store: &Arc<Store>, version: &Version) -> (u64, Result<(), Error>) {
    let mut count = 0;
    let outcome = (|| {
        let mut fetch = Fetch::begin(store, version)?;
        loop {
            let wanted = fetch.wanted(WANTED_MAX)?;
            if wanted.is_empty() && fetch.switch()?.is_some() {
                store.remove_old()?;
                return Ok(());
            }
            for it in wanted {
                store.put(&it.hash, &origin.read(&it.hash)?.unwrap())?;
                count += 1;
            }
        }
    })();
    (count, outcome)
}

/// Fills the small disk, except for `free` bytes and less than 64 KiB more.
fn fill(disk: &Path, free: usize) {
    let mut taken = vec![1; DISK_MIB << 20];
    while fs::write(disk.join("other"), &taken).is_err() {
        taken.truncate(taken.len() - (64 << 10));
    }
    taken.truncate(taken.len() - free);
    fs::write(disk.join("other"), &taken).unwrap();
}

/// Runs as the child, on the small disk.
#[test]
fn child() {
    let (Ok(disk), Ok(room)) = (env::var(DISK), env::var(ROOM)) else { return };
    let (disk, room) = (Path::new(&disk), Path::new(&room));
    let options = Options { generations_kept: 0, ..Options::default() };
    let origin = Arc::new(Store::open(&room.join("origin"), Options::default()).unwrap());
    let open = || Arc::new(Store::open(&disk.join("replica"), options).unwrap());
    let mut replica = open();
    let mut refusals = 0;
    let mut chunks = 0;
    for sequence in 1..=12_u64 {
        let version = publish(&origin, &room.join("published"), sequence).unwrap();
        // The room shrinks until there is not even enough for the chunks.
        let free = (7 << 20) - (usize::try_from(sequence).unwrap() << 19);
        fill(disk, free);
        let (mut came, mut outcome) = fetch(&origin, &replica, &version);
        if let Err(error) = &outcome {
            refusals += 1;
            assert!(matches!(error, Error::Full { .. }), "{error}");
            assert!(error.to_string().contains("replica"), "{error}");
            if sequence != 1 {
                let there = replica.current().unwrap();
                assert_eq!(there.meta().number.sequence, sequence - 1);
                assert_eq!(read(&there.tree()), files(sequence - 1));
                assert_eq!(replica.verify().unwrap().damaged_count, 0);
            }
            if sequence % 2 == 0 {
                drop(replica);
                replica = open();
            }
            fs::remove_file(disk.join("other")).unwrap();
            let more;
            (more, outcome) = fetch(&origin, &replica, &version);
            came += more;
        }
        outcome.unwrap();
        assert_eq!(read(&replica.current().unwrap().tree()), files(sequence));
        // Each chunk comes about once: chunks are kept while there is no room for the rest.
        chunks = if chunks == 0 { came } else { chunks };
        assert!(came < chunks + chunks / 4, "{came} chunks came, of the first version {chunks}");
        let _ = fs::remove_file(disk.join("other"));
    }
    // An origin on a full disk publishes nothing, and everything once there is room.
    let own = Arc::new(Store::open(&disk.join("own"), options).unwrap());
    fill(disk, 1 << 20);
    let error = publish(&own, &room.join("published"), 1).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(own.current().is_none());
    fs::remove_file(disk.join("other")).unwrap();
    publish(&own, &room.join("published"), 1).unwrap();
    assert_eq!(read(&own.current().unwrap().tree()), files(1));
    println!("refused {refusals} times");
    assert!(3 <= refusals, "{refusals}");
}

#[test]
fn a_small_disk_refuses_and_goes_on() {
    let (folder, room) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let script = format!(
        "mount -t tmpfs -o size={DISK_MIB}m none \"${DISK}\" && exec \"$0\" child --exact --nocapture"
    );
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .arg(env::current_exe().unwrap())
        .env(DISK, folder.path())
        .env(ROOM, room.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{stdout}{stderr}\n(it needs `unshare -rm` of util-linux, and a kernel that lets users mount)"
    );
    assert!(stdout.contains("refused "), "{stdout}");
}
