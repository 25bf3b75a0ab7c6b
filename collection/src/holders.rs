//! Which source holds which object, and how far each source has been read.

use crate::change::{Change, Epoch};

/// How far a snapshot has been fetched and applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The snapshot's id at its server.
    pub id: String,
    /// Bytes of it applied: where the next member starts.
    pub offset: u64,
    /// The serial that the snapshot reaches.
    pub to: u64,
    /// The generation that marks what this snapshot names; not 0, and new for each snapshot.
    pub generation: u64,
}

/// How far a source has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The source's epoch.
    pub epoch: Epoch,
    /// The last serial applied.
    pub serial: u64,
    /// The snapshot being applied, if one is.
    pub snapshot: Option<Progress>,
}

/// What was pulled from a source, to be applied in one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// The source's name.
    pub source: String,
    /// The epoch that the serials count in.
    pub epoch: Epoch,
    /// The changes with their serials at the source, in ascending order.
    pub changes: Vec<(u64, Change)>,
    /// The cursor that holds once they are applied.
    pub cursor: Cursor,
    /// The generation of the snapshot that ends with these changes, if one does: whatever the
    /// source holds under another generation is released.
    pub end_of_snapshot: Option<u64>,
}
