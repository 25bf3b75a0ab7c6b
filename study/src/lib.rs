//! The papers' experiments, repeated with the scheduler that brokers run.
//!
//! Sources: Adly, "Harvesting OAI-PMH repositories using adaptive synchronization", whose
//! experiments are in [`simulate`]; Liu, Maly, Zubair and Nelson, "Repository synchronization in
//! the OAI framework", whose metrics (§3) are in [`freshness::history`] and [`model`], and whose
//! study of update frequencies (§4) in [`log`], [`report`] and [`csv`].
//!
//! A [`Study`](log::Study) takes plain observations (source, Unix seconds, records) one by one, and
//! gives a [`Report`](report::Report) at any time.
//!
//! # Differences from the paper
//!
//! * Our copy of Liu's paper lacks the formulas. Each module states how it reads a definition.
//! * The uniform and the adaptive algorithm (§5) need a network and a clock; only their
//!   computations are here. A harvest must be dated by its start, on the source's own clock.
//! * Subscribe-and-notify and push (§6) need no computation.
//!
//! Sans-I/O.

pub mod csv;
pub mod log;
pub mod model;
pub mod month;
pub mod report;
pub mod simulate;
