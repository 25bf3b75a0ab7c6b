//! A root that is a tree of files.
//!
//! Sans-I/O.

use std::path::PathBuf;

use essence::config::patterns;
use settings::Table;

use super::urls::{file_url, path_of};

/// Policy for symbolic links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Do not follow links. Targets inside the root are gathered under their own names. A link that
    /// leads out of the root, to nothing, or in a circle is a problem.
    #[default]
    Skip,
    /// Gather the target also under the link's name, if the target lies inside the root. Only one
    /// link deep: links below a linked directory are not followed.
    Follow,
    /// Do not follow links, but gather the link itself: its record names the target. A target
    /// outside the root is still a problem.
    Record,
}

/// A tree to gather.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The tree's top, absolute; a directory or a single file.
    pub directory: PathBuf,
    /// Glob patterns, relative to the top; a file must match one of them. If there are none, every
    /// file matches.
    pub include: Vec<String>,
    /// Glob patterns, relative to the top; files and directories that match one are left out.
    pub exclude: Vec<String>,
    /// Whether to gather files and directories whose names begin with a dot. Default: false.
    pub hidden: bool,
    /// Whether to honor `.gitignore` and `.ignore` files. Default: false.
    pub gitignore: bool,
    /// Size above which files are left out, in bytes. Default: none.
    pub file_bytes_max: Option<u64>,
    /// Policy for symbolic links.
    pub symlinks: Symlinks,
}

impl Tree {
    /// Returns the tree at `directory` with every setting at its default.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            include: Vec::new(),
            exclude: Vec::new(),
            hidden: false,
            gitignore: false,
            file_bytes_max: None,
            symlinks: Symlinks::Skip,
        }
    }

    /// Returns the `file://` URL of the tree's top.
    pub fn url(&self) -> String {
        file_url(&self.directory)
    }

    /// Reads a `[[root]]` with `access = "file"`, and reports its mistakes.
    pub(crate) fn read(table: &Table<'_>) -> Option<Self> {
        const EXPECTED: &str = "the URL of a folder on this machine, such as \"file:///srv/docs\"";
        table.require("url", "\"file:///srv/docs\"");
        let mut tree = Self::new("");
        tree.include = patterns(table, "include");
        tree.exclude = patterns(table, "exclude");
        tree.hidden = table.boolean("hidden", false);
        tree.gitignore = table.boolean("gitignore", false);
        tree.file_bytes_max = table.bytes("max_size");
        tree.symlinks = match table.choice("symlinks", &["skip", "follow", "record"]) {
            Some("follow") => Symlinks::Follow,
            Some("record") => Symlinks::Record,
            _ => Symlinks::Skip,
        };
        match path_of(&table.string("url")?) {
            Ok(directory) => tree.directory = directory,
            Err(message) => {
                table.mistake("url", message, EXPECTED);
                return None;
            }
        }
        Some(tree)
    }
}
