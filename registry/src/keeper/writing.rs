//! Writing: the records of servers in the collection, and the leases in notes beside them.

use std::collections::BTreeMap;

use broker::error::Error;
use collection::{Batch, Change, Collection, Cursor, Epoch, Note, Oid, Pulled, Stamp};
use net::clock;

use crate::leases::Lease;

/// The name of the source under which the collection has the servers that announce themselves.
pub const SOURCE: &str = "announced servers";
/// Beginning of the keys of the leases.
const LEASE: &[u8] = b"registry/server/";
/// The epoch of the source, whose numbers are counted here. That of descriptions is another one.
const EPOCH: Epoch = Epoch(2);

/// Reads the leases. Blocks.
pub(super) fn read(collection: &Collection) -> Result<BTreeMap<String, Lease>, Error> {
    let mut leases = BTreeMap::new();
    for note in collection.notes(LEASE) {
        let (key, value) = note?;
        let id = key.get(LEASE.len()..).map(String::from_utf8_lossy).unwrap_or_default();
        match serde_json::from_slice(&value) {
            Ok(lease) => drop(leases.insert(id.into_owned(), lease)),
            Err(error) => tracing::warn!(%id, %error, "a lease was not read"),
        }
    }
    Ok(leases)
}

/// Writes changes of servers, then the lease of one; `None`: it has none any more. Blocks. One at a time: the changes are
/// numbered.
pub(super) fn write(
    collection: &Collection,
    changes: Vec<Change>,
    leases: &[(String, Option<Lease>)],
) -> Result<(), Error> {
    let now = Stamp(clock::now_ms());
    if !changes.is_empty() {
        let from = collection.cursor(SOURCE)?.map_or(0, |it| it.serial);
        let to = from + changes.len() as u64;
        let pulled = Pulled {
            source: SOURCE.to_owned(),
            id: None,
            epoch: EPOCH,
            changes: (from + 1..).zip(changes).collect(),
            cursor: Cursor { epoch: EPOCH, serial: to, snapshot: None, part: None },
            end_of_snapshot: None,
        };
        collection.apply(pulled, now)?;
    }
    let note = |(id, lease): &(String, Option<Lease>)| {
        let value = lease.as_ref().map(|it| serde_json::to_vec(it).unwrap_or_default());
        Note { key: [LEASE, id.as_bytes()].concat(), value }
    };
    let notes: Vec<Note> = leases.iter().map(note).collect();
    if !notes.is_empty() {
        collection.commit(Batch { changes: Vec::new(), notes }, now)?;
    }
    Ok(())
}

/// Returns the change that releases the record of a server.
pub(super) fn released(id: &str, lease: &Lease) -> Change {
    Change::Delete(object(id, lease))
}

/// Returns the object of a server.
pub(super) fn object(id: &str, lease: &Lease) -> Oid {
    exchange::servers::oid(id, &lease.url)
}
