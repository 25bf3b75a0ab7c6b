//! Answers with what is stored, and what becomes of it if it cannot be read.

use std::future::poll_fn;
use std::pin::Pin;

use http::Response;
use http_body::Body as _;
use net::body::{self, Body};

use super::Proxy;
use crate::content::Content;
use crate::policy::status::Source;
use crate::policy::storing::Head;
use crate::request::Asked;

impl Proxy {
    /// Answers with a stored object, which is forgotten if the disk does not give its body.
    pub(super) fn stored(
        &self,
        asked: &Asked,
        head: Head,
        content: &Content,
        source: Source,
    ) -> Response<Body> {
        let response = self.0.answers.stored(asked, head, content, source);
        if !matches!(content, Content::Disk(_)) {
            return response;
        }
        let (fetcher, url) = (self.0.fetcher.clone(), asked.object.url.as_str().to_owned());
        response.map(|body| {
            told_if_lost(body, move || {
                fetcher.forget(&url);
            })
        })
    }
}

/// Returns a stored body, which tells if it cannot be read.
fn told_if_lost(body: Body, tell: impl Fn() + Clone + Send + Unpin + 'static) -> Body {
    if body.is_end_stream() {
        return body;
    }
    body::unfold(body, move |mut body| {
        let tell = tell.clone();
        async move {
            let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.transpose();
            if frame.is_err() {
                tell();
            }
            (body, frame.map(|it| it.and_then(|it| it.into_data().ok())))
        }
    })
}
