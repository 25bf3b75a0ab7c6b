//! The state of a disk with faults: its files, directories and links, the effects of operations,
//! and what remains after a power cut.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::{Content, Random, StoredFile};
use super::world::{Item, World, world};
use super::{Fault, Target, path_of};
use crate::{Act, File};

/// The number of a file, directory or link; it stays when the name changes.
type Id = usize;

#[derive(Debug)]
pub(super) struct State {
    top: PathBuf,
    pub(super) phase: &'static str,
    pub(super) target: Option<Target>,
    /// The fault, and the value of `acts` from which it exists.
    pub(super) fault: Option<(Fault, u64)>,
    pub(super) free_bytes: Option<u64>,
    /// Byte ranges that cannot be read.
    pub(super) unreadable: Vec<(PathBuf, Range<u64>)>,
    pub(super) acts: u64,
    random: Random,
    /// The top is the first.
    nodes: Vec<Node>,
    /// The present target of each path.
    names: BTreeMap<PathBuf, Id>,
    /// The point of the power cut, and the state after it.
    pub(super) left: Option<(String, World)>,
}

#[derive(Debug)]
enum Node {
    File(StoredFile),
    Directory(Directory),
    Symlink(PathBuf),
}

/// The durable names of a directory, and the later changes, in order.
#[derive(Debug, Default)]
struct Directory {
    durable: BTreeMap<OsString, Id>,
    pending: Vec<(OsString, Option<Id>)>,
}

impl Directory {
    fn sync(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        for (n, (name, id)) in std::mem::take(&mut self.pending).into_iter().enumerate() {
            match id {
                _ if !is_kept(n) => {}
                Some(id) => drop(self.durable.insert(name, id)),
                None => drop(self.durable.remove(&name)),
            }
        }
    }

    fn cut(&mut self, random: &mut Random) {
        let (how, first) = (random.below(4), random.below(self.pending.len() + 1));
        self.sync(|n| match how {
            0 => false,
            1 => true,
            2 => n < first,
            _ => random.below(2) == 0,
        });
    }
}

impl State {
    pub(super) fn new(dir: &Path, seed: u64) -> Self {
        let mut state = Self {
            top: dir.to_owned(),
            phase: "",
            target: None,
            fault: None,
            free_bytes: None,
            unreadable: Vec::new(),
            acts: 0,
            random: Random::new(seed),
            nodes: vec![Node::Directory(Directory::default())],
            names: BTreeMap::from([(dir.to_owned(), 0)]),
            left: None,
        };
        state.take_in(world(dir), |_| true);
        state
    }

    /// Takes over what others have made, as durable: directories, and the files that are wanted.
    fn take_in(&mut self, world: World, mut is_wanted: impl FnMut(&mut Random) -> bool) {
        let mut linked = HashMap::new();
        for (path, item) in world {
            let path = self.top.join(path);
            let is_directory = matches!(item, Item::Directory);
            if self.names.contains_key(&path) || !(is_directory || is_wanted(&mut self.random)) {
                continue;
            }
            let file = if let Item::File(it) = &item { Some(Arc::as_ptr(it)) } else { None };
            let known = file.and_then(|it| linked.get(&it)).copied();
            let id = known.unwrap_or_else(|| self.add(item));
            linked.extend(file.map(|it| (it, id)));
            let above = path.parent().and_then(|it| self.names.get(it)).copied();
            if let Some(Node::Directory(above)) = above.and_then(|it| self.nodes.get_mut(it)) {
                above.durable.insert(path.file_name().unwrap_or_default().to_owned(), id);
            }
            self.names.insert(path, id);
        }
    }

    fn add(&mut self, item: Item) -> Id {
        self.nodes.push(match item {
            Item::File(content) => Node::File(StoredFile::new(Content::clone(&content))),
            Item::Directory => Node::Directory(Directory::default()),
            Item::Symlink(target) => Node::Symlink(target),
        });
        self.nodes.len() - 1
    }

    /// Returns the number of a path. If others have made it, it is added as not durable.
    pub(super) fn id(&mut self, path: &Path) -> Id {
        if let Some(id) = self.names.get(path) {
            return *id;
        }
        // For a file that is gone meanwhile, a node without a name is added.
        let Ok(mut item) = Item::read(path) else { return self.add(Item::Directory) };
        if let Item::File(content) = &mut item {
            Arc::make_mut(content).bytes.clear();
        }
        let id = self.add(item);
        self.put(path, Some(id));
        id
    }

    /// Changes the target of a name; `None` removes it.
    fn put(&mut self, path: &Path, id: Option<Id>) {
        if let Some(above) = path.parent().filter(|it| it.starts_with(&self.top)) {
            let above = self.id(above);
            if let Some(Node::Directory(above)) = self.nodes.get_mut(above) {
                above.pending.push((path.file_name().unwrap_or_default().to_owned(), id));
            }
        }
        match id {
            Some(id) => self.names.insert(path.to_owned(), id),
            None => self.names.remove(path),
        };
    }

    fn change(&mut self, id: Id, change: impl FnOnce(&mut StoredFile)) {
        if let Some(Node::File(file)) = self.nodes.get_mut(id) {
            change(file);
        }
    }

    /// Returns the present contents of each file.
    fn contents(&self) -> BTreeMap<Id, Content> {
        let files = self.names.iter().filter(|(_, id)| matches!(self.nodes[**id], Node::File(_)));
        files.filter_map(|(path, id)| Some((*id, Content::read(path).ok()?))).collect()
    }

    /// Fails if the operation fails, because of the fault or for lack of space.
    pub(super) fn refuse(&mut self, act: Act<'_>) -> io::Result<()> {
        if let Some((fault, _)) = self.fault.filter(|it| it.1 <= self.acts) {
            let fails = match fault {
                Fault::Full => match act {
                    Act::Write { .. } => true,
                    Act::Create(_)
                    | Act::Seal(_)
                    | Act::MakeDirectory(_)
                    | Act::Link { .. }
                    | Act::Symlink { .. } => self.random.below(2) == 0,
                    _ => false,
                },
                Fault::FullLate | Fault::Unsynced => matches!(act, Act::Sync(_) | Act::SyncAll),
                Fault::ReadOnly => !matches!(act, Act::Open { to_write: false, .. }),
                Fault::NoFiles => matches!(act, Act::Open { .. } | Act::Create(_)),
            };
            if fails {
                return Err(fault.error());
            }
        }
        if let (Some(free), Act::Write { file, at, bytes }) = (&mut self.free_bytes, act) {
            let growth = (at + bytes.len() as u64).saturating_sub(file.length()?);
            *free = free.checked_sub(growth).ok_or(io::ErrorKind::StorageFull)?;
        }
        Ok(())
    }

    /// Notes the partial effects of a failed operation.
    pub(super) fn note_refused(&mut self, act: Act<'_>, error: &io::Error) {
        match act {
            // A full disk takes the bytes that still fit.
            Act::Write { file, at, bytes } if error.kind() == io::ErrorKind::StorageFull => {
                let some = &bytes[..bytes.len() / 2];
                let _ = file.real.write_all_at(some, at);
                self.change(file.id, |it| it.written(at, some.len()));
            }
            Act::Sync(file) => {
                // A directory has no bytes, and loses no names.
                if let Ok(now) = Content::of(&file.real) {
                    self.change(file.id, |it| it.ruin(&now.bytes));
                }
            }
            Act::SyncAll => {
                for (id, now) in self.contents() {
                    self.change(id, |it| it.ruin(&now.bytes));
                }
            }
            _ => {}
        }
    }

    /// Counts an operation; returns the point of the power cut, if it is now.
    pub(super) fn count(&mut self, act: Act<'_>) -> Option<String> {
        self.acts += 1;
        let Target { phase, word, .. } = self.target.clone()?;
        if !phase.is_empty() && phase != self.phase {
            return None;
        }
        let point = self.describe(act);
        let target = self.target.as_mut().filter(|_| point.contains(word))?;
        target.acts = target.acts.saturating_sub(1);
        (target.acts == 0).then_some(point)
    }

    fn describe(&self, act: Act<'_>) -> String {
        let of = |file: &File| path_of(&file.real);
        let (what, path) = match act {
            Act::Open { path, .. } => ("open", path.to_owned()),
            Act::Create(path) => ("create", path.to_owned()),
            Act::Write { file, .. } => ("write", of(file)),
            Act::SetLength { file, .. } => ("set length of", of(file)),
            Act::Seal(file) => ("seal", of(file)),
            Act::MakeDirectory(path) => ("make directory", path.to_owned()),
            Act::Link { to, .. } => ("link", to.to_owned()),
            Act::Symlink { path, .. } => ("make link", path.to_owned()),
            Act::Rename { from, .. } => ("rename", from.to_owned()),
            Act::Remove(path) => ("remove", path.to_owned()),
            Act::Sync(file) => ("sync", of(file)),
            Act::SyncAll => ("sync all of", self.top.clone()),
        };
        let below = path.strip_prefix(&self.top).unwrap_or(&path).display();
        format!("{}: {what} {below}", self.phase)
    }

    /// Notes the contents and the space that an operation is about to remove.
    pub(super) fn note_before(&mut self, act: Act<'_>) -> io::Result<()> {
        let freed = match act {
            Act::SetLength { file, bytes } => file.length()?.saturating_sub(bytes),
            Act::Remove(path) | Act::Rename { to: path, .. } => {
                let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file);
                if let (Some(id), Some(_)) = (self.names.get(path).copied(), &found) {
                    let removed = Content::read(path).ok();
                    self.change(id, |it| it.removed.clone_from(&removed));
                }
                found.map_or(0, |it| if it.nlink() == 1 { it.len() } else { 0 })
            }
            // Another process has removed the file that had this name.
            Act::Create(path) if self.names.contains_key(path) && !path.exists() => {
                self.put(path, None);
                0
            }
            _ => 0,
        };
        if let Some(free) = &mut self.free_bytes {
            *free += freed;
        }
        if let Act::Rename { from, .. } = act {
            self.id(from);
        }
        Ok(())
    }

    /// Notes the effects of an operation.
    pub(super) fn note(&mut self, act: Act<'_>) -> io::Result<()> {
        match act {
            Act::Open { path, .. } => drop(self.id(path)),
            Act::Create(path) => match self.names.get(path).copied() {
                Some(id) => self.change(id, |it| it.set_length(0)),
                None => {
                    let id = self.add(Item::read(path)?);
                    self.put(path, Some(id));
                }
            },
            Act::Write { file, at, bytes } => {
                self.change(file.id, |it| it.written(at, bytes.len()));
            }
            Act::SetLength { file, bytes } => {
                self.change(file.id, |it| it.set_length(bytes));
            }
            Act::Seal(_) => {}
            Act::MakeDirectory(path) => {
                let id = self.add(Item::Directory);
                self.put(path, Some(id));
            }
            Act::Link { from, to } => {
                let id = self.id(from);
                self.put(to, Some(id));
            }
            Act::Symlink { target, path } => {
                let id = self.add(Item::Symlink(target.to_owned()));
                self.put(path, Some(id));
            }
            Act::Rename { from, to } => self.rename(from, to),
            Act::Remove(path) if self.names.contains_key(path) => self.put(path, None),
            Act::Remove(_) => {}
            Act::Sync(file) => match self.nodes.get_mut(file.id) {
                Some(Node::File(stored)) => stored.sync(Content::of(&file.real)?),
                Some(Node::Directory(directory)) => directory.sync(|_| true),
                Some(Node::Symlink(_)) | None => {}
            },
            Act::SyncAll => {
                for (id, now) in self.contents() {
                    self.change(id, |it| it.sync(now));
                }
                for node in &mut self.nodes {
                    if let Node::Directory(directory) = node {
                        directory.sync(|_| true);
                    }
                }
            }
        }
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let id = self.id(from);
        self.put(to, Some(id));
        self.put(from, None);
        let below = self.names.extract_if(.., |path, _| path.starts_with(from)).collect::<Vec<_>>();
        let moved = |(path, id): (PathBuf, Id)| Some((to.join(path.strip_prefix(from).ok()?), id));
        self.names.extend(below.into_iter().filter_map(moved));
    }

    /// Cuts the power; the remains of data that was not durable are random.
    pub(super) fn cut(&mut self, point: String) {
        // Files that others have made mostly remain.
        self.take_in(world(&self.top), |random| random.below(8) != 0);
        let mut contents = self.contents();
        let mut items = Vec::with_capacity(self.nodes.len());
        for (id, node) in self.nodes.iter_mut().enumerate() {
            items.push(match node {
                Node::File(file) => {
                    let now = contents.remove(&id);
                    Item::File(Arc::new(file.cut(now, &mut self.random)))
                }
                Node::Directory(directory) => {
                    directory.cut(&mut self.random);
                    Item::Directory
                }
                Node::Symlink(target) => Item::Symlink(target.clone()),
            });
        }
        let mut left = World::new();
        self.list(0, Path::new(""), &items, &mut left);
        self.left = Some((point, left));
    }

    /// Lists the durable names in a directory, with all that is below it.
    fn list(&self, id: Id, at: &Path, items: &[Item], left: &mut World) {
        let Node::Directory(directory) = &self.nodes[id] else { return };
        for (name, id) in &directory.durable {
            let path = at.join(name);
            left.insert(path.clone(), items[*id].clone());
            self.list(*id, &path, items, left);
        }
    }
}
