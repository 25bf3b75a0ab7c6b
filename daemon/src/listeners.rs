//! The listeners of a daemon: the public one, and the one of its administration.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use http::{Request, Response};
use net::body::Body;
use net::server::{Limits, Mode};
use net::shutdown::Shutdown;
use tokio::net::TcpListener;
use tower::Service;

use crate::auth::AdminRead;
use crate::gate::Gate;
use crate::{Control, Error, Settings, opening};

/// Both listeners, bound to their addresses.
#[derive(Debug)]
pub struct Listeners {
    public: Listener,
    admin: Listener,
    control: Control,
}

/// A listener, bound to its address.
#[derive(Debug)]
pub struct Listener {
    pub(crate) listener: TcpListener,
    address: SocketAddr,
    pub(crate) limits: Limits,
    /// The access check before its routes; `None` for the administration.
    gate: Option<Gate>,
}

impl Listeners {
    /// Binds both; port 0 lets the system choose. Fails if an address is in use or not of this
    /// machine, or a certificate cannot be used; the message says what to do.
    pub async fn bind(settings: &Settings) -> Result<Self, Error> {
        let control = Control::open(settings)?;
        let public = Listener::public(settings, settings.listen, &control).await?;
        let admin = Listener::admin(settings, &control).await?;
        Ok(Self { public, admin, control })
    }

    /// Returns the address of the public listener.
    pub fn public_addr(&self) -> SocketAddr {
        self.public.address
    }

    /// Returns the address of the administration listener.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin.address
    }

    /// Returns the run-time control of the listeners.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Waits for `opening`; until then both listeners answer that the daemon lives and is not
    /// ready. See [`opening::meanwhile`]. `kind` is the daemon's (`gatherer`, `broker` …).
    pub async fn meanwhile<T>(&self, kind: &'static str, opening: impl Future<Output = T>) -> T {
        opening::meanwhile(kind, [&self.public, &self.admin], opening).await
    }

    /// Serves until `stop` starts, then lets requests in progress go on for `drain`. A listener
    /// that fails stops the other by `stop`.
    pub async fn serve(
        self,
        public: Router,
        admin: Router,
        drain: Duration,
        stop: Shutdown,
    ) -> Result<(), Error> {
        let serve = async |listener: Listener, router| {
            let served = listener.serve(router, drain, stop.clone()).await;
            stop.start();
            served
        };
        let (public, admin, ()) = tokio::join!(
            serve(self.public, public),
            serve(self.admin, admin),
            self.control.keep(&stop),
        );
        public.and(admin)
    }
}

impl Listener {
    /// Binds the public listener at `address`.
    pub async fn public(
        settings: &Settings,
        address: SocketAddr,
        control: &Control,
    ) -> Result<Self, Error> {
        let limits = Limits {
            host: settings.proxy(),
            proxies: settings.trusted_proxies.clone(),
            tls: control.tls.clone(),
            tally: control.tally.clone(),
            ..Limits::default()
        };
        let bound = Self::bind(address, limits, Some(control.gate.clone())).await?;
        control.announcing.listens_at(settings, bound.address);
        Ok(bound)
    }

    /// Binds the administration listener.
    pub async fn admin(settings: &Settings, control: &Control) -> Result<Self, Error> {
        if !settings.admin_listen.ip().is_loopback() && settings.admin_read == AdminRead::Local {
            tracing::warn!(
                admin_listen = %settings.admin_listen,
                "every client that reaches the administration listener may read it: set admin_read = \"token\""
            );
        }
        let tls = control.tls.clone().filter(|_| settings.is_admin_secure());
        Self::bind(settings.admin_listen, Limits { tls, ..Limits::default() }, None).await
    }

    async fn bind(address: SocketAddr, limits: Limits, gate: Option<Gate>) -> Result<Self, Error> {
        let listener = net::server::bind(address).await?;
        let bound = listener.local_addr().map_err(|error| net::Error::Bind { address, error })?;
        Ok(Self { listener, address: bound, limits, gate })
    }

    /// Returns the listener's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves requests for all hosts (`Mode::Proxy`) as [`serve`](Self::serve) does. Nothing is checked
    /// before `service`, which gets bodies of any size.
    pub async fn serve_proxy<S>(
        self,
        service: S,
        drain: Duration,
        stop: Shutdown,
    ) -> Result<(), Error>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send + 'static,
    {
        let (mode, body_bytes_max) = (Mode::Proxy, usize::MAX);
        let limits = Limits { drain, mode, body_bytes_max, ..self.limits };
        Ok(net::server::serve(self.listener, service, limits, stop).await?)
    }

    /// Serves until `stop` starts, then lets requests in progress go on for `drain`.
    pub async fn serve(self, router: Router, drain: Duration, stop: Shutdown) -> Result<(), Error> {
        let router = match &self.gate {
            Some(gate) => gate.before(router),
            None => router,
        };
        let limits = Limits { drain, ..self.limits };
        Ok(net::server::serve(self.listener, router, limits, stop).await?)
    }
}
