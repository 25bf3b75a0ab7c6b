//! Coming answers of origins: the head, and the body piece by piece; by HTTP, or made here of what
//! another protocol gives.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body::Body as _;
use net::body::{self, Body};
use net::client::Response;
use net::clock;
use net::digest::{Check, Digest};
use net::error::BoxError;
use net::ftp::Download;
use tokio::sync::OwnedSemaphorePermit;
use url::Url;

use super::giver::Giver;
use crate::policy::mirrors::Dropped;

/// An answer whose body is still to come.
#[derive(Debug)]
pub(crate) struct Coming {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The URL that answers.
    pub(crate) url: Url,
    /// Who gives it, if that was resolved.
    pub(crate) giver: Option<Giver>,
    source: Source,
    proof: Option<Proof>,
    /// The place that a body in memory takes until it is sent.
    room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
enum Source {
    Http(Box<Response>),
    Ftp(Box<Download>),
    Made(Body),
}

impl Coming {
    /// Returns an answer with this body.
    pub(crate) fn made(url: Url, status: StatusCode, headers: HeaderMap, body: Body) -> Self {
        let source = Source::Made(body);
        Self { status, headers, url, giver: None, source, proof: None, room: None }
    }

    /// Returns an answer with this file, which has `length` bytes if that is known.
    pub(crate) fn file(url: Url, headers: HeaderMap, file: Download, length: Option<u64>) -> Self {
        let source = Source::Ftp(Box::new(file));
        // It may have changed after its length was told.
        let proof = length.map(|it| Proof::new(None, Some(it), None));
        Self { status: StatusCode::OK, headers, url, giver: None, source, proof, room: None }
    }

    /// Has a body in memory keep its place until it is sent.
    pub(crate) fn within(self, room: OwnedSemaphorePermit) -> Self {
        let is_made = matches!(self.source, Source::Made(_));
        Self { room: is_made.then_some(room), ..self }
    }

    /// Makes the body be checked as it comes.
    pub(crate) fn proven(self, proof: Proof) -> Self {
        Self { proof: Some(proof), ..self }
    }

    /// Returns this answer with the body of another one.
    pub(crate) fn with_body_of(self, other: Self) -> Self {
        Self { source: other.source, giver: other.giver, ..self }
    }

    /// Returns the length of the body, as the headers say it.
    pub(crate) fn length(&self) -> Option<u64> {
        self.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Returns whether its host is in a private network or on this machine.
    pub(crate) fn is_private(&self) -> bool {
        matches!(&self.source, Source::Http(it) if it.is_private())
    }

    /// Returns the body's next piece, `None` at its end.
    ///
    /// # Errors
    ///
    /// The body broke off, or is not the one that was promised.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, BoxError> {
        loop {
            let piece = self.source.chunk().await;
            let Some(proof) = &mut self.proof else { return piece };
            let is_end = matches!(piece, Ok(None));
            match proof.take(piece)? {
                None if !is_end => {}
                next => {
                    if is_end {
                        self.proof = None;
                    }
                    return Ok(next);
                }
            }
        }
    }

    /// Returns the rest of the body, which is read as it is sent on.
    pub(crate) fn into_body(self) -> Body {
        match self.source {
            Source::Http(response) if self.proof.is_none() => response.into_body(),
            Source::Made(body) if self.proof.is_none() && self.room.is_none() => body,
            _ => body::unfold(Box::new(self), |mut coming| async {
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

impl Source {
    async fn chunk(&mut self) -> Result<Option<Bytes>, BoxError> {
        match self {
            Self::Http(response) => Ok(response.chunk().await?),
            Self::Ftp(file) => Ok(file.chunk().await?),
            Self::Made(body) => loop {
                let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
                let data = frame.transpose()?.map(|it| it.into_data().unwrap_or_default());
                if data.as_ref().is_none_or(|it| !it.is_empty()) {
                    return Ok(data);
                }
            },
        }
    }
}

impl From<Response> for Coming {
    fn from(mut response: Response) -> Self {
        let headers = std::mem::take(&mut response.headers);
        let (status, url) = (response.status, response.url.clone());
        Self {
            status,
            headers,
            url,
            giver: None,
            source: Source::Http(Box::new(response)),
            proof: None,
            room: None,
        }
    }
}

/// The check of a body whose length or digest was promised by another answer. One piece is held back
/// until the next is there, so that nobody ever has a whole body that is wrong.
#[derive(Debug)]
pub(crate) struct Proof {
    check: Option<Check>,
    /// Bytes that are to come, if that is known.
    left: Option<u64>,
    held: Option<Bytes>,
    /// The mirror that gives the body, which is dropped if it is another one.
    mirror: Option<(Dropped, Url)>,
}

impl Proof {
    /// Returns the check of a body with this digest and length in bytes, as far as they are known.
    pub(crate) fn new(
        digest: Option<Digest>,
        length: Option<u64>,
        mirror: Option<(Dropped, Url)>,
    ) -> Self {
        Self { check: digest.map(Digest::check), left: length, held: None, mirror }
    }

    /// Takes what came next, and returns what is sent on: `None` before the end if nothing is yet.
    fn take(&mut self, piece: Result<Option<Bytes>, BoxError>) -> Result<Option<Bytes>, BoxError> {
        let taken = piece.and_then(|it| self.proven(it));
        if let (Err(_), Some((dropped, url))) = (&taken, &self.mirror) {
            dropped.drop(url, clock::monotonic());
        }
        taken
    }

    fn proven(&mut self, piece: Option<Bytes>) -> Result<Option<Bytes>, BoxError> {
        let Some(piece) = piece else {
            if self.left.is_some_and(|it| 0 < it) {
                return Err("the body is shorter than was promised".into());
            }
            if self.check.take().is_some_and(|it| !it.is_right()) {
                return Err("the body is another one than was promised: its digest is wrong".into());
            }
            return Ok(self.held.take());
        };
        if let Some(left) = &mut self.left {
            let rest = left.checked_sub(piece.len() as u64);
            *left = rest.ok_or("the body is longer than was promised")?;
        }
        if let Some(check) = &mut self.check {
            check.feed(&piece);
        }
        let is_held = self.check.is_some() || self.left.is_some();
        Ok(if is_held { self.held.replace(piece) } else { Some(piece) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(length: Option<u64>, pieces: &[&'static str]) -> String {
        let (mut proof, mut seen) = (Proof::new(None, length, None), Vec::new());
        for piece in pieces.iter().map(|it| Some(Bytes::from(*it))).chain([None]) {
            match proof.take(Ok(piece)) {
                Ok(Some(it)) => seen.push(String::from_utf8(it.to_vec()).unwrap()),
                Ok(None) => {}
                Err(_) => return format!("{} broken", seen.join(" ")),
            }
        }
        seen.join(" ")
    }

    #[test]
    fn nobody_has_a_whole_body_that_is_wrong() {
        assert_eq!(sent(None, &["ab", "c"]), "ab c");
        assert_eq!(sent(Some(3), &["ab", "c"]), "ab c");
        assert_eq!(sent(Some(3), &["ab", "c", "d"]), "ab broken");
        assert_eq!(sent(Some(3), &["abcd"]), " broken");
        assert_eq!(sent(Some(3), &["ab"]), " broken");
        assert_eq!(sent(Some(0), &[]), "");
    }
}
