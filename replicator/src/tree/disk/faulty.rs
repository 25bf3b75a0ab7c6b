//! A disk with faults, for tests: it knows what has been made durable, and can cut the power after any act, or
//! be full.
//!
//! It works on real files, so that what was written can be read before it is durable. What a power cut leaves
//! of the rest is drawn by lot: of a file that was not synced nothing, all, its start, or zeros in its place; of
//! the names of a directory that was not synced none, all, the first few, or some, whatever became of those in
//! other directories.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::Act;

/// A disk with faults.
#[derive(Debug)]
pub(in crate::tree) struct Faulty {
    state: Mutex<State>,
}

/// What a power cut left.
#[derive(Clone, Debug, Default)]
pub(in crate::tree) struct World {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct State {
    nodes: Vec<Node>,
    /// What each path stands for now. The top is node 0.
    names: HashMap<PathBuf, usize>,
    random: u64,
    acts: u64,
    cut_at: Option<u64>,
    full_from: Option<u64>,
    left: Option<(String, World)>,
}

#[derive(Clone, Debug)]
enum Node {
    File { now: Content, durable: Option<Content> },
    Directory { durable: BTreeMap<String, usize>, pending: Vec<(String, Option<usize>)> },
    Link(PathBuf),
}

#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    sealed: Option<(u32, SystemTime)>,
}

impl Faulty {
    /// Takes what is in `dir` as durable; the power is cut after so many acts, if any number is given.
    pub(in crate::tree) fn new(dir: &Path, seed: u64, cut_at: Option<u64>) -> Arc<Self> {
        let mut state = State { random: seed.max(1), cut_at, ..State::default() };
        state.take_in(dir, &mut HashMap::new());
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::tree) fn acts(&self) -> u64 {
        self.state().acts
    }

    /// From so many acts on there is no room; or there is room again.
    pub(in crate::tree) fn fill(&self, from: Option<u64>) {
        self.state().full_from = from;
    }

    pub(in crate::tree) fn is_cut(&self) -> bool {
        self.state().left.is_some()
    }

    /// Cuts the power now, unless it is cut; returns where it was and what that left.
    pub(in crate::tree) fn cut(&self) -> (String, World) {
        let mut state = self.state();
        if state.left.is_none() {
            state.cut("at the end".to_owned());
        }
        state.left.clone().unwrap_or_default()
    }

    pub(super) fn act<T>(
        &self,
        act: Act<'_>,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state();
        if state.left.is_some() {
            return Err(io::Error::other("the power is cut"));
        }
        let takes_room = !matches!(
            act,
            Act::Remove(_)
                | Act::Rename { .. }
                | Act::Sync(_)
                | Act::SyncAll
                | Act::SetLength { .. }
        );
        if takes_room && state.full_from.is_some_and(|it| it <= state.acts) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.acts += 1;
        let is_last = state.cut_at == Some(state.acts);
        let shown = match act {
            Act::Write { path, at, bytes } => format!("write {path:?} {at} {}", bytes.len()),
            act => format!("{act:?}"),
        };
        // What is to be made durable just then may be so in part.
        if is_last && matches!(act, Act::Sync(_) | Act::SyncAll) {
            state.cut(shown);
            return Err(io::Error::other("the power is cut"));
        }
        let done = work()?;
        state.note(act);
        if is_last {
            state.cut(shown);
            return Err(io::Error::other("the power is cut"));
        }
        Ok(done)
    }
}

impl State {
    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 11).unwrap() % below.max(1)
    }

    fn take_in(&mut self, path: &Path, known: &mut HashMap<u64, usize>) -> usize {
        let found = fs::symlink_metadata(path).unwrap();
        if let Some(id) = known.get(&found.ino()) {
            self.names.insert(path.to_owned(), *id);
            return *id;
        }
        let id = self.nodes.len();
        known.insert(found.ino(), id);
        self.names.insert(path.to_owned(), id);
        self.nodes.push(Node::Link(PathBuf::new()));
        self.nodes[id] = if found.is_dir() {
            let entries = fs::read_dir(path).unwrap().map(Result::unwrap);
            let durable =
                entries.map(|it| (name(&it.path()), self.take_in(&it.path(), known))).collect();
            Node::Directory { durable, pending: Vec::new() }
        } else if found.is_symlink() {
            Node::Link(fs::read_link(path).unwrap())
        } else {
            let sealed = Some((found.mode() & 0o7777, found.modified().unwrap()));
            let now = Content { bytes: fs::read(path).unwrap(), sealed };
            Node::File { durable: Some(now.clone()), now }
        };
        id
    }

    fn put(&mut self, path: &Path, id: Option<usize>) {
        let parent = self.names[path.parent().unwrap()];
        let Node::Directory { pending, .. } = &mut self.nodes[parent] else { unreachable!() };
        pending.push((name(path), id));
        match id {
            Some(id) => self.names.insert(path.to_owned(), id),
            None => self.names.remove(path),
        };
    }

    fn add(&mut self, path: &Path, node: Node) {
        self.nodes.push(node);
        self.put(path, Some(self.nodes.len() - 1));
    }

    fn file(&mut self, path: &Path) -> &mut Content {
        let Node::File { now, .. } = &mut self.nodes[self.names[path]] else { unreachable!() };
        now
    }

    fn note(&mut self, act: Act<'_>) {
        match act {
            Act::Create(path) => {
                self.add(path, Node::File { now: Content::default(), durable: None });
            }
            Act::Write { path, at, bytes } => {
                let at = usize::try_from(at).unwrap();
                let now = self.file(path);
                now.bytes.resize(now.bytes.len().max(at + bytes.len()), 0);
                now.bytes[at..at + bytes.len()].copy_from_slice(bytes);
            }
            Act::SetLength { path, bytes } => {
                self.file(path).bytes.resize(usize::try_from(bytes).unwrap(), 0);
            }
            Act::Seal(path) => {
                let found = fs::metadata(path).unwrap();
                self.file(path).sealed = Some((found.mode() & 0o7777, found.modified().unwrap()));
            }
            Act::MakeDirectory(path) => {
                self.add(path, Node::Directory { durable: BTreeMap::new(), pending: Vec::new() });
            }
            Act::Link { from, to } => self.put(to, Some(self.names[from])),
            Act::Symlink { target, path } => self.add(path, Node::Link(target.to_owned())),
            Act::Rename { from, to } => {
                let id = self.names[from];
                self.put(to, Some(id));
                let below: Vec<(PathBuf, usize)> = self
                    .names
                    .iter()
                    .filter(|(path, _)| *path != from && path.starts_with(from))
                    .map(|(path, id)| (to.join(path.strip_prefix(from).unwrap()), *id))
                    .collect();
                self.names.extend(below);
                self.put(from, None);
                self.names.retain(|path, _| !path.starts_with(from));
            }
            Act::Remove(path) => self.put(path, None),
            Act::Sync(path) => sync(&mut self.nodes[self.names[path]]),
            Act::SyncAll => self.nodes.iter_mut().for_each(sync),
        }
    }

    fn cut(&mut self, at: String) {
        let mut nodes = self.nodes.clone();
        for node in &mut nodes {
            match node {
                Node::File { now, durable } => {
                    let kept = durable.clone().unwrap_or_default();
                    let length = now.bytes.len();
                    // What was made durable and not written over since stays.
                    let is_longer = now.bytes.starts_with(&kept.bytes);
                    let sure = if is_longer { kept.bytes.len() } else { 0 };
                    *durable = Some(match self.random(5) {
                        0 | 1 => kept,
                        2 => now.clone(),
                        3 => {
                            now.bytes.truncate(sure + self.random(length - sure + 1));
                            now.clone()
                        }
                        _ => {
                            now.bytes.iter_mut().skip(sure).for_each(|it| *it = 0);
                            now.clone()
                        }
                    });
                }
                Node::Directory { durable, pending } => {
                    let lot = self.random(4);
                    let first = self.random(pending.len() + 1);
                    for (n, (name, id)) in std::mem::take(pending).into_iter().enumerate() {
                        let is_kept = match lot {
                            0 => false,
                            1 => true,
                            2 => n < first,
                            _ => self.random(2) == 0,
                        };
                        match id.filter(|_| is_kept) {
                            Some(id) => drop(durable.insert(name, id)),
                            None if is_kept => drop(durable.remove(&name)),
                            None => {}
                        }
                    }
                }
                Node::Link(_) => {}
            }
        }
        self.left = Some((at, World { nodes }));
    }
}

fn sync(node: &mut Node) {
    match node {
        Node::File { now, durable } => *durable = Some(now.clone()),
        Node::Directory { durable, pending } => {
            for (name, id) in pending.drain(..) {
                match id {
                    Some(id) => durable.insert(name, id),
                    None => durable.remove(&name),
                };
            }
        }
        Node::Link(_) => {}
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

impl World {
    /// Makes what was left, in a directory that is there and empty.
    pub(in crate::tree) fn restore(&self, dir: &Path) {
        self.make(0, dir, &mut HashMap::new());
    }

    fn make(&self, id: usize, path: &Path, made: &mut HashMap<usize, PathBuf>) {
        match &self.nodes[id] {
            Node::Directory { durable, .. } => {
                if id != 0 {
                    fs::create_dir(path).unwrap();
                }
                for (name, id) in durable {
                    self.make(*id, &path.join(name), made);
                }
            }
            Node::Link(target) => symlink(target, path).unwrap(),
            Node::File { durable, .. } => {
                if let Some(first) = made.get(&id) {
                    fs::hard_link(first, path).unwrap();
                    return;
                }
                let content = durable.clone().unwrap_or_default();
                fs::write(path, &content.bytes).unwrap();
                if let Some((mode, modified)) = content.sealed {
                    let file = fs::File::options().write(true).open(path).unwrap();
                    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
                    file.set_permissions(Permissions::from_mode(mode)).unwrap();
                }
                made.insert(id, path.to_owned());
            }
        }
    }
}
