//! The walk over a root or a part of it, on several threads: visits every entry once, unordered.
//!
//! By default, hidden names are left out, `.gitignore` files are not honored, and symbolic links
//! are not followed; see [`Tree`]. Unreadable entries are reported, so that nothing below them is
//! taken for gone.
//!
//! This module judges the entries. `direct` finds them, or `ignoring` if `.gitignore` files are
//! honored.

mod direct;
mod ignoring;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::spec::{Symlinks, Tree};
use crate::tree::filter::Filter;
use crate::validator::Stat;

/// Walker of a tree.
#[derive(Clone, Debug)]
pub struct Walker<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// The tree's patterns.
    pub filter: &'a Filter,
    /// The gatherer's own folder, which is never gathered.
    pub data: &'a Path,
    /// Number of threads; at least 1.
    pub threads: usize,
}

/// Result of a walk for one entry.
#[derive(Debug)]
pub enum WalkItem<'a> {
    /// A file to gather.
    File {
        /// The file's absolute path.
        path: &'a Path,
        /// The file's metadata.
        stat: Stat,
    },
    /// An entry that is not gathered, with the reason. Walked directories are not reported.
    LeftOut(&'static str),
    /// An entry that could not be read, or a bad link.
    Trouble(Trouble),
}

/// Problem with an entry.
#[derive(Debug)]
pub struct Trouble {
    /// The entry; `None` if it is unknown.
    pub path: Option<PathBuf>,
    /// The problem's kind.
    pub kind: &'static str,
    /// The problem in words.
    pub message: String,
    /// Whether the entry, or entries below it, may exist although they were not visited.
    pub unseen: bool,
}

/// Paths of a walk with links resolved, as they were at its beginning.
#[derive(Debug)]
struct ResolvedPaths {
    top: PathBuf,
    /// Device and inode of the gatherer's own folder. A walk may reach that folder by any name,
    /// through a link or a second mount of a part of the tree.
    data: Option<(u64, u64)>,
}

impl ResolvedPaths {
    fn of(walker: &Walker<'_>) -> Self {
        let top = walker.tree.directory.as_path();
        Self {
            top: fs::canonicalize(top).unwrap_or_else(|_gone| top.to_path_buf()),
            data: identity(walker.data),
        }
    }

    /// Returns whether a directory is the gatherer's own folder.
    fn is_data(&self, directory: &Path) -> bool {
        self.data.is_some() && identity(directory) == self.data
    }

    /// Returns whether `path` is the gatherer's own folder, or lies in it.
    fn is_in_data(&self, path: &Path) -> bool {
        path.ancestors().any(|it| self.is_data(it))
    }
}

/// Returns the device and the inode of a path's target.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|it| (it.dev(), it.ino()))
}

/// Whether a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// Go on to the next entry.
    On,
    /// Stop the whole walk.
    Stop,
}

struct Entry<'a> {
    path: &'a Path,
    /// The entry's kind; for a link that is followed, the kind of its target.
    kind: FileType,
    is_link: bool,
    /// Whether the walk began at this entry.
    is_start: bool,
    /// Reads the entry's metadata, or those of its target if links are followed.
    stat: &'a dyn Fn() -> io::Result<Stat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Enter the entry, if it is a directory.
    Into,
    /// Go on to the next entry without entering this one.
    Past,
    /// Stop the whole walk.
    Stop,
}

impl From<Go> for Next {
    /// Converts to `Past`, unless the walk stops.
    fn from(go: Go) -> Self {
        if go == Go::Stop { Self::Stop } else { Self::Past }
    }
}

impl Walker<'_> {
    /// Walks each of `starts` (the root's top, or paths below it; in order, none below another)
    /// with everything below, and passes every entry to `handle`, from several threads. Skips
    /// starts that do not exist.
    pub fn walk(&self, starts: &[PathBuf], handle: &(dyn Fn(WalkItem<'_>) -> Go + Sync)) {
        let real = ResolvedPaths::of(self);
        if self.tree.gitignore {
            ignoring::walk(self, starts, &real, handle);
        } else {
            direct::walk(self, starts, &real, handle);
        }
    }

    /// Returns the path at which a walk from `start` begins; `None` if it does not exist.
    fn first_path(&self, start: &Path) -> Option<PathBuf> {
        let target = fs::symlink_metadata(start);
        let is_link = target.as_ref().is_ok_and(|it| it.file_type().is_symlink());
        match target {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
            // If the top is a link, it is followed, whatever the policy for links.
            _ if start == self.tree.directory && is_link => Some(start.join("")),
            _ => Some(start.to_path_buf()),
        }
    }

    /// Judges an entry, and passes it on.
    fn visit(
        &self,
        entry: &Entry<'_>,
        real: &ResolvedPaths,
        handle: &(dyn Fn(WalkItem<'_>) -> Go + Sync),
    ) -> Next {
        let (path, top) = (entry.path, self.tree.directory.as_path());
        let (below, is_dir) = (below(path, top), entry.kind.is_dir());
        // Entries in the gatherer's folder are reached only through it, by a link, or as a start.
        if is_dir && real.is_data(path) || entry.is_start && real.is_in_data(path) {
            return handle(WalkItem::LeftOut("own-data")).into();
        }
        if entry.is_link && path != top {
            let left = self.filter.leaves_out_directory(below);
            let judged =
                left.map_or_else(|| self.link(path, real), |it| Err(WalkItem::LeftOut(it)));
            if let Err(item) = judged {
                return handle(item).into();
            }
        }
        if is_dir {
            return match self.filter.leaves_out_directory(below) {
                Some(left) if !below.as_os_str().is_empty() => {
                    handle(WalkItem::LeftOut(left)).into()
                }
                Some(_) | None => Next::Into,
            };
        }
        handle(self.file(entry, below)).into()
    }

    /// Judges an entry that is not a directory.
    fn file<'e>(&self, entry: &Entry<'e>, below: &Path) -> WalkItem<'e> {
        // A root that is a single file is matched by its name.
        let name = Path::new(entry.path.file_name().unwrap_or_default());
        let below = if below.as_os_str().is_empty() { name } else { below };
        if let Some(left) = self.filter.leaves_out_directory(below) {
            return WalkItem::LeftOut(left);
        }
        let is_recorded = entry.kind.is_symlink() && self.tree.symlinks == Symlinks::Record;
        if !entry.kind.is_file() && !is_recorded {
            let message = format!("is {}, not a file: not gathered", special(entry.kind));
            let path = Some(entry.path.to_path_buf());
            return WalkItem::Trouble(Trouble { path, kind: "special", message, unseen: false });
        }
        let stat = match (entry.stat)() {
            Ok(stat) => stat,
            Err(error) => {
                let trouble = trouble(Some(entry.path.to_path_buf()), Some(&error), &error);
                return trouble.map_or(WalkItem::LeftOut("vanished"), WalkItem::Trouble);
            }
        };
        match self.filter.leaves_out_file(below, stat.size) {
            Some(left) => WalkItem::LeftOut(left),
            None => WalkItem::File { path: entry.path, stat },
        }
    }

    /// Passes on a problem with an entry, unless the entry is left out.
    fn report(&self, trouble: Trouble, handle: &(dyn Fn(WalkItem<'_>) -> Go + Sync)) -> Go {
        let below = trouble.path.as_deref().map(|path| below(path, &self.tree.directory));
        let left = below.and_then(|below| self.filter.leaves_out_directory(below));
        handle(left.map_or(WalkItem::Trouble(trouble), WalkItem::LeftOut))
    }

    /// Returns `Ok` if a link is to be followed or gathered itself; otherwise an item for it.
    fn link(&self, path: &Path, real: &ResolvedPaths) -> Result<(), WalkItem<'static>> {
        let bad = |kind, message: String| {
            let path = Some(path.to_path_buf());
            Err(WalkItem::Trouble(Trouble { path, kind, message, unseen: false }))
        };
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if is_loop(&error) => {
                return bad("link-loop", "the link leads around in a circle".into());
            }
            Err(error) => return bad("link-broken", format!("the link leads nowhere: {error}")),
        };
        if !target.starts_with(&real.top) {
            let message = format!("the link leads out of the root, to {}", target.display());
            return bad("link-escape", message);
        }
        if real.is_in_data(&target) {
            return Err(WalkItem::LeftOut("own-data"));
        }
        let parent = path.parent().unwrap_or(path);
        let real_parent = fs::canonicalize(parent).unwrap_or_else(|_gone| parent.to_path_buf());
        if real_parent.starts_with(&target) {
            let message = format!("the link leads to a directory above it, {}", target.display());
            return bad("link-loop", message);
        }
        let below = parent.strip_prefix(&self.tree.directory).unwrap_or(parent);
        match self.tree.symlinks {
            Symlinks::Record => Ok(()),
            Symlinks::Follow if real_parent == real.top.join(below) => Ok(()),
            Symlinks::Follow | Symlinks::Skip => Err(WalkItem::LeftOut("link")),
        }
    }
}

/// Returns the part of `path` below `top`. Compares bytes if possible, since comparing paths name
/// by name took a sixth of the time of a pass without changes.
fn below<'p>(path: &'p Path, top: &Path) -> &'p Path {
    let (bytes, top_bytes) = (path.as_os_str().as_bytes(), top.as_os_str().as_bytes());
    match bytes.strip_prefix(top_bytes).and_then(|rest| rest.strip_prefix(b"/")) {
        Some(rest) if rest.first() != Some(&b'/') => Path::new(OsStr::from_bytes(rest)),
        _ => path.strip_prefix(top).unwrap_or(path),
    }
}

/// Returns whether `path` is one of `starts` or lies below one of them. `starts` is in order, and
/// paths compare by component: the paths below a start come directly after it.
fn is_within(path: &Path, starts: &[PathBuf]) -> bool {
    let after = starts.partition_point(|it| it.as_path() <= path);
    starts.get(..after).and_then(<[PathBuf]>::last).is_some_and(|it| path.starts_with(it))
}

fn special(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        _ => "something special",
    }
}

fn is_loop(error: &io::Error) -> bool {
    rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

/// Returns the problem at `path`; `None` for an entry that vanished before it was read. `cause` is
/// the system's error; `error` is the whole error, for the message.
fn trouble(
    path: Option<PathBuf>,
    cause: Option<&io::Error>,
    error: &dyn std::fmt::Display,
) -> Option<Trouble> {
    let (kind, message, unseen) = match cause.map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => {
            // A link without a target is a problem; any other entry has vanished.
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
        _ => ("unreadable", error.to_string(), true),
    };
    Some(Trouble { path, kind, message, unseen })
}

/// Returns the problem with a link that leads to a directory above the link.
fn link_loop(path: PathBuf, above: &Path) -> Trouble {
    let message = format!("the link leads to {} above it", above.display());
    Trouble { path: Some(path), kind: "link-loop", message, unseen: false }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::Mutex;

    use rustix::fs::CWD;

    use super::*;

    /// Walks `root` from `start` and compares the sorted items: files by their path below the top,
    /// others by reason or kind.
    #[track_caller]
    fn check(root: &Tree, start: &Path, expected: &[&str]) {
        check_all(root, &[start.to_path_buf()], expected);
    }

    #[track_caller]
    fn check_all(root: &Tree, starts: &[PathBuf], expected: &[&str]) {
        check_with(root, starts, Path::new("/none"), expected);
    }

    #[track_caller]
    fn check_with(root: &Tree, starts: &[PathBuf], data: &Path, expected: &[&str]) {
        let filter = Filter::new(root).unwrap();
        let walker = Walker { tree: root, filter: &filter, data, threads: 2 };
        let lines = Mutex::new(Vec::new());
        walker.walk(starts, &|it| {
            let line = match it {
                WalkItem::File { path, .. } => {
                    path.strip_prefix(&root.directory).unwrap().display().to_string()
                }
                WalkItem::LeftOut(reason) => format!("- {reason}"),
                WalkItem::Trouble(trouble) => format!(
                    "! {} {}",
                    trouble.kind,
                    trouble.path.unwrap().strip_prefix(&root.directory).unwrap().display()
                ),
            };
            lines.lock().unwrap().push(line);
            Go::On
        });
        let mut lines = lines.into_inner().unwrap();
        lines.sort();
        assert_eq!(lines, expected);
    }

    fn tree(files: &[&str]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        let root = Tree::new(folder.path());
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
        root.symlinks = Symlinks::Record;
        let mut expected = bad.to_vec();
        expected.extend(["a/b/f", "a/to-g", "g", "to-a"]);
        check(&root, folder.path(), &expected);
        root.gitignore = true;
        check(&root, folder.path(), &expected);
        root.gitignore = false;
        root.symlinks = Symlinks::Follow;
        let mut expected = bad.to_vec();
        expected.insert(3, "! link-loop to-a/b/up");
        expected.extend(["- link", "a/b/f", "a/to-g", "g", "to-a/b/f"]);
        // Below the linked directory: `up` also leads above the link's target, and `to-g` is the
        // second link in its path.
        expected.sort_unstable();
        check(&root, folder.path(), &expected);
    }

    #[test]
    fn the_own_folder_is_left_out_under_any_name() {
        let (folder, _) = tree(&["home/a/f", "home/data/identity.key", "home/data/c/segment"]);
        symlink("home", folder.path().join("nfs")).unwrap();
        let (home, nfs) = (folder.path().join("home"), folder.path().join("nfs"));
        for gitignore in [false, true] {
            for (top, data) in [(&home, &nfs), (&nfs, &home), (&nfs, &nfs)] {
                let root = Tree { gitignore, ..Tree::new(top) };
                let data = data.join("data");
                check_with(&root, std::slice::from_ref(top), &data, &["- own-data", "a/f"]);
                // Paths that a watcher reports.
                let reported = ["data", "data/c", "data/c/segment"];
                let starts = reported.map(|it| vec![top.join(it)]);
                for start in &starts {
                    check_with(&root, start, &data, &["- own-data"]);
                }
            }
        }
    }

    #[test]
    fn no_link_leads_into_the_own_folder() {
        let (folder, mut root) = tree(&["x/f", "x/data/identity.key", "x/data/c/segment"]);
        let link = |to: &str, at: &str| symlink(to, folder.path().join(at)).unwrap();
        link("x/data", "to-data");
        link("x/data/c", "to-part");
        link("x/data/identity.key", "to-key");
        link("x", "to-above");
        root.symlinks = Symlinks::Follow;
        let top = [folder.path().to_path_buf()];
        let expected = ["- own-data"; 5].into_iter().chain(["to-above/f", "x/f"]);
        let expected: Vec<&str> = expected.collect();
        for gitignore in [false, true] {
            root.gitignore = gitignore;
            check_with(&root, &top, &folder.path().join("x/data"), &expected);
        }
        root.gitignore = false;
        let reported = [folder.path().join("to-above/data/identity.key")];
        check_with(&root, &reported, &folder.path().join("x/data"), &["- own-data"]);
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
    fn ignore_files_count_by_setting_even_for_starts_below_them() {
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
    fn an_ignore_file_that_is_a_pipe_does_not_block_the_walk() {
        let (folder, mut root) = tree(&["a/f", "b/g"]);
        root.gitignore = true;
        let pipe = |at: &str| {
            let (kind, mode) = (FileType::Fifo, rustix::fs::Mode::RWXU);
            rustix::fs::mknodat(CWD, folder.path().join(at), kind, mode, 0).unwrap();
        };
        pipe("a/.gitignore");
        check(&root, folder.path(), &["! unreadable a", "b/g"]);
        pipe(".ignore");
        check(&root, folder.path(), &["! unreadable "]);
    }

    #[test]
    fn several_starts_give_each_entry_once() {
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
        check(&Tree::new(folder.path().join("d/f")), &folder.path().join("d/f"), &[""]);
        check(&Tree::new(folder.path().join("link")), &folder.path().join("link"), &["f"]);
    }

    #[test]
    fn paths_that_are_too_long_are_reported() {
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
        let walker = Walker { tree: &root, filter: &filter, data: Path::new("/none"), threads: 1 };
        let kinds = Mutex::new(Vec::new());
        walker.walk(&[folder.path().to_path_buf()], &|it| {
            match it {
                WalkItem::Trouble(trouble) => {
                    kinds.lock().unwrap().push((trouble.kind, trouble.unseen));
                }
                WalkItem::File { .. } => kinds.lock().unwrap().push(("file", false)),
                WalkItem::LeftOut(_) => {}
            }
            Go::On
        });
        let mut kinds = kinds.into_inner().unwrap();
        kinds.sort_unstable();
        assert_eq!(kinds, [("file", false), ("path-too-long", true)]);
    }

    /// Returns the items of `direct`, or of `ignoring`, sorted.
    fn walk_items(walker: &Walker<'_>, starts: &[PathBuf], is_direct: bool) -> Vec<String> {
        let items = Mutex::new(Vec::new());
        let walk = if is_direct { direct::walk } else { ignoring::walk };
        walk(walker, starts, &ResolvedPaths::of(walker), &|it| {
            items.lock().unwrap().push(format!("{it:?}"));
            Go::On
        });
        let mut items = items.into_inner().unwrap();
        items.sort();
        items
    }

    /// Names: plain, hidden, with a space and a line end, not UTF-8.
    const NAMES: [&[u8]; 7] = [b"a", b"b", b"c.o", b".h", b"d e\n", b"\xff\xfe", b"..."];

    /// Makes a tree: each step adds an entry below an earlier one, if possible.
    fn grow(top: &Path, steps: &[(usize, usize, u8)]) {
        let mut folders = vec![top.to_path_buf()];
        for &(folder, name, kind) in steps {
            let directory = folders[folder % folders.len()].clone();
            let path = directory.join(OsStr::from_bytes(NAMES[name % NAMES.len()]));
            let target = &folders[(folder * 7 + name) % folders.len()];
            if path.symlink_metadata().is_ok() {
                continue;
            }
            match kind {
                0..5 => fs::create_dir(&path).unwrap_or_default(),
                5..9 => fs::write(&path, vec![b'x'; name]).unwrap_or_default(),
                9 => symlink(target, &path).unwrap_or_default(),
                10 => symlink("..", &path).unwrap_or_default(),
                11 => symlink(["a", "nowhere", "b/a", ".", "/etc"][name % 5], &path)
                    .unwrap_or_default(),
                _ => {
                    let mode = rustix::fs::Mode::RUSR;
                    rustix::fs::mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap_or_default();
                }
            }
            if path.symlink_metadata().is_ok_and(|it| it.is_dir()) || kind == 9 {
                folders.push(path);
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config {
            cases: 150,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn both_walks_give_the_same_items(
            steps in proptest::collection::vec((0_usize..60, 0_usize..60, 0_u8..13), 0..60),
            (hidden, follow, exclude, limit) in (0_u8..2, 0_u8..2, 0_usize..4, 0_u64..80),
            threads in 1_usize..4,
            part in 0_usize..4,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let top = fs::canonicalize(folder.path()).unwrap();
            grow(&top, &steps);
            let patterns: [&[&str]; 4] = [&[], &["*.o"], &["/a/"], &["b/a", "d*"]];
            let root = Tree {
                hidden: hidden == 1,
                symlinks: if follow == 1 { Symlinks::Follow } else { Symlinks::Skip },
                exclude: patterns[exclude].iter().map(ToString::to_string).collect(),
                file_bytes_max: Some(limit),
                ..Tree::new(&top)
            };
            let filter = Filter::new(&root).unwrap();
            let data = top.join("b");
            let walker = Walker { tree: &root, filter: &filter, data: &data, threads };
            // Paths that a watcher reports. `ignore` knows only the links below the start.
            let mut starts: Vec<PathBuf> = ["a", "b", ".h", "none"].map(|it| top.join(it)).into();
            starts.sort();
            starts.retain(|it| !it.is_symlink());
            starts.truncate(part);
            if part == 0 || follow == 1 {
                starts = vec![top.clone()];
            }
            let both = [true, false].map(|it| walk_items(&walker, &starts, it));
            proptest::prop_assert_eq!(&both[0], &both[1]);
        }
    }

    #[test]
    fn links_as_starts_are_judged_as_links() {
        let (folder, mut root) = tree(&["a/f", "g"]);
        let link = |to: &str, at: &str| symlink(to, folder.path().join(at)).unwrap();
        link("a", "to-a");
        link("g", "to-g");
        link("/etc", "out");
        let reported: Vec<PathBuf> =
            ["out", "to-a", "to-g"].map(|name| folder.path().join(name)).into();
        check_all(&root, &reported, &["! link-escape out", "- link", "- link"]);
        root.symlinks = Symlinks::Follow;
        check_all(&root, &reported, &["! link-escape out", "to-a/f", "to-g"]);
    }

    #[test]
    fn a_walk_stops_on_request_and_passes_a_panic_on() {
        let (_folder, root) = tree(&["a/f", "b/f", "c/f", "d/e/f", "d/g/f"]);
        let filter = Filter::new(&root).unwrap();
        let walker = Walker { tree: &root, filter: &filter, data: Path::new("/none"), threads: 1 };
        let count = std::sync::atomic::AtomicUsize::new(0);
        walker.walk(std::slice::from_ref(&root.directory), &|_| {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Go::Stop
        });
        assert_eq!(count.into_inner(), 1);
        let walker = Walker { threads: 3, ..walker };
        let fault = std::panic::catch_unwind(|| {
            walker.walk(std::slice::from_ref(&root.directory), &|_| {
                std::panic::resume_unwind(Box::new("it"))
            });
        });
        assert!(fault.is_err());
    }
}
