//! Entry point of fuzz targets; compiled only for them (`cargo fuzz` sets `cfg(fuzzing)`).

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire::{self, Order, Part, Ready, Reply, Request};

/// Reads `bytes` as frames of every kind, and writes the readable frames again.
///
/// # Panics
///
/// A frame is longer than allowed, or differs after it was written and read again.
pub fn frames(bytes: &[u8]) {
    frame::<Order>(bytes);
    frame::<Ready>(bytes);
    frame::<Request>(bytes);
    frame::<Reply>(bytes);
    frame::<Part>(bytes);
}

fn frame<T: DeserializeOwned + Serialize>(bytes: &[u8]) {
    const BODY_BYTES_MAX: u64 = 1000;
    let Ok((head, body)) = wire::read::<T>(&mut &*bytes, BODY_BYTES_MAX) else { return };
    assert!(body.len() as u64 <= BODY_BYTES_MAX, "the body has {} bytes", body.len());
    let mut written = Vec::new();
    if wire::write(&mut written, &head, &[&body]).is_err() {
        return;
    }
    let again = wire::read::<T>(&mut &*written, BODY_BYTES_MAX).ok();
    let is_same = again.is_some_and(|(again, rest)| {
        let text = |it: &T| serde_json::to_string(it).ok();
        rest == body && text(&again) == text(&head)
    });
    assert!(is_same, "the frame changes when it is written and read again");
}
