//! Subsets: parts of a collection's objects, kept in step with it by somebody who knows what belongs to them.
//!
//! A subset is two sets of serials, each of the last change of an object: so it says of a change whether its object
//! is in the subset, or was in it and is not any more. Serials of changes that others have replaced may be in them. By
//! which change an object left is known, too, so that nobody is told of it twice.
//!
//! Source: ours.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use roaring::RoaringTreemap;
use tokio::sync::watch;

use crate::change::Version;

/// A set of serials.
pub type Serials = RoaringTreemap;

/// The objects of a part of a collection. Clones share it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subset {
    /// Serials of the last changes of its objects.
    pub members: Arc<Serials>,
    /// Serials of the last changes of objects that were in it, and are not any more; back to the horizon.
    pub left: Arc<Serials>,
    /// Of those that have changed since they left, by their last changes, the serials of the changes by which they left.
    pub left_before: Arc<BTreeMap<u64, u64>>,
    /// The same serials of the changes by which they left.
    pub leaves: Arc<Serials>,
}

impl Subset {
    /// Returns the serials after `since` and up to `to`, the first `most` of them: of objects that came or changed, and
    /// of those that left.
    #[must_use]
    pub fn changes(&self, since: u64, to: u64, most: usize) -> Vec<u64> {
        fn of<'a>(serials: &'a Serials, since: u64, to: u64) -> impl Iterator<Item = u64> + 'a {
            let mut serials = serials.iter();
            serials.advance_to(since.saturating_add(1));
            serials.take_while(move |it| *it <= to)
        }
        let left = of(&self.left, since, to).filter(|it| self.has_left_after(*it, since));
        let mut all: Vec<u64> = of(&self.members, since, to).take(most).collect();
        all.extend(left.take(most));
        all.extend(of(&self.leaves, since, to).take(most));
        all.sort_unstable();
        all.truncate(most);
        all
    }

    /// Returns whether the change with this serial tells that an object left it, to somebody who knows all changes up to
    /// `since`: it left by this one; or this is its last one, and it has left after `since`, by one that may not be kept
    /// any more.
    #[must_use]
    pub fn has_lost(&self, serial: u64, since: u64) -> bool {
        let is_last = self.left.contains(serial);
        self.leaves.contains(serial) || is_last && self.has_left_after(serial, since)
    }

    fn has_left_after(&self, last: u64, since: u64) -> bool {
        self.left_before.get(&last).is_none_or(|it| since < *it)
    }

    /// Takes the object with this last change out, which left by the change with the serial `by`.
    pub fn add_left(&mut self, last: u64, by: u64) {
        Arc::make_mut(&mut self.left).insert(last);
        if by != last {
            Arc::make_mut(&mut self.left_before).insert(last, by);
            Arc::make_mut(&mut self.leaves).insert(by);
        }
    }

    /// Forgets that the object with this last change has left.
    pub fn remove_left(&mut self, last: u64) {
        Arc::make_mut(&mut self.left).remove(last);
        if let Some(by) = Arc::make_mut(&mut self.left_before).remove(&last) {
            Arc::make_mut(&mut self.leaves).remove(by);
        }
    }
}

/// A subset that follows its collection. Clones share it.
#[derive(Clone)]
pub struct KeptSubset {
    reached: watch::Receiver<Version>,
    of_use_after: Option<u64>,
    get: Arc<dyn Fn() -> Option<Subset> + Send + Sync>,
}

impl fmt::Debug for KeptSubset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptSubset")
            .field("reached", &*self.reached.borrow())
            .finish_non_exhaustive()
    }
}

impl KeptSubset {
    /// Returns the subset that `get` returns, which is right up to the version in `reached`. `get` returns `None` once
    /// the subset has been defined anew, or began anew.
    pub fn new(
        reached: watch::Receiver<Version>,
        get: impl Fn() -> Option<Subset> + Send + Sync + 'static,
    ) -> Self {
        Self { reached, of_use_after: None, get: Arc::new(get) }
    }

    /// Returns the same subset as one that nobody depends on: what belongs to it can be seen from each record. It is of
    /// use to whoever asks for changes after `serial` or later, since it says who left.
    #[must_use]
    pub fn of_use_after(self, serial: u64) -> Self {
        Self { of_use_after: Some(serial), ..self }
    }

    /// Returns whether it can do without the subset.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.of_use_after.is_some()
    }

    /// Returns whether the subset is of use for the changes after `serial`.
    #[must_use]
    pub fn is_of_use_after(&self, serial: u64) -> bool {
        self.of_use_after.is_none_or(|it| it <= serial)
    }

    /// Waits until the subset is right up to `version`, at least, and returns it; `None` if it is not kept any more.
    /// Waits without limit: set a timeout.
    pub async fn at(&self, version: Version) -> Option<Subset> {
        let is_there = |it: &Version| it.epoch == version.epoch && version.serial <= it.serial;
        self.reached.clone().wait_for(is_there).await.ok()?;
        self.now()
    }

    /// Returns the subset as it is now; `None` if it is not kept any more.
    #[must_use]
    pub fn now(&self) -> Option<Subset> {
        (self.get)()
    }
}
