//! The common settings of all daemons.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use net::address::Network;
use net::tls::{self, ServerFiles};
use settings::Table;
use url::Url;

use crate::Error;
use crate::access::{self, Access};
use crate::announce::Registries;
use crate::auth::{AdminAddress, AdminRead};

/// Maximum length of a public text, in bytes.
const LINE_BYTES_MAX: usize = 500;

/// Addresses, rights and the data folder of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Address of the public listener.
    pub listen: SocketAddr,
    /// Address of the administration listener.
    pub admin_listen: SocketAddr,
    /// The condition for reading at the administration listener.
    pub admin_read: AdminRead,
    /// The URL at which others reach the daemon, if given. TLS needs one; so does a proxy.
    pub base_url: Option<Url>,
    /// The data folder.
    pub data: PathBuf,
    /// TLS files, if TLS is on: for the public listener, and for the administration listener unless
    /// that is on a loopback address.
    pub tls: Option<ServerFiles>,
    /// Files with certificates of authorities to trust in addition to the system's, in requests of
    /// this daemon.
    pub trust: Vec<PathBuf>,
    /// The rights of clients.
    pub access: Access,
    /// Proxies whose `Forwarded` and `X-Forwarded-For` are believed.
    pub trusted_proxies: Vec<Network>,
    /// Contact of the administrator; public.
    pub administrator: Option<String>,
    /// Location of the daemon, in words; public.
    pub location: Option<String>,
    /// The registries to which it is announced.
    pub registry: Registries,
}

impl Settings {
    /// Returns the defaults for a daemon with these listeners and this data folder.
    pub fn new(listen: SocketAddr, admin_listen: SocketAddr, data: impl Into<PathBuf>) -> Self {
        let data = data.into();
        Self {
            listen,
            admin_listen,
            admin_read: AdminRead::default(),
            base_url: None,
            data,
            tls: None,
            trust: Vec::new(),
            access: Access::default(),
            trusted_proxies: Vec::new(),
            administrator: None,
            location: None,
            registry: Registries::default(),
        }
    }

    /// Reads the settings at the top of a file. A missing listener address keeps its value, other
    /// missing settings get their defaults. `data_example` is an example of `data`.
    #[must_use]
    pub fn read(self, root: &Table<'_>, data_example: &str) -> Self {
        let listen = root.addr("listen", self.listen);
        let admin_listen = root.addr("admin_listen", self.admin_listen);
        if listen == admin_listen && listen.port() != 0 {
            let message = format!("both listeners are at {listen}");
            root.mistake("admin_listen", message, "another port for \"admin_listen\"");
        }
        Self { listen, admin_listen, ..self }.read_common(root, data_example)
    }

    /// Reads all settings but the listeners' addresses; missing ones get their defaults. `data` is
    /// required unless there is a folder already.
    #[must_use]
    pub fn read_common(self, root: &Table<'_>, data_example: &str) -> Self {
        let has_default = !self.data.as_os_str().is_empty();
        let is_there = (!has_default || root.has("data"))
            && root.require("data", &format!("{data_example:?}"));
        let data = if is_there { root.path("data").unwrap_or_default() } else { self.data };
        let base_url = root.base_url("base_url");
        let (tls, trust) = read_tls(&root.table("tls"), base_url.as_ref());
        let asks_certificates = tls.as_ref().is_some_and(|it| it.client_ca.is_some());
        Self {
            admin_read: AdminRead::read(root),
            base_url,
            data,
            tls,
            trust,
            access: Access::read(root, asks_certificates),
            trusted_proxies: access::networks(root, "trusted_proxies"),
            administrator: line(root, "administrator"),
            location: line(root, "location"),
            registry: Registries::read(root),
            ..self
        }
    }

    /// Makes relative paths relative to `folder`, the one of the settings file.
    pub fn resolve(&mut self, folder: &Path) {
        let tls = self.tls.iter_mut();
        let tls = tls
            .flat_map(|it| [&mut it.certificate, &mut it.key].into_iter().chain(&mut it.client_ca));
        for path in tls.chain(&mut self.trust).chain([&mut self.data]) {
            *path = folder.join(&path);
        }
    }

    /// Reads the certificate files to check them. Blocks. Fails if a file cannot be used; the
    /// message names it.
    pub fn check_files(&self) -> Result<(), Error> {
        self.tls.clone().map(tls::Server::open).transpose()?;
        self.trust.iter().try_for_each(|path| tls::certificates(path).map(drop))?;
        Ok(())
    }

    /// Returns what may be meant otherwise, each a sentence for the administrator.
    pub fn warnings(&self) -> Vec<String> {
        let nowhere = !self.registry.urls.is_empty()
            && self.base_url.is_none()
            && self.listen.ip().is_unspecified();
        let warning = format!(
            "nothing is announced to the registry: others cannot know the address of {}; set base_url",
            self.listen
        );
        nowhere.then_some(warning).into_iter().collect()
    }

    /// Takes over from `other` the settings that can change while the daemon runs.
    pub fn take_over(&mut self, other: &Self) {
        self.access.clone_from(&other.access);
        self.administrator.clone_from(&other.administrator);
        self.location.clone_from(&other.location);
    }

    /// Returns the names of settings that differ and that are read only at the start.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let differs = [
            ("listen", self.listen != other.listen),
            ("admin_listen", self.admin_listen != other.admin_listen),
            ("admin_read", self.admin_read != other.admin_read),
            ("base_url", self.base_url != other.base_url),
            ("data", self.data != other.data),
            ("tls", self.tls != other.tls || self.trust != other.trust),
            ("trusted_proxies", self.trusted_proxies != other.trusted_proxies),
            ("registry", self.registry != other.registry),
        ];
        differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }

    /// Returns the scheme of the public listener's URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns whether the administration listener speaks TLS: if TLS is on, and the listener is
    /// not on a loopback address.
    pub fn is_admin_secure(&self) -> bool {
        self.tls.is_some() && !self.admin_listen.ip().is_loopback()
    }

    /// Returns the address of the admin listener in the settings.
    pub fn admin_address(&self) -> AdminAddress {
        AdminAddress { address: self.admin_listen, is_secure: self.is_admin_secure() }
    }

    /// Writes `address`, to which the admin listener is bound; see [`AdminAddress::write`]. Blocks.
    pub fn write_admin_address(&self, address: SocketAddr) -> Result<(), Error> {
        AdminAddress { address, ..self.admin_address() }.write(&self.data)
    }

    /// Returns the host name of the public URL: that of a proxy in front of the public listener, or
    /// of this machine. `None` without a public URL.
    pub fn proxy(&self) -> Option<String> {
        self.base_url.as_ref()?.host_str().map(str::to_owned)
    }
}

/// Reads `[tls]`: the files of the listeners, and the files of authorities to trust.
fn read_tls(table: &Table<'_>, base_url: Option<&Url>) -> (Option<ServerFiles>, Vec<PathBuf>) {
    let trust = table.one_or_more("trust").into_iter().map(PathBuf::from).collect();
    let [certificate, key, client_ca] =
        ["certificate", "key", "client_ca"].map(|it| table.path(it));
    if certificate.is_none() && key.is_none() && client_ca.is_none() {
        return (None, trust);
    }
    let is_whole = table.require("certificate", "the file of the certificate, in PEM")
        & table.require("key", "the file of its key, in PEM");
    if base_url.is_none_or(|it| it.scheme() != "https") {
        let message =
            "a certificate is for a name, and nothing says by which name this daemon is reached";
        table.mistake("certificate", message, "base_url = \"https://NAME:PORT/\" above");
    }
    let files = certificate.zip(key).filter(|_| is_whole);
    (files.map(|(certificate, key)| ServerFiles { certificate, key, client_ca }), trust)
}

fn line(table: &Table<'_>, key: &str) -> Option<String> {
    let text = table.string(key)?;
    if text.trim().is_empty() || LINE_BYTES_MAX < text.len() || text.contains(char::is_control) {
        let expected = format!("1 to {LINE_BYTES_MAX} bytes in one line");
        table.mistake(key, format!("{text:?} is none"), expected);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use settings::Document;

    use super::*;

    fn read(text: &str) -> Result<Settings, Vec<String>> {
        let text = format!("data = '/d'\n{text}");
        let document = Document::parse(&text).unwrap();
        let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let settings = Settings::new(local(1), local(2), "").read(&document.root(), "/d");
        let texts = |it: Vec<settings::Mistake>| it.iter().map(ToString::to_string).collect();
        document.finish().map(|()| settings).map_err(texts)
    }

    const TLS: &str = "[tls]\ncertificate = 'c.pem'\nkey = '/k.pem'\n";

    #[test]
    fn paths_are_relative_to_the_settings_file() {
        let text = format!(
            "base_url = 'https://a.example/'\n{TLS}client_ca = 'ca.pem'\ntrust = 't.pem'\n"
        );
        let mut settings = read(&text).unwrap();
        settings.resolve(Path::new("/etc/h"));
        let tls = ServerFiles {
            certificate: "/etc/h/c.pem".into(),
            key: "/k.pem".into(),
            client_ca: Some("/etc/h/ca.pem".into()),
        };
        assert_eq!(settings.tls, Some(tls));
        assert_eq!(settings.trust, [Path::new("/etc/h/t.pem")]);
        assert_eq!(settings.data, Path::new("/d"));
        let plain = read("trusted_proxies = ['127.0.0.1']\n[tls]\ntrust = ['t.pem']\n").unwrap();
        assert_eq!(plain.tls, None);
        assert_eq!(plain.trusted_proxies[0].to_string(), "127.0.0.1/32");
        assert_eq!(plain.differences(&settings), ["base_url", "tls", "trusted_proxies"]);
    }

    #[test]
    fn half_a_setting_is_a_mistake() {
        let check = |text: &str, expected: &[&str]| {
            let mistakes = read(text).unwrap_err();
            assert_eq!(mistakes.len(), expected.len(), "{mistakes:?}");
            let pairs = mistakes.iter().zip(expected);
            pairs.for_each(|(it, part)| assert!(it.contains(part), "{it} lacks {part}"));
        };
        check(TLS, &["by which name"]);
        check(&format!("base_url = 'http://a.example/'\n{TLS}"), &["by which name"]);
        let base = "base_url = 'https://a.example/'\n";
        check(&format!("{base}[tls]\ncertificate = 'c'\n"), &["key"]);
        check(&format!("{base}[tls]\nclient_ca = 'c'\n"), &["certificate", "key"]);
        check("location = ''\nadministrator = \"a\\nb\"\n", &["\"\" is none", "is none"]);
        check("trusted_proxies = ['proxy']\n", &["\"proxy\" is no address"]);
    }
}
