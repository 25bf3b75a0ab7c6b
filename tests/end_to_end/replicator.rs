//! Tests of replicators between processes: a group is founded, joined, published to and queried.

use std::fs;
use std::path::{Path, PathBuf};

use net::clock;
use serde_json::Value;

use crate::daemons::{broker_settings, free_port, gatherer_site};
use crate::harness::{PATIENCE, Running, ask, harvest, run, run_ok, texts, wait_for_total, write};

struct Member {
    settings: PathBuf,
    running: Running,
}

impl Member {
    /// Starts the member of these settings.
    fn start(folder: &Path) -> Self {
        let settings = folder.join("replicator.toml");
        let mut running = Running::start(harvest(["replicator", "run", "-c", text(&settings)]));
        running.line_with("runs");
        Self { settings, running }
    }

    fn run(&self, arguments: &[&str]) -> String {
        let (command, rest) = arguments.split_first().unwrap();
        let head = ["replicator", command, "-c", text(&self.settings)];
        run_ok(head.iter().chain(rest))
    }

    fn status(&self) -> Value {
        serde_json::from_str(&self.run(&["status", "--json"])).unwrap()
    }

    /// Waits until readers of the only tree see this version, or a later one of the same run; returns its
    /// path.
    fn holds(&self, version: &str) -> PathBuf {
        let end = clock::monotonic() + PATIENCE;
        loop {
            let status = self.status();
            let tree = &status["trees"][0];
            if tree["held"].as_str().is_some_and(|held| reaches(held, version)) {
                return tree["path"].as_str().unwrap().into();
            }
            assert!(clock::monotonic() < end, "{version} does not come: {status:#}");
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the first word of a text with this beginning.
fn word<'a>(text: &'a str, begins: &str) -> &'a str {
    text.split_whitespace().find(|it| it.starts_with(begins)).unwrap()
}

/// Returns whether the version `held` is `version`, or a later one with the same beginning.
fn reaches(held: &str, version: &str) -> bool {
    let parts = |it: &str| {
        let (run, number) = it.split_once('.')?;
        Some((run.to_owned(), number.parse::<u64>().ok()?))
    };
    let (held, version) = (parts(held), parts(version));
    held.zip(version).is_some_and(|(held, version)| held.0 == version.0 && version.1 <= held.1)
}

#[test]
fn a_group_is_founded_joined_and_published_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(folder.path(), "source/a/one.txt", "one");
    let address = || format!("127.0.0.1:{}", free_port());
    let tree = format!("docs={}", text(&path("source")));
    let local = address();
    let first = ["--group", "g", "--address", &local, "--tree", &tree];
    let printed = run_ok(["replicator", "init", text(&path("m0"))].iter().chain(&first));
    let invitation = word(&printed, "harvest-group-1,").to_owned();
    // Existing settings are not overwritten.
    let again = run(["replicator", "init", text(&path("m0"))].iter().chain(&first));
    assert!(!again.status.success() && texts(&again).1.contains("replicator.toml"));
    let mut members = vec![Member::start(&path("m0"))];
    for name in ["m1", "m2"] {
        let local = address();
        // The first uses the invitation that `init` printed, the other a new one.
        let invited = match name {
            "m1" => invitation.clone(),
            _ => members[0].run(&["invite", "--valid", "2 h"]).trim().to_owned(),
        };
        let rest = [invited.as_str(), "--address", local.as_str(), "--site", "far"];
        let printed = run_ok(["replicator", "join", text(&path(name))].into_iter().chain(rest));
        members.push(Member::start(&path(name)));
        let id = members.last().unwrap().status()["id"].as_str().unwrap().to_owned();
        assert!(printed.contains(&id), "{printed}");
    }
    let origin = &members[0];
    let elsewhere = run(["replicator", "publish", "-c", text(&members[1].settings)]);
    assert!(
        !elsewhere.status.success() && texts(&elsewhere).1.contains("published by their writers")
    );
    let printed = origin.run(&["publish"]);
    let version = printed.split([' ', ':']).nth(1).unwrap().to_owned();
    assert!(printed.contains("2 entries"), "{printed}");
    for member in &members {
        let current = member.holds(&version);
        assert_eq!(fs::read_to_string(current.join("a/one.txt")).unwrap(), "one");
        assert!(member.run(&["verify"]).contains("as they were written"));
        // The name is that of `status`, and the path works from any folder.
        let name = member.status()["trees"][0]["name"].as_str().unwrap().to_owned();
        let writer = origin.status()["id"].as_str().unwrap().to_owned();
        assert!(member.run(&["verify", &format!("{name}@{writer}")]).contains("as they were"));
        assert!(current.is_absolute());
    }
    assert!(origin.run(&["publish", text(&path("source"))]).contains("nothing has changed"));
    check_views(origin, &path("topology.svg"));
    check_invitations(origin, &members[1], &invitation);
    // A tree that is almost gone is published only with `--accept-loss`.
    for number in 0..120 {
        write(folder.path(), &format!("source/{number}.txt"), "many");
    }
    let many = origin.run(&["publish", "docs", "--json"]);
    let many: Value = serde_json::from_str(&many).unwrap();
    assert_eq!(many["entries"], 122);
    fs::remove_dir_all(path("source")).unwrap();
    fs::create_dir(path("source")).unwrap();
    let refused = run(["replicator", "publish", "-c", text(&origin.settings)]);
    let printed = texts(&refused).1;
    assert!(
        !refused.status.success() && printed.contains("122") && printed.contains("--accept-loss")
    );
    let emptied = origin.run(&["publish", "--accept-loss", "--json"]);
    let emptied: Value = serde_json::from_str(&emptied).unwrap();
    let current = members[2].holds(emptied["version"].as_str().unwrap());
    assert_eq!(fs::read_dir(current).unwrap().count(), 0);
    check_reloaded(&members[1]);
    for member in &mut members {
        assert!(member.running.stop("TERM").success());
    }
    check_settled(&members[0].settings, &path("m0/data"), &path("source"));
}

/// Checks invitations as an administrator sees and withdraws them, while the members run.
fn check_invitations(origin: &Member, other: &Member, first: &str) {
    let made: Value = serde_json::from_str(&origin.run(&["invite", "--json"])).unwrap();
    let (id, line) = (made["id"].as_str().unwrap(), made["invitation"].as_str().unwrap());
    assert!(line.starts_with("harvest-group-1,g,") && line != first, "{line}");
    let status = origin.run(&["status"]);
    assert!(status.contains(&format!("invitation {id}: open for 2")), "{status}");
    let used = format!("used by {}", other.status()["id"].as_str().unwrap());
    assert!(status.contains(&used), "{status}");
    let page = shown(origin, "");
    assert!(page.contains(id) && page.contains("open for 2"), "{page}");
    assert!(origin.run(&["invite", "--revoke", id]).contains("is withdrawn"));
    let status = origin.status();
    let listed = status["groups"][0]["invitations"].as_array().unwrap();
    let standing = |it: &Value| it["standing"].as_str().unwrap().to_owned();
    assert_eq!(listed.iter().map(standing).collect::<Vec<_>>(), ["withdrawn", "used", "used"]);
    assert_eq!(listed[0]["id"], id);
    // A member that does not lead the group names the leader.
    let settings = text(&other.settings);
    for rest in [["--revoke", id], ["--valid", "1 h"]] {
        let refused = run(["replicator", "invite", "-c", settings].iter().chain(&rest));
        let printed = texts(&refused).1;
        let leader = origin.status()["id"].as_str().unwrap().to_owned();
        assert!(!refused.status.success() && printed.contains(&leader), "{printed}");
    }
    let wrong = run(["replicator", "invite", "-c", settings, "--valid", "1 year"]);
    assert!(!wrong.status.success() && texts(&wrong).1.contains("30 days"));
}

/// Checks that a mistake in reloaded settings appears in the status.
fn check_reloaded(member: &Member) {
    let right = fs::read_to_string(&member.settings).unwrap();
    fs::write(&member.settings, right.replace("site = ", "sight = ")).unwrap();
    member.running.signal("HUP");
    // `status` reads the settings as well, so it gets a correct copy.
    let correct = member.settings.with_extension("correct");
    fs::write(&correct, &right).unwrap();
    let end = clock::monotonic() + PATIENCE;
    let is_noted = || {
        let status = run_ok(["replicator", "status", "-c", text(&correct)]);
        status.lines().any(|it| it.starts_with("noted ") && it.contains("the old ones stay"))
    };
    while !is_noted() {
        assert!(clock::monotonic() < end);
    }
    fs::write(&member.settings, right).unwrap();
}

/// Checks the messages for missing directories, groups and keys.
fn check_settled(settings: &Path, data: &Path, source: &Path) {
    let outcome = |command: &str| {
        let output = run(["replicator", command, "-c", text(settings)]);
        (output.status.success(), texts(&output).1)
    };
    assert!(outcome("check").0);
    let right = fs::read_to_string(settings).unwrap();
    let tree = "[[tree]]\nname = \"docs\"\n";
    assert!(right.contains(tree), "{right}");
    let wrong = right.replace(tree, &format!("{tree}mode = \"750\"\ngroup = \"no-such-group\"\n"));
    fs::write(settings, wrong).unwrap();
    let (is_right, text) = outcome("check");
    assert!(!is_right && text.contains("there is no group \"no-such-group\""), "{text}");
    fs::write(settings, right).unwrap();
    fs::remove_dir(source).unwrap();
    let (is_right, text) = outcome("check");
    assert!(!is_right && text.contains("docs") && text.contains("create or mount it"), "{text}");
    // A member without its key does not run as a new one.
    fs::rename(data, data.with_extension("away")).unwrap();
    for command in ["check", "run"] {
        let (is_right, text) = outcome(command);
        assert!(!is_right && text.contains("identity.key"), "{text}");
    }
}

#[test]
fn a_collection_goes_from_a_gatherer_over_replicators_to_a_broker() {
    let site = gatherer_site();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let address = || format!("127.0.0.1:{}", free_port());
    let collection = format!("docs={}", site.gatherer_url);
    let local = address();
    let first = ["--group", "g", "--address", &local, "--collection", &collection];
    let printed = run_ok(["replicator", "init", text(&path("m0"))].iter().chain(&first));
    let invitation = word(&printed, "harvest-group-1,").to_owned();
    let mut origin = Member::start(&path("m0"));
    let local = address();
    let rest = [invitation.as_str(), "--address", local.as_str(), "--site", "far"];
    run_ok(["replicator", "join", text(&path("m1"))].into_iter().chain(rest));
    let mut replica = Member::start(&path("m1"));
    let printed = origin.run(&["publish", "docs"]);
    replica.holds(printed.split([' ', ':']).nth(1).unwrap());
    let status = replica.run(&["status"]);
    assert!(status.contains("collection docs of") && status.contains("objects"), "{status}");
    let status = origin.run(&["status"]);
    assert!(status.contains(&site.gatherer_url), "{status}");
    // One broker follows the replica alone.
    let settings = fs::read_to_string(&replica.settings).unwrap();
    let admin = settings.lines().find(|it| it.starts_with("admin_listen")).unwrap();
    let feed = format!("http://{}/collections/docs/", admin.split('"').nth(1).unwrap());
    let file = broker_settings(folder.path(), &[(&feed, true)]);
    let file = write(folder.path(), "broker.toml", file);
    let mut broker = Running::start(harvest(["broker", "run", "-c", text(&file)]));
    let page = broker.search_url();
    wait_for_total(&page, "orchard", 1);
    // Another broker reads the replica's folder.
    let log = path("docs");
    let writer = origin.status()["id"].as_str().unwrap().to_owned();
    let placed = format!(
        "{settings}\n[[collection]]\nname = \"docs\"\nwriter = \"{writer}\"\ndirectory = \"{}\"\n",
        text(&log)
    );
    fs::write(&replica.settings, placed).unwrap();
    replica.running.signal("HUP");
    let end = clock::monotonic() + PATIENCE;
    while !log.join("CHAIN").exists() {
        assert!(clock::monotonic() < end, "{} leads nowhere", text(&log));
        std::thread::yield_now();
    }
    let data = path("beside");
    let (data, log) = (text(&data), text(&log));
    let settings = format!(
        "name = \"Beside\"\ndata = \"{data}\"\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:0\"\n\
         [[source]]\nkind = \"replica\"\ndirectory = \"{log}\"\nfollow = true\n"
    );
    let file = write(folder.path(), "beside.toml", settings);
    let mut beside = Running::start(harvest(["broker", "run", "-c", text(&file)]));
    let page_beside = beside.search_url();
    wait_for_total(&page_beside, "orchard", 1);
    // New objects arrive, also after the origin was killed.
    write(site.folder.path(), "tree/site/sloe.txt", "A sloe is no plum.\n");
    wait_for_total(&page, "sloe", 1);
    origin.running.stop("KILL");
    write(site.folder.path(), "tree/site/medlar.txt", "A medlar is eaten when it is rotten.\n");
    let mut origin = Member::start(&path("m0"));
    wait_for_total(&page, "medlar", 1);
    wait_for_total(&page_beside, "medlar", 1);
    wait_for_total(&page_beside, "sloe", 1);
    let (code, _, metrics) = ask("GET", &feed.replace("collections/docs/", "metrics"), &[]);
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(code == 200 && metrics.contains("harvest_replicator_feed_deltas_total"), "{metrics}");
    let (code, _, page) = ask("GET", &feed.replace("collections/docs/", ""), &[]);
    assert!(code == 200 && String::from_utf8(page).unwrap().contains("/collections/docs@"));
    assert_eq!(ask("GET", &format!("{}feed", feed.replace("docs", "none")), &[]).0, 404);
    for it in [&mut origin.running, &mut replica.running, &mut broker, &mut beside] {
        assert!(it.stop("TERM").success());
    }
}

/// Checks the status, the topology, the page and the metrics of a member.
fn check_views(member: &Member, svg: &Path) {
    let status = member.run(&["status"]);
    assert!(status.contains("3 members") && status.contains("led by this member"), "{status}");
    let drawn = member.run(&["topology", "--json", "--svg", text(svg)]);
    let drawn: Value = serde_json::from_str(&drawn).unwrap();
    assert_eq!(drawn["members"].as_array().unwrap().len(), 3);
    let picture = fs::read_to_string(svg).unwrap();
    assert_eq!(picture.matches("<circle").count(), 3, "{picture}");
    let page = shown(member, "");
    assert!(page.contains("<svg") && page.contains("docs"), "{page}");
    let metrics = shown(member, "metrics");
    assert!(metrics.contains("harvest_replicator_tree_newest"), "{metrics}");
    // Without the token, reading is allowed, but no command.
    for change in ["publish?tree=docs", "invite", "invite?revoke=0000000000000000"] {
        assert_eq!(ask("POST", &format!("{}{change}", admin(member)), &[]).0, 401, "{change}");
    }
}

/// Returns the URL of a member's admin listener.
fn admin(member: &Member) -> String {
    let settings = fs::read_to_string(&member.settings).unwrap();
    let admin = settings.lines().find(|it| it.starts_with("admin_listen")).unwrap();
    format!("http://{}/", admin.split('"').nth(1).unwrap())
}

/// Fetches a page or document of a member without a token.
fn shown(member: &Member, path: &str) -> String {
    let (code, _, shown) = ask("GET", &format!("{}{path}", admin(member)), &[]);
    assert_eq!(code, 200);
    String::from_utf8(shown).unwrap()
}
