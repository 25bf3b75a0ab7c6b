//! Coming answers of origins: the head, and the body piece by piece; by HTTP, or made here of what
//! another protocol gives.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use net::body::{self, Body};
use net::client::Response;
use net::error::BoxError;
use net::ftp::Download;
use url::Url;

/// An answer whose body is still to come.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The URL that answers.
    pub(crate) url: Url,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Http(Box<Response>),
    /// A file, and how many bytes of it are to come, if that is known.
    Ftp(Box<Download>, Option<u64>),
    Made(Body),
}

impl Coming {
    /// Returns an answer with this body.
    pub(crate) fn made(url: Url, status: StatusCode, headers: HeaderMap, body: Body) -> Self {
        Self { status, headers, url, source: Source::Made(body) }
    }

    /// Returns an answer with this file, which has `length` bytes if that is known.
    pub(crate) fn file(url: Url, headers: HeaderMap, file: Download, length: Option<u64>) -> Self {
        let source = Source::Ftp(Box::new(file), length);
        Self { status: StatusCode::OK, headers, url, source }
    }

    /// Returns the body's next piece, `None` at its end.
    ///
    /// # Errors
    ///
    /// The body broke off.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, BoxError> {
        match &mut self.source {
            Source::Http(response) => Ok(response.chunk().await?),
            Source::Ftp(file, left) => {
                let piece = file.chunk().await?;
                let count = piece.as_ref().map_or(0, Bytes::len) as u64;
                // It may have changed after its length was told.
                *left = match *left {
                    Some(it) if it < count || piece.is_none() && 0 < it => {
                        return Err("the file has not the length that was told".into());
                    }
                    left => left.map(|it| it - count),
                };
                Ok(piece)
            }
            Source::Made(body) => loop {
                let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
                let data = frame.transpose()?.map(|it| it.into_data().unwrap_or_default());
                if data.as_ref().is_none_or(|it| !it.is_empty()) {
                    return Ok(data);
                }
            },
        }
    }

    /// Returns the rest of the body, which is read as it is sent on.
    pub(crate) fn into_body(self) -> Body {
        match self.source {
            Source::Http(response) => response.into_body(),
            Source::Made(body) => body,
            Source::Ftp(..) => body::unfold(Box::new(self), |mut coming| async {
                let piece = coming.chunk().await;
                (coming, piece)
            }),
        }
    }

    /// Reads the rest of the body, up to `bytes_max` bytes, so that its connection can be used again.
    pub(crate) async fn skip(mut self, bytes_max: usize) {
        let mut read = 0;
        while let Ok(Some(piece)) = self.chunk().await
            && read <= bytes_max
        {
            read += piece.len();
        }
    }
}

impl From<Response> for Coming {
    fn from(mut response: Response) -> Self {
        let headers = std::mem::take(&mut response.headers);
        let (status, url) = (response.status, response.url.clone());
        Self { status, headers, url, source: Source::Http(Box::new(response)) }
    }
}
