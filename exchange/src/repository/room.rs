//! Room for responses that are being made and sent: so many bytes in all, each taken until its response has
//! gone.
//!
//! Source: ours.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What room is counted in, in bytes: a semaphore has no more permits than fit into 32 bits.
const UNIT_BYTES: usize = 1_024;

/// So many bytes.
#[derive(Clone, Debug)]
pub(super) struct Room {
    units: Arc<Semaphore>,
    units_max: usize,
}

/// A part of it.
#[derive(Debug)]
pub(super) struct Taken {
    room: Room,
    permit: OwnedSemaphorePermit,
}

/// Bytes, and the room that they take.
struct Held {
    bytes: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Room {
    /// Room for so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let units_max = bytes / UNIT_BYTES;
        Self { units: Arc::new(Semaphore::new(units_max)), units_max }
    }

    /// The units that so many bytes take; never more than there are, so that each can be had in the end.
    fn units(&self, bytes: usize) -> u32 {
        let units = bytes.div_ceil(UNIT_BYTES).min(self.units_max);
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    /// Waits for room for so many bytes; `None` if there will be none.
    pub(super) async fn take(&self, bytes: usize) -> Option<Taken> {
        let permit = self.units.clone().acquire_many_owned(self.units(bytes)).await.ok()?;
        Some(Taken { room: self.clone(), permit })
    }

    /// Bytes that nobody has taken.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.units.available_permits() * UNIT_BYTES
    }

    /// There will be none any more.
    #[cfg(test)]
    pub(super) fn close(&self) {
        self.units.close();
    }
}

impl Taken {
    /// The bytes, which hold the room that they take until the last of them is dropped; `None` if they take
    /// more than was taken, and that is not there now.
    pub(super) fn hold(self, bytes: Vec<u8>) -> Option<Bytes> {
        let Self { room, mut permit } = self;
        let units = room.units(bytes.len());
        let taken = u32::try_from(permit.num_permits()).unwrap_or(u32::MAX);
        match taken.checked_sub(units) {
            Some(over) => drop(permit.split(usize::try_from(over).unwrap_or(0))),
            None => {
                let more = room.units.clone().try_acquire_many_owned(units - taken).ok()?;
                permit.merge(more);
            }
        }
        Some(Bytes::from_owner(Held { bytes, _permit: permit }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_hold_their_room_until_the_last_is_dropped() {
        let room = Room::new(10 * UNIT_BYTES);
        let take = async || room.take(4 * UNIT_BYTES).await.unwrap();
        let short = take().await.hold(vec![1; UNIT_BYTES + 1]).unwrap();
        assert_eq!(room.left(), 8 * UNIT_BYTES);
        let part = short.slice(..3);
        drop(short);
        assert_eq!(room.left(), 8 * UNIT_BYTES);
        let long = take().await.hold(vec![2; 7 * UNIT_BYTES]).unwrap();
        assert_eq!((room.left(), long.len()), (UNIT_BYTES, 7 * UNIT_BYTES));
        drop(part);
        let another = room.take(2 * UNIT_BYTES).await.unwrap();
        assert!(another.hold(vec![3; 5 * UNIT_BYTES]).is_none());
        drop(long);
        assert_eq!(room.left(), 10 * UNIT_BYTES);
        // Longer than all there is: alone it goes.
        let huge = take().await.hold(vec![4; 20 * UNIT_BYTES]).unwrap();
        assert_eq!((room.left(), huge.len()), (0, 20 * UNIT_BYTES));
    }
}
