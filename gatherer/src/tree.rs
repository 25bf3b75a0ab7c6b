//! Trees of files: filtering, walking, watching and reading.

pub mod debounce;
pub mod file;
pub mod filter;
pub mod selection;
pub mod walk;
pub(crate) mod watch;
