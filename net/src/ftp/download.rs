//! Downloads: files that are read piece by piece.

use bytes::Bytes;
use url::Url;

use super::Client;
use super::cache::Key;
use super::session::{Session, read};
use crate::fetch::{Connection, Fault, FetchError, Watch};

/// A file on its way. Dropping it before its end closes its connections.
#[derive(Debug)]
pub struct Download {
    client: Client,
    /// Its URL, without a password.
    url: Url,
    /// The connections that it comes over, until its end.
    live: Option<(Key, Session, Connection)>,
    watch: Watch,
}

impl Download {
    pub(super) fn new(client: Client, url: Url, live: (Key, Session, Connection)) -> Self {
        let watch = Watch::data(&client.settings.bounds.timeouts);
        Self { client, url, live: Some(live), watch }
    }

    /// Returns the next piece, `None` at the end.
    ///
    /// # Errors
    ///
    /// The file broke off or took too long. The pieces before are good.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let piece = self.next().await;
        if !matches!(piece, Ok(Some(_))) {
            self.live = None;
        }
        piece.map_err(|fault| FetchError::new(&self.url, fault))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let Some((_, _, connection)) = &mut self.live else { return Ok(None) };
        let mut bytes = Vec::new();
        if read(connection, &mut self.watch, &mut bytes).await? != 0 {
            return Ok(Some(bytes.into()));
        }
        let Some((key, mut session, connection)) = self.live.take() else { return Ok(None) };
        drop(connection);
        session.end().await?;
        let used = session.used();
        self.client.cache.keep(key, session, used);
        Ok(None)
    }
}
