//! A tree's own part: which of its files are gathered, how they are found, watched and read.

pub mod debounce;
pub mod file;
pub mod filter;
pub mod gathered;
pub mod walk;
pub(crate) mod watch;
