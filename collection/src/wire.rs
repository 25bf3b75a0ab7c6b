//! The wire between a feed and its consumers: the headers of the protocol, which
//! [`feed`](crate::feed) describes, and the end of blocking tasks.

pub(crate) mod client;
pub(crate) mod site;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tokio::task::JoinHandle;

use crate::log::View;
use crate::log::holes::Holes;
use crate::member;

pub(crate) const KIND: HeaderName = HeaderName::from_static("harvest-kind");
pub(crate) const FORMAT: HeaderName = HeaderName::from_static("harvest-format");
pub(crate) const ACCEPT_FORMAT: HeaderName = HeaderName::from_static("harvest-accept-format");
pub(crate) const EPOCH: HeaderName = HeaderName::from_static("harvest-epoch");
pub(crate) const FROM: HeaderName = HeaderName::from_static("harvest-from");
pub(crate) const TO: HeaderName = HeaderName::from_static("harvest-to");
/// The server's id and public key.
pub(crate) const KEY: HeaderName = HeaderName::from_static("harvest-key");
/// The proof that the feed is the server's own; see [`site`].
pub(crate) const SITE: HeaderName = HeaderName::from_static("harvest-site");
/// The consumer's id.
pub(crate) const CONSUMER: HeaderName = HeaderName::from_static("harvest-consumer");
pub(crate) const OBJECTS: HeaderName = HeaderName::from_static("harvest-objects");
pub(crate) const PURGED: HeaderName = HeaderName::from_static("harvest-purged");
/// The name of the selection that is served.
pub(crate) const VIEW: HeaderName = HeaderName::from_static("harvest-view");
/// The serials whose changes are damaged at the source.
pub(crate) const MISSING: HeaderName = HeaderName::from_static("harvest-missing");

/// Sets the headers that describe the body.
pub(crate) fn set_stream_headers(
    headers: &mut HeaderMap,
    kind: &'static str,
    from: u64,
    view: &View,
    n: u64,
) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/gzip"));
    headers.insert(KIND, HeaderValue::from_static(kind));
    headers.insert(FORMAT, value(member::FORMAT));
    let to = view.version;
    headers.insert(EPOCH, value(to.epoch));
    headers.insert(FROM, value(from));
    headers.insert(TO, value(to.serial));
    headers.insert(OBJECTS, value(n));
    if view.purged != 0 {
        headers.insert(PURGED, value(view.purged));
    }
}

/// Sets the header that names the missing serials, if there are any.
pub(crate) fn set_missing(headers: &mut HeaderMap, holes: &Holes) {
    if !holes.is_empty() {
        headers.insert(MISSING, value(holes));
    }
}

/// Returns a header's value. Our values are numbers, hex and ranges, which are always valid.
pub(crate) fn value(text: impl ToString) -> HeaderValue {
    HeaderValue::try_from(text.to_string()).unwrap_or(HeaderValue::from_static(""))
}

/// Returns the result of a blocking task. A panic of the task continues here.
pub(crate) async fn joined<T>(task: JoinHandle<T>) -> T {
    task.await.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))
}
