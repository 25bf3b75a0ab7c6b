//! `POST /reload` reads the settings again, as SIGHUP does, and answers with the outcome.

use std::fmt;
use std::path::{Path, PathBuf};

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use exchange::takedown::Refused;
use serde_json::json;

use crate::blocking::blocking;
use crate::config::Config;
use crate::error::Error;
use crate::server::{Handle, Server};

/// Reader of the settings file, given by the code that started the broker.
pub(crate) struct ReadSettings {
    pub(crate) file: String,
    pub(super) path: PathBuf,
    read: Box<dyn Fn() -> Result<Config, String> + Send + Sync>,
}

impl fmt::Debug for ReadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadSettings({})", self.file)
    }
}

impl Server {
    /// Sets the reader of the settings for `POST /reload`; later calls are ignored. `read` may
    /// block, and its error has every mistake on a line of its own.
    pub fn read_settings_by(
        &self,
        file: &Path,
        read: impl Fn() -> Result<Config, String> + Send + Sync + 'static,
    ) {
        let (shown, path) = (file.display().to_string(), file.to_owned());
        let settings = ReadSettings { file: shown, path, read: Box::new(read) };
        drop(self.handle().inner.settings.set(settings));
    }
}

/// Answers `POST /reload`: reads the settings again, applies them, and names the changed settings
/// that need a restart.
pub(super) async fn reload(State(handle): State<Handle>) -> Response {
    match read_again(&handle).await {
        Ok(later) => {
            tracing::info!(?later, "settings read again");
            axum::Json(json!({ "at_next_start": later })).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the old settings stay");
            Refused::from(error).into_response()
        }
    }
}

/// Reads the settings again, and applies them; returns the names of those that need a restart.
pub(super) async fn read_again(handle: &Handle) -> Result<Vec<&'static str>, Error> {
    let reader = handle.clone();
    let read = move || {
        let settings = reader.inner.settings.get().ok_or(Error::NoSettings)?;
        (settings.read)().map_err(|message| Error::Settings { message })
    };
    handle.reload(blocking("settings", read).await?).await
}
