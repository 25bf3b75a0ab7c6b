//! The walk with `.gitignore` files: the `ignore` crate finds the entries and matches the files.
//! For a root without such files, it gives the same items as [`super::direct`]; the tests check
//! this.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::{DirEntry, WalkBuilder, WalkState};
use rustix::fs::FileType;

use super::{
    Entry, Go, Next, ResolvedPaths, Trouble, WalkItem, Walker, is_within, link_loop, trouble,
};
use crate::lock::lock;
use crate::spec::Symlinks;
use crate::tree::file::stat_of;

/// Files with rules in a directory.
const RULES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// Maximum number of directories with unreadable rules that are reported individually.
const SKIPPED_MAX: usize = 1_000;

pub(super) fn walk(
    walker: &Walker<'_>,
    starts: &[PathBuf],
    real: &ResolvedPaths,
    handle: &(dyn Fn(WalkItem<'_>) -> Go + Sync),
) {
    // Every `.gitignore` file above an entry applies to it: walk once from the top, and skip
    // entries that are neither above nor below a start.
    let top_only = [walker.tree.directory.clone()];
    let from = if walker.tree.gitignore && !starts.is_empty() { &top_only } else { starts };
    // The crate reads a directory's rules before it asks whether to enter the directory.
    let skipped = SkippedFolders::default();
    let enters = |from: &PathBuf| !walker.tree.gitignore || skipped.enters(from);
    let mut found = from.iter().filter_map(|from| walker.first_path(from)).filter(enters);
    let Some(first) = found.next() else { return skipped.report(walker, handle) };
    let narrowed = (walker.tree.gitignore && starts != top_only).then_some(starts);
    let mut builder = WalkBuilder::new(first);
    for from in found {
        builder.add(from);
    }
    builder
        .standard_filters(false)
        .follow_links(walker.tree.symlinks == Symlinks::Follow)
        .threads(walker.threads);
    if walker.tree.gitignore {
        builder.git_ignore(true).ignore(true).git_exclude(true).require_git(false);
        let skipped = skipped.clone();
        builder.filter_entry(move |entry| {
            !entry.file_type().is_some_and(|it| it.is_dir()) || skipped.enters(entry.path())
        });
    }
    builder.build_parallel().run(|| {
        Box::new(|entry| {
            let next = match entry {
                Ok(entry) => visit(walker, &entry, narrowed, real, handle),
                Err(error) => match trouble_of(&error) {
                    Some(trouble) => match walker.report(trouble, handle) {
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
    skipped.report(walker, handle);
}

/// Directories that are not entered because reading their rules might never end: a file with rules
/// is a pipe or a device.
#[derive(Clone, Default)]
struct SkippedFolders(Arc<Mutex<Vec<(PathBuf, &'static str)>>>);

impl SkippedFolders {
    /// Returns whether to enter a directory; if not, notes the directory.
    fn enters(&self, directory: &Path) -> bool {
        let endless = |name: &&&str| {
            let at = fs::metadata(directory.join(name));
            at.is_ok_and(|it| !it.is_file() && !it.is_dir())
        };
        let Some(name) = RULES.iter().find(endless) else { return true };
        let mut skipped = lock(&self.0);
        if skipped.len() <= SKIPPED_MAX {
            skipped.push((directory.to_path_buf(), name));
        }
        false
    }

    fn report(&self, walker: &Walker<'_>, handle: &(dyn Fn(WalkItem<'_>) -> Go + Sync)) {
        let mut skipped = std::mem::take(&mut *lock(&self.0));
        if let Some((last, _)) = skipped.get_mut(SKIPPED_MAX) {
            // There may be more such directories anywhere in the tree.
            last.clone_from(&walker.tree.directory);
        }
        for (directory, name) in skipped {
            let message = format!("{name} is no file; remove it, or put a file in its place");
            let path = Some(directory);
            let trouble = Trouble { path, kind: "unreadable", message, unseen: true };
            if walker.report(trouble, handle) == Go::Stop {
                return;
            }
        }
    }
}

/// Visits an entry; if `starts` are given, skips the entry if it is neither above nor below one of
/// them.
fn visit(
    walker: &Walker<'_>,
    entry: &DirEntry,
    starts: Option<&[PathBuf]>,
    real: &ResolvedPaths,
    handle: &(dyn Fn(WalkItem<'_>) -> Go + Sync),
) -> Next {
    let path = entry.path();
    let Some(kind) = entry.file_type().map(kind_of) else { return Next::Past };
    if let Some(starts) = starts {
        let is_above = kind.is_dir() && is_above(path, starts);
        if !is_above && !is_within(path, starts) {
            return Next::Past;
        }
    }
    let stat = || match entry.metadata() {
        Ok(metadata) => Ok(stat_of(&metadata)),
        Err(error) => {
            let text = error.to_string();
            Err(error.into_io_error().unwrap_or_else(|| io::Error::other(text)))
        }
    };
    let (is_link, is_start) = (entry.path_is_symlink(), entry.depth() == 0);
    walker.visit(&Entry { path, kind, is_link, is_start, stat: &stat }, real, handle)
}

/// Returns whether one of `starts` lies below `path`.
fn is_above(path: &Path, starts: &[PathBuf]) -> bool {
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

/// Returns the problem for an error; `None` for an entry that vanished before it was read.
fn trouble_of(error: &ignore::Error) -> Option<Trouble> {
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
