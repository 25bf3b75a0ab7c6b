//! A replicator's settings: `replicator.toml`, read and checked, with all defaults filled in.
//!
//! ```toml
//! data = "/var/lib/harvest/replicator"
//! address = "replica.example.org:4000"
//!
//! [[group]]
//! name = "papers"            # founds the group; or `join` with the line that `invite` printed
//!
//! [[tree]]
//! name = "papers"
//! directory = "/srv/papers"
//! ```
//!
//! docs/replication.md has all keys.

mod access;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use net::tls::ClientFiles;
use settings::{Document, Mistake, Table};
use url::Url;

use crate::group::access::{ParseRuleError, Rule};
use crate::group::charter::Address;
use crate::group::join::{Invitation, MEMBER_TREES_MAX};
use crate::id::{GroupId, MemberId, ParseIdError};
use crate::limit::{RATE_MAX, RATE_MIN};
use crate::topology::Connectivity;
use crate::version::{Kind, Name};

pub use access::AccessConfig;

/// Default address for links and null calls.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 4_000);
/// Default address of the page, status and administration.
pub const ADMIN_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 5_000);
/// Default site of a member.
pub const SITE: &str = "main";
/// Allowed range of `watch`, the longest time that a change waits to be published.
pub const WATCH: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);
/// Maximum number of groups of one member.
pub const GROUPS_MAX: usize = 16;

/// A replicator's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Common settings of daemons: the admin listener, access rights, and the data directory with
    /// keys, state and trees. Its public listener, for feeds, is open only with `feed_listen`.
    pub daemon: daemon::Settings,
    /// Address for links and null calls.
    pub listen: SocketAddr,
    /// Address at which feeds of collections are served, besides the admin listener; `None`: none.
    pub feed_listen: Option<SocketAddr>,
    /// Address at which the other members reach this one.
    pub address: Address,
    /// The member's site.
    pub site: Name,
    /// Maximum number of bytes a second to one member; `None`: no limit.
    pub link_rate: Option<u64>,
    /// Maximum number of bytes a second to all members of one other site; `None`: no limit.
    pub site_rate: Option<u64>,
    /// The member's groups, 1 to [`GROUPS_MAX`].
    pub groups: Vec<GroupConfig>,
    /// The trees that the member publishes.
    pub trees: Vec<TreeConfig>,
    /// The collections that the member publishes.
    pub collections: Vec<CollectionConfig>,
    /// Symbolic links that the member keeps to trees and collections of others.
    pub replicas: Vec<ReplicaConfig>,
}

/// How a member enters a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEntry {
    /// It founds the group.
    Found(Name),
    /// It joins the group.
    Join(Invitation),
}

impl GroupEntry {
    /// Returns the group's name.
    pub fn name(&self) -> &Name {
        match self {
            Self::Found(name) => name,
            Self::Join(invitation) => &invitation.name,
        }
    }

    /// Returns the group's id, for a member with this key.
    pub fn group(&self, key: &[u8; 32]) -> GroupId {
        match self {
            Self::Found(name) => GroupId::of(key, name.as_str()),
            Self::Join(invitation) => invitation.group(),
        }
    }
}

/// Settings of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Whether the member founds or joins the group.
    pub entry: GroupEntry,
    /// Number of members that must fail before others lose each other; `None`: the charter's.
    pub connectivity: Option<Connectivity>,
    /// Rules on who may join without an invitation; they apply while this member leads.
    pub allow: Vec<Rule>,
    /// Rules on who may not be a member; they apply while this member leads. If `allow` and `deny`
    /// are empty, only the founder replaces the lists of the charter.
    pub deny: Vec<Rule>,
    /// Deputies, in the order in which they take over.
    pub deputies: Vec<MemberId>,
    /// Other groups of this member whose trees it brings in.
    pub carry: BTreeSet<Name>,
}

/// A tree that is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeConfig {
    /// Its name.
    pub name: Name,
    /// The directory to publish.
    pub directory: PathBuf,
    /// Longest time that a change waits to be published, and interval of walks if the system
    /// reports no changes. `None`: the tree is published by command only.
    pub watch: Option<Duration>,
    /// The groups that have it; empty: all.
    pub groups: BTreeSet<Name>,
    /// Whether it is published without entries that cannot be replicated.
    pub skip_problems: bool,
    /// Access to it on this machine.
    pub access: AccessConfig,
}

/// A collection that is published as it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionConfig {
    /// Its name.
    pub name: Name,
    /// Base URL of its source; the feed is at `feed` below it.
    pub feed: Url,
    /// Bearer token of the feed.
    pub token: Option<daemon::Token>,
    /// Client certificate for the feed, where it asks for one.
    pub certificate: Option<ClientFiles>,
    /// Whether the feed may be in a private network, or on this machine.
    pub allow_private: bool,
    /// The groups that have it; empty: all.
    pub groups: BTreeSet<Name>,
}

/// A tree or a collection of another member, and the link to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// Whether it is a tree or a collection.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// Its writer.
    pub writer: MemberId,
    /// The symbolic link to it, `directory` in the settings.
    pub link: PathBuf,
    /// Access to it on this machine; the default for a collection, which is always private.
    pub access: AccessConfig,
}

impl Config {
    /// Reads a settings file's text.
    ///
    /// # Errors
    ///
    /// Returns all mistakes, each with its line and the expected value: show them all.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let document = Document::parse(text)?;
        let root = document.root();
        let address = read_address(&root);
        let groups = read_groups(&root);
        let names: Vec<&Name> = groups.iter().map(|it| it.entry.name()).collect();
        let (trees, collections, replicas) = read_published(&root, &names);
        let rate = |key| {
            let rate = root.bytes(key)?;
            if !(RATE_MIN..=RATE_MAX).contains(&rate) {
                let message = format!("{key:?} is {rate} bytes a second");
                root.mistake(key, message, format!("at least {RATE_MIN} bytes a second"));
            }
            Some(rate)
        };
        let site = match root.has("site") {
            true => read_name(&root, "site"),
            false => Name::new(SITE).ok(),
        };
        let listen = root.addr("listen", LISTEN);
        let admin_listen = root.addr("admin_listen", ADMIN_LISTEN);
        let feed_listen = root.has("feed_listen").then(|| root.addr("feed_listen", LISTEN));
        let daemon = daemon::Settings::new(feed_listen.unwrap_or(LISTEN), admin_listen, "")
            .read_common(&root, "/var/lib/harvest/replicator");
        if daemon.base_url.is_some() && feed_listen.is_none() {
            let message = "no feeds are served to others";
            root.mistake("base_url", message, "feed_listen = \"127.0.0.1:4001\" as well");
        }
        let others =
            [Some(("admin_listen", admin_listen)), feed_listen.map(|it| ("feed_listen", it))];
        let mut taken = vec![listen.port()];
        for (key, at) in others.into_iter().flatten() {
            if at.port() != 0 && taken.contains(&at.port()) {
                root.mistake(key, "two listeners have one port", "another port");
            }
            taken.push(at.port());
        }
        let (link_rate, site_rate) = (rate("link_rate"), rate("site_rate"));
        document.finish()?;
        // If a value is missing here, its mistake has been reported already.
        let (Some(address), Some(site)) = (address, site) else { return Err(Vec::new()) };
        Ok(Self {
            daemon,
            listen,
            feed_listen,
            address,
            site,
            link_rate,
            site_rate,
            groups,
            trees,
            collections,
            replicas,
        })
    }
}

fn read_address(root: &Table<'_>) -> Option<Address> {
    const EXPECTED: &str = "host:port, where the other members reach this one";
    if !root.require("address", &format!("{EXPECTED}: \"replica.example.org:4000\"")) {
        return None;
    }
    let text = root.string("address")?;
    let address = Address::new(&text);
    if let Err(error) = &address {
        root.mistake("address", error.to_string(), EXPECTED);
    }
    address.ok()
}

fn read_name(table: &Table<'_>, key: &str) -> Option<Name> {
    let text = table.string(key)?;
    let name = Name::new(&text);
    if let Err(error) = &name {
        table.mistake(key, format!("{key:?} is {text:?}"), error.to_string());
    }
    name.ok()
}

fn read_groups(root: &Table<'_>) -> Vec<GroupConfig> {
    let tables = root.tables("group");
    if tables.is_empty() {
        let expected = "[[group]] with name = \"…\" to found one, or join = \"…\"";
        root.mistake("group", "there is no group", expected);
    }
    if GROUPS_MAX < tables.len() {
        let message = format!("{} groups are too many", tables.len());
        root.mistake("group", message, format!("at most {GROUPS_MAX}"));
    }
    let mut groups: Vec<GroupConfig> = Vec::new();
    let mut lines = Vec::new();
    for table in &tables {
        let Some(group) = read_group(table) else { continue };
        // Trees refer to groups by name, so the names must differ.
        if groups.iter().any(|it| it.entry.name() == group.entry.name()) {
            let message = format!("there are two groups called {}", group.entry.name());
            table.mistake("name", message, "groups of different names");
        }
        groups.push(group);
        lines.push(table);
    }
    for (table, group) in lines.iter().zip(&groups) {
        let is_other = |it: &GroupConfig, name: &Name| it.entry.name() == name && it != group;
        for name in group.carry.iter().filter(|name| !groups.iter().any(|it| is_other(it, name))) {
            let message = format!("no other [[group]] is called {name}");
            table.mistake("carry", message, "the name of a [[group]] in this file");
        }
    }
    groups
}

fn read_group(table: &Table<'_>) -> Option<GroupConfig> {
    let founds = read_name(table, "name").map(GroupEntry::Found);
    let joins = table.string("join").and_then(|text| {
        let invitation: Result<Invitation, _> = text.parse();
        if let Err(error) = &invitation {
            table.mistake("join", error.to_string(), "the line that `invite` printed");
        }
        invitation.ok().map(GroupEntry::Join)
    });
    if table.has("name") == table.has("join") {
        let expected = "`name` to found a group, or `join` to join one";
        table.mistake("name", "it has to be one of `name` and `join`", expected);
    }
    let connectivity = table.integer("connectivity", 1..=3);
    let connectivity = connectivity.and_then(|it| Connectivity::of_number(it.try_into().ok()?));
    let rule = |text: &str| {
        text.parse()
            .map_err(|error: ParseRuleError| (error.to_string(), "\"10.0.0.0/8\"".to_owned()))
    };
    let (allow, deny) = (read_all(table, "allow", rule), read_all(table, "deny", rule));
    let deputies = read_all(table, "deputies", |text| {
        let wrong = |error: ParseIdError| (format!("{text:?} is no id"), error.to_string());
        text.parse().map_err(wrong)
    });
    let carry = read_all(table, "carry", |text| {
        Name::new(text).map_err(|error| (format!("{text:?} is no group"), error.to_string()))
    });
    let carry = carry.into_iter().collect();
    Some(GroupConfig { entry: founds.or(joins)?, connectivity, allow, deny, deputies, carry })
}

/// Reads a list of texts. An error of `read` is a mistake's message and the expected value.
fn read_all<T>(
    table: &Table<'_>,
    key: &str,
    read: impl Fn(&str) -> Result<T, (String, String)>,
) -> Vec<T> {
    let texts = table.strings(key).into_iter();
    let read = texts.filter_map(|text| {
        read(&text).map_err(|(message, expected)| table.mistake(key, message, expected)).ok()
    });
    read.collect()
}

/// Returns the member's own trees and collections, and the replicas of those of others.
fn read_published(
    root: &Table<'_>,
    groups: &[&Name],
) -> (Vec<TreeConfig>, Vec<CollectionConfig>, Vec<ReplicaConfig>) {
    let is_foreign = |it: &Table<'_>| it.has("writer");
    let read = |key| -> (Vec<Table<'_>>, Vec<Table<'_>>) {
        root.tables(key).into_iter().partition(is_foreign)
    };
    let ((foreign_trees, mut own), (foreign_collections, collections)) =
        (read("tree"), read("collection"));
    let foreign_trees = foreign_trees.iter().map(|it| (Kind::Tree, it));
    let foreign_collections = foreign_collections.iter().map(|it| (Kind::Collection, it));
    let foreign = foreign_trees.chain(foreign_collections);
    let trees = own.len();
    own.extend(collections);
    // An own tree or collection is identified by its name alone.
    settings::refuse_repeats(&own, "name");
    if MEMBER_TREES_MAX < own.len() {
        let message = format!("{} trees and collections are too many", own.len());
        root.mistake("tree", message, format!("at most {MEMBER_TREES_MAX} of one member"));
    }
    let (trees, collections) = own.split_at(trees);
    (
        trees.iter().filter_map(|it| read_tree(it, groups)).collect(),
        collections.iter().filter_map(|it| read_collection(it, groups)).collect(),
        foreign.filter_map(|(kind, it)| read_replica(kind, it)).collect(),
    )
}

fn read_listed(table: &Table<'_>, groups: &[&Name]) -> BTreeSet<Name> {
    let mut listed = BTreeSet::new();
    for text in table.strings("groups") {
        match groups.iter().find(|it| it.as_str() == text) {
            Some(group) => drop(listed.insert((*group).clone())),
            None => table.mistake("groups", format!("{text:?} is no group here"), "its name"),
        }
    }
    listed
}

fn read_collection(table: &Table<'_>, groups: &[&Name]) -> Option<CollectionConfig> {
    let name = required_name(table);
    let listed = read_listed(table, groups);
    let token = daemon::Token::read(table);
    let certificate = daemon::client_certificate(table);
    let allow_private = table.boolean("allow_private", true);
    if !table.require("feed", "where a gatherer or broker listens: \"http://127.0.0.1:8501/\"") {
        return None;
    }
    let (name, feed) = (name?, table.base_url("feed")?);
    Some(CollectionConfig { name, feed, token, certificate, allow_private, groups: listed })
}

fn read_tree(table: &Table<'_>, groups: &[&Name]) -> Option<TreeConfig> {
    let name = required_name(table);
    let directory = required_directory(table);
    let listed = read_listed(table, groups);
    let watch = table.duration_within("watch", WATCH);
    let skip_problems = table.boolean("skip_problems", false);
    let access = AccessConfig::read(table);
    let (name, directory) = (name?, directory?);
    Some(TreeConfig { name, directory, watch, groups: listed, skip_problems, access })
}

fn read_replica(kind: Kind, table: &Table<'_>) -> Option<ReplicaConfig> {
    let name = required_name(table);
    let link = required_directory(table);
    let text = table.string("writer")?;
    let writer = text.parse();
    if let Err(error) = &writer {
        table.mistake("writer", format!("{text:?} is no id: {error}"), "as `status` shows it");
    }
    let access = match kind {
        Kind::Tree => AccessConfig::read(table),
        Kind::Collection => AccessConfig::default(),
    };
    let (name, link, writer) = (name?, link?, writer.ok()?);
    Some(ReplicaConfig { kind, name, writer, link, access })
}

fn required_name(table: &Table<'_>) -> Option<Name> {
    if table.require("name", "a name such as \"papers\"") { read_name(table, "name") } else { None }
}

fn required_directory(table: &Table<'_>) -> Option<PathBuf> {
    let is_there = table.require("directory", "a directory such as \"/srv/papers\"");
    if is_there { table.path("directory") } else { None }
}

#[cfg(test)]
mod tests;
