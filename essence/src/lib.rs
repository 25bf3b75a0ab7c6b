//! Essence: bytes in, records out.
//!
//! Source: TR §4 and Figure 5. [`typing`] says what an object is, [`select`] whether it is wanted, [`extract`]
//! opens and summarizes it, [`rules`] change records and
//! [`annotations`] are laid over them. What is not safe by construction is done by a [`worker`]. [`chain`] is
//! all of it for one object.

pub mod annotations;
pub mod chain;
pub mod config;
pub mod error;
pub mod extract;
pub mod glob;
pub mod print;
pub mod quick;
pub mod rules;
pub mod select;
pub mod summarize;
pub mod typing;
pub mod worker;

#[cfg(test)]
#[path = "../../formats/src/unnest/tests/made.rs"]
mod made;

pub use error::Error;
