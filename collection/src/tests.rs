//! Tests of a whole collection against models: damage of all kinds, and power cuts.

mod damage_model;
mod power_cut;

use bytes::Bytes;

use crate::collection::Collection;
use crate::log::served::{bytes_of, pieces};

/// Returns the bytes of the log that a feed serves after a serial, without its end mark.
pub(crate) fn served(collection: &Collection, since: u64) -> Vec<u8> {
    let parts = collection.inner.log.view().parts(since);
    let mut pieces = pieces(&parts, &Bytes::new(), 0, bytes_of(&parts));
    let mut bytes = Vec::new();
    while let Some(piece) = pieces().unwrap() {
        bytes.extend_from_slice(&piece);
    }
    bytes
}
