//! Records to and from the rest of the world: a collection as an OAI-PMH repository, a repository as a
//! source, changes told to whoever subscribes, and what is taken down.
//!
//! What is said, and in which order, is `oai`'s; here are the sockets, the clock and the collection that
//! it is said over. Knows nothing of gatherers, brokers, queries or indexes: both daemons serve and
//! harvest through it alike.

pub mod harvester;
pub mod push;
pub mod ready;
pub mod repository;
pub mod source;
pub mod takedown;
