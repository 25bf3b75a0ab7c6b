//! A workspace as the rules see it: its crates, their manifests, their files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use crate::code::Code;

/// The tables of the rules; `tidy.rs` describes each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) may_depend_on: &'static [(&'static str, &'static [&'static str])],
    pub(crate) common: &'static [&'static str],
    pub(crate) kept_to: &'static [(&'static str, &'static [&'static str])],
    pub(crate) named_only_in: &'static [(&'static str, &'static [&'static str])],
    pub(crate) unnamed: &'static [(&'static str, &'static str, &'static str)],
    pub(crate) pure_crates: &'static [&'static str],
}

/// A workspace.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) root: PathBuf,
    pub(crate) tables: Tables,
    sources: RefCell<Option<Rc<Vec<Source>>>>,
}

/// A file of the product.
#[derive(Debug)]
pub(crate) struct Source {
    /// The crate of the file; `harvest` for the program at the root.
    pub(crate) krate: String,
    /// Its path from the workspace's root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) code: Code,
}

impl Source {
    pub(crate) fn shown(&self) -> std::path::Display<'_> {
        self.path.display()
    }
}

/// Kinds of the sections of a manifest that name dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Product,
    Tests,
    Workspace,
}

impl House {
    pub(crate) fn new(root: PathBuf, tables: Tables) -> Self {
        Self { root, tables, sources: RefCell::new(None) }
    }

    /// Returns the crates, each with its folder from the root.
    pub(crate) fn crates(&self) -> Vec<(&'static str, PathBuf)> {
        let named =
            self.tables.may_depend_on.iter().map(|(krate, _)| (*krate, PathBuf::from(krate)));
        named.chain([("harvest", PathBuf::new())]).collect()
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.root.join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the dependencies that a manifest names in sections of that kind.
    pub(crate) fn dependencies(&self, folder: &Path, wanted: Kind) -> Vec<String> {
        let text = self.read(folder.join("Cargo.toml"));
        let mut kind = None;
        let mut names = Vec::new();
        for line in text.lines() {
            if let Some(section) = line.strip_prefix('[') {
                kind = match section.trim_end().trim_end_matches(']') {
                    "workspace.dependencies" => Some(Kind::Workspace),
                    it if it.ends_with("dev-dependencies") => Some(Kind::Tests),
                    it if it.ends_with("dependencies") => Some(Kind::Product),
                    _ => None,
                };
            } else if kind == Some(wanted)
                && let Some(name) =
                    line.split(['.', '=', ' ', '#']).next().filter(|it| !it.is_empty())
            {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Returns every Rust file of the product.
    pub(crate) fn sources(&self) -> Rc<Vec<Source>> {
        let mut known = self.sources.borrow_mut();
        let read = || {
            let mut found = Vec::new();
            for (krate, folder) in self.crates() {
                self.walk(krate, &folder.join("src"), &mut found);
            }
            assert!(!found.is_empty(), "no sources below {}", self.root.display());
            Rc::new(without_test_files(found))
        };
        Rc::clone(known.get_or_insert_with(read))
    }

    fn walk(&self, krate: &str, folder: &Path, found: &mut Vec<Source>) {
        for path in self.files(folder) {
            if self.root.join(&path).is_dir() {
                self.walk(krate, &path, found);
            } else if has_extension(&path, "rs") && !is_test_file(&path) {
                let text = self.read(&path);
                let code = Code::read(&text);
                found.push(Source { krate: krate.to_owned(), path, text, code });
            }
        }
    }

    /// Returns the entries of a folder in order; none if there is no folder.
    pub(crate) fn files(&self, folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|it| folder.join(it.file_name())).collect();
        found.sort();
        found
    }

    /// Returns the files of the repository, as git lists them, from the root.
    pub(crate) fn tracked_text_files(&self) -> Vec<PathBuf> {
        let kinds = ["*.rs", "*.md", "*.toml", "*.sh", "*.mjs", "*.html", "*.css", "test"];
        let output = Command::new("git")
            .args(["ls-files", "--"])
            .args(kinds)
            .current_dir(&self.root)
            .output()
            .expect("git is needed to list the project's files: apt-get install git");
        assert!(output.status.success(), "git ls-files: {output:?}");
        let listed = String::from_utf8(output.stdout).unwrap();
        listed.lines().map(PathBuf::from).filter(|it| self.root.join(it).exists()).collect()
    }
}

pub(crate) fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

/// Returns whether the file belongs to a `mod tests` in files of its own.
fn is_test_file(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests")
        || path.file_name().is_some_and(|name| name == "tests.rs")
}

/// Removes the files of modules that exist only in tests.
fn without_test_files(found: Vec<Source>) -> Vec<Source> {
    let mut of_tests = BTreeSet::new();
    for it in &found {
        let room = room(&it.path);
        of_tests.extend(it.code.test_modules.iter().map(|name| room.join(name)));
    }
    let is_product = |it: &Source| {
        let own = it.path.with_extension("");
        !own.ancestors().any(|part| of_tests.contains(part))
    };
    found.into_iter().filter(is_product).collect()
}

/// Returns the folder with the modules of a file.
pub(crate) fn room(path: &Path) -> PathBuf {
    match path.file_stem().and_then(|it| it.to_str()) {
        Some("mod" | "lib" | "main") => path.parent().map(Path::to_owned).unwrap_or_default(),
        _ => path.with_extension(""),
    }
}
