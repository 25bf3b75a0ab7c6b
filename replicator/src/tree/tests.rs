//! Tests of trees on real disks: from a directory to a store, and from store to store.

mod crash;
mod damage;
mod fetching;
mod large;
mod modes;
mod publishing;

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::Disk;
use net::identity::Identity;
use proptest::prelude::*;

use super::chunk::tests::noise;
use super::error::Error;
use super::fetch::Fetch;
use super::publish::{Draft, Publishing};
use super::store::{Options, Store};
use crate::version::{Hash, Kind, Name, Number, Version};

/// In place of `TRUSTED_AFTER_SECONDS`; negative, so that files changed just now are trusted.
pub(super) const TRUSTED_AT_ONCE: i64 = -10;

/// The entries of a tree by their paths.
pub(super) type Tree = BTreeMap<String, TestEntry>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TestEntry {
    File { bytes: Vec<u8>, executable: bool, modified: i64 },
    Directory,
    Link(String),
}

pub(super) fn file(bytes: usize, seed: u64) -> TestEntry {
    TestEntry::File {
        bytes: noise(bytes, seed),
        executable: seed.is_multiple_of(5),
        modified: 1_000_000_000,
    }
}

/// Makes a directory equal to a tree; entries that are already equal are not touched.
pub(super) fn write(dir: &Path, tree: &Tree) {
    let found = read(dir);
    for (path, entry) in found.iter().rev() {
        let at = dir.join(path);
        match entry {
            _ if tree.get(path) == Some(entry) => {}
            TestEntry::Directory => fs::remove_dir(at).unwrap(),
            TestEntry::File { .. } | TestEntry::Link(_) => fs::remove_file(at).unwrap(),
        }
    }
    remove_empty(dir, tree);
    for (path, entry) in tree {
        let at = dir.join(path);
        if found.get(path) == Some(entry) {
            continue;
        }
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        match entry {
            TestEntry::Directory => fs::create_dir_all(at).unwrap(),
            TestEntry::Link(target) => symlink(target, at).unwrap(),
            TestEntry::File { bytes, executable, modified } => {
                fs::write(&at, bytes).unwrap();
                let file = fs::File::options().write(true).open(&at).unwrap();
                let time = std::time::UNIX_EPOCH
                    + std::time::Duration::from_secs(u64::try_from(*modified).unwrap());
                file.set_times(fs::FileTimes::new().set_modified(time)).unwrap();
                let mode = if *executable { 0o755 } else { 0o644 };
                file.set_permissions(Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

/// Removes directories that are empty now and not in the tree.
fn remove_empty(dir: &Path, tree: &Tree) {
    for (path, entry) in read(dir).iter().rev() {
        let mut at = Path::new(path);
        let is_gone = *entry == TestEntry::Directory && tree.get(path) != Some(entry);
        while is_gone && at != Path::new("") && fs::remove_dir(dir.join(at)).is_ok() {
            at = at.parent().unwrap();
        }
    }
}

/// Reads a directory; a missing one is an empty tree.
pub(super) fn read(dir: &Path) -> Tree {
    let mut tree = Tree::new();
    if dir.exists() {
        read_below(dir, dir, &mut tree);
    }
    tree
}

fn read_below(top: &Path, dir: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(dir).unwrap() {
        let at = entry.unwrap().path();
        let path = at.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
        let found = fs::symlink_metadata(&at).unwrap();
        if found.is_dir() {
            let before = tree.len();
            read_below(top, &at, tree);
            if before == tree.len() {
                tree.insert(path, TestEntry::Directory);
            }
        } else if found.is_symlink() {
            let target = fs::read_link(&at).unwrap().to_str().unwrap().to_owned();
            tree.insert(path, TestEntry::Link(target));
        } else {
            let (executable, modified) = (found.mode() & 0o111 != 0, found.mtime());
            let bytes = fs::read(&at).unwrap();
            tree.insert(path, TestEntry::File { bytes, executable, modified });
        }
    }
}

/// Returns the number of entries, with the folders above the listed ones.
pub(super) fn entries(tree: &Tree) -> u64 {
    let folders = tree.keys().flat_map(|it| {
        let ends = it.match_indices('/').map(|(end, _)| it[..end].to_owned());
        ends.collect::<Vec<_>>()
    });
    (folders.collect::<HashSet<_>>().len() + tree.len()) as u64
}

/// Opens a store on a disk without syncs.
pub(super) fn hasty(dir: &Path, options: Options) -> Result<Store, Error> {
    Store::open_on(&Disk::Hasty, dir, options, 64)
}

/// An origin with its published directory and its store.
pub(super) struct Origin {
    identity: Identity,
    pub(super) directory: PathBuf,
    pub(super) store: Arc<Store>,
}

impl Origin {
    pub(super) fn new(top: &Path) -> Self {
        let store = hasty(&top.join("origin/trees/a"), Options::default()).unwrap();
        let directory = top.join("published");
        fs::create_dir(&directory).unwrap();
        Self { identity: Identity::of(&[7; 32]).unwrap(), directory, store: Arc::new(store) }
    }

    pub(super) fn sign(&self, draft: &Draft, sequence: u64) -> Version {
        self.sign_root(draft, sequence, draft.root())
    }

    /// Signs a version of this draft with this root, which need not be the draft's.
    pub(super) fn sign_root(&self, draft: &Draft, sequence: u64, root: Hash) -> Version {
        let number = Number { epoch: 1, sequence };
        let (name, bytes) = (Name::new("a").unwrap(), draft.totals().bytes);
        Version::sign(&self.identity, name, Kind::Tree, number, bytes, root)
    }

    pub(super) fn publish(&self, tree: &Tree, sequence: u64) -> Version {
        write(&self.directory, tree);
        let publishing = Publishing { accepts_loss: true, ..Publishing::default() };
        let draft =
            Draft::make_with(&self.store, &self.directory, publishing, TRUSTED_AT_ONCE).unwrap();
        let version = self.sign(&draft, sequence);
        draft.commit(&version).unwrap();
        version
    }
}

/// Fetches a version from one store into another. Returns the requested chunks.
pub(super) fn fetch(from: &Store, to: &Arc<Store>, version: &Version) -> Result<Vec<Hash>, Error> {
    let mut fetch = Fetch::begin(to, version)?;
    let mut asked = Vec::new();
    loop {
        let wanted = fetch.wanted(64)?;
        if wanted.is_empty() {
            assert_eq!(fetch.missing_bytes(), Some(0));
            if fetch.switch()?.is_some() {
                return Ok(asked);
            }
        }
        for it in wanted {
            let bytes = from.read(&it.hash)?.unwrap();
            to.put(&it.hash, &bytes)?;
            asked.push(it.hash);
        }
    }
}

/// Fetches a version in pieces and in random order, and gives up and begins anew at random times.
fn fetch_in_pieces(from: &Store, to: &Arc<Store>, version: &Version, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut fetch = Fetch::begin(to, version).unwrap();
    let mut put = HashSet::new();
    loop {
        let mut wanted = fetch.wanted(random.usize(1..300)).unwrap();
        if wanted.is_empty() && fetch.switch().unwrap().is_some() {
            return;
        }
        random.shuffle(&mut wanted);
        for it in wanted.iter().take(random.usize(1..40)) {
            let bytes = from.read(&it.hash).unwrap().unwrap();
            to.put(&it.hash, &bytes).unwrap();
            assert!(put.insert(it.hash), "{} was wanted again", it.hash);
        }
        if random.u8(..10) == 0 {
            fetch = Fetch::begin(to, version).unwrap();
        }
    }
}

pub(super) fn current(store: &Store) -> Tree {
    read(&fs::canonicalize(store.current_link()).unwrap())
}

/// Returns a tree that depends on the seed, and shares many files with the trees of other seeds.
pub(super) fn sample(seed: u64) -> Tree {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut tree = Tree::new();
    for n in 0..14 {
        let path = format!("d{}/{}", n % 3, ["a", "b", "e/f"][n / 5]);
        // About two of three files do not depend on the seed, so trees share many of them.
        let content_seed = if random.u8(..3) == 0 { seed } else { 0 };
        let bytes = fastrand::Rng::with_seed(n as u64 ^ content_seed).usize(0..12_000);
        tree.insert(path, file(bytes, n as u64 + 100 * content_seed));
    }
    tree.insert("large".to_owned(), file(100_000, seed));
    tree.insert(format!("empty{}", seed % 2), TestEntry::Directory);
    tree.insert("link".to_owned(), TestEntry::Link(format!("d{}", seed % 3)));
    tree
}

fn test_entry() -> impl Strategy<Value = TestEntry> {
    let times = prop_oneof![Just(1_000_000_000), 0..2_000_000_000_i64];
    let content = prop_oneof![Just(0), 1usize..200, 1usize..9_000, 1usize..400_000];
    let file =
        (content, 0u64..6, any::<bool>(), times).prop_map(|(bytes, seed, executable, modified)| {
            TestEntry::File { bytes: noise(bytes, seed), executable, modified }
        });
    prop_oneof![
        8 => file,
        1 => Just(TestEntry::Directory),
        1 => "[a-d]{1,2}".prop_map(TestEntry::Link),
    ]
}

/// Generates trees of names that do not clash; an entry is dropped if another one is below it.
fn tree() -> impl Strategy<Value = Tree> {
    prop::collection::btree_map("[a-d]{1,2}(/[a-d !]{0,1}[a-c]){0,3}", test_entry(), 0..12)
        .prop_map(without_clashes)
}

fn without_clashes(tree: Tree) -> Tree {
    let is_above = |above: &str, path: &str| {
        path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
    };
    let all: Vec<String> = tree.keys().cloned().collect();
    tree.into_iter().filter(|(path, _)| !all.iter().any(|it| is_above(path, it))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn replicas_equal_the_published_trees(trees in prop::collection::vec(tree(), 1..4)) {
        let top = tempfile::tempdir().unwrap();
        let origin = Origin::new(top.path());
        let replica = hasty(&top.path().join("replica"), Options::default()).unwrap();
        let replica = Arc::new(replica);
        let other = Arc::new(hasty(&top.path().join("other"), Options::default()).unwrap());
        let mut known = HashSet::new();
        for (tree, sequence) in trees.iter().zip(1..) {
            let version = origin.publish(tree, sequence);
            prop_assert_eq!(&current(&origin.store), tree);
            let asked = fetch(&origin.store, &replica, &version).unwrap();
            prop_assert_eq!(&current(&replica), tree);
            prop_assert_eq!(replica.current().unwrap().meta().version.clone(), version.to_bytes());
            // No chunk is fetched twice, even for a later version.
            for hash in asked {
                prop_assert!(known.insert(hash), "{} was asked for again", hash);
            }
            fetch_in_pieces(&origin.store, &other, &version, sequence);
            prop_assert_eq!(&current(&other), tree);
        }
    }
}
