//! FTP: folders and files.

use net::clock;
use net::fetch::{Fault, FetchError};
use net::ftp::{Client, EntryKind, Facts, Listing, Target};
use url::Url;

use super::{Found, Item, List, Sign, last_name, object};
use crate::validator::Validator;

const DAY_SECONDS: i64 = 24 * 3_600;

/// Asks for a folder or a file. A root's start (`is_start`) may be a folder without its last slash, and is listed
/// with all that is below it, if the server does that.
pub(super) async fn fetch(
    client: &Client,
    url: &Url,
    is_start: bool,
    known: Option<&Validator>,
    told: Option<Sign>,
) -> Result<Found, FetchError> {
    if Target::of(url).is_ok_and(|it| it.is_folder) {
        return list(client, url, is_start).await;
    }
    let sign = match told {
        Some(sign) => Some(sign),
        None => match client.facts(url).await {
            Ok(facts) => sign_of(facts),
            Err(error) => return absent(client, url, is_start, error).await,
        },
    };
    if known.is_some_and(|known| sign.as_ref().is_some_and(|it| it.is_of(known))) {
        return Ok(Found::Unchanged);
    }
    match client.fetch(url).await {
        Ok(it) => Ok(object(url, last_name(url), (it.bytes, it.truncated), sign.as_ref())),
        Err(error) => absent(client, url, is_start, error).await,
    }
}

/// Says that there is no file; at a root's start there may be a folder.
async fn absent(
    client: &Client,
    url: &Url,
    is_start: bool,
    error: FetchError,
) -> Result<Found, FetchError> {
    let Fault::Refused { .. } = error.fault else { return Err(error) };
    let mut folder = url.clone();
    folder.set_path(&format!("{}/", url.path()));
    if is_start && let Ok(found) = list(client, &folder, true).await {
        return Ok(found);
    }
    Ok(Found::Absent { is_certain: false, why: error.fault.to_string() })
}

async fn list(client: &Client, url: &Url, with_all_below: bool) -> Result<Found, FetchError> {
    let has_folders = |it: &Listing| {
        it.folders.iter().any(|it| it.entries.iter().any(|it| it.kind == EntryKind::Folder))
    };
    if with_all_below
        && let Ok(mut tree) = client.list_tree(url).await
        && (1 < tree.folders.len() || !has_folders(&tree))
    {
        if tree.truncated {
            // The last folder is not complete: it is listed again.
            tree.folders.pop();
        }
        return Ok(Found::List(listed(url, &tree)));
    }
    match client.list(url).await {
        Ok(folder) => Ok(Found::List(listed(url, &folder))),
        Err(FetchError { fault: fault @ Fault::Refused { .. }, .. }) => {
            Ok(Found::Absent { is_certain: false, why: fault.to_string() })
        }
        Err(error) => Err(error),
    }
}

/// Returns what a list leads to.
fn listed(url: &Url, listing: &Listing) -> List {
    let mut list = List::default();
    let (mut links, mut elsewhere) = (0, 0);
    for folder in &listing.folders {
        let Some(at) = folder.url(url) else {
            elsewhere += 1;
            continue;
        };
        let steps = folder.path.split(|it| *it == b'/').filter(|it| !it.is_empty()).count();
        let steps = u16::try_from(steps + 1).unwrap_or(u16::MAX);
        for entry in &folder.entries {
            let Some(url) = entry.url(&at) else {
                links += 1;
                continue;
            };
            let sign = sign_of(Facts { size: entry.size, modified: entry.modified });
            list.items.push(Item {
                url,
                steps,
                sign: sign.filter(|_| entry.kind == EntryKind::File),
            });
        }
        list.included.push(at);
    }
    let whole = if listing.truncated { ", and it is longer than what is read" } else { "" };
    if 0 < links + elsewhere + listing.left_out || listing.truncated {
        list.flaw = Some(format!(
            "of its list {links} links and devices, and {} lines, are left out{whole}",
            elsewhere + listing.left_out
        ));
    }
    list
}

/// Returns what facts tell of a file, if they tell its time.
fn sign_of(facts: Facts) -> Option<Sign> {
    let (size, modified) = (facts.size?, facts.modified?);
    // Times that are not exact are in an unknown zone.
    let zone = if modified.precision_seconds == 1 { 0 } else { DAY_SECONDS };
    let until = modified.seconds + i64::from(modified.precision_seconds) + zone;
    let now = i64::try_from(clock::now_ms() / 1_000).unwrap_or(i64::MAX);
    Some(Sign { tag: size.to_string(), modified: Some(modified.seconds), is_sure: until < now })
}
