//! Code: what programmers write, what compilers make of it, and how it is handed on.
//!
//! Sans-I/O.

pub mod distribution;
pub mod link;
pub(crate) mod object;
pub(crate) mod patch;
pub(crate) mod revision;
pub(crate) mod source;
pub(crate) mod strings;
