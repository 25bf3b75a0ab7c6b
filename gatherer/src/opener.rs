//! The opener: which browser may have found files opened, and by which program of the desktop.

use std::net::SocketAddr;

use daemon::session::Session;
use http::HeaderMap;
use net::clock;
use url::Url;

use crate::error::Error;

/// The opener of a desktop, for one search page.
#[derive(Debug)]
pub struct Opener {
    pub(crate) program: &'static str,
    /// The search page.
    pub(crate) page: Url,
    /// The administration listener.
    pub(crate) admin: SocketAddr,
    pub(crate) session: Session,
}

impl Opener {
    /// Returns an opener that runs `program` with a path (`xdg-open`), for requests from `page` to
    /// the administration listener `admin`. `None` if these are at different hosts, which share no
    /// cookie.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(
        program: &'static str,
        page: &Url,
        admin: SocketAddr,
    ) -> Result<Option<Self>, Error> {
        let is_here =
            page.socket_addrs(|| None).is_ok_and(|it| it.iter().all(|it| it.ip() == admin.ip()));
        if !is_here || !admin.ip().is_loopback() {
            return Ok(None);
        }
        Ok(Some(Self { program, page: page.clone(), admin, session: Session::new(page)? }))
    }

    /// Returns a URL that gives one browser the right to open files, once and within a minute; it
    /// leads to the search page.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn link(&self) -> Result<String, Error> {
        Ok(format!("http://{}/session/{}", self.admin, self.session.add_link(clock::monotonic())?))
    }

    /// Returns the URL to which the page posts what to open; `None` for a browser without the right.
    pub fn address(&self, headers: &HeaderMap) -> Option<String> {
        self.session.has(headers).then(|| format!("http://{}/open", self.admin))
    }
}
