//! The subcommands, one file each.

pub(crate) mod bench;
pub(crate) mod broker;
pub(crate) mod cache;
pub(crate) mod collection;
pub(crate) mod essence;
pub(crate) mod freshness;
pub(crate) mod gatherer;
pub(crate) mod oai;
pub(crate) mod pages;
pub(crate) mod push;
pub(crate) mod registry;
pub(crate) mod replicator;
pub(crate) mod search;
pub(crate) mod soif;
pub(crate) mod takedown;
pub(crate) mod up;
pub(crate) mod worker;
