//! The byte budget of responses in progress: each response holds its share until it is sent.
//!
//! Source: ours.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit of the budget, in bytes. A semaphore gives at most `u32::MAX` permits at once.
const UNIT_BYTES: usize = 1_024;

/// A total of bytes to reserve from.
#[derive(Clone, Debug)]
pub(super) struct ByteBudget {
    units: Arc<Semaphore>,
    units_max: usize,
}

#[derive(Debug)]
pub(super) struct Share {
    budget: ByteBudget,
    permit: OwnedSemaphorePermit,
}

struct Held {
    bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ByteBudget {
    pub(super) fn new(bytes: usize) -> Self {
        let units_max = bytes / UNIT_BYTES;
        Self { units: Arc::new(Semaphore::new(units_max)), units_max }
    }

    /// Returns the number of units for `bytes` bytes, at most all units, so that every reservation
    /// is possible.
    fn units(&self, bytes: usize) -> u32 {
        let units = bytes.div_ceil(UNIT_BYTES).min(self.units_max);
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// Waits for a share of `bytes` bytes; returns `None` if the budget is closed.
    pub(super) async fn reserve(&self, bytes: usize) -> Option<Share> {
        let permit = self.units.clone().acquire_many_owned(self.units(bytes)).await.ok()?;
        Some(Share { budget: self.clone(), permit })
    }
}

impl Share {
    /// Returns the bytes, which hold their share until the last clone is dropped. `None` if they
    /// need more than was reserved, and the rest is not available now.
    pub(super) fn hold(self, bytes: Vec<u8>) -> Option<Bytes> {
        let Self { budget, mut permit } = self;
        let units = budget.units(bytes.len());
        let reserved = u32::try_from(permit.num_permits()).unwrap_or(u32::MAX);
        match reserved.checked_sub(units) {
            Some(over) => drop(permit.split(usize::try_from(over).unwrap_or(0))),
            None => {
                let more = budget.units.clone().try_acquire_many_owned(units - reserved).ok()?;
                permit.merge(more);
            }
        }
        Some(Bytes::from_owner(Held { bytes, _permit: permit }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ByteBudget {
        /// Returns the unreserved bytes.
        pub(in super::super) fn bytes_left(&self) -> usize {
            self.units.available_permits() * UNIT_BYTES
        }

        /// Closes the budget: waiting and later reservations fail.
        pub(in super::super) fn close(&self) {
            self.units.close();
        }
    }

    #[tokio::test]
    async fn bytes_hold_their_share_until_the_last_clone_is_dropped() {
        let budget = ByteBudget::new(10 * UNIT_BYTES);
        let take = async || budget.reserve(4 * UNIT_BYTES).await.unwrap();
        let short = take().await.hold(vec![1; UNIT_BYTES + 1]).unwrap();
        assert_eq!(budget.bytes_left(), 8 * UNIT_BYTES);
        let part = short.slice(..3);
        drop(short);
        assert_eq!(budget.bytes_left(), 8 * UNIT_BYTES);
        let long = take().await.hold(vec![2; 7 * UNIT_BYTES]).unwrap();
        assert_eq!((budget.bytes_left(), long.len()), (UNIT_BYTES, 7 * UNIT_BYTES));
        drop(part);
        let another = budget.reserve(2 * UNIT_BYTES).await.unwrap();
        assert!(another.hold(vec![3; 5 * UNIT_BYTES]).is_none());
        drop(long);
        assert_eq!(budget.bytes_left(), 10 * UNIT_BYTES);
        // A response larger than the whole budget is possible if it is alone.
        let huge = take().await.hold(vec![4; 20 * UNIT_BYTES]).unwrap();
        assert_eq!((budget.bytes_left(), huge.len()), (0, 20 * UNIT_BYTES));
    }
}
