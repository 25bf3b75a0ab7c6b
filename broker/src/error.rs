//! Errors of a broker, with advice for the administrator.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use query::QueryError;

/// An error of the broker.
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
    /// The data folder or a listener failed.
    #[error(transparent)]
    Daemon(#[from] daemon::Error),
    /// A page failed.
    #[error(transparent)]
    Web(#[from] web::Error),
    /// A damaged index cannot be removed.
    #[error("cannot remove {}: {source}; check the folder, its owner and the free space", .path.display())]
    Io {
        /// The index's folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The full-text index failed; the message says what to do. It can be rebuilt from the
    /// collection at any time.
    #[error(transparent)]
    Index(#[from] crate::engine::Failure),
    /// The query has a mistake that the user can correct.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The search took too long and was given up.
    #[error(
        "the search took too long and was given up; ask for rarer words, or with fewer patterns (*, ~, /…/)"
    )]
    Late,
    /// Too many dear searches at once, or by this client: it may ask again later.
    #[error(transparent)]
    Crowded(#[from] Crowded),
    /// The settings have no source with this name.
    #[error("no source is named {name}; `harvest broker status` lists them")]
    SourceUnknown {
        /// The requested name.
        name: String,
    },
    /// The settings were read again and have mistakes; the old ones stay.
    #[error("the old settings stay: {message}")]
    Settings {
        /// All mistakes, each on a line of its own.
        message: String,
    },
    /// The broker was started without a settings file.
    #[error("this broker has no settings file to read again (`harvest up` makes its own settings)")]
    NoSettings,
    /// A task of the broker panicked or was cancelled; the daemon must be started again.
    #[error("a worker ended unexpectedly: {what}; start the broker again and report this")]
    Worker {
        /// Name of the task, and its error.
        what: String,
    },
}

/// A search that takes long was refused, for now.
#[derive(Debug, thiserror::Error)]
#[error(
    "{message}; ask again in {retry_after_secs} s, or without patterns (*, ~, /…/) and for fewer hits"
)]
pub struct Crowded {
    pub(crate) message: &'static str,
    /// The time after which the client may ask again, in seconds.
    pub(crate) retry_after_secs: u64,
}

/// Pause of a source that exceeded a limit, since the next pull would exceed it again. Changed
/// settings or a pull by an administrator end the pause.
pub(crate) const OVER_LIMIT_REST: Duration = Duration::from_secs(86_400);

/// Returns the shortest pause after an error: the pause that the source asks for, or
/// [`OVER_LIMIT_REST`] if a limit was exceeded; `None` for other errors.
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
