//! Replicators between processes: a group of three, founded, joined, published to and asked.

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

    /// Waits until readers of the only tree see this version; says where they find it.
    fn holds(&self, version: &str) -> PathBuf {
        let end = clock::monotonic() + PATIENCE;
        loop {
            let status = self.status();
            let tree = &status["trees"][0];
            if tree["held"] == version {
                return tree["path"].as_str().unwrap().into();
            }
            assert!(clock::monotonic() < end, "{version} does not come: {status:#}");
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The word of a text that begins like this.
fn word<'a>(text: &'a str, begins: &str) -> &'a str {
    text.split_whitespace().find(|it| it.starts_with(begins)).unwrap()
}

#[test]
fn a_group_is_founded_joined_and_published_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(folder.path(), "source/a/one.txt", "one");
    let address = || format!("127.0.0.1:{}", free_port());
    let tree = format!("docs={}", text(&path("source")));
    let place = address();
    let first = ["--group", "g", "--address", &place, "--tree", &tree];
    let said = run_ok(["replicator", "init", text(&path("m0"))].iter().chain(&first));
    let invitation = word(&said, "harvest-group-1,").to_owned();
    // What is there already is not written over.
    let again = run(["replicator", "init", text(&path("m0"))].iter().chain(&first));
    assert!(!again.status.success() && texts(&again).1.contains("replicator.toml"));
    let mut members = vec![Member::start(&path("m0"))];
    for name in ["m1", "m2"] {
        let place = address();
        // The first has what `init` printed, the other asks for one of its own.
        let invited = match name {
            "m1" => invitation.clone(),
            _ => members[0].run(&["invite", "--valid", "2 h"]).trim().to_owned(),
        };
        let rest = [invited.as_str(), "--address", place.as_str(), "--site", "far"];
        let said = run_ok(["replicator", "join", text(&path(name))].into_iter().chain(rest));
        members.push(Member::start(&path(name)));
        let id = members.last().unwrap().status()["id"].as_str().unwrap().to_owned();
        assert!(said.contains(&id), "{said}");
    }
    let origin = &members[0];
    let elsewhere = run(["replicator", "publish", "-c", text(&members[1].settings)]);
    assert!(!elsewhere.status.success() && texts(&elsewhere).1.contains("where its writer runs"));
    let said = origin.run(&["publish"]);
    let version = said.split([' ', ':']).nth(1).unwrap().to_owned();
    assert!(said.contains("2 entries"), "{said}");
    for member in &members {
        let current = member.holds(&version);
        assert_eq!(fs::read_to_string(current.join("a/one.txt")).unwrap(), "one");
        assert!(member.run(&["verify"]).contains("as they were written"));
        // As status has it, and as others in other folders can go by.
        let name = member.status()["trees"][0]["name"].as_str().unwrap().to_owned();
        let writer = origin.status()["id"].as_str().unwrap().to_owned();
        assert!(member.run(&["verify", &format!("{name}@{writer}")]).contains("as they were"));
        assert!(current.is_absolute());
    }
    assert!(origin.run(&["publish", text(&path("source"))]).contains("nothing has changed"));
    check_asked(origin, &path("topology.svg"));
    check_invitations(origin, &members[1], &invitation);
    // A tree that has all but gone is not published unless that is meant.
    for number in 0..120 {
        write(folder.path(), &format!("source/{number}.txt"), "many");
    }
    let many = origin.run(&["publish", "docs", "--json"]);
    let many: Value = serde_json::from_str(&many).unwrap();
    assert_eq!(many["entries"], 122);
    fs::remove_dir_all(path("source")).unwrap();
    fs::create_dir(path("source")).unwrap();
    let refused = run(["replicator", "publish", "-c", text(&origin.settings)]);
    let said = texts(&refused).1;
    assert!(!refused.status.success() && said.contains("122") && said.contains("--accept-loss"));
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

/// What an administrator sees and does of invitations, while the members run.
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
    // Who does not lead the group says who does.
    let settings = text(&other.settings);
    for rest in [["--revoke", id], ["--valid", "1 h"]] {
        let refused = run(["replicator", "invite", "-c", settings].iter().chain(&rest));
        let said = texts(&refused).1;
        let leader = origin.status()["id"].as_str().unwrap().to_owned();
        assert!(!refused.status.success() && said.contains(&leader), "{said}");
    }
    let wrong = run(["replicator", "invite", "-c", settings, "--valid", "1 year"]);
    assert!(!wrong.status.success() && texts(&wrong).1.contains("30 days"));
}

/// A member whose administrator makes a mistake finds it where all else is said.
fn check_reloaded(member: &Member) {
    let right = fs::read_to_string(&member.settings).unwrap();
    fs::write(&member.settings, right.replace("site = ", "sight = ")).unwrap();
    member.running.signal("HUP");
    // `status` reads the settings as well.
    let asked = member.settings.with_extension("asked");
    fs::write(&asked, &right).unwrap();
    let end = clock::monotonic() + PATIENCE;
    let is_said = || {
        let said = run_ok(["replicator", "status", "-c", text(&asked)]);
        said.lines().any(|it| it.starts_with("noted ") && it.contains("the old ones stay"))
    };
    while !is_said() {
        assert!(clock::monotonic() < end);
    }
    fs::write(&member.settings, right).unwrap();
}

/// A member whose directories are not where they were.
fn check_settled(settings: &Path, data: &Path, source: &Path) {
    let said = |command: &str| {
        let output = run(["replicator", command, "-c", text(settings)]);
        (output.status.success(), texts(&output).1)
    };
    assert!(said("check").0);
    let right = fs::read_to_string(settings).unwrap();
    let tree = "[[tree]]\nname = \"docs\"\n";
    assert!(right.contains(tree), "{right}");
    let wrong = right.replace(tree, &format!("{tree}mode = \"750\"\ngroup = \"no-such-group\"\n"));
    fs::write(settings, wrong).unwrap();
    let (is_right, text) = said("check");
    assert!(!is_right && text.contains("there is no group \"no-such-group\""), "{text}");
    fs::write(settings, right).unwrap();
    fs::remove_dir(source).unwrap();
    let (is_right, text) = said("check");
    assert!(!is_right && text.contains("docs") && text.contains("make or mount it"), "{text}");
    // It does not run as somebody else.
    fs::rename(data, data.with_extension("away")).unwrap();
    for command in ["check", "run"] {
        let (is_right, text) = said(command);
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
    let place = address();
    let first = ["--group", "g", "--address", &place, "--collection", &collection];
    let said = run_ok(["replicator", "init", text(&path("m0"))].iter().chain(&first));
    let invitation = word(&said, "harvest-group-1,").to_owned();
    let mut origin = Member::start(&path("m0"));
    let place = address();
    let rest = [invitation.as_str(), "--address", place.as_str(), "--site", "far"];
    run_ok(["replicator", "join", text(&path("m1"))].into_iter().chain(rest));
    let mut replica = Member::start(&path("m1"));
    let said = origin.run(&["publish", "docs"]);
    replica.holds(said.split([' ', ':']).nth(1).unwrap());
    let status = replica.run(&["status"]);
    assert!(status.contains("collection docs of") && status.contains("objects"), "{status}");
    let status = origin.run(&["status"]);
    assert!(status.contains(&site.gatherer_url), "{status}");
    // A broker that knows the replica alone.
    let settings = fs::read_to_string(&replica.settings).unwrap();
    let admin = settings.lines().find(|it| it.starts_with("admin_listen")).unwrap();
    let feed = format!("http://{}/collections/docs/", admin.split('"').nth(1).unwrap());
    let file = broker_settings(folder.path(), &[(&feed, true)]);
    let file = write(folder.path(), "broker.toml", file);
    let mut broker = Running::start(harvest(["broker", "run", "-c", text(&file)]));
    let page = broker.search_url();
    wait_for_total(&page, "orchard", 1);
    // And one that reads it where it lies.
    let log = path("docs");
    let writer = origin.status()["id"].as_str().unwrap().to_owned();
    let kept = format!(
        "{settings}\n[[collection]]\nname = \"docs\"\nwriter = \"{writer}\"\ndirectory = \"{}\"\n",
        text(&log)
    );
    fs::write(&replica.settings, kept).unwrap();
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
    // What is new comes through, also after the origin was killed.
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

/// Looks at what a member shows.
fn check_asked(member: &Member, svg: &Path) {
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
    // Whoever has no token may look, and change nothing.
    for change in ["publish?tree=docs", "invite", "invite?revoke=0000000000000000"] {
        assert_eq!(ask("POST", &format!("{}{change}", admin(member)), &[]).0, 401, "{change}");
    }
}

/// Where a member answers its administrator.
fn admin(member: &Member) -> String {
    let settings = fs::read_to_string(&member.settings).unwrap();
    let admin = settings.lines().find(|it| it.starts_with("admin_listen")).unwrap();
    format!("http://{}/", admin.split('"').nth(1).unwrap())
}

/// What is there for everybody to see.
fn shown(member: &Member, path: &str) -> String {
    let (code, _, shown) = ask("GET", &format!("{}{path}", admin(member)), &[]);
    assert_eq!(code, 200);
    String::from_utf8(shown).unwrap()
}
