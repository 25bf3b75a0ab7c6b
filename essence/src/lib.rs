//! Essence: bytes in, records out.
//!
//! Source: TR §4 and Figure 5. [`typing`] recognizes the type, [`select`] decides whether the
//! object is wanted, [`extract`] opens and summarizes it, [`rules`] change records, and
//! [`annotations`] are laid over the records. A [`worker`] does the steps that are not safe by
//! construction. [`chain`] does all steps for one object.

pub mod annotations;
pub mod chain;
pub mod config;
pub mod error;
pub mod extract;
pub mod fingerprint;
pub mod glob;
pub mod quick;
pub mod rules;
pub mod select;
pub mod summarize;
pub mod typing;
pub mod worker;

#[cfg(test)]
#[path = "../../formats/src/unnest/tests/builders.rs"]
mod builders;
#[cfg(test)]
#[path = "../tests/made/office.rs"]
#[allow(dead_code, reason = "each that includes it uses a part of it")]
mod compound_files;

pub use error::Error;
