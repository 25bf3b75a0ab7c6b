//! Tables of names, each with the text that it stands for.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Texts by their names.
pub(crate) struct NameTable {
    written: &'static str,
    texts: OnceLock<HashMap<&'static str, &'static str>>,
}

impl NameTable {
    /// Returns the table of these [`pairs`], whose names differ.
    pub(crate) const fn of(written: &'static str) -> Self {
        Self { written, texts: OnceLock::new() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'static str> {
        self.texts.get_or_init(|| pairs(self.written).collect()).get(name).copied()
    }
}

/// Returns the names and texts that are written as `name:text name:text`, in order. Neither has a space, and
/// no name has a colon.
pub(crate) fn pairs(written: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    written.split(' ').filter_map(|it| it.split_once(':'))
}
