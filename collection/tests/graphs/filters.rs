//! Filters of the model: what a broker pulls of another one by a query, through the feed itself.

use std::sync::Arc;
use std::time::Duration;

use collection::feed::{FeedOptions, FeedServer, Selection};
use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{Change, Collection, Part};
use http::header::LOCATION;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use soif::Record;
use tokio::runtime;

/// A query, by the remainders of titles that it takes, a bit for each: so an object goes and comes as it is edited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter(pub(crate) usize);

impl Filter {
    pub(crate) fn takes(self, title: &str) -> bool {
        self.0 >> (title.parse::<usize>().unwrap() % 3) & 1 != 0
    }

    /// Returns the part of the source that is pulled.
    pub(crate) fn part(self) -> Part {
        let name = self.0.to_string();
        Part { asked: name.clone(), name, is_new: false }
    }

    /// Returns what a feed sends of all changes after `since`, or of all objects; each with its serial.
    pub(crate) fn changes(self, collection: &Collection, since: Option<u64>) -> Vec<(u64, Change)> {
        let takes = move |record: &Record| self.takes(&record.text("Title").unwrap());
        let selection = Selection { name: self.part().name, takes: Arc::new(takes), among: None };
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let bytes = runtime.block_on(ask(collection, &selection, since));
        let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
        decoder.feed(&bytes);
        let mut changes = Vec::new();
        while let Some(member) = decoder.next_member().unwrap() {
            for scanned in member.changes().unwrap() {
                let change = match scanned.change {
                    Change::Refresh(oid, None) => Change::Refresh(oid, Some(scanned.stamp)),
                    other => other,
                };
                changes.push((scanned.serial, change));
            }
        }
        decoder.finish().unwrap();
        changes
    }
}

/// Returns the answer of a feed to a consumer that has this selection up to `since`.
async fn ask(collection: &Collection, selection: &Selection, since: Option<u64>) -> Vec<u8> {
    let options = FeedOptions { snapshot_shared: Duration::ZERO, ..FeedOptions::default() };
    let feed = FeedServer::new(collection.clone(), options);
    let epoch = collection.version().epoch;
    let target = since.map(|it| format!("/feed?since={it}&epoch={epoch}"));
    let request = Request::get(target.as_deref().unwrap_or("/feed"));
    let request = request.header("harvest-view", &*selection.name).body(()).unwrap();
    let mut response = feed.respond_selected(request, selection).await;
    if since.is_none() {
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        let place = response.headers()[LOCATION].to_str().unwrap();
        let snapshot = format!("/{}", place.trim_start_matches('/'));
        response = feed.respond(Request::get(snapshot).body(()).unwrap()).await;
    }
    assert_eq!(response.status(), StatusCode::OK);
    let kind = if since.is_none() { "snapshot" } else { "delta" };
    assert_eq!(response.headers()["harvest-kind"], kind);
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}
