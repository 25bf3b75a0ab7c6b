//! A community: a registry, eight brokers, four gatherers, a cache and a group of two replicators, each a process.

mod asking;
mod commands;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use net::clock;
use serde_json::Value;

use super::free_port;
use crate::harness::{PATIENCE, Running, ask, harvest, run, run_ok, texts, write};

/// Subjects: the word that all documents of one have, and what the gatherer of it gathers.
const SUBJECTS: [&str; 4] = ["granite", "fern", "comet", "sonata"];

/// A daemon, where it listens, and its settings.
pub(super) struct Member {
    pub(super) running: Running,
    pub(super) url: String,
    pub(super) settings: PathBuf,
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a daemon of these settings, which announces itself to a registry.
pub(super) fn start(folder: &Path, kind: &str, name: &str, more: &str) -> Member {
    let port = free_port();
    let settings = format!(
        "name = \"{name}\"\nlisten = \"127.0.0.1:{port}\"\nadmin_listen = \"127.0.0.1:{}\"\ndata = \"data-{name}\"\n{more}",
        free_port()
    );
    let settings = write(folder, &format!("{name}.toml"), settings);
    let running = run_daemon(kind, &settings);
    Member { running, url: format!("http://127.0.0.1:{port}/"), settings }
}

pub(super) fn run_daemon(kind: &str, settings: &Path) -> Running {
    let mut running = Running::start(harvest([kind, "run", "-c", text(settings)]));
    running.line_with(if kind == "cache" { "use http://" } else { " runs" });
    running
}

/// Serves an answer for each path, and another status and answer for all other paths, as long as the test runs. Returns
/// the address.
fn answering(answers: Vec<(&'static str, String)>, otherwise: (u16, String)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let _gone = reader.read_line(&mut line);
            while reader.read_line(&mut String::new()).is_ok_and(|it| 2 < it) {}
            let path = line.split([' ', '?']).nth(1).unwrap_or_default();
            let found = answers.iter().find(|it| it.0 == path);
            let (status, body) = found.map_or((otherwise.0, &otherwise.1), |it| (200, &it.1));
            let length = body.len();
            let _gone = write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

/// Founds a group of two replicators, whose feeds are open to others.
fn replicators(folder: &Path, announcing: &str) -> Vec<Running> {
    let collection = folder.join("copied");
    write(&collection, "a.txt", "a");
    let tree = format!("docs={}", text(&collection));
    let address = || format!("127.0.0.1:{}", free_port());
    let local = address();
    let first = folder.join("m0");
    let args = ["replicator", "init", text(&first), "--group", "g", "--address", &local];
    let printed = run_ok(args.into_iter().chain(["--tree", &tree]));
    let begin = printed.find("harvest-group-1,").unwrap();
    let invitation = printed[begin..].split_whitespace().next().unwrap().to_owned();
    let local = address();
    let second = folder.join("m1");
    let args = ["replicator", "join", text(&second), &invitation, "--address", &local];
    run_ok(args.into_iter().chain(["--site", "far"]));
    let members = [first, second].map(|member| {
        let settings = member.join("replicator.toml");
        let before = std::fs::read_to_string(&settings).unwrap();
        let feeds = format!("feed_listen = \"127.0.0.1:{}\"\n", free_port());
        std::fs::write(&settings, format!("{feeds}{before}\n{announcing}")).unwrap();
        run_daemon("replicator", &settings)
    });
    members.into()
}

/// Repeats a question until its answer is as it should be.
pub(super) fn until<T>(what: &str, mut ask: impl FnMut() -> T, is_so: impl Fn(&T) -> bool) -> T
where
    T: std::fmt::Debug,
{
    let end = clock::monotonic() + 2 * PATIENCE;
    loop {
        let answer = ask();
        if is_so(&answer) {
            return answer;
        }
        assert!(clock::monotonic() < end, "{what}: {answer:?}");
    }
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns who was asked of a search everywhere, and what came of it.
fn asked(answer: &Value) -> Vec<(String, String)> {
    let asked = answer["everywhere"]["asked"].as_array().cloned().unwrap_or_default();
    let of = |it: &Value| {
        let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        (text("name"), text("state"))
    };
    let mut them: Vec<_> = asked.iter().map(of).collect();
    them.sort();
    them
}

/// All of them, in a folder.
struct Community {
    registry: Member,
    gatherers: Vec<Member>,
    brokers: Vec<Member>,
    cache: Member,
    replicators: Vec<Running>,
}

impl Community {
    fn start(folder: &Path) -> Self {
        let often = "[announcements]\nevery = \"3 s\"\n";
        let registry = start(folder, "registry", "registry", often);
        let announcing = format!("[registry]\nurl = \"{}\"\n", registry.url);
        let mut gatherers = Vec::new();
        for subject in SUBJECTS {
            for number in 0..3 {
                let words =
                    format!("The {subject} number{number} of {subject}s\n\nAll about it.\n");
                write(folder, &format!("{subject}/{number}.txt"), words);
            }
            let tree = folder.join(subject);
            let more = format!(
                "{announcing}[[root]]\nurl = \"file://{0}\"\n[[map]]\nurl_prefix = \"http://{subject}.example/\"\n\
                 directory = \"{0}\"\n",
                tree.display()
            );
            gatherers.push(start(folder, "gatherer", &format!("g-{subject}"), &more));
        }
        let mut brokers = Vec::new();
        for (number, gatherer) in gatherers.iter().cycle().take(8).enumerate() {
            let more = format!(
                "{announcing}[[source]]\nurl = \"{0}\"\nfollow = true\n[oai]\nfriends = [\"{0}oai\"]\n",
                gatherer.url
            );
            brokers.push(start(folder, "broker", &format!("b{number}"), &more));
        }
        let cache = start(folder, "cache", "cache", &announcing);
        let replicators = replicators(folder, &announcing);
        Self { registry, gatherers, brokers, cache, replicators }
    }

    /// Stops all that run.
    fn stop(self) {
        let Self { registry, gatherers, brokers, cache, replicators } = self;
        let daemons = gatherers.into_iter().chain(brokers).chain([cache, registry]);
        for mut running in daemons.map(|it| it.running).chain(replicators) {
            assert!(running.stop("TERM").success());
        }
    }
}

/// Warned of: somebody gathers that site already.
fn who_gathers_already_is_named(folder: &Path, registry: &Member, gathering: &Member) {
    let data = folder.join("up");
    let site = "http://fern.example/leaves/";
    let args = ["up", site, "--once", "--data", text(&data), "--registry", &registry.url];
    let refused = run(args);
    let said = texts(&refused).1;
    assert!(!refused.status.success() && said.contains("g-fern"), "{said}");
    assert!(said.contains(&gathering.url) && said.contains("--anyway"), "{said}");
    // A daemon that does it nevertheless is told so.
    let tree = folder.join("fern");
    let again = format!(
        "[registry]\nurl = \"{0}\"\n[[root]]\nurl = \"file://{1}\"\n[[map]]\n\
         url_prefix = \"http://fern.example/\"\ndirectory = \"{1}\"\n",
        registry.url,
        tree.display()
    );
    let mut again = start(folder, "gatherer", "again", &again);
    let status = || run_ok(["gatherer", "status", "--json", "-c", text(&again.settings)]);
    until("the warning", status, |it| it.contains("g-fern"));
    assert!(again.running.stop("TERM").success());
}

#[test]
fn a_community_finds_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut community = Community::start(folder);
    let Community { registry, gatherers, brokers, .. } = &mut community;

    // Found: all of them are listed, and by what they are and have.
    let list = || json(&run_ok(["registry", "list", "--json", "--registry", &registry.url]));
    let list = until("the list", list, |it| it.as_array().unwrap().len() == 15);
    let count =
        |kind: &str| list.as_array().unwrap().iter().filter(|it| it["kind"] == kind).count();
    let counts = ["gatherer", "broker", "cache", "replicator"].map(count);
    assert_eq!(counts, [4, 8, 1, 2], "{list:#}");
    let find = |query: &str| run_ok(["registry", "find", "--registry", &registry.url, query]);
    until("by its words", || find("type:Gatherer gathers:fern"), |it| it.contains("g-fern"));
    let shown = list[0]["id"].as_str().unwrap().to_owned();
    let shown = run_ok(["registry", "show", &shown, "--registry", &registry.url]);
    assert!(shown.contains("alive"), "{shown}");

    // Searched everywhere: who has the word is asked, and says what it has.
    let asked_first = brokers[0].url.clone();
    let search = |word: &str| {
        let args = ["search", "--everywhere", "--json", "--broker", &asked_first, word];
        json(&run_ok(args))
    };
    let is_asked = |answer: &Value, names: &[&str]| {
        let them = asked(answer);
        them.iter().map(|it| &*it.0).eq(names.iter().copied())
    };
    let answer = until("comets", || search("comet"), |it| is_asked(it, &["b2", "b6"]));
    assert_eq!(answer["total"], 3, "both have the same three objects: {answer:#}");
    let sonatas = || run_ok(["search", "--everywhere", "--broker", &asked_first, "sonata"]);
    let printed = until("sonatas", sonatas, |it| it.contains("asked 2 of 8 brokers"));
    assert!(printed.contains("at b"), "{printed}");

    // One is killed: it is named, and the other one answers.
    brokers[2].running.signal("KILL");
    brokers[2].running.end();
    let answer = search("comet");
    assert_eq!(answer["total"], 3, "{answer:#}");
    let them = asked(&answer);
    let killed = them.iter().find(|it| it.0 == "b2").unwrap();
    assert_ne!(killed.1, "answered", "{them:?}");
    let dead = || run_ok(["registry", "list", "--registry", &registry.url, "--kind", "broker"]);
    until("the death", dead, |it| it.lines().any(|it| it.contains("b2") && it.contains("dead")));

    who_gathers_already_is_named(folder, registry, &gatherers[1]);
    // Who would gather others.
    let sites = ["http://fern.example/", "http://moss.example/"];
    let args = ["registry", "divide", "--json", "--registry", &registry.url, sites[0], sites[1]];
    let divided = json(&run_ok(args));
    assert_eq!((&divided[0]["gatherer"], &divided[0]["already"]), (&"g-fern".into(), &true.into()));
    assert_eq!(divided[1]["already"], false);

    // Found without the registry: whom a broker names, and who of them answers.
    let discovered = json(&run_ok(["registry", "discover", "--json", &brokers[1].url]));
    let found: Vec<_> = discovered.as_array().unwrap().iter().collect();
    let names: Vec<_> = found.iter().map(|it| (&it["name"], &it["kind"], &it["depth"])).collect();
    let expected = [("b1", "broker", 0), ("g-fern", "gatherer", 1)]
        .map(|(name, kind, depth)| (Value::from(name), Value::from(kind), Value::from(depth)));
    let alive: Vec<_> = expected.iter().map(|it| (&it.0, &it.1, &it.2)).collect();
    assert_eq!(names, alive, "{discovered:#}");
    let nobody = run(["registry", "discover", "http://127.0.0.1:9/"]);
    assert!(!nobody.status.success() && texts(&nobody).1.contains("nothing answers"));

    let status = run_ok(["registry", "status", "-c", text(&registry.settings)]);
    assert!(status.contains("registry (") && status.contains("objects"), "{status}");
    let own = run_ok(["gatherer", "status", "--json", "-c", text(&gatherers[1].settings)]);
    assert!(own.contains("\"listed\""), "{own}");

    // A goodbye is heard at once.
    assert!(gatherers[0].running.stop("TERM").success());
    let list = || run_ok(["registry", "list", "--registry", &registry.url]);
    until("the goodbye", list, |it| !it.contains("g-granite"));
    gatherers.remove(0);
    brokers.remove(2);
    community.stop();
}

#[test]
fn a_registry_that_says_nothing_delays_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // It takes connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let announcing = format!("[registry]\nurl = \"http://{}/\"\n", silent.local_addr().unwrap());
    write(&folder.path().join("tree"), "a.txt", "a");
    let root = format!("[[root]]\nurl = \"file://{}\"\n", text(&folder.path().join("tree")));
    for (kind, more) in [("gatherer", &*root), ("cache", "")] {
        let mut daemon = start(folder.path(), kind, kind, &format!("{announcing}{more}"));
        let (status, ..) = ask("GET", &format!("{}.well-known/harvest", daemon.url), &[]);
        assert_eq!(status, 200, "{kind}");
        // It is asked at once, and still is when the daemon is stopped.
        assert!(daemon.running.stop("TERM").success(), "{kind}");
    }
}
