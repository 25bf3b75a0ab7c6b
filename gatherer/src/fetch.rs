//! Fetching: an object's bytes from where it lies, and what a repository says of its own.

pub mod file;
pub(crate) mod oai;
