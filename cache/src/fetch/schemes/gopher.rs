//! Gopher: menus as pages, everything else as it is.

use http::header;
use net::fetch::{Bounds, FetchError};
use net::gopher::{self, Kind, Menu};
use url::Url;

use super::{insert, page, too_large, types, whole};
use crate::fetch::coming::Coming;

/// Fetches a menu, text or file.
pub(super) async fn fetch(url: &Url, bounds: &Bounds) -> Result<Coming, FetchError> {
    let fetched = gopher::fetch(url, bounds).await?;
    if fetched.truncated {
        return Ok(too_large(url));
    }
    if !matches!(fetched.kind, Kind::Menu | Kind::Search) {
        let content_type = types::of_kind(fetched.kind, url.path());
        let content_type = types::with_charset(content_type, &fetched.bytes);
        return Ok(whole(url, &content_type, fetched.bytes));
    }
    let page = page::menu(url, &Menu::parse(&fetched.bytes));
    let mut answer = whole(url, "text/html; charset=utf-8", page);
    insert(&mut answer.headers, header::CONTENT_SECURITY_POLICY, page::POLICY);
    Ok(answer)
}
