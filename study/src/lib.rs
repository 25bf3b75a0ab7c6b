//! The papers' experiments, made again with the scheduler that brokers run.
//!
//! Sources: Adly, "Harvesting OAI-PMH repositories using adaptive synchronization", whose experiments
//! are in [`simulate`]; Liu, Maly, Zubair and Nelson, "Repository synchronization in the OAI
//! framework", of which the metrics (§3) are in [`freshness::history`], [`synchrony`] and [`model`],
//! and the study of update frequencies (§4) in [`log`], [`report`] and [`csv`].
//!
//! A [`Study`](log::Study) takes plain observations (source, Unix seconds, records) one by one, and
//! answers with a [`Report`](report::Report) at any time.
//!
//! # Differences from the paper
//!
//! * We know Liu's paper by its words and not by its formulas. Each module says what it took a
//!   definition to be.
//! * The uniform and the adaptive algorithm (§5) need a network and a clock; here is only what they
//!   compute. That a harvest is dated by its start and by the source's own clock is its caller's duty.
//! * Subscribe-and-notify and push (§6) need no computation.
//!
//! Sans-I/O.

pub mod csv;
pub mod log;
pub mod model;
pub mod month;
pub mod report;
pub mod simulate;
pub mod synchrony;
