//! Tests of damage: a gatherer, a broker that follows it, and a broker that follows that broker, as
//! processes. The data of one is damaged while it runs or is stopped. No consumer loses objects of
//! the tree. After healing, all three have the objects of the tree, under their old epochs.
//!
//! `collection/src/tests/damage_model.rs` does so without sockets, in far more worlds. Number of
//! worlds: `HARVEST_DAMAGE_WORLDS` (default 2); first seed: `HARVEST_DAMAGE_SEED`.

#[path = "../../collection/src/tests/damage_model/harm.rs"]
mod harm;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Result;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harm::{Harm, Random};
use net::clock;

use crate::daemons::{broker_settings, free_port, gatherer_settings};
use crate::harness::{Running, harvest, run, run_ok, texts, try_ask, write};

/// Number of files that never change: they must be found at every broker at any time.
const STABLE: u64 = 40;
/// Number of names for files that come and go.
const OTHERS: u64 = 40;
/// Number of steps before everything must be healed.
const STEPS: u64 = 6;
/// Time limit for healing: five times a minute for each of the three daemons to find damage.
const HEALED_WITHIN: Duration = Duration::from_secs(5 * 180);
/// Number of worlds at a time: mostly they wait.
const AT_A_TIME: usize = 6;

/// A daemon with a fixed address.
struct Member {
    kind: &'static str,
    settings: PathBuf,
    data: PathBuf,
    base: String,
    running: Option<Running>,
    is_harmed: bool,
    /// Whether `collection verify` has found damage.
    is_damaged: bool,
}

impl Member {
    fn start(&mut self) {
        let mut running =
            Running::start(harvest([self.kind, "run", "-c", self.settings.to_str().unwrap()]));
        running.line_with(" runs");
        self.running = Some(running);
    }

    fn stop(&mut self, signal: &str) {
        if let Some(mut running) = self.running.take() {
            running.stop(signal);
        }
    }

    fn suffer(&mut self, harm: &Harm, random: &mut Random) -> String {
        if harm.at_rest {
            self.stop("TERM");
        }
        let done = harm.apply(&self.data.join("collection"), random);
        self.is_harmed = true;
        if harm.at_rest {
            self.start();
        }
        done
    }

    /// Returns epoch and serial of the snapshot. For it the daemon reads all, and so finds damage.
    fn version(&self) -> Result<Option<(String, String)>> {
        let (_, head, _) = try_ask("GET", &format!("{}feed", self.base), &[])?;
        let Some(to) = header(&head, "location") else { return Ok(None) };
        let (_, head, _) = try_ask("GET", &format!("{}{to}", self.base), &[])?;
        Ok(header(&head, "harvest-epoch").zip(header(&head, "harvest-to")))
    }

    /// Waits until the feed has a new change, or for a second.
    fn wait_for_news(&self) -> Result<()> {
        if let Some((epoch, serial)) = self.version()? {
            let after = format!("feed?since={serial}&epoch={epoch}&wait=1");
            try_ask("GET", &format!("{}{after}", self.base), &[])?;
        }
        Ok(())
    }

    /// Returns the files of the tree that a broker finds: name and title of each.
    fn search(&self) -> Result<BTreeMap<String, String>> {
        let url = format!("{}api/search?q=orchard&limit=100", self.base);
        let (status, _, body) = try_ask("GET", &url, &[])?;
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        assert_eq!(status, 200, "{}: {answer}", self.data.display());
        let hits = answer["hits"].as_array().unwrap();
        let name = |url: &str| url.rsplit('/').next().unwrap().to_owned();
        let text = |hit: &serde_json::Value| hit["title"].as_str().unwrap_or_default().to_owned();
        Ok(hits.iter().map(|it| (name(it["url"].as_str().unwrap()), text(it))).collect())
    }
}

/// Returns the value of a header.
fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|it| it.split_once(": "));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, it)| it.trim().to_owned())
}

struct World {
    folder: tempfile::TempDir,
    random: Random,
    /// Name and title of each file.
    tree: BTreeMap<String, String>,
    /// The gatherer, a broker that pulls it, and a broker that pulls that broker.
    members: [Member; 3],
    is_manifest_hit: bool,
    /// The steps and the damage so far.
    log: Vec<String>,
    next: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut before = String::new();
        let members = ["gatherer", "broker", "broker"].map(|kind| {
            let own = folder.path().join(if before.is_empty() { "a" } else { "b" });
            let own = if own.exists() { folder.path().join("c") } else { own };
            let (settings, data) = if kind == "gatherer" {
                fs::create_dir_all(own.join("tree")).unwrap();
                let settings = gatherer_settings(&own, "http://www.example.org/docs/");
                (settings, own.join("gatherer-data"))
            } else {
                (broker_settings(&own, &[(&before, true)]), own.join("broker-data"))
            };
            let listen = format!("127.0.0.1:{}", free_port());
            let settings = settings.replace("127.0.0.1:0", &listen);
            before = format!("http://{listen}/");
            let settings = write(&own, "settings.toml", settings);
            let base = before.clone();
            Member {
                kind,
                settings,
                data,
                base,
                running: None,
                is_harmed: false,
                is_damaged: false,
            }
        });
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
        let tree = BTreeMap::new();
        let mut world =
            Self { folder, random, tree, members, is_manifest_hit: false, log: vec![], next: 0 };
        for n in 0..STABLE {
            world.put(format!("stable-{n}.md"));
        }
        world.members.iter_mut().for_each(Member::start);
        world.wait_until_healed();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("a/tree").join(name)
    }

    fn put(&mut self, name: String) {
        self.next += 1;
        let title = format!("Tree {}", self.next);
        let noise: Vec<String> = (0..20).map(|_| self.random.below(1 << 40).to_string()).collect();
        let text = format!("# {title}\n\nOf the orchard.\n\n{}\n", noise.join(" "));
        write(self.folder.path(), &format!("a/tree/{name}"), text);
        self.tree.insert(name, title);
    }

    fn change_tree(&mut self) {
        for _ in 0..1 + self.random.below(8) {
            let name = format!("other-{}.md", self.random.below(OTHERS));
            if self.random.below(3) == 0 {
                if self.tree.remove(&name).is_some() {
                    fs::remove_file(self.path(&name)).unwrap();
                }
            } else {
                self.put(name);
            }
        }
    }

    /// Checks that every broker that was never damaged finds all stable files.
    fn check(&self) {
        for member in self.members.iter().filter(|it| it.kind == "broker" && !it.is_harmed) {
            let found = member.search().unwrap();
            let stable = found.keys().filter(|it| it.starts_with("stable")).count();
            assert_eq!(
                u64::try_from(stable),
                Ok(STABLE),
                "{}: {:#?}",
                member.data.display(),
                self.log
            );
        }
    }

    fn step(&mut self) {
        let at = usize::try_from(self.random.below(3)).unwrap();
        let action = self.random.below(4);
        self.log.push(format!("{at}: {action}"));
        match action {
            0 | 1 => self.change_tree(),
            2 => {
                self.members[at].stop("TERM");
                self.members[at].start();
            }
            _ => {
                self.members[at].stop("KILL");
                self.members[at].start();
            }
        }
        self.check();
    }

    fn harm(&mut self) {
        let at = usize::try_from(self.random.below(3)).unwrap();
        let mut harm = Harm::random(&mut self.random);
        while harm.hits_manifest() && self.is_manifest_hit {
            harm = Harm::random(&mut self.random);
        }
        self.is_manifest_hit |= harm.hits_manifest();
        let done = self.members[at].suffer(&harm, &mut self.random);
        self.log.push(format!("{at}: {harm:?}: {done}"));
        self.check();
    }

    fn wait_until_healed(&mut self) {
        let began = clock::monotonic();
        loop {
            self.check_if_settled();
            let wrong: Vec<String> =
                self.members.iter().filter_map(|it| self.fault_of(it)).collect();
            if wrong.is_empty() {
                return;
            }
            let late = HEALED_WITHIN < began.elapsed();
            assert!(!late, "not healed: {wrong:#?}\n{:#?}", self.log);
            self.members[2].wait_for_news().unwrap();
        }
    }

    /// Calls [`check`](Self::check) once the first step was made.
    fn check_if_settled(&self) {
        if !self.log.is_empty() {
            self.check();
        }
    }

    /// Returns how a member differs from the tree, or why it is not ready.
    fn fault_of(&self, member: &Member) -> Option<String> {
        // Damage is found by reading.
        member.version().unwrap();
        let (status, _, body) = try_ask("GET", &format!("{}readyz", member.base), &[]).unwrap();
        let of = member.data.display();
        if status != 200 {
            return Some(format!("{of}: {}", String::from_utf8_lossy(&body)));
        }
        if member.kind == "gatherer" {
            return None;
        }
        let found = member.search().unwrap();
        (found != self.tree).then(|| format!("{of}: {found:?}, not {:?}", self.tree))
    }

    /// Stops all members; returns whether their files are whole. Remaining damage costs no object.
    fn stop_and_verify(&mut self) -> bool {
        let mut is_whole = true;
        for member in &mut self.members {
            member.stop("TERM");
            let (out, err) = texts(&run(["collection", "verify", member.data.to_str().unwrap()]));
            member.is_damaged = !out.contains(": 0 problems");
            let is_costless = out.contains(" 0 healable, 0 lost");
            assert!(!member.is_damaged || is_costless, "{out}\n{err}\n{:#?}", self.log);
            is_whole &= !member.is_damaged;
        }
        is_whole
    }

    fn wait_until_damage_is_found(&self) {
        let began = clock::monotonic();
        for member in self.members.iter().filter(|it| it.is_damaged) {
            loop {
                let settings = member.settings.to_str().unwrap();
                let status = run_ok([member.kind, "status", "-c", settings, "--json"]);
                let status: serde_json::Value = serde_json::from_str(&status).unwrap();
                if status["damaged_total"].as_u64() > Some(0) {
                    break;
                }
                assert!(began.elapsed() < HEALED_WITHIN, "damage not found: {:#?}", self.log);
                member.wait_for_news().unwrap();
            }
        }
    }

    fn epochs(&self) -> [String; 3] {
        self.members.each_ref().map(|it| it.version().unwrap().unwrap().0)
    }
}

fn play(seed: u64) {
    let mut world = World::new(seed);
    let epochs = world.epochs();
    let harms = 1 + world.random.below(2);
    let when: Vec<u64> = (0..harms).map(|_| world.random.below(STEPS)).collect();
    for step in 0..STEPS {
        for _ in when.iter().filter(|it| **it == step) {
            world.harm();
        }
        world.step();
    }
    world.wait_until_healed();
    assert_eq!(world.epochs(), epochs, "no epoch begins: {:#?}", world.log);
    if world.stop_and_verify() {
        return;
    }
    // Nobody had read the damaged part, and it had no live object. A start or a check finds it.
    world.members.iter_mut().for_each(Member::start);
    world.wait_until_damage_is_found();
    world.wait_until_healed();
    assert!(world.stop_and_verify(), "damage that was found stays: {:#?}", world.log);
}

#[test]
fn damage_between_processes_costs_only_what_it_hit() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let worlds = number("HARVEST_DAMAGE_WORLDS").unwrap_or(2);
    let first = number("HARVEST_DAMAGE_SEED").unwrap_or(1);
    let next = AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if first + worlds <= seed {
                        return;
                    }
                    let played = std::panic::catch_unwind(|| play(seed));
                    assert!(played.is_ok(), "HARVEST_DAMAGE_SEED={seed} HARVEST_DAMAGE_WORLDS=1");
                }
            });
        }
    });
}
