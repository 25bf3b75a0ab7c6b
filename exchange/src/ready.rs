//! Readiness of a collection: the checks of `/readyz` that gatherer and broker share.

use collection::Collection;
use daemon::health::Check;

/// Checks whether the collection accepts changes, and serves its whole feed. Uses only state in
/// memory, and reads no file of the log. Blocks.
pub fn checks(collection: &Collection) -> [Check; 2] {
    let health = collection.health();
    let refusing = "changes are refused, mostly since the disk is full; free some space: changes are then \
                    accepted again automatically. Present records are served meanwhile";
    let rotten = "a part of the collection is damaged, and is fetched or gathered again; until then \
                  requests for that part are refused";
    let lost = "changes were lost, and everything is fetched or gathered again; until then deleted objects \
                may still be here";
    let unread = "the key index is unreadable; see the log";
    let feed = match (health.damaged.first(), collection.aftermath()) {
        (Some(first), _) => {
            let more = health.damaged.len() - 1;
            let others = if more == 0 { String::new() } else { format!(", and {more} more") };
            (rotten, Some(format!("{first}{others}")))
        }
        (None, Ok(Some(version))) => (lost, Some(format!("since version {version}"))),
        (None, Err(error)) => (unread, Some(error.to_string())),
        (None, Ok(None)) => (rotten, None),
    };
    [
        Check::new("takes-changes", refusing, health.refusing),
        Check::new("serves-whole-feed", feed.0, feed.1),
    ]
}
