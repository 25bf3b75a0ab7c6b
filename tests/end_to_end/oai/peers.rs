//! Tests of OAI-PMH with foreign software: its clients at our repository, its repository as source.
//!
//! The peers are Python packages from PyPI, installed by tests/oai_peers/prepare.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use net::clock;
use serde_json::{Value, json};

use crate::daemons::{broker_settings, gatherer_settings, url_in};
use crate::harness::{PATIENCE, Running, harvest, run_ok, total, write};

/// Number of records of each repository.
const RECORDS: usize = 1_000;
/// Number of them that are deleted.
const DELETED: usize = 50;

/// A Python process that answers a line with a line; ended when dropped.
struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn start(script: &str, args: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join("tests/oai_peers");
        let prepared = Command::new(folder.join("prepare")).arg("venv").status().unwrap();
        assert!(prepared.success(), "the Python peers are missing; see above");
        let mut child = Command::new(root.join("target/oai/venv/bin/python"))
            .arg(folder.join(script))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the peer has ended");
        line.trim_end().to_owned()
    }

    fn send(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").unwrap();
        self.line()
    }

    /// Sends a request to a client; returns its result.
    fn ask(&mut self, request: &Value) -> Value {
        serde_json::from_str(&self.send(&request.to_string())).unwrap()
    }

    /// Returns the items of a list; panics at an error.
    fn list(&mut self, request: &Value) -> Vec<Value> {
        let answer = self.ask(request);
        answer.as_array().unwrap_or_else(|| panic!("{request} returns {answer}")).clone()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the titles of live records, each once.
fn titles(records: &[Value]) -> BTreeSet<String> {
    let live = records.iter().filter(|it| it["deleted"] == false);
    let titles: Vec<String> = live.map(|it| text(&it["fields"]["title"][0])).collect();
    let distinct: BTreeSet<String> = titles.iter().cloned().collect();
    assert_eq!(distinct.len(), titles.len(), "a title came twice");
    distinct
}

fn identifiers(records: &[Value]) -> BTreeSet<String> {
    let distinct: BTreeSet<String> = records.iter().map(|it| text(&it["identifier"])).collect();
    assert_eq!(distinct.len(), records.len(), "an identifier came twice");
    distinct
}

/// Checks that both sets are equal; names the first differences.
#[track_caller]
fn assert_same(found: &BTreeSet<String>, expected: &BTreeSet<String>, what: &str) {
    let other: Vec<&String> = found.symmetric_difference(expected).take(5).collect();
    assert!(other.is_empty(), "{what}: {} and {}, such as {other:?}", found.len(), expected.len());
}

fn deleted(records: &[Value]) -> usize {
    records.iter().filter(|it| it["deleted"] == true).count()
}

/// Writes a tree of half HTML, half Markdown; returns the titles by file name.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut titles = BTreeMap::new();
    for number in 0..RECORDS {
        let title = format!("Survey {number}: rills & «becks» <west>");
        let name = if number % 2 == 0 {
            let escaped = title.replace('&', "&amp;").replace('<', "&lt;");
            let page = format!(
                "<html><head><meta charset=utf-8><title>{escaped}</title></head><body>Page {number}</body></html>"
            );
            let name = format!("html/{number}.html");
            write(root, &name, page);
            name
        } else {
            let escaped = title.replace('<', "\\<");
            let name = format!("md/{number}.md");
            write(root, &name, format!("# {escaped}\n\nNote {number}.\n"));
            name
        };
        titles.insert(name, title);
    }
    titles
}

/// Waits until the list has `records` records, `gone` of them deleted.
fn wait_for_list(peer: &mut Peer, records: usize, gone: usize) -> Vec<Value> {
    let end = clock::monotonic() + PATIENCE;
    loop {
        let list = peer.ask(&json!({ "verb": "ListRecords", "metadataPrefix": "oai_dc" }));
        if let Some(found) = list.as_array()
            && found.len() == records
            && deleted(found) == gone
        {
            return found.clone();
        }
        let has = list.as_array().map_or(0, Vec::len);
        assert!(clock::monotonic() < end, "{has} records instead of {records}");
    }
}

#[test]
fn foreign_clients_get_every_record_and_every_deletion() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    let mut expected = tree(&root);
    let settings = gatherer_settings(folder.path(), "http://www.example.org/docs/");
    let file = write(folder.path(), "gatherer.toml", settings);
    let file = file.to_str().unwrap();
    let mut gatherer = Running::start(harvest(["gatherer", "run", "-c", file]));
    let base_url = format!("{}oai", url_in(&gatherer.line_with("http://")));
    let mut sickle = Peer::start("client.py", &["sickle", &base_url]);
    wait_for_list(&mut sickle, RECORDS, 0);
    for name in expected.keys().step_by(RECORDS / DELETED).cloned().collect::<Vec<_>>() {
        fs::remove_file(root.join(&name)).unwrap();
        expected.remove(&name);
    }
    run_ok(["gatherer", "gather", "-c", file]);
    wait_for_list(&mut sickle, RECORDS, DELETED);
    let expected: BTreeSet<String> = expected.into_values().collect();
    for name in ["sickle", "oaipmh"] {
        let mut client = Peer::start("client.py", &[name, &base_url]);
        let records = client.list(&json!({ "verb": "ListRecords", "metadataPrefix": "oai_dc" }));
        assert_eq!((records.len(), deleted(&records)), (RECORDS, DELETED), "{name}");
        assert_same(&titles(&records), &expected, name);
        check_other_verbs(&mut client, &base_url, &records);
    }
    assert!(gatherer.stop("TERM").success());
}

/// Checks that the other verbs agree with the whole list.
fn check_other_verbs(client: &mut Peer, base_url: &str, records: &[Value]) {
    let list = |rest: Value| {
        let mut request = json!({ "verb": "ListIdentifiers", "metadataPrefix": "oai_dc" });
        request.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        request
    };
    let all = identifiers(records);
    let identify = &client.list(&json!({ "verb": "Identify" }))[0];
    assert_eq!(identify["url"], base_url);
    assert_eq!(identify["deleted"], "transient");
    assert_eq!(identify["granularity"], "YYYY-MM-DDThh:mm:ssZ");
    let formats = client.list(&json!({ "verb": "ListMetadataFormats" }));
    assert!(formats.iter().any(|it| it["prefix"] == "oai_dc"), "{formats:?}");
    assert_same(&identifiers(&client.list(&list(json!({})))), &all, "ListIdentifiers");

    // Each set lists the records that name it, and perhaps deleted ones, which have no type.
    let gone: BTreeSet<String> = identifiers(
        &records.iter().filter(|it| it["deleted"] == true).cloned().collect::<Vec<_>>(),
    );
    let sets = client.list(&json!({ "verb": "ListSets" }));
    assert!(4 <= sets.len(), "{sets:?}");
    for set in sets {
        let spec = text(&set["spec"]);
        let below = format!("{spec}:");
        let is_in = |it: &&Value| {
            let sets = it["sets"].as_array().unwrap();
            sets.iter().any(|it| it == &spec || text(it).starts_with(&below))
        };
        let expected = identifiers(&records.iter().filter(is_in).cloned().collect::<Vec<_>>());
        let found = identifiers(&client.list(&list(json!({ "set": spec }))));
        assert_same(&(&found - &gone), &(&expected - &gone), &spec);
        assert!(found.is_superset(&(&expected & &gone)) && found.is_subset(&all), "{spec}");
    }

    // The records until a date and those from it make the whole; those of that second are in both.
    let mut stamps: Vec<String> = records.iter().map(|it| text(&it["datestamp"])).collect();
    stamps.sort();
    let middle = &stamps[RECORDS / 2];
    let until = identifiers(&client.list(&list(json!({ "until": middle }))));
    let from = identifiers(&client.list(&list(json!({ "from": middle }))));
    let of_it = identifiers(&client.list(&list(json!({ "from": middle, "until": middle }))));
    assert_same(&(&until | &from), &all, middle);
    assert_same(&(&until & &from), &of_it, middle);
    assert!(!of_it.is_empty());
    let none = client.ask(&list(json!({ "until": "2001-01-01T00:00:00Z" })));
    assert_eq!(none, json!({ "error": "noRecordsMatch" }));

    // One live record, and one deleted record.
    for gone in [false, true] {
        let one = records.iter().find(|it| it["deleted"] == gone).unwrap();
        let request = json!({
            "verb": "GetRecord", "metadataPrefix": "oai_dc", "identifier": one["identifier"]
        });
        assert_eq!(&client.list(&request)[0], one);
    }
    let request =
        json!({ "verb": "GetRecord", "metadataPrefix": "oai_dc", "identifier": "oai:x.example:1" });
    assert_eq!(client.ask(&request), json!({ "error": "idDoesNotExist" }));
    let request = json!({ "verb": "ListRecords", "metadataPrefix": "marc21" });
    assert_eq!(client.ask(&request), json!({ "error": "cannotDisseminateFormat" }));
}

#[test]
fn a_foreign_repository_is_a_source() {
    let mut server = Peer::start("server.py", &[]);
    let source = server.line();
    let folder = tempfile::tempdir().unwrap();
    let settings = broker_settings(folder.path(), &[(&source, false)])
        .replace("kind = \"gatherer\"", "kind = \"oai\"")
        .replace("follow = false", "delay = \"0 s\"");
    let file = write(folder.path(), "broker.toml", settings);
    let file = file.to_str().unwrap();
    let mut broker = Running::start(harvest(["broker", "run", "-c", file]));
    let page = broker.search_url();
    let end = clock::monotonic() + PATIENCE;
    while total(&page, "hydrology") != u64::try_from(RECORDS).unwrap() {
        assert!(clock::monotonic() < end, "{}", run_ok(["broker", "status", "-c", file]));
    }

    assert_eq!(server.send("delete"), "done");
    assert_eq!(server.send("change"), "done");
    let end = clock::monotonic() + PATIENCE;
    while total(&page, "title:revised") != 50 || total(&page, "hydrology") != 950 {
        assert!(clock::monotonic() < end, "{}", run_ok(["broker", "status", "-c", file]));
        run_ok(["broker", "pull", "-c", file]);
    }

    // A foreign client finds the same records in both repositories.
    let all = json!({ "verb": "ListRecords", "metadataPrefix": "oai_dc" });
    let theirs = Peer::start("client.py", &["oaipmh", &source]).list(&all);
    let host: Vec<&str> = page.split('/').take(3).collect();
    let ours = format!("{}/oai", host.join("/"));
    let ours = Peer::start("client.py", &["oaipmh", &ours]).list(&all);
    assert_eq!((theirs.len(), deleted(&theirs)), (RECORDS, DELETED));
    assert_eq!((ours.len(), deleted(&ours)), (RECORDS, DELETED));
    assert_same(&titles(&ours), &titles(&theirs), "titles");
    let fields = |records: &[Value], name: &str| -> BTreeMap<String, Value> {
        let live = records.iter().filter(|it| it["deleted"] == false);
        live.map(|it| (text(&it["fields"]["title"][0]), it["fields"][name].clone())).collect()
    };
    for name in ["creator", "subject"] {
        assert_eq!(fields(&ours, name), fields(&theirs, name), "{name}");
    }
    check_part(&source);
    assert!(broker.stop("TERM").success());
}

/// Checks that our command lists a part of their repository: a set, from one day to another.
fn check_part(source: &str) {
    let part = ["--set", "maps", "--from", "2024-01-10", "--until", "2024-01-20", "--json"];
    let printed = run_ok(["oai", "list", source].iter().chain(&part));
    let found: BTreeSet<String> = printed
        .lines()
        .map(|line| text(&serde_json::from_str::<Value>(line).unwrap()["identifier"]))
        .collect();
    // One record an hour since 2024-01-01; every fourth is a map, every twentieth deleted today.
    let hours = 9 * 24..20 * 24;
    let expected = hours.filter(|it| it % 4 == 0 && it % 20 != 0);
    let expected = expected.map(|it| format!("oai:peer.example:{it}")).collect();
    assert_same(&found, &expected, "a set and two dates");
}
