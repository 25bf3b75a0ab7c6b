//! Subsets: parts of a collection's objects, kept in step with it by somebody who knows what belongs to them.
//!
//! A subset is two sets of serials, each of the last change of an object: so it says of a change whether its object
//! is in the subset, or was in it and is not any more. Serials of changes that others have replaced may be in them.
//!
//! Source: ours.

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
}

impl Subset {
    /// Returns the serials after `since` and up to `to`, the first `most` of them: of objects that came or changed, and
    /// of those that left.
    #[must_use]
    pub fn changes(&self, since: u64, to: u64, most: usize) -> Vec<u64> {
        let of = |serials: &Serials| {
            let mut serials = serials.iter();
            serials.advance_to(since.saturating_add(1));
            serials.take_while(|it| *it <= to).take(most).collect::<Vec<_>>()
        };
        let mut all = [of(&self.members), of(&self.left)].concat();
        all.sort_unstable();
        all.truncate(most);
        all
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
