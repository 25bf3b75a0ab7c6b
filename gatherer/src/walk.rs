//! Walks a root, or a part of it, on several threads: every entry is met once, in no order.
//!
//! Hidden names are left out by default, `.gitignore` files are not honored by default, and symbolic
//! links are not followed by default; see [`Root`]. What cannot be looked at is reported, so that
//! nothing below it counts as gone.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::fetch::file::stat_of;
use crate::filter::{Filter, LeftOut};
use crate::frontier::Stat;
use crate::spec::{Root, Symlinks};

/// What a walk is over.
#[derive(Clone, Debug)]
pub struct Ground<'a> {
    /// The root.
    pub root: &'a Root,
    /// Its patterns.
    pub filter: &'a Filter,
    /// Where everything of the gatherer itself is stored: never gathered.
    pub data: &'a Path,
    /// Threads to walk with; at least 1.
    pub threads: usize,
}

/// One thing that a walk has met.
#[derive(Debug)]
pub enum Met {
    /// A file to gather.
    File {
        /// Its absolute path.
        path: PathBuf,
        /// Its metadata.
        stat: Stat,
        /// Whether the path is a symbolic link to the file, or leads through one.
        linked: bool,
    },
    /// Something that is not gathered, and why. Directories that are walked are not reported.
    LeftOut(&'static str),
    /// Something that could not be looked at, or that leads nowhere.
    Trouble(Trouble),
}

/// What was wrong with an entry.
#[derive(Debug)]
pub struct Trouble {
    /// The entry; `None` when even that is unknown.
    pub path: Option<PathBuf>,
    /// The problem's kind.
    pub kind: &'static str,
    /// What happened.
    pub message: String,
    /// Whether what lies there, and below, was not seen although it may exist.
    pub unseen: bool,
}

/// Whether a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// On to the next entry.
    On,
    /// Stop the whole walk.
    Stop,
}

impl Ground<'_> {
    /// Walks every one of `starts` (the root's top, or places below it; in order, none below another)
    /// and everything below, and hands every entry to `meet`, from several threads. What is not there
    /// is not met.
    pub fn walk(&self, starts: &[PathBuf], meet: &(dyn Fn(Met) -> Go + Sync)) {
        let top = self.root.directory.as_path();
        let canonical = fs::canonicalize(top).unwrap_or_else(|_gone| top.to_path_buf());
        // With `.gitignore` files, every one on the way down counts: walk from the top, once, and
        // leave out what is not on the way.
        let top_only = [top.to_path_buf()];
        let from = if self.root.gitignore && !starts.is_empty() { &top_only } else { starts };
        let mut found = from.iter().filter_map(|from| {
            let target = fs::symlink_metadata(from);
            let is_link = target.as_ref().is_ok_and(|it| it.file_type().is_symlink());
            match target {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
                // A top that is a link is walked through, whatever the policy for links.
                _ if from == top && is_link => Some(from.join("")),
                _ => Some(from.clone()),
            }
        });
        let Some(first) = found.next() else { return };
        let narrowed = self.root.gitignore && starts != top_only;
        let mut builder = WalkBuilder::new(first);
        for from in found {
            builder.add(from);
        }
        builder
            .standard_filters(false)
            .follow_links(self.root.symlinks == Symlinks::Follow)
            .threads(self.threads);
        if self.root.gitignore {
            builder.git_ignore(true).ignore(true).git_exclude(true).require_git(false);
        }
        builder.build_parallel().run(|| {
            Box::new(|entry| {
                let state = match entry {
                    Ok(entry) => self.visit(&entry, narrowed.then_some(starts), &canonical, meet),
                    Err(error) => match trouble(&error) {
                        Some(trouble) => (meet(Met::Trouble(trouble)), WalkState::Continue),
                        None => (Go::On, WalkState::Continue),
                    },
                };
                if state.0 == Go::Stop { WalkState::Quit } else { state.1 }
            })
        });
    }

    /// Looks at an entry; with `starts`, at one that may be elsewhere.
    fn visit(
        &self,
        entry: &DirEntry,
        starts: Option<&[PathBuf]>,
        canonical: &Path,
        meet: &(dyn Fn(Met) -> Go + Sync),
    ) -> (Go, WalkState) {
        let path = entry.path();
        let top = self.root.directory.as_path();
        let Some(kind) = entry.file_type() else { return (Go::On, WalkState::Skip) };
        if let Some(starts) = starts {
            let on_the_way = kind.is_dir() && is_on_the_way(path, starts);
            if !on_the_way && !is_within(path, starts) {
                return (Go::On, WalkState::Skip);
            }
        }
        let below = below(path, top);
        // What lies in it is met only by way of it, or as a start.
        if (kind.is_dir() || entry.depth() == 0) && path.starts_with(self.data) {
            return (meet(Met::LeftOut("own-data")), WalkState::Skip);
        }
        if entry.path_is_symlink() && path != top {
            let left = self.filter.leaves_out_directory(below).map(reason);
            match left.map_or_else(|| self.link(path, canonical), |left| Err(Met::LeftOut(left))) {
                Ok(()) => {}
                Err(met) => return (meet(met), WalkState::Skip),
            }
        }
        if kind.is_dir() {
            return match self.filter.leaves_out_directory(below) {
                Some(left) if !below.as_os_str().is_empty() => {
                    (meet(Met::LeftOut(reason(left))), WalkState::Skip)
                }
                Some(_) | None => (Go::On, WalkState::Continue),
            };
        }
        (meet(self.file(entry, below)), WalkState::Continue)
    }

    /// Looks at an entry that is not a directory.
    fn file(&self, entry: &DirEntry, below: &Path) -> Met {
        // A root that is a single file is matched by its name.
        let name = Path::new(entry.file_name());
        let below = if below.as_os_str().is_empty() { name } else { below };
        if let Some(left) = self.filter.leaves_out_directory(below) {
            return Met::LeftOut(reason(left));
        }
        if let Some(kind) = entry.file_type().filter(|kind| !kind.is_file()) {
            return Met::Trouble(Trouble {
                path: Some(entry.path().to_path_buf()),
                kind: "special",
                message: format!("is {}, not a file: not gathered", special(kind)),
                unseen: false,
            });
        }
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            Err(error) => {
                return match trouble(&error) {
                    Some(trouble) => Met::Trouble(trouble),
                    None => Met::LeftOut("vanished"),
                };
            }
        };
        let stat = stat_of(&metadata);
        match self.filter.leaves_out_file(below, stat.size) {
            Some(left) => Met::LeftOut(reason(left)),
            None => Met::File {
                path: entry.path().to_path_buf(),
                stat,
                linked: self.root.symlinks == Symlinks::Follow,
            },
        }
    }

    /// Says whether to follow a link, or what it counts as instead.
    fn link(&self, path: &Path, canonical: &Path) -> Result<(), Met> {
        let bad = |kind, message: String| {
            Err(Met::Trouble(Trouble {
                path: Some(path.to_path_buf()),
                kind,
                message,
                unseen: false,
            }))
        };
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if is_loop(&error) => {
                return bad("link-loop", "the link leads around in a circle".into());
            }
            Err(error) => return bad("link-broken", format!("the link leads nowhere: {error}")),
        };
        if !target.starts_with(canonical) {
            let message = format!("the link leads out of the root, to {}", target.display());
            return bad("link-escape", message);
        }
        let parent = path.parent().unwrap_or(path);
        let real_parent = fs::canonicalize(parent).unwrap_or_else(|_gone| parent.to_path_buf());
        if real_parent.starts_with(&target) {
            let message = format!("the link leads to a directory above it, {}", target.display());
            return bad("link-loop", message);
        }
        let below = parent.strip_prefix(&self.root.directory).unwrap_or(parent);
        if self.root.symlinks == Symlinks::Skip || real_parent != canonical.join(below) {
            return Err(Met::LeftOut("link"));
        }
        Ok(())
    }
}

/// Returns what is left of `path` below `top`: by their bytes where that says it, since comparing
/// paths name by name took a sixth of a pass in which nothing had changed.
fn below<'p>(path: &'p Path, top: &Path) -> &'p Path {
    let (bytes, top_bytes) = (path.as_os_str().as_bytes(), top.as_os_str().as_bytes());
    match bytes.strip_prefix(top_bytes).and_then(|rest| rest.strip_prefix(b"/")) {
        Some(rest) if rest.first() != Some(&b'/') => Path::new(OsStr::from_bytes(rest)),
        _ => path.strip_prefix(top).unwrap_or(path),
    }
}

/// Whether `path` is one of `starts` or lies below one. They are in order, and so are paths by
/// component: what lies below one comes directly after it.
pub(crate) fn is_within(path: &Path, starts: &[PathBuf]) -> bool {
    let after = starts.partition_point(|it| it.as_path() <= path);
    starts.get(..after).and_then(<[PathBuf]>::last).is_some_and(|it| path.starts_with(it))
}

/// Whether one of `starts` lies below `path`.
fn is_on_the_way(path: &Path, starts: &[PathBuf]) -> bool {
    let after = starts.partition_point(|it| it.as_path() <= path);
    starts.get(after).is_some_and(|it| it.starts_with(path))
}

fn special(kind: fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "something special"
    }
}

fn reason(left: LeftOut) -> &'static str {
    match left {
        LeftOut::Hidden => "hidden",
        LeftOut::Excluded => "excluded",
        LeftOut::NotIncluded => "not-included",
        LeftOut::TooLarge => "too-large",
    }
}

fn is_loop(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

/// Says what is wrong; `None` for an entry that vanished before it was looked at.
fn trouble(error: &ignore::Error) -> Option<Trouble> {
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
                return Some(Trouble {
                    path: Some(child.clone()),
                    kind: "link-loop",
                    message: format!("the link leads to {} above it", ancestor.display()),
                    unseen: false,
                });
            }
            _ => break,
        }
    }
    let cause = inner.io_error();
    let (kind, message, unseen) = match cause.map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => {
            // A link is there, and what it leads to is not; anything else has vanished.
            let at = path.as_deref()?;
            if !fs::symlink_metadata(at).is_ok_and(|it| it.file_type().is_symlink()) {
                return None;
            }
            ("link-broken", "the link leads nowhere".to_owned(), false)
        }
        Some(io::ErrorKind::PermissionDenied) => {
            ("unreadable", "permission denied: grant it, or exclude this".to_owned(), true)
        }
        Some(io::ErrorKind::InvalidFilename) => {
            ("path-too-long", "the path is longer than the system allows".to_owned(), true)
        }
        _ if cause.is_some_and(is_loop) => {
            ("link-loop", "the link leads around in a circle".to_owned(), false)
        }
        _ => ("unreadable", inner.to_string(), true),
    };
    Some(Trouble { path, kind, message, unseen })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Mutex;

    use super::*;

    /// Walks `root` from `start` and compares what is met: files by their path below the top, other
    /// things by reason or kind, sorted.
    #[track_caller]
    fn check(root: &Root, start: &Path, expected: &[&str]) {
        check_all(root, &[start.to_path_buf()], expected);
    }

    #[track_caller]
    fn check_all(root: &Root, starts: &[PathBuf], expected: &[&str]) {
        let filter = Filter::new(root).unwrap();
        let ground = Ground { root, filter: &filter, data: Path::new("/none"), threads: 2 };
        let met = Mutex::new(Vec::new());
        ground.walk(starts, &|it| {
            let line = match it {
                Met::File { path, .. } => {
                    path.strip_prefix(&root.directory).unwrap().display().to_string()
                }
                Met::LeftOut(reason) => format!("- {reason}"),
                Met::Trouble(trouble) => format!(
                    "! {} {}",
                    trouble.kind,
                    trouble.path.unwrap().strip_prefix(&root.directory).unwrap().display()
                ),
            };
            met.lock().unwrap().push(line);
            Go::On
        });
        let mut met = met.into_inner().unwrap();
        met.sort();
        assert_eq!(met, expected);
    }

    fn tree(files: &[&str]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn links_are_not_followed_and_bad_ones_are_named() {
        let (folder, mut root) = tree(&["a/b/f", "g"]);
        let link = |to: &str, at: &str| symlink(to, folder.path().join(at)).unwrap();
        link("../g", "a/to-g");
        link("../..", "a/b/up");
        link("self", "self");
        link("/etc", "out");
        link("nowhere", "broken");
        link("a", "to-a");
        let bad =
            ["! link-broken broken", "! link-escape out", "! link-loop a/b/up", "! link-loop self"];
        let mut expected = bad.to_vec();
        expected.extend(["- link", "- link", "a/b/f", "g"]);
        check(&root, folder.path(), &expected);
        root.symlinks = Symlinks::Follow;
        let mut expected = bad.to_vec();
        expected.insert(3, "! link-loop to-a/b/up");
        expected.extend(["- link", "a/b/f", "a/to-g", "g", "to-a/b/f"]);
        // Below the linked directory: `up` leads above the link's target too, `to-g` is the second
        // link on its way.
        expected.sort_unstable();
        check(&root, folder.path(), &expected);
    }

    #[test]
    fn a_part_of_a_root_is_walked_by_the_rules_of_the_whole() {
        let (folder, mut root) = tree(&["a/x.txt", "a/.h/y", "b/z", "a/skip/w"]);
        root.exclude = vec!["skip/".into()];
        check(&root, &folder.path().join("a"), &["- excluded", "- hidden", "a/x.txt"]);
        check(&root, &folder.path().join("a/x.txt"), &["a/x.txt"]);
        check(&root, &folder.path().join("a/.h/y"), &["- hidden"]);
        check(&root, &folder.path().join("a/skip/w"), &["- excluded"]);
        check(&root, &folder.path().join("none"), &[]);
        check(&root, &folder.path().join("b/z/none"), &[]);
    }

    #[test]
    fn ignore_files_count_when_asked_even_from_below() {
        let (folder, mut root) = tree(&["keep/f", "target/g", "keep/h.o"]);
        fs::write(folder.path().join(".gitignore"), "target/\n*.o\n").unwrap();
        check(&root, folder.path(), &["- hidden", "keep/f", "keep/h.o", "target/g"]);
        root.gitignore = true;
        check(&root, folder.path(), &["- hidden", "keep/f"]);
        check(&root, &folder.path().join("target/g"), &[]);
        check(&root, &folder.path().join("keep/f"), &["keep/f"]);
        check(&root, &folder.path().join("keep/h.o"), &[]);
    }

    #[test]
    fn many_places_are_walked_at_once_each_entry_once() {
        let (folder, mut root) = tree(&["a/b/f", "a/b/g", "a/b-c", "a/x/y", "d/e", "h", "o/p.o"]);
        fs::write(folder.path().join(".gitignore"), "*.o\n").unwrap();
        let at = |names: &[&str]| -> Vec<PathBuf> {
            names.iter().map(|name| folder.path().join(name)).collect()
        };
        let some = at(&["a/b", "a/none", "a/x/y", "d/e/below", "h", "none"]);
        for gitignore in [false, true] {
            root.gitignore = gitignore;
            check_all(&root, &some, &["a/b/f", "a/b/g", "a/x/y", "h"]);
            check_all(&root, &[], &[]);
            check_all(&root, &at(&["none", "o/none"]), &[]);
        }
        check_all(&root, &at(&["a/b-c", "o"]), &["a/b-c"]);
        root.gitignore = false;
        check_all(&root, &at(&["a/b-c", "o"]), &["a/b-c", "o/p.o"]);
    }

    #[test]
    fn a_root_may_be_one_file_or_a_link() {
        let (folder, _) = tree(&["d/f"]);
        symlink("d", folder.path().join("link")).unwrap();
        check(&Root::new(folder.path().join("d/f")), &folder.path().join("d/f"), &[""]);
        check(&Root::new(folder.path().join("link")), &folder.path().join("link"), &["f"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let (folder, root) = tree(&["f"]);
        // Deeper than the longest path: made step by step from a directory handle.
        let mut at = fs::File::open(folder.path()).unwrap();
        let name = "n".repeat(200);
        for _ in 0..30 {
            rustix::fs::mkdirat(&at, &name, rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            at = rustix::fs::openat(&at, &name, flags, rustix::fs::Mode::empty()).unwrap().into();
        }
        let filter = Filter::new(&root).unwrap();
        let ground = Ground { root: &root, filter: &filter, data: Path::new("/none"), threads: 1 };
        let kinds = Mutex::new(Vec::new());
        ground.walk(&[folder.path().to_path_buf()], &|it| {
            match it {
                Met::Trouble(trouble) => kinds.lock().unwrap().push((trouble.kind, trouble.unseen)),
                Met::File { .. } => kinds.lock().unwrap().push(("file", false)),
                Met::LeftOut(_) => {}
            }
            Go::On
        });
        let mut kinds = kinds.into_inner().unwrap();
        kinds.sort_unstable();
        assert_eq!(kinds, [("file", false), ("path-too-long", true)]);
    }
}
