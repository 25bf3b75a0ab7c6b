//! Flights: fetches, each with all who wait for it.

use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use net::clock;
use tokio::sync::{oneshot, watch};

use super::coming::Coming;
use super::giver::Giver;
use crate::memory::Object;
use crate::policy::choice::{Choice, choose};
use crate::policy::storing::{Head, NotStored};
use crate::request::Asked;
use crate::transfer::{Reader, Transfer};

/// What comes of a flight for all who wait for it.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    Flowing(Arc<Head>, Option<Giver>),
    Validated(Arc<Object>, Option<Giver>),
    Instead(Arc<Object>),
    Alone(NotStored),
    Failed(Arc<net::Error>),
    /// The cache stops, or the flight was given up.
    Ended,
}

/// What comes of a flight for the client alone that began it.
#[derive(Debug)]
pub(super) enum Direct {
    /// The answer.
    Answer(Box<Coming>),
    /// What comes of it, with headers beside those that all get.
    Outcome(Outcome, HeaderMap),
}

/// A place in a flight: with the reader of its body, and what brings what is for one client alone.
pub(super) type Place = (Arc<Flight>, Reader, Option<oneshot::Receiver<Direct>>);

#[derive(Debug)]
pub(super) struct Flight {
    pub(super) transfer: Arc<Transfer>,
    pub(super) outcome: watch::Sender<Option<Outcome>>,
    pub(super) began: Instant,
}

impl Flight {
    /// Returns whether its answer may be one to a request that comes now. Until its head is there, it
    /// may.
    pub(super) fn answers(&self, asked: &Asked) -> bool {
        match &*self.outcome.borrow() {
            Some(Outcome::Flowing(head, _)) => {
                matches!(
                    choose(asked.ask(), &[Arc::as_ref(head)], clock::now_ms()),
                    Choice::Use { .. }
                )
            }
            _ => true,
        }
    }
}
