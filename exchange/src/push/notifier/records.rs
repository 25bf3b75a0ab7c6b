//! Notifications of a ListRecords; a fat one has in it what the list would answer to who has come as far as the
//! subscriber.
//!
//! Source: WebSub §7; OAI-PMH §2.7.1 (selective harvesting: bounds are seconds, and inclusive).
//!
//! The second in which a change was committed is over before it is listed, so such a notification goes out up
//! to a second later than one of the feed: who harvested sooner would find nothing. A fat one may have records
//! in it that came with the last one, and what is more than a page has a resumption token at its end.

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

/// A little more than that: a timer must not be early.
const MARGIN_MS: u64 = 20;

/// What there is to say.
#[derive(Debug)]
pub(super) enum Said {
    /// These records, as XML.
    Page(Bytes),
    /// Nothing: no record of the list has changed.
    Nothing,
    /// More than fits, or it cannot be said: that something has changed.
    Changed,
}

/// Waits until what is committed by now is listed.
pub(super) async fn listed() {
    let left_ms = SECOND_MS - clock::now_ms() % SECOND_MS;
    sleep(Duration::from_millis(left_ms + MARGIN_MS)).await;
}

impl Notifier {
    /// Says what has changed in the list `topic` since `from`, as far as that is listed.
    pub(super) async fn records(&self, topic: &str, from: Version) -> Said {
        self.page(topic, from).await.unwrap_or(Said::Changed)
    }

    async fn page(&self, topic: &str, from: Version) -> Option<Said> {
        let collection = self.shared.collection.clone();
        if from.epoch != collection.version().epoch {
            return None;
        }
        let first = move || collection.scan(from.serial).ok()?.next();
        let first = match tokio::task::spawn_blocking(first).await.ok()? {
            Some(scanned) => scanned.ok()?.stamp,
            None => return Some(Said::Nothing),
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
        // Text of records has its angles escaped.
        let text = std::str::from_utf8(&page).ok()?;
        let none = format!("<error code=\"{}\"", Code::NoRecordsMatch.name());
        if text.contains(&none) {
            return Some(Said::Nothing);
        }
        (!text.contains("<error code=\"")).then_some(Said::Page(page))
    }
}
