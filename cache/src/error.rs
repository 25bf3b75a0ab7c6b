//! Errors of the cache's server.

/// An error that stops the cache, or keeps it from starting. The message has the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A listener, the data folder or a certificate cannot be used.
    #[error(transparent)]
    Daemon(#[from] daemon::Error),
    /// The pages cannot be made.
    #[error(transparent)]
    Pages(#[from] web::Error),
    /// A folder cannot be made.
    #[error("cannot make {path}: {source}; make it yourself, or set `data` to another folder")]
    Folder {
        /// The folder.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The stored objects cannot be opened.
    #[error(
        "cannot open the objects in {path}: {source}; if the disk is sound, remove the folder: the cache \
         fetches them again"
    )]
    Store {
        /// The folder.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Neighbors cannot be asked.
    #[error(
        "cannot listen for neighbors on UDP {at}: {source}; set `icp_listen` to another address"
    )]
    Icp {
        /// The address.
        at: std::net::SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A neighbor's host is none.
    #[error("a neighbor cannot be asked: {0}")]
    Neighbor(#[from] net::Error),
    /// The access log cannot be written.
    #[error("cannot write the access log {path}: {source}; set `access_log` to another file")]
    AccessLog {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another process has the data folder.
    #[error(transparent)]
    Lock(#[from] disk::lock::Error),
    /// A task has ended unexpectedly.
    #[error("a task of the cache has ended: its log says why; start it again")]
    Stopped,
}
