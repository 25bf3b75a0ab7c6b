//! Code: summarizers of program text, object files, patches, revisions and source distributions.

pub mod distribution;
pub mod link;
pub(crate) mod object;
pub(crate) mod patch;
pub(crate) mod revision;
pub(crate) mod source;
pub(crate) mod strings;
