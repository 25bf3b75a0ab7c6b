//! Exchange of records: a collection as an OAI-PMH repository, a repository as a source,
//! notifications of changes to subscribers, and takedowns.
//!
//! `oai` decides about messages and their order; this crate adds the sockets, the clock and the
//! collection. It knows nothing of gatherers, brokers, queries or indexes, because both the
//! gatherer and the broker serve and harvest through it.

pub mod discovery;
pub mod harvester;
pub mod push;
pub mod ready;
pub mod repository;
pub mod servers;
pub mod source;
pub mod takedown;
