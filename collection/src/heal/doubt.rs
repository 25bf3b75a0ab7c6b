//! Doubt: somebody has heard of changes that are not in the log.
//!
//! A stop that was not clean can take the end of the log without a trace: what a power cut has left of a commit
//! that was never acknowledged looks like an acknowledged one that the disk has lost. Serials are skipped then, so
//! that whoever has come to one of these proves the loss. From then on snapshots say that something is missing,
//! and release nothing, until all that fills the collection has been looked at again: its notes and cursors were
//! in the same commits, so that brings what was lost.
//!
//! Source: ours.

use std::sync::atomic::Ordering;

use crate::change::Version;
use crate::collection::Collection;
use crate::error::Error;
use crate::log::manifest::Manifest;

impl Collection {
    /// Takes in that somebody has come to `told`, which is among the serials that were skipped.
    ///
    /// # Errors
    ///
    /// The manifest cannot be written: nobody is to get a snapshot.
    pub(crate) fn handle_told(&self, told: Version) -> Result<(), Error> {
        let inner = &self.inner;
        let mut tail = inner.tail();
        let is_known = told.serial <= tail.manifest.doubt;
        if is_known || inner.caught_up.load(Ordering::Acquire) {
            return Ok(());
        }
        tail.go_on(&inner.log)?;
        let manifest = Manifest { doubt: told.serial, ..tail.manifest_now() };
        tail.replace(manifest, &inner.log)?;
        inner.log.change_view(|view| view.doubt = told.serial);
        tracing::warn!(
            serial = told.serial,
            "a consumer has heard of changes that were lost at the last stop: nothing is released until all has \
             been looked at again"
        );
        Ok(())
    }

    /// Takes in that all that fills the collection has been looked at since it was opened: every root was gone
    /// through, or every source pulled. What was lost at the last stop is there again. Blocks.
    ///
    /// # Errors
    ///
    /// The manifest cannot be written; to be called again.
    pub fn handle_caught_up(&self) -> Result<(), Error> {
        let inner = &self.inner;
        if inner.caught_up.load(Ordering::Acquire) {
            return Ok(());
        }
        let is_aftermath = self.aftermath()?.is_some();
        let mut tail = inner.tail();
        if tail.manifest.doubt != 0 && !tail.manifest.lost && !is_aftermath {
            tail.go_on(&inner.log)?;
            let manifest = Manifest { doubt: 0, ..tail.manifest_now() };
            tail.replace(manifest, &inner.log)?;
            inner.log.change_view(|view| view.doubt = 0);
        }
        inner.caught_up.store(true, Ordering::Release);
        Ok(())
    }
}
