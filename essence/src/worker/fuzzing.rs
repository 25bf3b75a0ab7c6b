//! A way in for fuzz targets; compiled for nothing else (`cargo fuzz` sets `cfg(fuzzing)`).

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire::{self, Ask, Order, Ready, Told};

/// Reads `bytes` as frames of every kind, and writes again what can be read.
///
/// # Panics
///
/// What is read is longer than it may be, or another when it was written and read again.
pub fn frames(bytes: &[u8]) {
    frame::<Order>(bytes);
    frame::<Ready>(bytes);
    frame::<Ask>(bytes);
    frame::<Told>(bytes);
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
    assert!(is_same, "it is another when it is read again");
}
