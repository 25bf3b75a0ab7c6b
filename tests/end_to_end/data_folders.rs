//! Tests of data folders of earlier releases (`tests/data_folders`): they open with all objects.

use std::fs;
use std::path::Path;
use std::process::Command;

use net::clock;
use serde_json::Value;

use crate::daemons::{free_port, url_in};
use crate::harness::{PATIENCE, Running, ask, harvest, run_ok, total, write};

/// Objects that the folders have. Their files are missing here, which deletes nothing.
const OBJECTS: [&str; 2] = ["file:///srv/www/cider.txt", "file:///srv/www/mead.txt"];

/// Unpacks every archived folder, each into a new temporary folder.
fn folders() -> Vec<(String, tempfile::TempDir)> {
    let archives = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data_folders");
    let names = fs::read_dir(archives).unwrap().map(|it| it.unwrap().path());
    let mut folders = Vec::new();
    for path in names.filter(|it| it.extension().is_some_and(|it| it == "gz")) {
        let dir = tempfile::tempdir().unwrap();
        let unpacked =
            Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(dir.path()).status();
        assert!(unpacked.unwrap().success(), "{}", path.display());
        folders.push((path.file_name().unwrap().to_string_lossy().into_owned(), dir));
    }
    assert!(!folders.is_empty());
    folders
}

fn start(command: [&str; 2], settings: &Path) -> Running {
    let [daemon, run] = command;
    Running::start(harvest([daemon, run, "-c", settings.to_str().unwrap()]))
}

fn head(name: &str, data: &Path) -> String {
    let (data, port) = (data.display(), free_port());
    format!(
        "name = \"{name}\"\ndata = \"{data}\"\nlisten = \"127.0.0.1:0\"\nadmin_listen = \"127.0.0.1:{port}\"\n"
    )
}

#[test]
fn folders_of_earlier_releases_have_all_their_objects() {
    for (name, dir) in folders() {
        for daemon in ["gatherer", "broker"] {
            let data = dir.path().join(daemon);
            let verified = run_ok(["collection", "verify", data.to_str().unwrap()]);
            assert!(verified.contains("2 objects: 0 problems"), "{name}: {verified}");
        }
        let root = "\n[[root]]\nurl = \"file:///srv/www\"\n";
        let settings = head("Orchard", &dir.path().join("gatherer")) + root;
        let file = write(dir.path(), "gatherer.toml", settings);
        let mut gatherer = start(["gatherer", "run"], &file);
        let url = url_in(&gatherer.line_with("http://"));
        for object in OBJECTS {
            let (status, _, body) = ask("GET", &format!("{url}object?oid={object}"), &[]);
            assert_eq!(status, 200, "{name}: {object}: {}", String::from_utf8_lossy(&body));
        }

        let source =
            format!("\n[[source]]\nname = \"orchard\"\nkind = \"gatherer\"\nurl = \"{url}\"\n");
        let settings = head("Fruit", &dir.path().join("broker")) + &source;
        let file = write(dir.path(), "broker.toml", settings);
        let mut broker = start(["broker", "run"], &file);
        let url = url_in(&broker.line_with("http://"));
        let began = clock::monotonic();
        while total(&url, "made") != 2 || total(&url, "mead") != 1 {
            assert!(began.elapsed() < PATIENCE, "{name}: search does not find the old objects");
        }
        replicator(&name, &dir.path().join("boulder"));
    }
}

/// Checks a replicator's folder, which holds its settings.
fn replicator(name: &str, folder: &Path) {
    let file = folder.join("replicator.toml");
    let mut settings = fs::read_to_string(&file).unwrap();
    for port in ["14000", "15000"] {
        settings = settings.replace(port, &free_port().to_string());
    }
    fs::write(&file, settings).unwrap();
    let mut replicator = start(["replicator", "run"], &file);
    replicator.line_with("runs");
    let status = run_ok(["replicator", "status", "-c", file.to_str().unwrap(), "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["groups"][0]["name"], "papers", "{name}: {status:#}");
    let trees = fs::read_dir(folder.join("data/trees")).unwrap().map(|it| it.unwrap().path());
    let trees: Vec<_> = trees.collect();
    let [tree] = &trees[..] else { panic!("{name}: {trees:?}") };
    let text = fs::read_to_string(tree.join("current/mead.txt")).unwrap();
    assert_eq!(text, "Mead is made of honey.\n", "{name}");
}
