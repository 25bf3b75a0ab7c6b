//! Tests against the papers: their printed results computed again, one module a paper or figure.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod adly;
mod adly_errors;
mod adly_mixes;
mod brokers;
mod liu;
#[path = "../../net/tests/peers/nginx.rs"]
mod nginx;
#[path = "../../net/tests/peers/peer.rs"]
mod peer;
mod prose;
mod sharma_fig3;
mod tr_att;
mod tr_cascade;
mod tr_fig6;
mod tr_figure3;
mod tr_nebula;
mod tr_probe;
