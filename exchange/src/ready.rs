//! What a daemon that has a collection must be able to do with it: the checks of `/readyz` that a gatherer
//! and a broker share.

use collection::Collection;
use daemon::health::Check;

/// Looks at whether the collection takes changes, and serves its whole feed. Reads what is known, no file of
/// the log. Blocks.
pub fn checks(collection: &Collection) -> [Check; 2] {
    let health = collection.health();
    let refusing = "no change is taken, mostly since the disk is full: free some space; what is here is \
                    served, and changes are taken again by themselves";
    let rotten = "a part of the collection is damaged, and is fetched or gathered again: who needs that part \
                  is told to come again later";
    let lost = "changes were lost, and everything is fetched or gathered again: until then objects may be \
                here that were deleted";
    let unread = "the key index cannot be read: see the log";
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
