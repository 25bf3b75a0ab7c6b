//! What can go wrong in a broker, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use query::QueryError;

/// Why the broker cannot do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A listener or a request failed.
    #[error(transparent)]
    Net(#[from] net::Error),
    /// The collection failed.
    #[error(transparent)]
    Collection(#[from] collection::Error),
    /// The file of subscriptions cannot be used.
    #[error(transparent)]
    Subscriptions(#[from] exchange::push::store::Error),
    /// The data folder, or a listener.
    #[error(transparent)]
    Daemon(#[from] daemon::Error),
    /// A page failed.
    #[error(transparent)]
    Web(#[from] web::Error),
    /// A file or folder of the data directory cannot be used.
    #[error("cannot {action} {}: {source}; check the folder, its owner and the free space", .path.display())]
    Io {
        /// What was tried: `create`, `read`, `write`.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The full-text index failed; the message says what to do. It can be rebuilt from the collection
    /// at any time.
    #[error(transparent)]
    Index(#[from] crate::engine::Failure),
    /// The query cannot be asked; who typed it can mend it.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// No source of that name is in the settings.
    #[error("no source is named {name}; `harvest broker status` lists them")]
    SourceUnknown {
        /// The name asked for.
        name: String,
    },
    /// The settings were read again and are wrong; the old ones stay.
    #[error("the old settings stay: {message}")]
    Settings {
        /// Every mistake, on a line of its own.
        message: String,
    },
    /// The broker was started without a settings file.
    #[error("this broker has no settings file to read again (`harvest up` makes its own settings)")]
    NoSettings,
    /// A worker of the broker panicked or was cancelled; the daemon has to be started again.
    #[error("a worker ended unexpectedly: {what}; start the broker again and report this")]
    Worker {
        /// Which.
        what: String,
    },
}

/// How long a source that brought more than it may is left alone: the next pull would bring as much
/// again. Changed settings and an admin's pull go before.
pub(crate) const OVER_LIMIT_REST: Duration = Duration::from_secs(86_400);

/// Returns how long a source is to be left alone at least: as long as it asks for itself, or as its
/// excess asks for.
pub(crate) fn retry_after(error: &collection::Error) -> Option<Duration> {
    match error {
        collection::Error::Source { error: net::Error::Status { retry_after, .. }, .. } => {
            *retry_after
        }
        collection::Error::Missing { after, .. } => Some(*after),
        collection::Error::OverLimit { .. } | collection::Error::Swollen { .. } => {
            Some(OVER_LIMIT_REST)
        }
        _ => None,
    }
}
