//! Tests of trees and repositories as roots: what is gathered of them, when, by which rules, and what survives.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../../../essence/tests/made/mod.rs"]
mod made;
#[path = "../support/mod.rs"]
mod support;

mod annotating;
mod closing;
mod crash;
mod full_disk;
mod gathering;
mod harvesting;
mod holding;
mod linking;
mod long_files;
mod repository;
mod rot;
mod rules;
mod selecting;
mod summarizers;
mod takedown;
mod watching;
