//! Walks where `.gitignore` files count: the `ignore` crate finds the entries and matches the files. On
//! any other root it meets what [`super::direct`] does, as the tests check.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::{DirEntry, WalkBuilder, WalkState};
use rustix::fs::FileType;

use super::{Entry, Go, Ground, Met, Next, Real, Trouble, is_within, link_loop, trouble};
use crate::spec::Symlinks;
use crate::tree::file::stat_of;

/// Where rules may stand in a directory.
const RULES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// Directories with rules that cannot be read that are named one by one.
const SHUT_MAX: usize = 1_000;

/// As [`Ground::walk`].
pub(super) fn walk(
    ground: &Ground<'_>,
    starts: &[PathBuf],
    real: &Real,
    meet: &(dyn Fn(Met<'_>) -> Go + Sync),
) {
    // With `.gitignore` files, every one on the way down counts: walk from the top, once, and leave
    // out what is not on the way.
    let top_only = [ground.tree.directory.clone()];
    let from = if ground.tree.gitignore && !starts.is_empty() { &top_only } else { starts };
    // The crate reads a directory's rules before it asks whether to go there.
    let shut = Shut::default();
    let opens = |from: &PathBuf| !ground.tree.gitignore || shut.opens(from);
    let mut found = from.iter().filter_map(|from| ground.find(from)).filter(opens);
    let Some(first) = found.next() else { return shut.report(ground, meet) };
    let narrowed = (ground.tree.gitignore && starts != top_only).then_some(starts);
    let mut builder = WalkBuilder::new(first);
    for from in found {
        builder.add(from);
    }
    builder
        .standard_filters(false)
        .follow_links(ground.tree.symlinks == Symlinks::Follow)
        .threads(ground.threads);
    if ground.tree.gitignore {
        builder.git_ignore(true).ignore(true).git_exclude(true).require_git(false);
        let shut = shut.clone();
        builder.filter_entry(move |entry| {
            !entry.file_type().is_some_and(|it| it.is_dir()) || shut.opens(entry.path())
        });
    }
    builder.build_parallel().run(|| {
        Box::new(|entry| {
            let next = match entry {
                Ok(entry) => visit(ground, &entry, narrowed, real, meet),
                Err(error) => match in_words(&error) {
                    Some(trouble) => match ground.report(trouble, meet) {
                        Go::On => Next::Into,
                        Go::Stop => Next::Stop,
                    },
                    None => Next::Into,
                },
            };
            match next {
                Next::Into => WalkState::Continue,
                Next::Past => WalkState::Skip,
                Next::Stop => WalkState::Quit,
            }
        })
    });
    shut.report(ground, meet);
}

/// Directories that are not gone into, since reading their rules might never end: a pipe or a device
/// is under their name.
#[derive(Clone, Default)]
struct Shut(Arc<Mutex<Vec<(PathBuf, &'static str)>>>);

impl Shut {
    /// Whether to go into a directory; it is noted if not.
    fn opens(&self, directory: &Path) -> bool {
        let endless = |name: &&&str| {
            let at = fs::metadata(directory.join(name));
            at.is_ok_and(|it| !it.is_file() && !it.is_dir())
        };
        let Some(name) = RULES.iter().find(endless) else { return true };
        let mut shut = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shut.len() <= SHUT_MAX {
            shut.push((directory.to_path_buf(), name));
        }
        false
    }

    fn report(&self, ground: &Ground<'_>, meet: &(dyn Fn(Met<'_>) -> Go + Sync)) {
        let mut shut = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some((last, _)) = shut.get_mut(SHUT_MAX) {
            // There may be more of them anywhere.
            last.clone_from(&ground.tree.directory);
        }
        for (directory, name) in shut {
            let message = format!("{name} is no file; remove it, or put a file in its place");
            let path = Some(directory);
            let trouble = Trouble { path, kind: "unreadable", message, unseen: true };
            if ground.report(trouble, meet) == Go::Stop {
                return;
            }
        }
    }
}

/// Looks at an entry; with `starts`, at one that may be elsewhere.
fn visit(
    ground: &Ground<'_>,
    entry: &DirEntry,
    starts: Option<&[PathBuf]>,
    real: &Real,
    meet: &(dyn Fn(Met<'_>) -> Go + Sync),
) -> Next {
    let path = entry.path();
    let Some(kind) = entry.file_type().map(kind_of) else { return Next::Past };
    if let Some(starts) = starts {
        let on_the_way = kind.is_dir() && is_on_the_way(path, starts);
        if !on_the_way && !is_within(path, starts) {
            return Next::Past;
        }
    }
    let stat = || match entry.metadata() {
        Ok(metadata) => Ok(stat_of(&metadata)),
        Err(error) => {
            let said = error.to_string();
            Err(error.into_io_error().unwrap_or_else(|| io::Error::other(said)))
        }
    };
    let (is_link, is_start) = (entry.path_is_symlink(), entry.depth() == 0);
    ground.visit(&Entry { path, kind, is_link, is_start, stat: &stat }, real, meet)
}

/// Whether one of `starts` lies below `path`.
fn is_on_the_way(path: &Path, starts: &[PathBuf]) -> bool {
    let after = starts.partition_point(|it| it.as_path() <= path);
    starts.get(after).is_some_and(|it| it.starts_with(path))
}

fn kind_of(kind: fs::FileType) -> FileType {
    use std::os::unix::fs::FileTypeExt as _;
    if kind.is_dir() {
        FileType::Directory
    } else if kind.is_file() {
        FileType::RegularFile
    } else if kind.is_symlink() {
        FileType::Symlink
    } else if kind.is_fifo() {
        FileType::Fifo
    } else if kind.is_socket() {
        FileType::Socket
    } else if kind.is_block_device() {
        FileType::BlockDevice
    } else if kind.is_char_device() {
        FileType::CharacterDevice
    } else {
        FileType::Unknown
    }
}

/// Says what is wrong; `None` for an entry that vanished before it was looked at.
fn in_words(error: &ignore::Error) -> Option<Trouble> {
    let (mut path, mut inner) = (None, error);
    loop {
        match inner {
            ignore::Error::WithPath { path: at, err } => {
                path = Some(at.clone());
                inner = err;
            }
            ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
                inner = err;
            }
            ignore::Error::Loop { child, ancestor } => {
                return Some(link_loop(child.clone(), ancestor));
            }
            _ => return trouble(path, inner.io_error(), inner),
        }
    }
}
