//! The selection of files by name, size and metadata, before they are read.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use essence::select::{LeftOut, Selection};

use crate::config::Config;
use crate::error::Error;
use crate::spec::{self, Tree};
use crate::tree::filter::Filter;

/// Selection of a gatherer's files, to ask about single files. `.gitignore` files are not
/// considered.
#[derive(Debug)]
pub struct FileSelection {
    select: Selection,
    /// Tops of trees with their filters.
    trees: Vec<(PathBuf, Filter)>,
}

impl FileSelection {
    /// Returns the selection of a gatherer with these settings.
    ///
    /// # Errors
    ///
    /// A pattern is not a glob.
    pub fn new(config: &Config) -> Result<Self, Error> {
        let tree = |it: &Tree| Ok((it.directory.clone(), Filter::new(it)?));
        let trees = spec::trees(&config.roots).map(tree).collect::<Result<_, Error>>()?;
        Ok(Self { select: Selection::new(&config.essence.select)?, trees })
    }

    /// Returns why the file at `path` (absolute) with `size` bytes is left out, in kebab case;
    /// `None` if it is gathered. For a file outside all roots, only its name and size decide.
    /// Blocks.
    pub fn leaves_out(&self, path: &Path, size: u64) -> Option<&'static str> {
        let around = self.trees.iter().filter(|(top, _)| path.starts_with(top));
        let Some((top, filter)) = around.max_by_key(|(top, _)| top.as_os_str().len()) else {
            let name = Path::new(path.file_name()?);
            return self.select.by_name(name, size).map(LeftOut::name);
        };
        let below = path.strip_prefix(top).ok().filter(|it| !it.as_os_str().is_empty());
        let by_root = below.and_then(|below| filter.leaves_out(below, size));
        by_root.or_else(|| leaves_out(&self.select, (top, filter), path, size).map(LeftOut::name))
    }
}

/// Returns why a file of the root with this top and filter is not summarized; `None` if it is
/// summarized. Blocks.
pub(crate) fn leaves_out(
    select: &Selection,
    root: (&Path, &Filter),
    path: &Path,
    size: u64,
) -> Option<LeftOut> {
    let below = path.strip_prefix(root.0).unwrap_or(path);
    select.by_name(below, size).or_else(|| {
        let name = path.file_name()?;
        let mut sources = select.sources_of(name.as_bytes()).into_iter().map(OsString::from_vec);
        sources.any(|source| is_gathered(root, below, &source)).then_some(LeftOut::HasSource)
    })
}

/// Returns whether the file called `name` in the folder of `below` exists and is gathered: a
/// product is left out only if its source is gathered.
fn is_gathered((top, filter): (&Path, &Filter), below: &Path, name: &OsStr) -> bool {
    let below = below.with_file_name(name);
    let metadata = std::fs::symlink_metadata(top.join(&below));
    metadata.is_ok_and(|it| it.is_file() && filter.leaves_out(&below, it.len()).is_none())
}

#[cfg(test)]
mod tests {
    use essence::select::SourceFor;

    use super::*;
    use crate::spec::Root;

    #[test]
    fn a_file_is_left_out_by_its_root_and_by_the_selection() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("root/d")).unwrap();
        for name in ["root/d/a.c", "root/d/a.o", "root/d/b.o", "a.c", "a.o"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let tree = Tree { exclude: vec!["*.log".to_owned()], ..Tree::new(at("root")) };
        let mut config = Config { roots: vec![Root::Tree(tree)], ..Config::new("data") };
        config.essence.select.stop_names = vec!["/d/*.bak".to_owned(), "*.tmp".to_owned()];
        config.essence.select.size_max = Some(9);
        let pair = SourceFor { made: "*.o".to_owned(), from: vec!["*.c".to_owned()] };
        config.essence.select.source_for = vec![pair];
        let selection = FileSelection::new(&config).unwrap();
        for (name, size, expected) in [
            ("root/d/a.c", 1, None),
            ("root/d/a.o", 1, Some("has-source")),
            ("root/d/b.o", 1, None),
            ("root/d/a.log", 1, Some("excluded")),
            ("root/.d/a", 1, Some("hidden")),
            ("root/d/a.bak", 1, Some("stopped-name")),
            ("root/a.bak", 1, None),
            ("root/a", 10, Some("too-large")),
            ("elsewhere/a.log", 1, None),
            ("elsewhere/a.tmp", 1, Some("stopped-name")),
            ("a.o", 1, None),
        ] {
            assert_eq!(selection.leaves_out(&at(name), size), expected, "{name}");
        }
    }
}
