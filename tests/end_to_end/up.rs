//! Tests of `harvest up`: one command gathers, streams, collects, searches and watches.

mod finding;
mod large;

use std::fs;

use net::clock;

use crate::harness::{
    FOUND_WITHIN, Running, ask, harvest, long_text, run_ok, search, small_tree, total,
    wait_for_total, write,
};

fn up(tree: &std::path::Path, data: &std::path::Path) -> Running {
    let mut command = harvest(["up", "--no-open", "--listen", "127.0.0.1:0"]);
    command.arg("--data").arg(data).arg(tree);
    Running::start(command)
}

#[test]
fn a_tree_is_gathered_streamed_collected_and_found() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    small_tree(tree.path());
    let mut running = up(tree.path(), data.path());
    let page = running.gathered_url();

    for (query, file) in [
        ("harvester", "notes.txt"),
        ("title:orchard", "index.html"),
        ("\"ripen off\"", "pears.md"),
        ("turn_screw", "press.rs"),
        ("title:discovery", "refs.bib#a"),
        ("\"cider yields\"", "one.eml"),
        ("quince", "quince.txt.gz"),
    ] {
        wait_for_total(&page, query, 1);
        let answer = search(&page, query);
        let url = answer["hits"][0]["url"].as_str().unwrap();
        assert!(url.contains(file), "{query}: {url}");
    }
    assert!(running.stop("INT").success());
}

#[test]
fn a_change_is_found_within_two_seconds() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    small_tree(tree.path());
    let mut running = up(tree.path(), data.path());
    let page = running.gathered_url();
    wait_for_total(&page, "harvester", 1);

    let file = write(tree.path(), "deep/er/new.txt", "a marmalade recipe\n");
    wait_for_total(&page, "marmalade", 1);

    fs::write(&file, "a chutney recipe\n").unwrap();
    wait_for_total(&page, "chutney", 1);
    assert_eq!(total(&page, "marmalade"), 0, "the old text is gone in the same moment");

    fs::rename(&file, tree.path().join("deep/er/renamed.txt")).unwrap();
    let start = clock::monotonic();
    loop {
        let answer = search(&page, "chutney");
        let urls: Vec<&str> = answer["hits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["url"].as_str().unwrap())
            .collect();
        if urls.len() == 1 && urls[0].ends_with("renamed.txt") {
            break;
        }
        assert!(start.elapsed() < FOUND_WITHIN, "{urls:?}");
    }

    fs::rename(tree.path().join("deep"), tree.path().join("moved")).unwrap();
    let start = clock::monotonic();
    loop {
        let answer = search(&page, "chutney");
        if answer["total"] == 1
            && answer["hits"][0]["url"].as_str().unwrap().ends_with("moved/er/renamed.txt")
        {
            break;
        }
        assert!(start.elapsed() < FOUND_WITHIN, "{answer}");
    }

    fs::remove_dir_all(tree.path().join("moved")).unwrap();
    wait_for_total(&page, "chutney", 0);
    assert!(running.stop("INT").success());
}

#[test]
fn a_second_start_reads_only_what_changed() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    small_tree(tree.path());
    let once = |expected: &[&str]| {
        let text = run_ok([
            "up".as_ref(),
            "--once".as_ref(),
            "--data".as_ref(),
            data.path().as_os_str(),
            tree.path().as_os_str(),
        ]);
        for part in expected {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
    };
    once(&["8 new or changed", "0 unchanged", "8 objects"]);
    once(&["0 new or changed", "7 unchanged", "8 objects"]);
    write(tree.path(), "notes.txt", "Other notes altogether.\n");
    fs::remove_file(tree.path().join("refs.bib")).unwrap();
    once(&["1 new or changed", "2 deleted", "6 objects"]);
}

#[test]
fn two_instances_run_side_by_side() {
    let (tree, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (data, other_data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(tree.path(), "a.txt", "aubergine\n");
    write(other.path(), "b.txt", "broccoli\n");
    // Without --listen: 8501 if it is free, else another port, printed.
    let start = |tree: &std::path::Path, data: &std::path::Path| {
        let mut command = harvest(["up", "--no-open"]);
        command.arg("--data").arg(data).arg(tree);
        Running::start(command)
    };
    let mut first = start(tree.path(), data.path());
    let first_page = first.gathered_url();
    let mut second = start(other.path(), other_data.path());
    let second_page = second.gathered_url();
    assert_ne!(first_page, second_page);
    wait_for_total(&first_page, "aubergine", 1);
    wait_for_total(&second_page, "broccoli", 1);
    assert_eq!(total(&first_page, "broccoli"), 0);
    assert!(first.stop("INT").success());
    assert!(second.stop("TERM").success());
}

#[test]
fn a_phrase_deep_in_a_long_document_is_found_where_it_stands() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(tree.path(), "long.txt", long_text("here the marzipan inspector resigned at last"));
    let mut running = up(tree.path(), data.path());
    let page = running.gathered_url();
    wait_for_total(&page, "\"marzipan inspector resigned\"", 1);
    let hit = &search(&page, "\"marzipan inspector resigned\"")["hits"][0];
    let snippet = hit["snippet_html"].as_str().unwrap();
    let shown = "<mark>marzipan</mark> <mark>inspector</mark> <mark>resigned</mark> at last";
    assert!(snippet.contains(shown), "{snippet}");
    assert_eq!(hit["place"], "line 60002", "{hit}");
    assert_eq!(total(&page, "\"number 976 line\""), 1);
    assert_eq!(total(&page, "\"apples barrels\""), 0, "no phrase of words that stand apart");
    assert!(!data.path().join("broker").exists(), "everything is stored once");
    assert!(running.stop("INT").success());
}

#[test]
fn an_excerpt_of_a_page_is_its_text_and_not_its_menu() {
    let (tree, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = |name: &str| format!("<li><a href='{name}.html'>{name}</a></li>");
    let menu: String = ["Home", "Cider", "Presses", "Barrels", "Contact"].map(link).concat();
    let text = "Fill the barrels with cider, and let the presses rest.";
    let page = |frame: &str| format!("<html><title>Cellar</title><body>{frame}</body></html>");
    for (name, frame) in [
        ("list.html", format!("<ul>{menu}</ul><h1>Cellar</h1><p>{text}</p>")),
        ("nav.html", format!("<nav><ul>{menu}</ul></nav><div><p>{text}</p></div>")),
        ("main.html", format!("<div>{menu}</div><main><p>{text}</p></main><footer>Cider</footer>")),
    ] {
        write(tree.path(), name, page(&frame));
    }
    write(tree.path(), "ruled.txt", format!("Cellar\n======\n\n{text}\n\n=====\nEnd\n-----\n"));
    let mut running = up(tree.path(), data.path());
    let page = running.gathered_url();
    let url = format!("{page}api/search?q=cider+presses+barrels&duplicates=true");
    let (status, _, body) = ask("GET", &url, &[]);
    assert_eq!(status, 200);
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let hits = answer["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 4, "{answer}");
    for hit in hits {
        let snippet = hit["snippet"].as_str().unwrap();
        let (before, _) = snippet.split_once(text).unwrap_or_else(|| panic!("{hit}"));
        assert!(["", "Cellar "].contains(&before), "{hit}");
        assert!(!snippet.contains("==") && !snippet.contains("--"), "{hit}");
    }
    assert!(running.stop("INT").success());
}
