//! How sources really change, what that means for when to pull them, and what it costs.
//!
//! Source: Liu, Maly, Zubair and Nelson, "Repository synchronization in the OAI framework": the
//! metrics (§3) are in [`history`], [`synchrony`] and [`model`], the study of update frequencies
//! (§4) in [`log`], [`report`] and [`csv`], the ways to know when a source will change (§6) in
//! [`expect`] and [`syndication`].
//!
//! A [`Study`] takes plain observations (source, Unix seconds, records) one by one, as pulls take
//! place or from a stored log, and answers with a [`Report`] at any time. A broker that keeps
//! something for each source anyway can keep a [`History`] there and make the rows itself.
//!
//! # Differences from the paper
//!
//! * We know the paper by its words and not by its formulas. Each module says what it took a
//!   definition to be.
//! * The uniform and the adaptive algorithm (§5) need a network and a clock; here is only what they
//!   compute. That a harvest is dated by its start and by the source's own clock is its caller's duty.
//! * Subscribe-and-notify and push (§6) need no computation.
//!
//! Sans-I/O.

pub mod csv;
pub mod date;
pub mod expect;
pub mod history;
pub mod log;
pub mod model;
pub mod report;
pub mod synchrony;
pub mod syndication;

pub use date::{AT_SECS_MAX, AT_SECS_MIN, Month};
pub use expect::interval_until;
pub use history::{Cost, History, Log, Moments, Settings, Status};
pub use log::{Refused, Study};
pub use model::{Demand, Prediction, Synchronization, predict};
pub use report::{Class, ClassRow, MonthRow, Overall, Report, SourceMonth, SourceRow};
pub use synchrony::Synchrony;
pub use syndication::{Period, Syndication, SyndicationError};
