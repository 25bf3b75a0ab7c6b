//! Tests of log folders: streams taken in, folding, checks and replicas.

mod power_cut;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use disk::Disk;
use proptest::prelude::*;
use soif::Record;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::chain::LogPart;
use super::fold::fold;
use super::folder::read_chain;
use super::writer::{Stream, Writer};
use super::*;
use crate::change::{Batch, Change, GATHERER_ID, Oid, Stamp, Version};
use crate::collection::Collection;
use crate::error::Error;
use crate::log::View;
use crate::log::scan::Scan;
use crate::member::end_mark;
use crate::options::Options;
use crate::wire::client::Piece;

/// The titles of live objects, by URL.
type Titles = BTreeMap<String, String>;

/// A collection and the folder that follows it.
pub(super) struct World {
    pub(super) collection: Collection,
    writer: Writer,
    dir: TempDir,
}

fn object(n: u32) -> Oid {
    Oid::new("00000000000000aa", &format!("http://h/{n}"))
}

pub(super) fn update(n: u32, title: &str) -> Change {
    let mut record = Record::new("FILE", object(n).url);
    record.push("Title", title);
    record.push(GATHERER_ID, "00000000000000aa");
    Change::Update(record)
}

impl World {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { member_bytes_max: 512, ..Options::default() };
        let (collection, _) =
            Collection::open(&dir.path().join("collection"), options, Stamp(1)).unwrap();
        let writer = Writer::open(&Disk::System, &dir.path().join("log")).unwrap();
        Self { collection, writer, dir }
    }

    pub(super) fn log(&self) -> std::path::PathBuf {
        self.dir.path().join("log")
    }

    pub(super) fn commit(&self, changes: Vec<Change>) {
        self.collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
    }

    /// Returns the feed's answer to `since`, and the version that it reaches.
    pub(super) fn stream(&self, since: u64) -> (Vec<u8>, Version) {
        let to = self.collection.version();
        let mut bytes = crate::tests::served(&self.collection, since);
        bytes.extend(end_mark(to));
        (bytes, to)
    }

    /// Follows once, as from a feed.
    pub(super) fn follow(&mut self, life: Option<u64>) -> bool {
        let since = self.writer.chain().map_or(0, |it| it.version.serial);
        let (bytes, to) = self.stream(if life.is_some() { 0 } else { since });
        let stream = Stream { life, to, objects: self.collection.len(), owner: None, purged: 0 };
        take(&mut self.writer, stream, &bytes).unwrap()
    }

    pub(super) fn titles(&self) -> Titles {
        titles(self.collection.inner.log.view())
    }
}

pub(super) fn take(writer: &mut Writer, stream: Stream, bytes: &[u8]) -> Result<bool, Error> {
    let (sender, receiver) = mpsc::channel(bytes.len() / 100 + 2);
    for piece in bytes.chunks(100) {
        sender.try_send(Piece::Bytes(Bytes::copy_from_slice(piece))).unwrap();
    }
    sender.try_send(Piece::End).unwrap();
    writer.take(&stream, receiver)
}

pub(super) fn titles(view: View) -> Titles {
    let mut titles = BTreeMap::new();
    for scanned in Scan::new(view, 0) {
        match scanned.unwrap().change {
            Change::Update(record) => {
                titles.insert(record.url.clone(), record.text("Title").unwrap().into_owned());
            }
            Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                drop(titles.remove(&oid.url));
            }
            Change::Refresh(..) | Change::Confirm { .. } => {}
        }
    }
    titles
}

/// Returns the bytes of a folder's members.
fn members(dir: &Path) -> Vec<u8> {
    let chain = read_chain(&Disk::System, dir).unwrap().unwrap();
    chain.files.iter().flat_map(|it| fs::read(dir.join(it.name())).unwrap()).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_folder_has_the_members_of_the_feed_byte_by_byte() {
    let mut world = World::new();
    world.commit((0..50).map(|n| update(n, "old")).collect());
    assert!(world.follow(Some(7)));
    assert!(!world.follow(None), "nothing is new");
    for n in 0..20 {
        world.commit(vec![update(n, "new"), Change::Delete(object(49 - n))]);
        assert!(world.follow(None));
        check(&world.log(), None).unwrap();
    }
    let (bytes, to) = world.stream(0);
    let end = end_mark(to);
    assert_eq!(members(&world.log()), bytes[..bytes.len() - end.len()]);
    let replica = Replica::open(&world.log()).unwrap();
    assert_eq!((replica.version(), replica.objects()), (to, 30));
    assert_eq!(titles(replica.view()), world.titles());
    let parts: Vec<LogPart> =
        world.writer.chain().unwrap().files.iter().map(|it| it.part).collect();
    assert_eq!(parts, [LogPart::Base, LogPart::Log]);
    // After a restart the writer continues.
    world.writer = Writer::open(&Disk::System, &world.log()).unwrap();
    world.commit(vec![update(77, "later")]);
    assert!(world.follow(None));
    check(&world.log(), None).unwrap();
}

#[test]
fn known_changes_in_a_packed_member_are_left_out() {
    let mut world = World::new();
    world.commit(vec![update(0, "first")]);
    world.follow(Some(7));
    for n in 1..6 {
        world.commit(vec![update(n, "small")]);
    }
    world.follow(None);
    let before = world.dir.path().join("before");
    copy(&world.log(), &before);
    for n in 4..9 {
        world.commit(vec![update(n, "later")]);
    }
    // Known and new members are joined now.
    world.collection.compact_tail(Stamp(3)).unwrap();
    assert!(world.follow(None));
    check(&world.log(), Some(&before)).unwrap();
    let replica = Replica::open(&world.log()).unwrap();
    assert_eq!(titles(replica.view()), world.titles());
}

#[test]
fn a_purge_folds_the_log_once() {
    let mut world = World::new();
    world.commit((0..20).map(|it| update(it, "first")).collect());
    world.follow(Some(7));
    world.commit(vec![update(3, "second")]);
    world.follow(None);
    let before = world.dir.path().join("before");
    copy(&world.log(), &before);
    assert!(!world.writer.fold_if_due().unwrap(), "it is short");
    assert!(world.writer.note_purged(20).unwrap());
    assert!(!world.writer.note_purged(20).unwrap(), "that is known");
    let replica = Replica::open(&world.log()).unwrap();
    assert!(replica.holds_purged() && replica.purged() == 0);
    // The purge is known after a restart, too.
    world.writer = Writer::open(&Disk::System, &world.log()).unwrap();
    assert!(world.writer.fold_if_due().unwrap());
    assert!(!world.writer.fold_if_due().unwrap());
    check(&world.log(), Some(&before)).unwrap();
    assert!(holds_purged(&before, &world.log()).unwrap());
    assert!(!holds_purged(&world.log(), &world.log()).unwrap());
    replica.renew(&world.log()).unwrap();
    assert!(!replica.holds_purged() && replica.purged() == 20);
    assert_eq!(titles(replica.view()), world.titles());
    // A serial beyond the version is clamped.
    assert!(world.writer.note_purged(u64::MAX).unwrap());
    assert!(!world.writer.note_purged(u64::MAX).unwrap());
    assert!(!world.writer.fold_if_due().unwrap(), "it was folded up to its end");
}

#[test]
fn a_broken_stream_leaves_the_log_unchanged() {
    let mut world = World::new();
    world.commit((0..30).map(|n| update(n, "old")).collect());
    world.follow(Some(7));
    let before = members(&world.log());
    let since = world.collection.version().serial;
    world.commit((0..30).map(|n| update(n, "new")).collect());
    let (bytes, to) = world.stream(since);
    for life in [None, Some(8)] {
        let stream = Stream { life, to, objects: 30, owner: None, purged: 0 };
        for cut in (0..bytes.len()).step_by(97) {
            let taken = take(&mut world.writer, stream.clone(), &bytes[..cut]);
            assert!(matches!(taken, Err(Error::Stream { .. })), "{taken:?}");
            assert_eq!(members(&world.log()), before);
            check(&world.log(), None).unwrap();
        }
        // Nothing of a dropped stream is taken.
        let (sender, receiver) = mpsc::channel(2);
        sender.try_send(Piece::Bytes(Bytes::copy_from_slice(&bytes))).unwrap();
        drop(sender);
        assert!(!world.writer.take(&stream, receiver).unwrap());
        assert_eq!(members(&world.log()), before);
    }
    assert!(world.follow(None));
}

#[test]
fn a_damaged_log_at_the_origin_is_begun_anew() {
    for damage in ["CHAIN", "base-00000001.gz", "log-00000002.gz"] {
        let mut world = World::new();
        world.commit((0..30).map(|n| update(n, "old")).collect());
        world.follow(Some(7));
        world.commit(vec![update(3, "new")]);
        world.follow(None);
        let path = world.log().join(damage);
        let mut bytes = fs::read(&path).unwrap();
        if damage.starts_with("base") {
            bytes.pop();
        } else {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x80;
        }
        fs::write(&path, bytes).unwrap();
        let before = world.dir.path().join("before");
        copy(&world.log(), &before);
        world.writer = Writer::open(&Disk::System, &world.log()).unwrap();
        assert_eq!(world.writer.chain(), None, "{damage}");
        assert!(world.follow(Some(8)));
        check(&world.log(), None).unwrap();
        let replica = Replica::open(&world.log()).unwrap();
        assert_eq!(titles(replica.view()), world.titles());
    }
}

#[test]
fn a_folder_that_is_no_log_or_another_one_is_refused() {
    let mut world = World::new();
    world.commit((0..30).map(|n| update(n, "old")).collect());
    world.follow(Some(7));
    world.commit(vec![update(3, "new")]);
    world.follow(None);
    let old = world.dir.path().join("old");
    copy(&world.log(), &old);
    world.commit(vec![update(4, "new")]);
    world.follow(None);
    let refuse = |name: &str, change: &dyn Fn(&Path), expected: &str| {
        let new = world.dir.path().join(name);
        copy(&world.log(), &new);
        check(&new, Some(&old)).unwrap();
        change(&new);
        let error = check(&new, Some(&old)).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    };
    let log = "log-00000002.gz";
    refuse(
        "extra",
        &|dir| fs::write(dir.join("extra"), "").unwrap(),
        "the file extra, which CHAIN",
    );
    refuse("none", &|dir| fs::remove_file(dir.join("CHAIN")).unwrap(), "it has no CHAIN");
    refuse("gone", &|dir| fs::remove_file(dir.join(log)).unwrap(), "No such file");
    let edit = |dir: &Path, name: &str, edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(dir.join(name)).unwrap();
        edit(&mut bytes);
        fs::write(dir.join(name), bytes).unwrap();
    };
    refuse("short", &|dir| edit(dir, log, &|it| it.truncate(it.len() - 1)), "longer or shorter");
    let flip = |it: &mut Vec<u8>| *it.last_mut().unwrap() ^= 1;
    refuse("flipped", &|dir| edit(dir, log, &flip), "checksum does not match");
    // The other collection has another history, under the same name.
    let mut other = World::new();
    other.commit((0..30).map(|n| update(n, "old")).collect());
    other.follow(Some(7));
    other.commit(vec![update(3, "other")]);
    other.commit(vec![update(4, "new")]);
    other.follow(None);
    let epochs = [&world, &other].map(|it| it.collection.version().epoch);
    let chain = fs::read_to_string(other.log().join(CHAIN)).unwrap();
    let chain = chain.replace(&epochs[1].to_string(), &epochs[0].to_string());
    let story = world.dir.path().join("story");
    copy(&other.log(), &story);
    fs::write(story.join(CHAIN), chain).unwrap();
    assert!(check(&story, Some(&old)).is_err());
    let error = check(&old, Some(&world.log())).unwrap_err().to_string();
    assert!(error.contains("it ends at 31, before 32"), "{error}");
}

#[test]
fn a_log_that_forks_is_refused() {
    let mut world = World::new();
    world.commit((0..30).map(|n| update(n, "old")).collect());
    world.follow(Some(7));
    let fork = world.dir.path().join("fork");
    copy(&world.log(), &fork);
    let (since, mut forked) =
        (world.collection.version().serial, Writer::open(&Disk::System, &fork).unwrap());
    world.commit(vec![update(3, "this")]);
    world.follow(None);
    world.commit(vec![update(3, "that")]);
    // The fork has both changes in one member, as if the first change had been a different one.
    world.collection.compact_tail(Stamp(3)).unwrap();
    let (bytes, to) = world.stream(since);
    let stream = Stream { life: None, to, objects: 30, owner: None, purged: 0 };
    assert!(take(&mut forked, stream, &bytes).unwrap());
    check(&fork, None).unwrap();
    let error = check(&fork, Some(&world.log())).unwrap_err().to_string();
    assert!(error.contains("not the log that reached 31 before"), "{error}");
}

#[test]
fn a_replica_changes_to_a_newer_folder() {
    let mut world = World::new();
    world.commit((0..30).map(|n| update(n, "old")).collect());
    world.follow(Some(7));
    let first = world.dir.path().join("first");
    copy(&world.log(), &first);
    let replica = Replica::open(&first).unwrap();
    let mut versions = replica.watch();
    let pinned = replica.view();
    let before = world.titles();
    world.commit(vec![update(3, "new")]);
    world.follow(None);
    replica.renew(&world.log()).unwrap();
    assert_eq!(*versions.borrow_and_update(), world.collection.version());
    fs::remove_dir_all(&first).unwrap();
    assert_eq!(titles(replica.view()), world.titles());
    // Running readers of the old folder go on.
    assert_eq!(titles(pinned), before);
    assert!(replica.renew(&first).is_err());
    assert_eq!(titles(replica.view()), world.titles());
}

#[derive(Clone, Debug)]
enum Step {
    Update(u32),
    Delete(u32),
    Refresh(u32),
    Confirm(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..40_u32).prop_map(Step::Update),
        2 => (0..40_u32).prop_map(Step::Delete),
        1 => (0..40_u32).prop_map(Step::Refresh),
        1 => (0..3_u8).prop_map(Step::Confirm),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn folding_keeps_the_last_change_of_everything(
        lists in prop::collection::vec(steps(), 1..4),
    ) {
        let mut world = World::new();
        world.commit(vec![update(1_000, "always")]);
        world.follow(Some(7));
        for (round, steps) in lists.iter().enumerate() {
            let change = |step: &Step| match step {
                Step::Update(n) => update(*n, &format!("{n} in {round}")),
                Step::Delete(n) => Change::Delete(object(*n)),
                Step::Refresh(n) => Change::Refresh(object(*n), None),
                Step::Confirm(n) => Change::Confirm {
                    gatherer: "00000000000000aa".to_owned(),
                    root: format!("http://h/{n}"),
                    at: Stamp(round as u64),
                },
            };
            world.commit(steps.iter().map(change).collect());
            world.follow(None);
        }
        let chain = world.writer.chain().unwrap().clone();
        let out = world.dir.path().join("out");
        fs::create_dir(&out).unwrap();
        let folded = fold(&Disk::System, &world.log(), &chain, &out).unwrap();
        fs::write(out.join(CHAIN), folded.to_string()).unwrap();
        check(&out, Some(&world.log())).unwrap();
        prop_assert_eq!(folded.link(), chain.link());
        let replica = Replica::open(&out).unwrap();
        prop_assert_eq!(replica.version(), world.collection.version());
        prop_assert_eq!(titles(replica.view()), world.titles());
        let (mut updates, mut confirms) = (0, 0);
        for scanned in Scan::new(replica.view(), 0) {
            match scanned.unwrap().change {
                Change::Update(_) => updates += 1,
                Change::Confirm { .. } => confirms += 1,
                _ => {}
            }
        }
        prop_assert_eq!(updates, world.collection.len());
        prop_assert!(confirms <= 3);
        // The result depends on the members alone.
        let again = world.dir.path().join("again");
        fs::create_dir(&again).unwrap();
        prop_assert_eq!(&fold(&Disk::System, &world.log(), &chain, &again).unwrap(), &folded);
        prop_assert_eq!(members(&out), {
            fs::write(again.join(CHAIN), folded.to_string()).unwrap();
            members(&again)
        });
        // The log can be continued.
        let mut writer = Writer::open(&Disk::System, &out).unwrap();
        world.commit(vec![update(5, "behind")]);
        let (bytes, to) = world.stream(chain.version.serial);
        let stream = Stream { life: None, to, objects: world.collection.len(), owner: None, purged: 0 };
        prop_assert!(take(&mut writer, stream, &bytes).unwrap());
        world.follow(None);
        check(&out, Some(&world.log())).unwrap();
        prop_assert_eq!(writer.chain().unwrap().link(), world.writer.chain().unwrap().link());
    }
}
