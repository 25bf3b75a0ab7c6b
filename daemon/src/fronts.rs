//! The listeners of a daemon: the public one, and that of its administration.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use net::server::Limits;
use net::shutdown::Shutdown;
use net::tally::Tally;
use tokio::net::TcpListener;

use crate::{Error, Settings, opening};

/// Both listeners, bound.
#[derive(Debug)]
pub struct Fronts {
    public: TcpListener,
    admin: TcpListener,
    public_addr: SocketAddr,
    admin_addr: SocketAddr,
    proxy: Option<String>,
}

/// How they serve.
#[derive(Clone, Debug)]
pub struct Serving {
    /// How long requests in progress may go on after the shutdown starts.
    pub drain: Duration,
    /// Counts what peers of the public listener do.
    pub tally: Tally,
}

impl Fronts {
    /// Binds both; port 0 lets the system choose.
    ///
    /// # Errors
    ///
    /// An address is taken, or is none of this machine: the message says what to do.
    pub async fn bind(settings: &Settings) -> Result<Self, Error> {
        let (public, public_addr) = bind(settings.listen).await?;
        let (admin, admin_addr) = bind(settings.admin_listen).await?;
        Ok(Self { public, admin, public_addr, admin_addr, proxy: settings.proxy() })
    }

    /// Returns the address of the public listener.
    pub fn public_addr(&self) -> SocketAddr {
        self.public_addr
    }

    /// Returns the address of the administration listener.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin_addr
    }

    /// Waits for `opening`, and says at both that the daemon lives and is not ready until then; see
    /// [`opening::meanwhile`]. `kind` is the daemon's (`gatherer`, `broker` …).
    pub async fn meanwhile<T>(&self, kind: &'static str, opening: impl Future<Output = T>) -> T {
        let fronts = [(&self.public, self.proxy.clone()), (&self.admin, None)];
        opening::meanwhile(kind, fronts, opening).await
    }

    /// Serves until `stop` starts, then drains. One that fails stops the other by `stop`.
    ///
    /// # Errors
    ///
    /// A listener is of no further use.
    pub async fn serve(
        self,
        public: Router,
        admin: Router,
        serving: Serving,
        stop: Shutdown,
    ) -> Result<(), Error> {
        let Serving { drain, tally } = serving;
        let outside = Limits { host: self.proxy, drain, tally, ..Limits::default() };
        let inside = Limits { drain, ..Limits::default() };
        let serve = async |listener, router, limits| {
            let served = net::server::serve(listener, router, limits, stop.clone()).await;
            stop.start();
            served
        };
        let (public, admin) =
            tokio::join!(serve(self.public, public, outside), serve(self.admin, admin, inside));
        Ok(public.and(admin)?)
    }
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let listener = net::server::bind(address).await?;
    let bound = listener.local_addr().map_err(|source| net::Error::Bind { address, source })?;
    Ok((listener, bound))
}
