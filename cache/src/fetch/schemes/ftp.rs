//! FTP: files as they come, folders as pages.

use http::{HeaderMap, Method, StatusCode, header};
use net::body;
use net::client::{http_date, http_date_of};
use net::fetch::{Fault, FetchError, Login, escaped};
use net::ftp::{Client, Facts, Target};
use url::Url;

use super::{insert, page, types, whole};
use crate::fetch::coming::Coming;
use crate::request::Asked;

/// Fetches a file, or lists a folder, as the user whom the request's credentials name.
pub(super) async fn fetch(
    client: &Client,
    asked: &Asked,
    headers: &HeaderMap,
) -> Result<Coming, FetchError> {
    let (url, at) = (&asked.object.at(), identified(asked));
    if Target::of(&at).is_ok_and(|it| it.is_folder) {
        return listed(client, url, &at).await;
    }
    let facts = match client.facts(&at).await {
        Ok(facts) => facts,
        // Some servers tell them of no file, and none tells them of a folder.
        Err(FetchError { fault: Fault::Refused { .. }, .. }) => Facts::default(),
        Err(error) => return Err(error),
    };
    let changed = facts.modified.and_then(|it| u64::try_from(it.seconds).ok());
    let mut answer = HeaderMap::new();
    insert(&mut answer, header::CONTENT_TYPE, types::of_name(at.path()));
    if let Some(changed) = changed {
        insert(&mut answer, header::LAST_MODIFIED, &http_date_of(changed));
    }
    if has_already(headers, changed) {
        answer.remove(header::CONTENT_TYPE);
        return Ok(Coming::made(url.clone(), StatusCode::NOT_MODIFIED, answer, body::empty()));
    }
    if let Some(size) = facts.size {
        answer.insert(header::CONTENT_LENGTH, size.into());
    }
    if asked.method == Method::HEAD && facts.size.is_some() {
        return Ok(Coming::made(url.clone(), StatusCode::OK, answer, body::empty()));
    }
    match client.open(&at).await {
        Ok(file) => Ok(Coming::file(url.clone(), answer, file, facts.size)),
        Err(error @ FetchError { fault: Fault::Refused { .. }, .. }) => {
            moved(client, url, &at).await.ok_or(error)
        }
        Err(error) => Err(error),
    }
}

/// Returns the URL with the name and password of the request.
fn identified(asked: &Asked) -> Url {
    let mut at = asked.object.at();
    let shown = asked.headers.get(header::AUTHORIZATION);
    if let Some(Login { name, password }) = shown.and_then(|it| Login::of_basic(it.as_bytes())) {
        // A URL of FTP has a host, and so can have both.
        let _ = at.set_username(&escaped(name.as_bytes()));
        let _ = at.set_password(Some(&escaped(password.as_bytes())));
    }
    at
}

/// Returns whether the client has a file that was last changed then (RFC 9110 §13.1.3).
fn has_already(headers: &HeaderMap, changed: Option<u64>) -> bool {
    let since = headers.get(header::IF_MODIFIED_SINCE).and_then(|it| http_date(it.to_str().ok()?));
    let has_tag = headers.contains_key(header::IF_NONE_MATCH);
    changed.zip(since).is_some_and(|(changed, since)| changed <= since && !has_tag)
}

async fn listed(client: &Client, url: &Url, at: &Url) -> Result<Coming, FetchError> {
    let listing = client.list(at).await?;
    let page = page::folder(url, &listing);
    let mut answer = whole(url, "text/html; charset=utf-8", page);
    insert(&mut answer.headers, header::CONTENT_SECURITY_POLICY, page::POLICY);
    Ok(answer)
}

/// Returns a redirect to a folder that was asked for as a file; `None`: it is none. Without the last
/// slash its links would lead elsewhere.
async fn moved(client: &Client, url: &Url, at: &Url) -> Option<Coming> {
    let with_slash = |url: &Url| {
        let mut folder = url.clone();
        folder.set_path(&format!("{}/", url.path()));
        folder
    };
    client.list(&with_slash(at)).await.ok()?;
    let to = with_slash(url);
    let mut answer = whole(url, "text/plain; charset=utf-8", format!("the folder is at {to}\n"));
    answer.status = StatusCode::MOVED_PERMANENTLY;
    insert(&mut answer.headers, header::LOCATION, to.as_str());
    Some(answer)
}
