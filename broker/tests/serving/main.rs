//! Tests of a broker over real collections and sources: what it collects, answers and serves, and what it survives.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../net/tests/peers/peer.rs"]
mod peer;

mod api;
mod cascade;
mod closing;
mod collect;
mod everywhere;
mod feeds;
mod followers;
mod foreign;
mod freshness_page;
mod graph;
mod index;
mod limits;
mod nearest;
mod oai;
mod pages;
mod replica;
mod repository;
mod rot;
mod selecting;
mod switch;
mod views_page;
mod webhooks;
