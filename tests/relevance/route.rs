//! Searches everywhere: 32 brokers with the made tree among them, beside one index of all of it.
//!
//! The brokers find each other through a registry, and know of each other what their summaries say.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use collection::feed::{FeedOptions, FeedServer};
use collection::{Batch, Change, Collection, Options, Stamp};
use net::clock;
use net::shutdown::Shutdown;
use serde_json::Value;
use soif::Record;

use super::{made, serve};
use crate::harness::{PATIENCE, Running, ask, harvest, run_ok, write};

/// Number of brokers.
const BROKERS: usize = 32;
/// Number of brokers that are asked, and the least share of the quality of one index: split by topic, and at random.
const BY_TOPIC: (u64, f64) = (3, 0.99);
const AT_RANDOM: (u64, f64) = (5, 0.93);

fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the records of the collection that a finished `harvest up` has left.
fn records(data: &Path) -> Vec<Record> {
    let folder = data.join("gatherer/collection");
    let (collection, _) =
        Collection::open(&folder, Options::default(), Stamp(clock::now_ms())).unwrap();
    let changes = collection.scan(0).unwrap().map(|it| it.unwrap().change);
    let records = changes.filter_map(|it| match it {
        Change::Update(record) => Some(record),
        _ => None,
    });
    records.collect()
}

/// Serves the records of each broker below a path of its own; returns the address.
async fn feeds(folder: &Path, parts: Vec<Vec<Record>>) -> String {
    let mut feeds = Vec::new();
    for (number, records) in parts.into_iter().enumerate() {
        let folder = folder.join(number.to_string());
        let now = Stamp(clock::now_ms());
        let (collection, _) = Collection::open(&folder, Options::default(), now).unwrap();
        let changes = records.into_iter().map(Change::Update).collect();
        collection.commit(Batch { changes, notes: Vec::new() }, now).unwrap();
        feeds.push(FeedServer::new(collection, FeedOptions::default()));
    }
    let service = tower::service_fn(move |request: http::Request<net::body::Body>| {
        let feeds = feeds.clone();
        async move {
            let mut request = request.map(drop);
            let target = request.uri().path_and_query().unwrap().as_str().to_owned();
            let (number, rest) = target.trim_start_matches('/').split_once('/').unwrap();
            *request.uri_mut() = format!("/{rest}").parse().unwrap();
            Ok::<_, Infallible>(feeds[number.parse::<usize>().unwrap()].respond(request).await)
        }
    });
    let listener = net::server::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let limits = net::server::Limits::default();
    tokio::spawn(net::server::serve(listener, service, limits, Shutdown::new()));
    address
}

fn daemon(kind: &str, settings: &Path) -> Running {
    let mut running = Running::start(harvest([kind, "run", "-c", settings.to_str().unwrap()]));
    running.line_with(" runs");
    running
}

/// The registry and the brokers.
struct Union {
    /// Each with its address.
    brokers: Vec<(Running, String)>,
    _registry: Running,
}

impl Union {
    fn start(folder: &Path, feeds: &str) -> Self {
        let registry = port();
        let text = format!(
            "name = \"Registry\"\nlisten = \"127.0.0.1:{registry}\"\nadmin_listen = \"127.0.0.1:0\"\n\
             data = \"registry\"\n"
        );
        let registry_ = daemon("registry", &write(folder, "registry.toml", text));
        let start = |number: usize| {
            let port = port();
            let text = format!(
                "name = \"Broker {number}\"\nlisten = \"127.0.0.1:{port}\"\nadmin_listen = \"127.0.0.1:0\"\n\
                 data = \"b{number}\"\n[registry]\nurl = \"http://127.0.0.1:{registry}/\"\n\
                 [[source]]\nurl = \"{feeds}{number}/\"\n"
            );
            let settings = write(folder, &format!("{number}.toml"), text);
            (daemon("broker", &settings), format!("http://127.0.0.1:{port}/"))
        };
        Self { brokers: (0..BROKERS).map(start).collect(), _registry: registry_ }
    }

    /// Waits until the first one knows the others and what they have.
    fn until_known(&self, objects: usize) {
        let end = clock::monotonic() + PATIENCE;
        loop {
            // A word that nobody has is asked of those alone that have told nothing yet.
            let answer = everywhere(&self.brokers[0].1, "zqxjkvbzzqx", 1);
            let known = &answer["everywhere"];
            let is_told = known["asked"].as_array().is_some_and(Vec::is_empty);
            if known["known"] == BROKERS && known["objects"] == objects && is_told {
                return;
            }
            assert!(clock::monotonic() < end, "{objects} objects: {known:#}");
        }
    }
}

fn everywhere(broker: &str, query: &str, most: u64) -> Value {
    let url = format!("{broker}api/search?q={query}&scope=everywhere&ask={most}");
    let (status, head, body) = ask("GET", &url, &[]);
    assert_eq!(status, 200, "{head}");
    serde_json::from_slice(&body).unwrap()
}

/// Measures brokers among which the records are split, beside the page of one index.
fn measure(
    parts: Vec<Vec<Record>>,
    files: [&Path; 2],
    (page, ask): (&str, u64),
) -> (Value, Union, tempfile::TempDir, tokio::runtime::Runtime) {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let objects = parts.iter().map(Vec::len).sum();
    let feeds = runtime.block_on(feeds(&folder.path().join("feeds"), parts));
    let union = Union::start(folder.path(), &feeds);
    union.until_known(objects);
    let [queries, qrels] = files.map(|it| it.to_str().unwrap());
    let ask = ask.to_string();
    let args = ["bench", "route", "--json", "--broker", &union.brokers[0].1, "--central", page];
    let more = ["--ask", &ask, "--queries", queries, "--qrels", qrels];
    let figures: Value = serde_json::from_str(&run_ok(args.into_iter().chain(more))).unwrap();
    println!("{figures:#}");
    (figures, union, folder, runtime)
}

fn check(figures: &Value, (ask, share): (u64, f64)) {
    assert!(figures["asked"].as_f64().unwrap() <= ask as f64, "{figures}");
    assert_eq!((&figures["known"], &figures["missing"]), (&Value::from(32.0), &Value::from(0)));
    let reached = figures["of_central"].as_f64().unwrap();
    assert!(share <= reached, "{reached:.3} of one index, below {share}");
}

#[test]
fn a_few_of_many_brokers_answer_as_well_as_one_index() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (queries, judgments) = made::make(tree.path(), made::SEED);
    let queries = write(data.path(), "queries", queries);
    let qrels = write(data.path(), "qrels", judgments);
    let files: [&Path; 2] = [&queries, &qrels];
    let all: PathBuf = data.path().join("data");
    let (mut central, _) = serve(&all, &[tree.path()]);
    assert!(central.stop("INT").success());
    let records = records(&all);
    let (mut central, page) = serve(&all, &[tree.path()]);

    let mut topics: HashMap<String, usize> = HashMap::new();
    for (topic, paths) in made::paths(made::SEED).into_iter().enumerate() {
        topics.extend(paths.into_iter().map(|it| (it, topic)));
    }
    let topic_of = |record: &Record| {
        let path = record.url.rsplit_once(tree.path().to_str().unwrap()).unwrap().1;
        topics[path.trim_start_matches('/')]
    };
    let split = |place: &mut dyn FnMut(&Record) -> usize| {
        let mut parts: Vec<Vec<Record>> = vec![Vec::new(); BROKERS];
        for record in &records {
            parts[place(record)].push(record.clone());
        }
        parts
    };
    let parts = split(&mut |it| topic_of(it));
    let (figures, mut union, folder, runtime) = measure(parts, files, (&page, BY_TOPIC.0));
    check(&figures, BY_TOPIC);

    // Two are killed: they are named, and the others answer.
    let command = made::paths(made::SEED)[3][0].split(['/', '.']).nth(1).unwrap().to_owned();
    for number in [3, 4] {
        union.brokers[number].0.signal("KILL");
        union.brokers[number].0.end();
    }
    let answer = everywhere(&union.brokers[0].1, &command, BY_TOPIC.0);
    let asked = answer["everywhere"]["asked"].as_array().unwrap();
    let killed = asked.iter().find(|it| it["name"] == "Broker 3").unwrap();
    assert_ne!(killed["state"], "answered", "{asked:?}");
    drop((union, folder, runtime));

    let mut dice = fastrand::Rng::with_seed(made::SEED);
    let parts = split(&mut |_| dice.usize(0..BROKERS));
    let (figures, ..) = measure(parts, files, (&page, AT_RANDOM.0));
    check(&figures, AT_RANDOM);
    assert!(central.stop("INT").success());
}
