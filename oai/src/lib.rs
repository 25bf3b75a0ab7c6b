//! OAI-PMH 2.0, both ways.
//!
//! Source: "The Open Archives Initiative Protocol for Metadata Harvesting", protocol version 2.0
//! (cited by section); Adly and Liu et al. for what they ask of it beyond that.
//!
//! A **harvester** makes [`request`]s, reads [`response`]s and brings their metadata into SOIF; a
//! **repository** reads requests and writes responses. Nothing here has a socket, a disk or a clock:
//! whoever has them hands in bytes and the time.

pub mod conformance;
pub mod crosswalk;
pub mod datestamp;
pub mod error;
mod escape;
pub mod harvest;
pub mod identifier;
pub mod repository;
pub mod request;
pub mod resourcesync;
pub mod response;
pub mod syndication;
mod xml;

pub use datestamp::{Datestamp, Granularity};
pub use error::{Code, Fault};
pub use identifier::{Identifier, RepositoryId};
pub use request::{Listed, Request, Scope, Selection, Verb};
