//! The settings that all daemons have.

use std::net::SocketAddr;
use std::path::PathBuf;

use settings::Table;
use url::Url;

use crate::auth::AdminRead;

/// Where a daemon listens, who may read what, and where it keeps what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Address of the public listener.
    pub listen: SocketAddr,
    /// Address of the administration listener.
    pub admin_listen: SocketAddr,
    /// Who may read what that shows.
    pub admin_read: AdminRead,
    /// The public URL, where it is another than that of the listener (behind a proxy).
    pub base_url: Option<Url>,
    /// The data folder.
    pub data: PathBuf,
}

impl Settings {
    /// Returns what holds unless a settings file says otherwise, for a daemon that keeps what it has in `data`.
    pub fn new(listen: SocketAddr, admin_listen: SocketAddr, data: impl Into<PathBuf>) -> Self {
        let data = data.into();
        Self { listen, admin_listen, admin_read: AdminRead::default(), base_url: None, data }
    }

    /// Reads them from the top of a settings file, over these. `data` has to be there, such as `data_example`.
    #[must_use]
    pub fn read(self, root: &Table<'_>, data_example: &str) -> Self {
        let listen = root.addr("listen", self.listen);
        let admin_listen = root.addr("admin_listen", self.admin_listen);
        if listen == admin_listen && listen.port() != 0 {
            let message = format!("both listeners are at {listen}");
            root.mistake("admin_listen", message, "another port for \"admin_listen\"");
        }
        let is_there = root.require("data", &format!("{data_example:?}"));
        let data = if is_there { root.path("data").unwrap_or_default() } else { self.data };
        let (admin_read, base_url) = (AdminRead::read(root), root.base_url("base_url"));
        Self { listen, admin_listen, admin_read, base_url, data }
    }

    /// The names of those that differ: they are read at the start only.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let differs = [
            ("listen", self.listen != other.listen),
            ("admin_listen", self.admin_listen != other.admin_listen),
            ("admin_read", self.admin_read != other.admin_read),
            ("base_url", self.base_url != other.base_url),
            ("data", self.data != other.data),
        ];
        differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }

    /// The host that a proxy in front of the public listener is called.
    pub fn proxy(&self) -> Option<String> {
        self.base_url.as_ref()?.host_str().map(str::to_owned)
    }
}
