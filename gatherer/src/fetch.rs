//! Fetching: an object's bytes from where it lies. Only local files so far.

pub mod file;
