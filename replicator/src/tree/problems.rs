//! Problems: entries of a directory that cannot be replicated.

use std::path::PathBuf;

/// Maximum number of problems that are listed by name.
pub const PROBLEMS_MAX: usize = 1000;

/// An entry of a directory that cannot be replicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path from the top of the directory.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

/// All entries of a directory that cannot be replicated.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{count} things cannot be replicated, the first is {}", self.first())]
pub struct Problems {
    /// The first problems, at most [`PROBLEMS_MAX`], in the order in which they were found.
    pub listed: Vec<Problem>,
    /// Number of all problems.
    pub count: u64,
}

impl Problems {
    fn first(&self) -> String {
        let first = self.listed.first();
        first.map_or_else(String::new, |it| format!("{}: {}", it.path.display(), it.reason))
    }

    pub(super) fn add(&mut self, path: PathBuf, reason: String) {
        self.count += 1;
        if self.listed.len() < PROBLEMS_MAX {
            self.listed.push(Problem { path, reason });
        }
    }
}
