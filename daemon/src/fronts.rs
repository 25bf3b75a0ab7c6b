//! The listeners of a daemon: the public one, and that of its administration.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use net::server::Limits;
use net::shutdown::Shutdown;
use net::tls;
use tokio::net::TcpListener;

use crate::gate::Gate;
use crate::{Control, Error, Settings, opening};

/// Both listeners, bound.
#[derive(Debug)]
pub struct Fronts {
    public: Front,
    admin: Front,
    control: Control,
}

/// One listener.
#[derive(Debug)]
struct Front {
    listener: TcpListener,
    address: SocketAddr,
    limits: Limits,
}

impl Fronts {
    /// Binds both; port 0 lets the system choose.
    ///
    /// # Errors
    ///
    /// An address is taken, or is none of this machine, or a certificate cannot be used: the message says what
    /// to do.
    pub async fn bind(settings: &Settings) -> Result<Self, Error> {
        // Small files, before there is anybody to keep waiting.
        let tls = settings.tls.clone().map(tls::Server::open).transpose()?;
        let limits = Limits {
            host: settings.proxy(),
            proxies: settings.trusted_proxies.clone(),
            tls: tls.clone(),
            ..Limits::default()
        };
        let tally = limits.tally.clone();
        let public = Front::bind(settings.listen, limits).await?;
        let inside = tls.clone().filter(|_| settings.admin_certificate().is_some());
        let limits = Limits { tls: inside, ..Limits::default() };
        let admin = Front::bind(settings.admin_listen, limits).await?;
        let control = Control {
            gate: Gate::new(settings.access.clone()),
            tls,
            tally,
            calling: calling(settings)?,
        };
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

    /// Returns what can be asked of the listeners while they serve, and changed.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Waits for `opening`, and says at both that the daemon lives and is not ready until then; see
    /// [`opening::meanwhile`]. `kind` is the daemon's (`gatherer`, `broker` …).
    pub async fn meanwhile<T>(&self, kind: &'static str, opening: impl Future<Output = T>) -> T {
        let fronts = [&self.public, &self.admin].map(|it| (&it.listener, it.limits.clone()));
        opening::meanwhile(kind, fronts, opening).await
    }

    /// Serves until `stop` starts, then lets requests in progress go on for `drain`. One that fails stops the other by `stop`.
    ///
    /// # Errors
    ///
    /// A listener is of no further use.
    pub async fn serve(
        self,
        public: Router,
        admin: Router,
        drain: Duration,
        stop: Shutdown,
    ) -> Result<(), Error> {
        let serve = async |front: Front, router| {
            let limits = Limits { drain, ..front.limits };
            let served = net::server::serve(front.listener, router, limits, stop.clone()).await;
            stop.start();
            served
        };
        let public = self.control.gate.before(public);
        let (public, admin, ()) = tokio::join!(
            serve(self.public, public),
            serve(self.admin, admin),
            self.control.keep(&stop),
        );
        Ok(public.and(admin)?)
    }
}

/// How others are called.
fn calling(settings: &Settings) -> Result<net::client::Settings, Error> {
    let mut extra_roots = Vec::new();
    for path in &settings.trust {
        extra_roots.append(&mut tls::certificates(path)?);
    }
    let contact = settings.base_url.as_ref().map(ToString::to_string);
    Ok(net::client::Settings { contact, extra_roots, ..Default::default() })
}

impl Front {
    async fn bind(address: SocketAddr, limits: Limits) -> Result<Self, Error> {
        let listener = net::server::bind(address).await?;
        let bound = listener.local_addr().map_err(|source| net::Error::Bind { address, source })?;
        Ok(Self { listener, address: bound, limits })
    }
}
