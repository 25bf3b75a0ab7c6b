//! OAI-PMH 2.0: harvester and repository, without I/O.
//!
//! Source: "The Open Archives Initiative Protocol for Metadata Harvesting", protocol version 2.0
//! (cited by section); the extensions of Adly and of Liu et al.
//!
//! A **harvester** makes [`request`]s, reads [`response`]s and converts their metadata to SOIF. A
//! **repository** reads requests and writes responses. Sockets, disks and clocks belong to the
//! caller, who passes in bytes and the time.

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
