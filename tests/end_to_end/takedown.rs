//! Tests of takedowns over three daemons: a gatherer, its brokers, and a broker that pulls those.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::daemons::{broker_settings, gatherer_settings, url_in};
use crate::harness::{
    PATIENCE, Running, ask, harvest, run, run_ok, search, small_tree, texts, total, wait_for_total,
    write,
};

/// A word that only the suppressed document has.
const WORD: &str = "zanzibarite";
const URL: &str = "http://www.example.org/docs/secret.txt";

/// Starts a broker with its settings and data in `folder`; returns it and its page.
fn broker(
    folder: &Path,
    sources: &[(&str, bool)],
    edit: impl Fn(String) -> String,
) -> (Running, String) {
    let settings = edit(broker_settings(folder, sources));
    let file = write(folder, "broker.toml", settings);
    let mut running = Running::start(harvest(["broker", "run", "-c", file.to_str().unwrap()]));
    let page = running.search_url();
    (running, page)
}

fn data(folder: &Path) -> String {
    folder.join("broker-data").display().to_string()
}

/// Adds the files below `folder` that have the word, packed or not.
fn having_word(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            having_word(&path, found);
            continue;
        }
        // A daemon may have just removed it.
        let Ok(mut bytes) = fs::read(&path) else { continue };
        // An empty segment is no gzip file.
        if path.extension().is_some_and(|it| it == "gz") && !bytes.is_empty() {
            let mut plain = Vec::new();
            flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
            bytes.extend(plain);
        }
        if bytes.windows(WORD.len()).any(|it| it.eq_ignore_ascii_case(WORD.as_bytes())) {
            found.push(path);
        }
    }
}

fn with_word(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    having_word(Path::new(folder), &mut found);
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn status(folder: &Path) -> serde_json::Value {
    let file = folder.join("broker.toml");
    serde_json::from_str(&run_ok(["broker", "status", "-c", file.to_str().unwrap(), "--json"]))
        .unwrap()
}

/// Waits until every source of a broker has been pulled.
fn wait_for_pulls(folder: &Path) {
    let pulled = |it: &serde_json::Value| it["pulls"].as_u64().unwrap() != 0;
    let end = net::clock::monotonic() + PATIENCE;
    while !status(folder)["sources"].as_array().unwrap().iter().all(pulled) {
        assert!(net::clock::monotonic() < end, "{}", status(folder));
    }
}

/// Purges, and checks that the word is gone from all files.
fn purge(data: &str) -> String {
    assert_ne!(with_word(data), Vec::<PathBuf>::new(), "the test needs the word here");
    let output = run(["collection", "purge", data]);
    let (text, err) = texts(&output);
    assert!(output.status.success(), "{text}{err}");
    assert_eq!(with_word(data), Vec::<PathBuf>::new(), "{text}");
    assert!(text.contains("in backups") && text.contains(URL), "{text}");
    text
}

/// A gatherer of the small tree and of the document to suppress.
struct Source {
    gatherer: Running,
    url: String,
    data: String,
    tree: PathBuf,
}

fn source(folder: &Path) -> Source {
    let tree = folder.join("tree");
    small_tree(&tree);
    write(&tree, "secret.txt", format!("Secret\n\nThe {WORD} lies under the oak.\n"));
    let settings = gatherer_settings(folder, "http://www.example.org/docs/");
    let file = write(folder, "gatherer.toml", settings);
    let mut gatherer = Running::start(harvest(["gatherer", "run", "-c", file.to_str().unwrap()]));
    let url = url_in(&gatherer.line_with("http://"));
    let data = folder.join("gatherer-data").display().to_string();
    Source { gatherer, url, data, tree }
}

fn as_is(settings: String) -> String {
    settings
}

/// Settings of a broker that pulls once a day, so that it still has the suppressed document.
fn daily(settings: String) -> String {
    settings.replace("theta = 0.9", "theta = 0.9\ninterval_min = \"1 day\"")
}

/// Adds a document with a new word, which shows how far changes have come.
fn add_another(source: &Source) {
    write(&source.tree, "after.txt", "After\n\nA word of its own: quixotic.\n");
}

#[test]
fn a_suppressed_object_is_gone_from_gatherer_broker_and_cascading_broker() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut source = source(folder);
    let [first, late, cascade, fresh] =
        ["first", "late", "cascade", "fresh"].map(|it| folder.join(it));
    let (_first_broker, first_page) = broker(&first, &[(&source.url, true)], as_is);
    wait_for_total(&first_page, WORD, 1);
    let (_late_broker, late_page) = broker(&late, &[(&source.url, false)], daily);
    wait_for_total(&late_page, WORD, 1);
    let sources: [(&str, bool); 2] = [(&first_page, true), (&late_page, true)];
    let (_cascade_broker, cascade_page) = broker(&cascade, &sources, as_is);
    wait_for_pulls(&cascade);
    wait_for_total(&cascade_page, WORD, 1);

    let text = run_ok(["collection", "suppress", &source.data, URL, "--reason", "by mistake"]);
    assert!(text.contains("1 object deleted"), "{text}");
    wait_for_total(&first_page, WORD, 0);
    wait_for_total(&cascade_page, WORD, 0);
    assert_eq!(total(&late_page, WORD), 1, "it has not pulled yet");

    // Neither a changed file nor another source brings it back.
    write(&source.tree, "secret.txt", format!("Secret\n\nThe {WORD} lies under the elm.\n"));
    add_another(&source);
    for page in [&first_page, &cascade_page] {
        wait_for_total(page, "quixotic", 1);
        assert_eq!(total(page, WORD), 0);
    }
    let (_fresh_broker, fresh_page) = broker(&fresh, &sources, as_is);
    wait_for_pulls(&fresh);
    wait_for_total(&fresh_page, "quixotic", 1);
    wait_for_total(&fresh_page, WORD, 0);
    for folder in [&first, &cascade, &fresh] {
        let takedowns = &status(folder)["takedowns"];
        assert_eq!((&takedowns["active"], &takedowns["forged"]), (&1.into(), &0.into()));
    }
    let list = run_ok(["collection", "suppress", &data(&cascade), "--list"]);
    assert!(list.contains(URL) && list.contains("by mistake"), "{list}");

    // The bytes are removed, and possible remaining copies are named.
    let text = purge(&source.data);
    assert!(text.contains("secret.txt"), "the file is still there: {text}");
    let id = fs::read_to_string(late.join("broker-data/id")).unwrap();
    assert!(text.contains(id.trim()), "{id} has not pulled the tombstone: {text}");
    purge(&data(&first));
    purge(&data(&cascade));
    assert_eq!(total(&cascade_page, "quixotic"), 1, "the rest is there");
    assert!(source.gatherer.stop("TERM").success());
}

#[test]
fn a_restored_folder_stays_suppressed_and_a_takedown_can_be_lifted() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = source(folder.path());
    let first = folder.path().join("first");
    let follow: [(&str, bool); 1] = [(&source.url, true)];
    let (mut running, page) = broker(&first, &follow, as_is);
    wait_for_total(&page, WORD, 1);
    assert!(running.stop("TERM").success());
    let collection = first.join("broker-data/collection");
    copy(&collection, &first.join("backup"));
    let (mut running, page) = broker(&first, &follow, as_is);
    // The takedown is made at the broker: a takedown at the source would be sent again.
    run_ok(["collection", "suppress", &data(&first), URL, "--reason", "by mistake"]);
    wait_for_total(&page, WORD, 0);

    assert!(running.stop("TERM").success());
    fs::remove_dir_all(&collection).unwrap();
    copy(&first.join("backup"), &collection);
    let (_running, page) = broker(&first, &follow, as_is);
    add_another(&source);
    wait_for_total(&page, "quixotic", 1);
    wait_for_total(&page, WORD, 0);
    purge(&data(&first));

    run_ok(["collection", "suppress", &data(&first), URL, "--lift"]);
    wait_for_total(&page, WORD, 1);
    assert!(source.gatherer.stop("TERM").success());
}

#[test]
fn a_brokers_takedown_applies_where_it_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let source = source(folder);
    let [first, late, own, all] = ["first", "late", "own", "all"].map(|it| folder.join(it));
    let (mut first_broker, first_page) = broker(&first, &[(&source.url, true)], as_is);
    wait_for_total(&first_page, WORD, 1);
    let (_late_broker, late_page) = broker(&late, &[(&source.url, false)], daily);
    wait_for_total(&late_page, WORD, 1);
    let sources: [(&str, bool); 2] = [(&first_page, true), (&late_page, true)];
    let (_own_broker, own_page) = broker(&own, &sources, as_is);
    let trusting = |it: String| it.replace("follow", "takedowns = \"all\"\nfollow");
    let (_all_broker, all_page) = broker(&all, &sources, trusting);
    for (folder, page) in [(&own, &own_page), (&all, &all_page)] {
        wait_for_pulls(folder);
        wait_for_total(page, WORD, 1);
    }
    let text = run_ok(["collection", "suppress", &data(&first), "*/secret.*", "--reason", "ours"]);
    assert!(text.contains("1 object deleted; held until now by 127.0.0.1"), "{text}");
    assert_eq!(total(&first_page, WORD), 0, "the answer comes after the index has the deletion");
    wait_for_total(&all_page, WORD, 0);
    add_another(&source);
    wait_for_total(&own_page, "quixotic", 1);
    assert_eq!(total(&own_page, WORD), 1, "the other source still holds it");

    // The token is sent only to the daemon that has the collection open.
    let address = first.join("broker-data/admin.address");
    let right = fs::read_to_string(&address).unwrap();
    fs::write(&address, right.replace(&format!(" {}", first_broker.id()), " 1")).unwrap();
    let (_, err) = texts(&run(["collection", "suppress", &data(&first), "--list"]));
    assert!(err.contains("and is no daemon"), "{err}");
    fs::write(&address, right).unwrap();
    let text = run_ok(["collection", "suppress", &data(&first), "http://no/", "--reason", "none"]);
    assert!(text.contains("0 objects deleted\nno object here has that URL"), "{text}");
    assert!(!text.contains("identity.key"), "{text}");

    // The command works without a running daemon.
    assert!(first_broker.stop("TERM").success());
    let (_, err) = texts(&run(["collection", "purge", &data(&first), "http://other/"]));
    assert!(err.contains("nothing suppresses"), "{err}");
    assert_ne!(with_word(&data(&first)), Vec::<PathBuf>::new(), "the test needs the word here");
    let text = run_ok(["collection", "purge", &data(&first), "*/secret.*"]);
    assert!(text.contains("*/secret.*"), "{text}");
    assert_eq!(with_word(&data(&first)), Vec::<PathBuf>::new(), "{text}");
    let (_first_broker, first_page) = broker(&first, &[(&source.url, true)], as_is);
    wait_for_total(&first_page, "quixotic", 1);
    assert_eq!(total(&first_page, WORD), 0);
}

#[test]
fn a_takedown_in_the_folder_of_up_is_gone_from_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, up_data) = (folder.path().join("tree"), folder.path().join("data"));
    small_tree(&tree);
    let secret = write(&tree, "secret.txt", format!("Secret\n\nThe {WORD} lies there.\n"));
    let url = url::Url::from_file_path(fs::canonicalize(&secret).unwrap()).unwrap();
    let gatherer = up_data.join("gatherer").display().to_string();
    let up = || {
        let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0", "--data"]);
        command.arg(&up_data).arg(&tree);
        let mut running = Running::start(command);
        let page = running.gathered_url();
        (running, page)
    };
    let (mut running, page) = up();
    wait_for_total(&page, WORD, 1);
    let oid = search(&page, WORD)["hits"][0]["oid"].as_str().unwrap().to_owned();
    let object = format!("object?oid={}", oid.replace(':', "%3A"));
    assert_eq!(ask("GET", &format!("{page}{object}"), &[]).0, 200);

    let text =
        run_ok(["collection", "suppress", &gatherer, url.as_str(), "--reason", "by mistake"]);
    assert!(text.contains("1 object deleted"), "{text}");
    wait_for_total(&page, WORD, 0);
    assert_eq!(ask("GET", &format!("{page}{object}"), &[]).0, 404);
    // A changed file does not bring it back, neither now nor after the next start.
    fs::write(&secret, format!("Secret\n\nThe {WORD} lies under the elm.\n")).unwrap();
    write(&tree, "after.txt", "After\n\nA word of its own: quixotic.\n");
    wait_for_total(&page, "quixotic", 1);
    assert_eq!(total(&page, WORD), 0);
    assert!(running.stop("INT").success());
    let (mut running, page) = up();
    wait_for_total(&page, "quixotic", 1);
    assert_eq!(total(&page, WORD), 0);

    run_ok(["collection", "suppress", &gatherer, url.as_str(), "--lift"]);
    wait_for_total(&page, WORD, 1);
    assert!(running.stop("INT").success());
}
