//! Refused changes: what the collection does not take becomes a problem, and the rest of its batch is committed.

use std::sync::atomic::Ordering::Relaxed;

use collection::{Batch, Change, Note, Stamp};
use net::clock;

use super::run::Run;

/// Commits a batch. A record or note that the collection refuses becomes a problem; the others are
/// committed.
pub(super) fn commit(run: &Run<'_>, batch: &mut Batch) -> Result<(), collection::Error> {
    while !batch.is_empty() {
        match run.site.collection.commit(&*batch, Stamp(clock::now_ms())) {
            Ok(_version) => {
                run.site.metrics.commits.fetch_add(1, Relaxed);
                break;
            }
            Err(collection::Error::Refused { position, object, reason }) => {
                let is_note = |it: &Note| {
                    object.starts_with("note ")
                        && object.ends_with(&*String::from_utf8_lossy(&it.key))
                };
                if batch.notes.get(position).is_some_and(is_note) {
                    // Without its note, the file is read again at the next start.
                    batch.notes.remove(position);
                } else if let Some(at) = refused_at(&batch.changes, position, &object) {
                    batch.changes.remove(at);
                } else {
                    return Err(collection::Error::Refused { position, object, reason });
                }
                run.site.problem(object, "refused", reason.to_owned());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the position of a change that the collection has refused; `None` if it is not found. It
/// is at `position` or after it, since the collection does not count suppressed changes.
fn refused_at(changes: &[Change], position: usize, object: &str) -> Option<usize> {
    let is_it = |change: &Change| match change {
        Change::Update(record) => record.url == object,
        Change::Refresh(oid, _)
        | Change::Delete(oid)
        | Change::Withdraw(oid, _)
        | Change::Suppress(oid, _) => oid.to_string() == object,
        Change::Confirm { root, .. } => root == object,
    };
    let offset = changes.get(position..)?.iter().position(is_it)?;
    Some(position + offset)
}

#[cfg(test)]
mod tests {
    use collection::Oid;
    use soif::Record;

    use super::*;

    #[test]
    fn a_refused_change_is_found_after_suppressed_ones() {
        let changes: Vec<Change> = vec![
            Change::Update(Record::new("FILE", "file:///a")),
            Change::Update(Record::new("FILE", "file:///b")),
            Change::Delete(Oid::new("g", "file:///c")),
        ];
        assert_eq!(refused_at(&changes, 0, "file:///b"), Some(1));
        assert_eq!(refused_at(&changes, 1, "file:///b"), Some(1));
        let deleted = Oid::new("g", "file:///c").to_string();
        assert_eq!(refused_at(&changes, 0, &deleted), Some(2));
        assert_eq!(refused_at(&changes, 2, "file:///a"), None);
        assert_eq!(refused_at(&changes, 9, "file:///a"), None);
    }
}
