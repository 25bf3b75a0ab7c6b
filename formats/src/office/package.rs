//! The parts of a document in a zip file, opened one at a time, each up to a bound.
//!
//! Source: ECMA-376 part 2 (Open Packaging Conventions), §9.3 for the relationships between parts. `unnest`
//! opens the zip file, as everywhere.
//!
//! # Differences from the specification
//!
//! * Names of parts may have backslashes, as some programs write them.

use std::collections::{HashMap, HashSet};

use super::xml::{self, Element, Piece};
use crate::Input;
use crate::limit::Limit;
use crate::object::{Object, ProblemKind};
use crate::unnest::Limits;
use crate::unnest::zip::{self, Entries};

/// Maximum number of bytes that are unpacked from one package.
const PACKAGE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// A zip file that is one document.
pub(crate) struct Package<'a> {
    entries: Entries<'a>,
    names: HashSet<String>,
    /// The same by their [`folded`] forms.
    folded_names: HashMap<String, String>,
    cancelled: &'a dyn Fn() -> bool,
    problems: Vec<(ProblemKind, String)>,
    /// Whether the time is up.
    is_over: bool,
    is_repaired: bool,
}

/// A reference from one part to another part, or to a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Relationship {
    pub(crate) id: String,
    /// The last segment of the URI that names its type: `hyperlink`, `worksheet` …
    pub(crate) kind: String,
    /// The path of the part in the package, or the URL.
    pub(crate) target: String,
    pub(crate) is_external: bool,
}

impl<'a> Package<'a> {
    /// Opens the directory of the object in `input`. If it has none, because its end is missing, opens the
    /// object with another one, which is put into `repaired`.
    pub(crate) fn open(
        input: &Input<'a>,
        repaired: &'a mut Option<Object>,
    ) -> Result<Self, (ProblemKind, String)> {
        match Self::of(input.object, input.cancelled) {
            Err(fault) if fault.0 == ProblemKind::Broken || input.object.is_cut() => {
                *repaired = zip::repaired(input.object);
                let object = repaired.as_ref().ok_or_else(|| fault.clone())?;
                let mut package = Self::of(object, input.cancelled)?;
                package.problem(fault.0, fault.1);
                package.is_repaired = true;
                Ok(package)
            }
            result => result,
        }
    }

    fn of(
        object: &'a Object,
        cancelled: &'a dyn Fn() -> bool,
    ) -> Result<Self, (ProblemKind, String)> {
        let limits = Limits { bytes_max: PACKAGE_BYTES_MAX, ..Limits::default() };
        let entries = Entries::open(object, limits, cancelled)?;
        let names: HashSet<String> = entries.names().map(|it| it.into_owned()).collect();
        let folded_names = entries.names().map(|it| (folded(&it), it.into_owned())).collect();
        let problems = Vec::new();
        let (is_over, is_repaired) = (false, false);
        Ok(Self { entries, names, folded_names, cancelled, problems, is_over, is_repaired })
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.names.contains(path) || self.folded_names.contains_key(&folded(path))
    }

    /// Returns the paths of the parts that are in `folder` and end with `end`, in order of their numbers.
    pub(crate) fn in_folder(&self, folder: &str, end: &str) -> Vec<String> {
        let folder = folded(folder);
        let is_wanted =
            |it: &str| it.starts_with(&folder) && it.ends_with(end) && !it.contains("_rels/");
        let names = self.folded_names.iter().filter(|(it, _)| is_wanted(it));
        let mut names: Vec<String> = names.map(|(_, it)| it.clone()).collect();
        names.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        names
    }

    /// Reads the part at `path`; `None` if there is none or the time is up. Keeps its problems.
    pub(crate) fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        if self.is_over {
            return None;
        }
        let name = match self.folded_names.get(&folded(path)) {
            Some(name) if !self.names.contains(path) => name.as_str(),
            _ => path,
        };
        let part = self.entries.read(name, Limit::Part.bound())?;
        if part.longer {
            let max = Limit::Part.bound();
            let message = format!("{path} has more than {max} bytes; cut");
            self.problem(Limit::Part.kind(), message);
        }
        if let Some((kind, message)) = part.fault {
            self.is_over |= kind == ProblemKind::Time;
            self.problem(kind, format!("{path} {message}"));
        }
        Some(part.bytes)
    }

    /// Walks through the part at `path`, if there is one; see [`xml::walk`].
    pub(crate) fn walk(&mut self, path: &str, visit: &mut dyn FnMut(Piece<'_>) -> bool) {
        self.parse(path, |bytes, cancelled| xml::walk(&xml::text(bytes), cancelled, visit));
    }

    /// Reads the part at `path`, if there is one, by `read`. Keeps its problem.
    pub(super) fn parse(
        &mut self,
        path: &str,
        read: impl FnOnce(&[u8], &dyn Fn() -> bool) -> Result<(), (ProblemKind, String)>,
    ) {
        let Some(bytes) = self.read(path) else { return };
        if let Err((kind, message)) = read(&bytes, self.cancelled) {
            self.is_over |= kind == ProblemKind::Time;
            self.problem(kind, format!("{path} {message}"));
        }
    }

    /// Returns the references from the part at `path` to others.
    pub(crate) fn relationships(&mut self, path: &str) -> Vec<Relationship> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut relationships = Vec::new();
        self.walk(&format!("{folder}/_rels/{name}.rels"), &mut |piece| {
            if let Piece::Start(it) = piece
                && it.name == "Relationship"
            {
                let target = it.get("Target");
                let is_external = it.get("TargetMode") == "External";
                let target =
                    if is_external { target.into_owned() } else { beside(folder, &target) };
                let kind = it.get("Type").rsplit('/').next().unwrap_or_default().to_owned();
                relationships.push(Relationship {
                    id: it.get("Id").into_owned(),
                    kind,
                    target,
                    is_external,
                });
            }
            relationships.len() <= Limit::Relationships.bound()
        });
        self.cut_list(&mut relationships, Limit::Relationships);
        relationships
    }

    /// Returns the paths and names of the sheets or slides that the `element`s of the part `main` list, in
    /// order, by its relationships; if it lists none, those in `folder`. Calls `each` with every element of
    /// any kind.
    pub(super) fn listed(
        &mut self,
        main: &str,
        related: &[Relationship],
        element: &str,
        folder: &str,
        limit: Limit,
        mut each: impl FnMut(&Element<'_>),
    ) -> Vec<(String, String)> {
        let parts: HashMap<&str, &str> =
            related.iter().map(|it| (it.id.as_str(), it.target.as_str())).collect();
        let mut paths = Vec::new();
        self.walk(main, &mut |piece| {
            if let Piece::Start(it) = piece {
                each(&it);
                if it.name == element {
                    let path = parts.get(&*it.get_prefixed("r:id"));
                    paths
                        .extend(path.map(|path| ((*path).to_owned(), it.get("name").into_owned())));
                }
            }
            paths.len() <= limit.bound()
        });
        if paths.is_empty() {
            let found = self.in_folder(folder, ".xml").into_iter();
            paths = found.map(|it| (it, String::new())).collect();
        }
        self.cut_list(&mut paths, limit);
        paths
    }

    /// Leaves out what a list has beyond a limit, and says so.
    pub(super) fn cut_list<T>(&mut self, list: &mut Vec<T>, limit: Limit) {
        if limit.bound() < list.len() {
            list.truncate(limit.bound());
            let (kind, message) = limit.cut().problem();
            self.problem(kind, message);
        }
    }

    /// Returns whether its directory was lost.
    pub(super) fn is_repaired(&self) -> bool {
        self.is_repaired
    }

    /// Returns whether the time is up, so that no further part need be tried.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    fn problem(&mut self, kind: ProblemKind, message: String) {
        // The draft says if there are more.
        let is_said = self.problems.iter().any(|(it, _)| it.is_same_limit(kind));
        if !is_said && self.problems.len() <= Limit::Problems.bound() {
            self.problems.push((kind, message));
        }
    }

    pub(crate) fn problems(self) -> Vec<(ProblemKind, String)> {
        self.problems
    }
}

/// Returns a path as programs compare it, which write `xl\Workbook.xml` or `/xl/workbook.xml` as well.
fn folded(path: &str) -> String {
    path.trim_start_matches(['/', '\\']).replace('\\', "/").to_ascii_lowercase()
}

/// Resolves `target` from a part in `folder`: `../media/x` or `/word/x`.
pub(crate) fn beside(folder: &str, target: &str) -> String {
    if let Some(whole) = target.strip_prefix('/') {
        return whole.to_owned();
    }
    let mut path: Vec<&str> = folder.split('/').filter(|it| !it.is_empty()).collect();
    for step in target.split('/') {
        match step {
            "." | "" => {}
            ".." => {
                path.pop();
            }
            step => path.push(step),
        }
    }
    path.join("/")
}
