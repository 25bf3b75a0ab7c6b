//! Filling a transfer with the body of an answer: what can be stored is kept, all else flows as fast as it is
//! taken.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use net::clock;
use tokio::time::timeout;

use super::window::Room;
use super::{End, MEMORY_BYTES_MAX, Transfer};
use crate::fetch::coming::Coming;

impl Transfer {
    /// Carries the whole body of an answer after what is there of it already, and ends. One of more than
    /// `bytes_max` bytes is not kept; if that is promised, only as far as it has room in memory.
    pub(crate) async fn fill(
        self: &Arc<Self>,
        mut start: Option<Bytes>,
        response: &mut Coming,
        bytes_max: u64,
    ) -> End {
        let is_long = self.promised().is_some_and(|it| bytes_max < it);
        let bytes_max = if is_long { MEMORY_BYTES_MAX as u64 } else { bytes_max };
        let mut is_kept = true;
        let end = loop {
            let next = match start.take() {
                Some(it) => Ok(Some(it)),
                None => response.chunk().await,
            };
            match next {
                Ok(Some(bytes)) => {
                    if is_kept && bytes_max < self.arrived() + bytes.len() as u64 {
                        self.state().is_too_long = true;
                        is_kept = false;
                    }
                    if is_kept && let Err(error) = self.append(bytes.clone()).await {
                        let url = &response.url;
                        // Each body that comes while others have the room is no news.
                        if error.kind() == io::ErrorKind::QuotaExceeded {
                            tracing::debug!(%url, %error, "a body is passed on and not kept");
                        } else {
                            tracing::warn!(%url, %error, "a body is passed on and not kept: it cannot be written");
                        }
                        is_kept = false;
                    }
                    if !is_kept {
                        self.pass_on(bytes).await;
                    }
                }
                Ok(None) if is_kept => break End::Whole,
                Ok(None) => break End::Passed,
                Err(error) => {
                    tracing::debug!(%error, "an origin broke off");
                    break End::Broken;
                }
            }
        };
        self.end(end);
        end
    }

    /// Appends bytes for those who read them, without keeping them. Waits until there is room.
    pub(super) async fn pass_on(&self, bytes: Bytes) {
        self.make_room(bytes.len()).await;
        let mut state = self.state();
        state.length += bytes.len() as u64;
        state.window().push(bytes);
        state.wake();
    }

    /// Waits until so many bytes more have room in the window.
    async fn make_room(&self, count: usize) {
        loop {
            let patience = match self.state().room(count) {
                Room::There => return,
                Room::Full => None,
                Room::HeldUp(patience) => Some(patience),
            };
            let Some(patience) = patience else {
                self.taken.notified().await;
                continue;
            };
            let began = clock::monotonic();
            let held_up = match timeout(patience, self.taken.notified()).await {
                Ok(()) => began.elapsed(),
                Err(_late) => patience,
            };
            self.state().window().held_up(held_up);
        }
    }
}
