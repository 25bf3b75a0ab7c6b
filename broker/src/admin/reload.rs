//! `POST /reload` reads the settings again, as SIGHUP does, and answers with the outcome.

use std::fmt;
use std::path::Path;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use super::failure;
use crate::blocking::blocking;
use crate::config::Config;
use crate::error::Error;
use crate::server::{Handle, Server};

/// Reader of the settings file, given by the code that started the broker. Blocks; the error has
/// each mistake on a line of its own.
pub(crate) struct ReadSettings {
    file: String,
    read: Box<dyn Fn() -> Result<Config, String> + Send + Sync>,
}

impl ReadSettings {
    pub(crate) fn new(
        file: &Path,
        read: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
    ) -> Self {
        Self { file: file.display().to_string(), read: Box::new(read) }
    }

    /// Returns the path of the settings file.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}

impl fmt::Debug for ReadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadSettings({})", self.file)
    }
}

impl Server {
    /// Sets the reader of the settings for `POST /reload`; only the first call counts. `read` may
    /// block, and its error has every mistake on a line of its own.
    pub fn read_settings_by(
        &self,
        file: &Path,
        read: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
    ) {
        drop(self.handle().inner.settings.set(ReadSettings::new(file, read)));
    }
}

impl Handle {
    /// Reads the settings again and applies them. Returns the names of changed settings that need a
    /// restart.
    ///
    /// # Errors
    ///
    /// [`Error::NoSettings`], [`Error::Settings`], and the errors of [`reload`](Self::reload).
    async fn read_again(&self) -> Result<Vec<&'static str>, Error> {
        let handle = self.clone();
        let read = move || {
            let settings = handle.inner.settings.get().ok_or(Error::NoSettings)?;
            (settings.read)().map_err(|message| Error::Settings { message })
        };
        let config = blocking("settings", read).await?;
        self.reload(config).await
    }
}

/// Answers `POST /reload`.
pub(super) async fn reload(State(handle): State<Handle>) -> Response {
    match handle.read_again().await {
        Ok(later) => {
            tracing::info!(?later, "settings read again");
            axum::Json(json!({ "at_next_start": later })).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the old settings stay");
            failure(error)
        }
    }
}
