//! A cluster for tests: members that run in this process, on ports of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::shutdown::Shutdown;
use replicator::group::charter::Address;
use replicator::group::join::Invitation;
use replicator::id::InvitationId;
use replicator::status::{MemberStatus, Published, Report, Standing, Status, TreeStatus};
use replicator::version::Name;
use replicator::{Config, Handle, Server};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Much longer than any step takes.
const PATIENCE: Duration = Duration::from_secs(300);
/// Pause between two looks at a status.
const LOOK: Duration = Duration::from_millis(20);

struct ClusterMember {
    text: String,
    config: Config,
    running: Option<Running>,
}

struct Running {
    handle: Handle,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), replicator::Error>>,
}

/// A group of members; the first has founded it, and publishes the tree `t`.
pub(crate) struct Cluster {
    dir: TempDir,
    members: Vec<ClusterMember>,
    writer: String,
}

fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Cluster {
    pub(crate) async fn found() -> Self {
        Self::found_with("").await
    }

    /// Founds a group whose tree is watched; a change waits at most `every` to be published.
    pub(crate) async fn watching(every: &str) -> Self {
        Self::found_with(&format!("watch = \"{every}\"\n")).await
    }

    /// Founds a group whose tree has these settings.
    pub(crate) async fn open(of_tree: &str) -> Self {
        Self::found_with(of_tree).await
    }

    /// Founds a group whose first invitation has ended before. Returns the invitation's secret too.
    pub(crate) async fn found_late() -> (Self, [u8; 32]) {
        let dir = tempfile::tempdir().unwrap();
        let (data, name) = (dir.path().join("0"), Name::new("g").unwrap());
        let address = Address::new("127.0.0.1:1").unwrap();
        let (_, printed) = replicator::node::invitation(&data, &name, &address).unwrap();
        let group = printed.invitation.group();
        let file = data.join("groups").join(format!("{group}.invitation"));
        let mut bytes = fs::read(&file).unwrap();
        let ends = u64::from_be_bytes(*bytes.last_chunk().unwrap());
        // After the secret come the times of the invitation's start and end, in seconds.
        for (at, before) in [(32, 200_000), (40, 100_000)] {
            bytes[at..at + 8].copy_from_slice(&(ends - before).to_be_bytes());
        }
        fs::write(&file, bytes).unwrap();
        let cluster = Self::found_in(dir, "").await;
        (cluster, printed.invitation.secret.unwrap())
    }

    async fn found_with(of_tree: &str) -> Self {
        Self::found_in(tempfile::tempdir().unwrap(), of_tree).await
    }

    async fn found_in(dir: TempDir, of_tree: &str) -> Self {
        fs::create_dir(dir.path().join("source")).unwrap();
        let mut cluster = Self { dir, members: Vec::new(), writer: String::new() };
        let source = cluster.source("");
        let tree =
            format!("[[tree]]\nname = \"t\"\ndirectory = \"{}\"\n{of_tree}", source.display());
        cluster.start(&format!("[[group]]\nname = \"g\"\n{tree}")).await;
        cluster.writer = cluster.status(0).await.id;
        cluster
    }

    async fn start(&mut self, rest: &str) {
        let (at, data) = (port(), self.dir.path().join(self.members.len().to_string()));
        let data = data.display();
        let text = format!(
            "data = \"{data}\"\naddress = \"127.0.0.1:{at}\"\nlisten = \"127.0.0.1:{at}\"\n\
             admin_listen = \"127.0.0.1:0\"\n{rest}"
        );
        let config = Config::parse(&text).unwrap();
        self.members.push(ClusterMember { text, config, running: None });
        self.resume(self.members.len() - 1).await;
    }

    /// Adds a member. Returns its index.
    pub(crate) async fn join(&mut self) -> usize {
        self.join_group(0, "g").await
    }

    /// Adds a member whose replica of the tree has these settings.
    pub(crate) async fn join_reading(&mut self, of_tree: &str) -> usize {
        let invitation = self.invite().await;
        let (writer, link) = (&self.writer, self.beside("read"));
        let tree = format!("writer = \"{writer}\"\ndirectory = \"{}\"\n{of_tree}", link.display());
        let tree = format!("[[tree]]\nname = \"t\"\n{tree}");
        self.start(&format!("[[group]]\njoin = \"{invitation}\"\n{tree}")).await;
        self.members.len() - 1
    }

    /// Makes an invitation to the group of the first member.
    pub(crate) async fn invite(&self) -> Invitation {
        self.handle(0).invite(None, None).await.unwrap().invitation
    }

    pub(crate) async fn revoke(&self, invitation: &Invitation) {
        let id = InvitationId::of(&invitation.public().unwrap());
        assert_eq!(self.handle(0).revoke(None, id).await.unwrap(), id);
    }

    /// Starts a member that joins with an invitation.
    pub(crate) async fn join_by(&mut self, invitation: &Invitation) -> usize {
        self.start(&format!("[[group]]\njoin = \"{invitation}\"\n")).await;
        self.members.len() - 1
    }

    /// Has a member reload changed settings, without a restart.
    pub(crate) async fn reload_with(&mut self, member: usize, before: &str, after: &str) {
        let text = self.members[member].text.replace(before, after);
        assert_ne!(text, self.members[member].text);
        self.members[member].config = Config::parse(&text).unwrap();
        self.members[member].text = text;
        self.handle(member).reload(self.members[member].config.clone()).await.unwrap();
    }

    /// Has the first member, the leader, deny others by their ids.
    pub(crate) async fn deny(&self, ids: &[&str]) {
        let lead = "name = \"g\"\n";
        let text = self.members[0].text.replacen(lead, &format!("{lead}deny = {ids:?}\n"), 1);
        self.handle(0).reload(Config::parse(&text).unwrap()).await.unwrap();
    }

    /// Moves a member to the group of this name, with an invitation by `leader`.
    pub(crate) async fn move_to(&mut self, member: usize, leader: usize, group: &str) {
        let name = Name::new(group).unwrap();
        let invitation = self.handle(leader).invite(Some(name), None).await.unwrap().invitation;
        self.halt(member).await;
        let (head, _) = self.members[member].text.split_once("[[group]]").unwrap();
        let text = format!("{head}[[group]]\njoin = \"{invitation}\"\n");
        self.members[member].config = Config::parse(&text).unwrap();
        self.members[member].text = text;
        self.resume(member).await;
    }

    /// Waits until no other member has a link to a member with this id. Returns the time taken.
    pub(crate) async fn until_unlinked(&self, member: usize, id: &str) -> Duration {
        let from = Instant::now();
        for other in (0..self.members.len()).filter(|it| *it != member) {
            while self.status(other).await.links.iter().any(|it| it.member == id) {
                assert!(from.elapsed() < PATIENCE, "member {other} keeps its link");
                sleep(LOOK).await;
            }
        }
        from.elapsed()
    }

    /// Adds a member to the group of this name, with an invitation by `leader`.
    pub(crate) async fn join_group(&mut self, leader: usize, group: &str) -> usize {
        let name = Name::new(group).unwrap();
        let invitation = self.handle(leader).invite(Some(name), None).await.unwrap().invitation;
        self.start(&format!("[[group]]\njoin = \"{invitation}\"\n")).await;
        self.members.len() - 1
    }

    /// Starts a member with an invitation to a group of another name.
    pub(crate) async fn join_misspelled(&mut self) -> usize {
        let mut invitation = self.invite().await;
        invitation.name = Name::new("h").unwrap();
        self.start(&format!("[[group]]\njoin = \"{invitation}\"\n")).await;
        self.members.len() - 1
    }

    /// Waits until a member has a note with these words.
    pub(crate) async fn noted_by(&self, member: usize, words: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.status(member).await.notes.iter().any(|it| it.text.contains(words)) {
            assert!(Instant::now() < until, "member {member} does not note: {words}");
            sleep(LOOK).await;
        }
    }

    pub(crate) async fn halt(&mut self, member: usize) {
        let Running { shutdown, task, .. } = self.members[member].running.take().unwrap();
        shutdown.start();
        task.await.unwrap().unwrap();
    }

    pub(crate) async fn resume(&mut self, member: usize) {
        let server = Server::bind(self.members[member].config.clone()).await.unwrap();
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let task = tokio::spawn(server.run(shutdown.clone()));
        self.members[member].running = Some(Running { handle, shutdown, task });
    }

    /// Tries to start another member with a member's data, on other ports.
    pub(crate) async fn try_bind(&self, member: usize) -> Result<(), replicator::error::Error> {
        let mut config = self.members[member].config.clone();
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        (config.listen, config.daemon.admin_listen) = (any, any);
        Server::bind(config).await.map(drop)
    }

    pub(crate) async fn stop(mut self) {
        for member in 0..self.members.len() {
            self.halt(member).await;
        }
    }

    fn handle(&self, member: usize) -> &Handle {
        &self.members[member].running.as_ref().unwrap().handle
    }

    pub(crate) async fn status(&self, member: usize) -> Status {
        self.handle(member).status().await.unwrap()
    }

    pub(crate) async fn until_ready(&self, member: usize) {
        let until = Instant::now() + PATIENCE;
        while !self.status(member).await.ready.ready {
            assert!(Instant::now() < until, "{:#?}", self.status(member).await);
            sleep(LOOK).await;
        }
    }

    pub(crate) async fn publish(&self) -> Published {
        self.handle(0).publish("t".to_owned(), false).await.unwrap()
    }

    pub(crate) async fn verify(&self, member: usize) -> Vec<Report> {
        self.handle(member).verify(None).await.unwrap()
    }

    pub(crate) async fn until(&self, condition: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !condition(self) {
            assert!(Instant::now() < until, "the condition does not come true");
            sleep(LOOK).await;
        }
    }

    /// Has a member found the group `far` too, and carry the trees of the first group into it.
    pub(crate) async fn found_beside(&mut self, member: usize) {
        self.halt(member).await;
        let far = "[[group]]\nname = \"far\"\ncarry = [\"g\"]\n";
        let text = format!("{}{far}", self.members[member].text);
        self.members[member].config = Config::parse(&text).unwrap();
        self.resume(member).await;
    }

    /// Returns a path in the published directory.
    pub(crate) fn source(&self, path: &str) -> PathBuf {
        self.dir.path().join("source").join(path)
    }

    /// Returns a path beside the published directory.
    pub(crate) fn beside(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Returns whether readers of the first member see the present files.
    pub(crate) fn is_published(&self) -> bool {
        // Files that change meanwhile are compared again by the caller.
        let seen = fs::canonicalize(self.replica(0)).and_then(|it| listing(&it));
        matches!((seen, listing(&self.source(""))), (Ok(seen), Ok(there)) if seen == there)
    }

    /// Returns the sequence of the version that readers of the first member see.
    pub(crate) async fn sequence(&self) -> u64 {
        self.status(0).await.trees.first().map_or(0, sequence_of)
    }

    pub(crate) async fn until_sequence(&self, sequence: u64) {
        self.until_tree(|it| sequence <= sequence_of(it)).await;
    }

    pub(crate) async fn until_entries(&self, entries: u64) {
        self.until_tree(|it| it.entries == entries).await;
    }

    /// Waits until the watch of the tree has a problem, or none.
    pub(crate) async fn until_watch_problem(&self, has_problem: bool) {
        let condition = |it: &TreeStatus| {
            it.watch.as_ref().is_some_and(|it| it.problem.is_some() == has_problem)
        };
        self.until_tree(condition).await;
    }

    /// Waits until the first member's status of its tree meets a condition.
    async fn until_tree(&self, condition: impl Fn(&TreeStatus) -> bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.status(0).await;
            if status.trees.iter().any(&condition) {
                return;
            }
            assert!(Instant::now() < until, "the condition does not come true: {status:#?}");
            sleep(LOOK).await;
        }
    }

    /// Returns the problem of the tree's watch, if there is one.
    pub(crate) async fn watch_problem(&self) -> Option<String> {
        self.status(0).await.trees.first()?.watch.clone()?.problem
    }

    /// Returns how often the first member has noted these words.
    pub(crate) async fn noted(&self, words: &str) -> u64 {
        let notes = self.status(0).await.notes;
        notes.iter().filter(|it| it.text.contains(words)).map(|it| it.count).sum()
    }

    /// Has the first member reload its settings.
    pub(crate) async fn reload(&self) {
        self.handle(0).reload(self.members[0].config.clone()).await.unwrap();
    }

    pub(crate) fn data(&self, member: usize) -> PathBuf {
        self.dir.path().join(member.to_string())
    }

    /// Returns a member's folder of the tree.
    pub(crate) fn folder(&self, member: usize) -> PathBuf {
        self.data(member).join("trees").join(format!("t@{}", self.writer))
    }

    /// Returns the directory that readers see at a member.
    pub(crate) fn replica(&self, member: usize) -> PathBuf {
        self.folder(member).join("current")
    }

    /// Waits until readers of a member see a version.
    pub(crate) async fn holds(&self, member: usize, version: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.status(member).await;
            if status.trees.iter().any(|it| it.held.as_deref() == Some(version)) {
                return;
            }
            assert!(Instant::now() < until, "member {member} does not hold {version}: {status:#?}");
            sleep(LOOK).await;
        }
    }

    pub(crate) async fn all_hold(&self, version: &str) {
        for member in 0..self.members.len() {
            self.holds(member, version).await;
        }
    }

    /// Waits until each member knows that all others hold a version.
    pub(crate) async fn all_seen(&self, version: &str) {
        let until = Instant::now() + PATIENCE;
        for member in 0..self.members.len() {
            loop {
                let status = self.status(member).await;
                let has = |it: &MemberStatus| {
                    let is_reported = it.id == status.id || it.versions.heard.is_some();
                    let newest = it.versions.named.iter().any(|it| {
                        it.version.as_deref() == Some(version) && it.standing == Standing::Newest
                    });
                    is_reported && newest
                };
                let members = &status.groups[0].members;
                if members.len() == self.members.len() && members.iter().all(has) {
                    break;
                }
                assert!(Instant::now() < until, "member {member} does not know it: {status:#?}");
                sleep(LOOK).await;
            }
        }
    }

    /// Compares all replicas with the published directory.
    pub(crate) fn assert_equal(&self) {
        let source = listing(&self.source("")).unwrap();
        for member in 0..self.members.len() {
            assert_eq!(listing(&self.replica(member)).unwrap(), source, "at member {member}");
        }
    }
}

/// Returns the sequence of the version that readers see.
fn sequence_of(tree: &TreeStatus) -> u64 {
    tree.held.as_ref().map_or(0, |it| it.split_once('.').unwrap().1.parse().unwrap())
}

/// Reads all files below a directory.
fn listing(top: &Path) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut queue = vec![top.to_owned()];
    while let Some(dir) = queue.pop() {
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_dir() {
                queue.push(path);
            } else {
                found.insert(path.strip_prefix(top).unwrap().to_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(found)
}
