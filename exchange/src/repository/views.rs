//! Views as sets of the repository, and the repository of a client that is limited to one.
//!
//! Who keeps views knows which objects they have. To a client that is limited to a view, its objects are all there
//! are: those that left it are deleted there.

use std::fmt;
use std::sync::Arc;

use collection::{Subset, Version};
use roaring::RoaringTreemap;

use super::current_sets::Unready;
use super::sets::{LiveView, Subsets};

/// The views of a daemon. Clones share them.
#[derive(Clone)]
pub struct Views(Arc<dyn Fn(Version) -> Option<Subsets> + Send + Sync>);

impl Default for Views {
    fn default() -> Self {
        Self::new(|_| Some(Subsets::new()))
    }
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Views").finish()
    }
}

impl Views {
    /// Returns the views that `at` returns as they are at a version or later; it may block, and returns `None` if that
    /// is not known soon.
    pub fn new(at: impl Fn(Version) -> Option<Subsets> + Send + Sync + 'static) -> Self {
        Self(Arc::new(at))
    }

    /// Returns what a client may see that is limited to the view `limit`, if it is.
    pub(super) fn seen(&self, version: Version, limit: Option<&str>) -> Result<Seen, Unready> {
        let views = (self.0)(version);
        let Some(name) = limit else { return Ok(Seen { limit: None, views }) };
        let limit = views.and_then(|mut it| it.remove(name)).ok_or(Unready::Making)?;
        Ok(Seen { limit: Some(limit), views: Some(Subsets::new()) })
    }
}

/// What a client may see.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The objects of the view to which it is limited.
    limit: Option<Subset>,
    /// The views that are sets; `None`: they are not known yet.
    views: Option<Subsets>,
}

impl Seen {
    /// Calls `look` with the live serials that the client may see.
    pub(super) fn with<T>(&self, present: LiveView<'_>, look: impl FnOnce(LiveView<'_>) -> T) -> T {
        let Some(limit) = &self.limit else {
            return look(LiveView { views: self.views.as_ref(), ..present });
        };
        let live: RoaringTreemap = present.live & &*limit.members;
        look(LiveView { live: &live, tombstones: Some(&limit.left), ..present })
    }

    /// Returns whether the client may see the object whose last change has this serial; `Some(false)`: it is deleted
    /// for it. `None`: it never was there.
    pub(super) fn has(&self, serial: u64) -> Option<bool> {
        let Some(limit) = &self.limit else { return Some(true) };
        let has_left = || limit.left.contains(serial).then_some(false);
        limit.members.contains(serial).then_some(true).or_else(has_left)
    }

    /// Returns whether the client sees a part alone.
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Fails unless it is known which sets there are by view.
    pub(super) fn knows_views(&self) -> Result<(), Unready> {
        self.views.as_ref().map(|_views| ()).ok_or(Unready::Making)
    }

    /// Returns the number of objects, of `all`.
    pub(super) fn count(&self, all: u64) -> u64 {
        self.limit.as_ref().map_or(all, |it| it.members.len())
    }

    /// Returns the views that have the object whose last change has this serial.
    pub(super) fn of(&self, serial: u64) -> impl Iterator<Item = &String> {
        self.views.iter().flatten().filter(move |it| it.1.members.contains(serial)).map(|it| it.0)
    }
}
