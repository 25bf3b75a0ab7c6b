//! A real disk that fills up: a file system of a few megabytes, mounted by a child in a namespace
//! of its own. Where the system does not allow that, the test fails and says what to do.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests may panic, and a child reports"
)]

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use collection::{Batch, Change, Collection, Error, Oid, Options, Stamp};
use soif::Record;

/// Environment variable of the child: the path of the small disk.
const DISK: &str = "HARVEST_SMALL_DISK";

fn update(n: u64, state: &mut u64) -> Batch {
    let mut record = Record::new("FILE", format!("http://h/{n}"));
    record.push("Gatherer-Id", "g");
    let noise = std::iter::repeat_with(|| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_le_bytes()[7]
    });
    record.push("Body", noise.take(20_000).collect::<Vec<u8>>());
    Batch { changes: vec![Change::Update(record)], notes: Vec::new() }
}

/// Runs as the child, on the small disk.
#[test]
fn child() {
    let Some(disk) = env::var_os(DISK).map(PathBuf::from) else { return };
    let options = Options { segment_bytes_max: 256 << 10, ..Options::default() };
    let dir = disk.join("collection");
    let (collection, _) = Collection::open(&dir, options.clone(), Stamp(1)).unwrap();
    let (mut state, mut refusals) = (1, 0);
    for n in 0..2_000 {
        let Err(error) = collection.commit(update(n % 20, &mut state), Stamp(2)) else { continue };
        refusals += 1;
        assert!(matches!(error, Error::NoRoom { .. }), "{error}");
        assert!(error.to_string().starts_with("not accepting changes: free "), "{error}");
        assert_eq!(collection.health().refusing, Some(error.to_string()));
        assert!(collection.get(&Oid::new("g", "http://h/1")).unwrap().is_some());
        assert_eq!(collection.scan(0).unwrap().filter(Result::is_err).count(), 0);
        // The reserve is enough for a compaction, which gives room back.
        collection.compact_if_due(Stamp(2)).unwrap().unwrap();
        collection.commit(update(n % 20, &mut state), Stamp(2)).unwrap();
        assert_eq!(collection.health().refusing, None);
    }
    assert!(5 < refusals, "{refusals}");
    // Another program takes all the space, and gives it back.
    let other = disk.join("other");
    let mut bytes = 4 << 20;
    while 512 < bytes {
        let taken = fs::metadata(&other).map_or(0, |it| it.len());
        let all = vec![1; usize::try_from(taken + bytes).unwrap()];
        if fs::write(&other, all).is_err() {
            bytes /= 2;
            fs::write(&other, vec![1; usize::try_from(taken).unwrap()]).unwrap();
        }
    }
    assert!(collection.commit(update(1, &mut state), Stamp(3)).unwrap_err().may_pass());
    assert_eq!(collection.len(), 20);
    fs::remove_file(other).unwrap();
    collection.commit(update(1, &mut state), Stamp(3)).unwrap();
    drop(collection);
    let (collection, recovery) = Collection::open(&dir, options, Stamp(4)).unwrap();
    assert!(!recovery.lost && recovery.cut.is_empty(), "{recovery:?}");
    assert_eq!((collection.len(), collection.verify().unwrap().problems), (20, vec![]));
    println!("refused {refusals} times");
}

#[test]
fn a_small_disk_refuses_in_time_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=6m none \"${DISK}\" && exec \"$0\" child --exact --nocapture"
    );
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script])
        .arg(env::current_exe().unwrap())
        .env(DISK, folder.path())
        .output()
        .expect("it needs unshare: apt-get install util-linux");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}\n(it needs a kernel that lets users mount: sysctl user.max_user_namespaces, and \
         kernel.apparmor_restrict_unprivileged_userns=0)",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("refused "), "{said}");
}
