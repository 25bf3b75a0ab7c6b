//! Notifications of a ListRecords. A fat one has the answer that a harvester at the subscriber's
//! version would get.
//!
//! Source: WebSub §7; OAI-PMH §2.7.1 (selective harvesting: bounds are seconds, and inclusive).
//!
//! A change is listed only after the second of its commit, so its notification goes out up to a
//! second later than that of a feed: a harvest before that would find nothing. A fat notification
//! may repeat records of the last one. If the changes do not fit into a page, it ends with a
//! resumption token.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use bytes::Bytes;
use collection::Version;
use http::{Request, StatusCode, header};
use net::clock;
use oai::{Code, Datestamp, Granularity};
use tokio::time::sleep;
use url::Url;

use super::super::notice::FAT_BYTES_MAX;
use super::Notifier;

/// Milliseconds of a second.
const SECOND_MS: u64 = 1_000;

/// Margin added to the wait, so that it does not end too early.
const MARGIN_MS: u64 = 20;

/// The change of a list.
#[derive(Debug)]
pub(super) enum ListContent {
    /// These records, as XML.
    Page(Bytes),
    /// No record of the list has changed.
    Nothing,
    /// The list has changed, but the changes are too many to send, or unknown.
    Changed,
}

/// Waits until the commits made so far are listed.
pub(super) async fn listed() {
    let left_ms = SECOND_MS - clock::now_ms() % SECOND_MS;
    sleep(Duration::from_millis(left_ms + MARGIN_MS)).await;
}

impl Notifier {
    /// Returns the listed changes of the list `topic` since `from`.
    pub(super) async fn records(&self, topic: &str, from: Version) -> ListContent {
        self.page(topic, from).await.unwrap_or(ListContent::Changed)
    }

    async fn page(&self, topic: &str, from: Version) -> Option<ListContent> {
        let collection = self.shared.collection.clone();
        if from.epoch != collection.version().epoch {
            return None;
        }
        let first = move || collection.scan(from.serial).ok()?.next();
        let first = match tokio::task::spawn_blocking(first).await.ok()? {
            Some(scanned) => scanned.ok()?.stamp,
            None => return Some(ListContent::Nothing),
        };
        let secs = i64::try_from(first.0 / SECOND_MS).ok()?;
        let mut url = Url::parse(topic).ok()?;
        let since = Datestamp::at(secs, Granularity::Second).to_string();
        url.query_pairs_mut().append_pair("from", &since);
        let request = Request::get(format!("/oai?{}", url.query()?))
            .header(header::HOST, url.authority())
            .body(Body::empty())
            .ok()?;
        let response = self.shared.records.get()?.respond(request).await;
        let is_answer = response.status() == StatusCode::OK;
        let bytes_max = usize::try_from(FAT_BYTES_MAX).unwrap_or(usize::MAX);
        let page = to_bytes(response.into_body(), bytes_max).await.ok().filter(|_| is_answer)?;
        // Angle brackets within the text of records are escaped, so a tag in the text is a real
        // one.
        let text = std::str::from_utf8(&page).ok()?;
        let none = format!("<error code=\"{}\"", Code::NoRecordsMatch.name());
        if text.contains(&none) {
            return Some(ListContent::Nothing);
        }
        (!text.contains("<error code=\"")).then_some(ListContent::Page(page))
    }
}
