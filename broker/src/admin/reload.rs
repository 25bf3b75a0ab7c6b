//! `POST /reload`: the settings are read again, as on SIGHUP, and whoever asked hears what came of it.

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

/// How the settings are read again: whoever started the broker knows the file. Blocks; says what is wrong,
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

    /// The file.
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
    /// Says how the settings are read again when an administrator asks for it (`POST /reload`); the first
    /// way counts. `read` may block, and says every mistake on a line of its own.
    pub fn read_settings_by(
        &self,
        file: &Path,
        read: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
    ) {
        drop(self.handle().inner.settings.set(ReadSettings::new(file, read)));
    }
}

impl Handle {
    /// Reads the settings again, and takes them over. Returns the names of those that differ but need a
    /// restart.
    ///
    /// # Errors
    ///
    /// [`Error::NoSettings`], [`Error::Settings`], and as for [`reload`](Self::reload).
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

/// `POST /reload`.
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
