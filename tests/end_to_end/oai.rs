//! Tests of `harvest oai` against `/oai` of a running `harvest up`.

mod faulty;
mod peers;

use std::fs;
use std::path::Path;

use crate::harness::{Running, harvest, run, run_ok, small_tree, texts, wait_for_total, write};

/// Starts a repository of the small tree's eight objects; returns its page and base URL too.
fn repository(tree: &Path, data: &Path) -> (Running, String, String) {
    small_tree(tree);
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0"]);
    command.arg("--data").arg(data).arg(tree);
    let mut running = Running::start(command);
    let page = running.gathered_url();
    wait_for_total(&page, "harvester", 1);
    let base = format!("{page}oai");
    (running, page, base)
}

/// Returns the updated and the deleted URLs in a stream of SOIF.
fn sections(stream: &str) -> (Vec<String>, Vec<String>) {
    let mut reader = soif::Reader::new(soif::Mode::Strict, soif::Limits::default());
    reader.feed(stream.as_bytes());
    let (mut updated, mut deleted) = (Vec::new(), Vec::new());
    let mut section = None;
    while let Some(event) = reader.next_event().unwrap() {
        match event {
            soif::Event::Open(it) => section = Some(it),
            soif::Event::Close(_) => section = None,
            soif::Event::Record(it) => match section {
                Some(soif::Section::Delete) => deleted.push(it.url().to_owned()),
                _ => updated.push(it.url().to_owned()),
            },
        }
    }
    reader.finish().unwrap();
    (updated, deleted)
}

#[test]
fn a_repository_is_shown_listed_and_valid() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut running, _, base) = repository(tree.path(), data.path());

    let text = run_ok(["oai", "identify", &base]);
    assert!(text.contains("transient") && text.contains(&base), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&run_ok(["oai", "identify", &base, "--json"])).unwrap();
    assert_eq!(json["granularity"], "YYYY-MM-DDThh:mm:ssZ");
    assert_eq!(json["repaired"], false);
    let text = run_ok(["oai", "formats", &base]);
    assert!(text.contains("oai_dc") && text.contains("soif"), "{text}");
    assert!(run_ok(["oai", "sets", &base]).contains("type:"));

    let text = run_ok(["oai", "list", &base]);
    assert_eq!(text.lines().count(), 8, "{text}");
    assert!(text.contains("pears.md"), "{text}");
    assert_eq!(run_ok(["oai", "list", &base, "--limit", "2"]).lines().count(), 2);
    assert_eq!(run_ok(["oai", "list", &base, "--until", "2001-01-01"]), "");

    let text = run_ok(["oai", "validate", &base]);
    assert!(text.contains("pass  ListRecords: from and until are inclusive"), "{text}");
    assert!(!text.contains("FAIL"), "{text}");
    assert!(running.stop("INT").success());
}

#[test]
fn a_harvest_goes_on_from_its_checkpoint() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut running, page, base) = repository(tree.path(), data.path());
    let file = data.path().join("all.soif");
    let cursor = data.path().join("all.cursor");
    let again = || {
        let mut command = harvest(["oai", "harvest", &base]);
        command.arg("-o").arg(&file).arg("--checkpoint").arg(&cursor);
        let output = command.output().unwrap();
        let (_, err) = texts(&output);
        assert!(output.status.success(), "{err}");
        (sections(&fs::read_to_string(&file).unwrap()), err)
    };
    let ((updated, deleted), err) = again();
    assert_eq!((updated.len(), deleted.len()), (8, 0), "{err}");
    assert!(err.contains("8 records"), "{err}");
    // Nothing is new, and nothing is written twice.
    assert_eq!(again().0.0.len(), 8);

    let gone = fs::read_dir(tree.path()).unwrap().flatten().find(|it| it.path().is_file());
    let gone = gone.unwrap();
    fs::remove_file(gone.path()).unwrap();
    write(tree.path(), "new.txt", "a marmalade recipe\n");
    wait_for_total(&page, "marmalade", 1);
    let name = gone.file_name().to_string_lossy().into_owned();
    // The deletion and the new file may come in two commits.
    let is_gone = |urls: &[String]| urls.iter().any(|it| it.ends_with(&name));
    let end = net::clock::monotonic() + crate::harness::PATIENCE;
    let (updated, deleted) = loop {
        let ((updated, deleted), err) = again();
        if is_gone(&deleted) {
            break (updated, deleted);
        }
        assert!(net::clock::monotonic() < end, "{err}");
    };
    assert!(updated.iter().any(|it| it.ends_with("new.txt")), "{updated:?}");
    assert_eq!((updated.len(), deleted.len()), (9, 2));
    assert!(running.stop("INT").success());

    let mut command = harvest(["oai", "harvest", &base, "--prefix", "soif"]);
    let output = command.arg("-o").arg(&file).arg("--checkpoint").arg(&cursor).output().unwrap();
    assert!(texts(&output).1.contains("another harvest"), "{:?}", texts(&output));
}

#[test]
fn records_are_kept_as_they_came() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut running, _, base) = repository(tree.path(), data.path());
    let text = run_ok(["oai", "harvest", &base, "--original"]);
    assert_eq!(text.matches("<record>").count(), 8, "{text}");
    assert!(text.trim_end().ends_with("</records>"), "{text}");

    let folder = data.path().join("records");
    let target = format!("{}/", folder.display());
    let json = run_ok(["oai", "harvest", &base, "--original", "-o", &target, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["records"], &json["unreadable"]), (&8.into(), &0.into()), "{json}");
    let files: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|it| fs::read_to_string(it.unwrap().path()).unwrap())
        .collect();
    assert_eq!(files.len(), 8);
    assert!(files.iter().all(|it| it.contains("<metadata>")), "{files:?}");
    assert!(running.stop("INT").success());
}

#[test]
fn errors_name_the_repository_and_the_reason() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut running, page, base) = repository(tree.path(), data.path());
    let fails = |args: &[&str], part: &str| {
        let output = run(args);
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        assert!(err.contains(part) || out.contains(part), "{part:?} is not in {out}{err}");
    };
    fails(&["oai", "identify", &page], "HTML");
    fails(&["oai", "validate", &page], "FAIL  Identify: it is answered");
    fails(&["oai", "identify", &format!("{base}?verb=Identify")], "without ?verb=");
    fails(&["oai", "list", &base, "--prefix", "nothing"], "cannotDisseminateFormat");
    fails(&["oai", "formats", &base, "--identifier", "x"], "idDoesNotExist");
    assert!(running.stop("INT").success());
    fails(&["oai", "identify", &base], "127.0.0.1");
}
