//! The registry's settings: `registry.toml`, read and checked.
//!
//! It has all settings of a broker, and how servers are listed:
//!
//! ```toml
//! name = "Libraries of the mountains"
//! listen = "0.0.0.0:8502"
//! base_url = "https://registry.example/"
//! data = "/var/lib/harvest/registry"
//! approval = "none"
//!
//! [announcements]
//! every = "5 min"
//! ttl = "7 days"
//! ```
//!
//! Sans-I/O.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use broker::config::Role;
use settings::{Mistake, Table};

use crate::keeper::SOURCE;
use crate::leases::MISSED;

/// Default address of the public listener.
pub const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8502);
/// Default address of the administration listener.
pub const ADMIN_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9502);
/// The kind of the daemon.
pub const KIND: &str = "registry";

/// Times between two announcements that the settings accept.
const EVERY: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3_600);
/// Times for which servers stay listed that the settings accept.
const TTL: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);

/// How servers are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcements {
    /// Time between two announcements of a server.
    pub every: Duration,
    /// Time for which a server stays listed without one.
    pub ttl: Duration,
    /// Whether an administrator has to approve each server.
    pub approval: bool,
    /// Whether servers in private networks, and on this machine, are listed; `None`: if the registry's own address is in
    /// one.
    pub allow_private: Option<bool>,
}

/// The settings of a registry.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Those of the broker that it is.
    pub broker: broker::config::Config,
    /// How servers are listed.
    pub announcements: Announcements,
}

/// What a registry is, as a broker.
const ROLE: Role =
    Role { kind: KIND, own_source: Some(SOURCE), admin_links: &[("servers", "Servers")] };

impl Config {
    /// Returns the default settings for a registry with this data folder.
    pub fn new(name: impl Into<String>, data: impl Into<PathBuf>) -> Self {
        let mut broker = broker::config::Config::new(name, data);
        (broker.daemon.listen, broker.daemon.admin_listen) = (LISTEN, ADMIN_LISTEN);
        broker.role = ROLE;
        let announcements = Announcements {
            every: Duration::from_secs(300),
            ttl: Duration::from_secs(7 * 86_400),
            approval: false,
            allow_private: None,
        };
        Self { broker, announcements }
    }

    /// Reads a settings file. Relative paths stay as written; the caller resolves them against the file's folder.
    ///
    /// # Errors
    ///
    /// All mistakes in the file, in the order of its lines; show them all.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let (listeners, data) = ((LISTEN, ADMIN_LISTEN), "/var/lib/harvest/registry");
        let (mut broker, announcements) =
            broker::config::Config::parse_with(text, listeners, data, read)?;
        broker.role = ROLE;
        Ok(Self { broker, announcements })
    }
}

/// Reads how servers are listed.
fn read(root: &Table<'_>) -> Announcements {
    let default = Config::new("", "").announcements;
    let approval = root.choice("approval", &["none", "admin"]) == Some("admin");
    let table = root.table("announcements");
    let every = table.duration_within("every", EVERY).unwrap_or(default.every);
    let ttl = table.duration_within("ttl", TTL).unwrap_or(default.ttl);
    if ttl < every * MISSED.0 / MISSED.1 {
        let message = "a server would be gone before two of its announcements are missing";
        table.mistake("ttl", message, "a ttl of at least 2.5 times every");
    }
    if root.tables("source").iter().any(|it| it.string("name").as_deref() == Some(SOURCE)) {
        let message = format!("{SOURCE:?} are those that announce themselves here");
        root.mistake("source", message, "another name for that source");
    }
    let allow_private = table.has("allow_private").then(|| table.boolean("allow_private", false));
    Announcements { every, ttl, approval, allow_private }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let short = "name = 'n'\ndata = 'd'\n";
        assert_eq!(Config::parse(short).unwrap(), Config::new("n", "d"));
        let text = format!(
            "{short}listen = '127.0.0.1:1'\napproval = 'admin'\n[announcements]\nevery = '1 min'\nttl = '1 h'\n"
        );
        let read = Config::parse(&text).unwrap();
        let expected = Announcements {
            every: Duration::from_secs(60),
            ttl: Duration::from_secs(3_600),
            approval: true,
            allow_private: None,
        };
        assert_eq!(read.announcements, expected);
        let closed = Config::parse(&format!("{text}allow_private = false\n")).unwrap();
        assert_eq!(closed.announcements.allow_private, Some(false));
        let tight = format!("{short}[announcements]\nevery = '1 h'\nttl = '150 min'");
        assert!(Config::parse(&tight).is_ok());
        for (wrong, part) in [
            ("approval = 'all'", "\"none\", \"admin\""),
            ("[announcements]\nevery = '1 h'\nttl = '149 min'", "2.5 times every"),
            ("[announcements]\noften = true", "often"),
            ("[[source]]\nname = 'announced servers'\nurl = 'http://h/'", "another name"),
        ] {
            let said = Config::parse(&format!("{short}{wrong}")).unwrap_err();
            let said = said.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            assert!(said.contains(part), "{wrong}: {said}");
        }
    }
}
