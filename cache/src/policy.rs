//! The policy: what may be stored, how long it is used, and how a request is answered from it.
//!
//! Source: RFC 9110, 9111, 5861, 8246, 9211 and 9213. Every function takes the time as an argument.
//!
//! Sans-I/O.

pub mod choice;
pub mod control;
pub mod freshness;
pub mod hops;
pub mod invalidation;
pub mod mirrors;
pub mod range;
pub mod status;
pub mod storing;
mod targeted;
pub mod validation;
pub mod vary;
