//! Doubt: a consumer knows changes that are not in the log.
//!
//! An unclean stop can take the end of the log without a trace. After a power cut, the remains of
//! an unacknowledged commit look the same as those of an acknowledged commit that the disk has
//! lost. So serials are skipped after such a stop, and a consumer whose cursor is a skipped serial
//! proves the loss. From then on snapshots report missing changes and release nothing, until every
//! root has been walked and every source pulled again. The notes and cursors for the lost changes
//! were in the lost commits too, so this brings the lost changes back.
//!
//! Source: ours.

use std::sync::atomic::Ordering;

use crate::change::Version;
use crate::collection::Collection;
use crate::error::Error;

impl Collection {
    /// Handles a consumer whose `cursor` is among the skipped serials: from now on all changes up
    /// to it are in doubt, unless everything was walked or pulled since the opening.
    ///
    /// # Errors
    ///
    /// The manifest cannot be written: do not send a snapshot.
    pub(crate) fn handle_skipped_cursor(&self, cursor: Version) -> Result<(), Error> {
        let inner = &self.inner;
        let mut tail = inner.tail();
        let is_known = cursor.serial <= tail.manifest.doubt;
        if is_known || inner.caught_up.load(Ordering::Acquire) {
            return Ok(());
        }
        tail.amend(&inner.log, |manifest| manifest.doubt = cursor.serial)?;
        inner.log.change_view(|view| view.doubt = cursor.serial);
        tracing::warn!(
            serial = cursor.serial,
            "a consumer has changes that were lost at the last stop: nothing is released until every root and \
             source has been looked at again"
        );
        Ok(())
    }

    /// Call this once every root has been walked, or every source pulled, since the opening: the
    /// changes lost at the last stop are then in the log again. Blocks.
    ///
    /// # Errors
    ///
    /// The manifest cannot be written; call this again.
    pub fn handle_caught_up(&self) -> Result<(), Error> {
        let inner = &self.inner;
        if inner.caught_up.load(Ordering::Acquire) {
            return Ok(());
        }
        let is_aftermath = self.aftermath()?.is_some();
        let mut tail = inner.tail();
        if tail.manifest.doubt != 0 && !tail.manifest.lost && !is_aftermath {
            tail.amend(&inner.log, |manifest| manifest.doubt = 0)?;
            inner.log.change_view(|view| view.doubt = 0);
        }
        inner.caught_up.store(true, Ordering::Release);
        Ok(())
    }
}
