//! Tests of the index following the log: changes, deletes, duplicates, epochs, damage.

use std::cell::Cell;
use std::io;

use super::*;

#[test]
fn changes_replace_and_deletes_remove() {
    let site = corpus();
    site.put("http://a.org/one", &[("Title", "Something else")]);
    site.delete("http://b.org/docs/two");
    site.delete("http://b.org/unknown");
    site.log.borrow_mut().push(Change::Confirm {
        gatherer: GATHERER.to_owned(),
        root: "file:///srv/".to_owned(),
        at: Stamp(1),
    });
    assert_eq!(site.apply().serial, 7);
    site.check("*", "one three");
    site.check("gatherer", "");
    site.check("title:something", "one");
    site.check("broker", "");
}

#[test]
fn a_reopened_index_has_its_version_and_content() {
    let mut site = corpus();
    let covered = site.index().covered();
    assert_eq!(covered, Some(Version { epoch: Epoch(1), serial: 3 }));
    let error = Index::open(site.dir.path(), IndexOptions::default()).unwrap_err();
    assert!(error.to_string().contains("lock"), "{error}");
    site.index = None;
    site.index = Some(Index::open(site.dir.path(), IndexOptions::default()).unwrap());
    assert_eq!(site.index().covered(), covered);
    site.check("harvest", "one two");
    site.put("http://a.org/four", &[("Title", "Harvest again")]);
    site.apply();
    site.check("harvest", "four one two");
    assert_eq!(site.index().stats().documents, 4);
}

#[test]
fn another_epoch_or_a_shorter_log_builds_the_index_anew() {
    let mut site = corpus();
    site.epoch = Epoch(2);
    site.log = RefCell::new(Vec::new());
    site.put("http://a.org/new", &[("Title", "Harvest")]);
    assert_eq!(site.apply(), Version { epoch: Epoch(2), serial: 1 });
    site.check("*", "new");
    site.put("http://a.org/newer", &[("Title", "Harvest")]);
    site.apply();
    site.log.borrow_mut().pop();
    assert_eq!(site.apply().serial, 1);
    site.check("*", "new");
}

#[test]
fn a_rebuild_reports_its_progress_until_it_is_complete() {
    let options = IndexOptions { threads: 1, heap_bytes: 16 << 20, commit_changes_max: 1 };
    let mut site = Site::with(options);
    let urls = ["http://a.org/one", "http://a.org/two", "http://a.org/three"];
    urls.iter().for_each(|url| site.put(url, &[]));
    let unfinished = |site: &Site| {
        let serial = site.log.borrow().len() as u64;
        site.index().unfinished(Version { epoch: site.epoch, serial })
    };
    let step = |site: &Site| {
        let before = site.index().covered();
        let has_moved = || site.index().covered() != before;
        apply_to(site.index(), site.epoch, &site.log.borrow(), &has_moved).serial
    };
    assert_eq!(unfinished(&site), Some((0, 3)));
    for epoch in [1, 2] {
        site.epoch = Epoch(epoch);
        assert_eq!(unfinished(&site), Some((0, 3)), "it covers another epoch");
        assert_eq!((step(&site), unfinished(&site)), (1, Some((1, 3))));
        // The progress of the rebuild survives a restart.
        site.index = None;
        site.index = Some(Index::open(site.dir.path(), options).unwrap());
        assert_eq!(unfinished(&site), Some((1, 3)));
        assert_eq!((step(&site), unfinished(&site)), (2, Some((2, 3))));
        assert_eq!((site.apply().serial, unfinished(&site)), (3, None));
    }
    // Changes after the rebuild do not make the index unfinished again.
    site.put("http://a.org/four", &[]);
    assert_eq!(unfinished(&site), None);
    site.index().handle_damage("a search has met it");
    assert_eq!(unfinished(&site), Some((0, 4)));
}

#[test]
fn damage_drops_the_index_and_the_next_apply_builds_it() {
    let mut site = corpus();
    site.index = None;
    for file in fs::read_dir(site.dir.path()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|it| it == "store" || it == "term") {
            fs::remove_file(path).unwrap();
        }
    }
    site.index = Some(Index::open(site.dir.path(), IndexOptions::default()).unwrap());
    assert_eq!(site.index().covered(), None);
    site.apply();
    site.check("harvest", "one two");
}

#[test]
fn a_log_restored_from_a_copy_builds_the_index_anew_even_if_it_grows_again() {
    let site = corpus();
    let copy = site.log.borrow()[..2].to_vec();
    site.index().hold_to(|it| it <= Version { epoch: Epoch(1), serial: 3 });
    assert!(site.index().covered().is_some(), "the log continues it");
    site.index().hold_to(|it| it <= Version { epoch: Epoch(1), serial: 2 });
    site.log.replace(copy);
    for n in 0..3 {
        site.put(&format!("http://a.org/other{n}"), &[("Title", "Other")]);
    }
    site.apply();
    site.check("*", "one other0 other1 other2 two");
}

#[test]
fn damage_found_during_an_apply_is_not_overwritten_by_it() {
    let site = corpus();
    site.put("http://a.org/four", &[("Title", "Four")]);
    let met = Cell::new(false);
    let search = || {
        if !met.replace(true) {
            site.index().handle_damage("a search has met it");
        }
        false
    };
    apply_to(site.index(), Epoch(1), &site.log.borrow(), &search);
    assert_eq!(site.index().covered(), None);
    site.apply();
    site.check("*", "four one three two");
}

/// Closes the index, damages its files with the extension `extension` by `change`, and opens it
/// again.
fn damage(site: &mut Site, extension: &str, change: impl Fn(&mut Vec<u8>)) {
    site.index = None;
    for file in fs::read_dir(site.dir.path()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|it| it == extension) {
            let mut bytes = fs::read(&path).unwrap();
            change(&mut bytes);
            fs::write(path, bytes).unwrap();
        }
    }
    site.index = Some(Index::open(site.dir.path(), IndexOptions::default()).unwrap());
}

#[test]
fn a_file_cut_short_drops_the_index() {
    for extension in ["store", "term", "idx", "pos", "fast", "fieldnorm"] {
        for keep in [0, 2] {
            let mut site = corpus();
            damage(&mut site, extension, |bytes| bytes.truncate(bytes.len() * keep / 4));
            assert_eq!(site.index().covered(), None, "{extension}");
            site.apply();
            site.check("harvest", "one two");
        }
    }
}

#[test]
fn damage_found_by_a_read_builds_the_index_anew() {
    let mut site = corpus();
    let flip = |bytes: &mut Vec<u8>| {
        let (from, to) = (bytes.len() / 4, bytes.len() / 3);
        bytes[from..to].iter_mut().for_each(|byte| *byte = !*byte);
    };
    damage(&mut site, "store", flip);
    let request = SearchRequest::new(parse("*").unwrap(), "*");
    assert!(matches!(site.index().search(&request), Err(Error::Index(_))));
    assert_eq!(site.index().covered(), None);
    site.apply();
    site.check("harvest", "one two");

    let watch = site.index().watch();
    let wrong = TantivyError::InvalidArgument("a query".to_owned());
    drop(site.index().failed(wrong));
    assert!(!watch.has_changed().unwrap(), "no wrong query causes a rebuild");
    let torn = io::Error::from(io::ErrorKind::UnexpectedEof);
    drop(site.index().failed(torn.into()));
    assert!(watch.has_changed().unwrap(), "the indexer is notified");
    site.apply();
    site.check("harvest", "one two");
}

#[test]
fn an_apply_that_is_cancelled_goes_on_where_it_stopped() {
    let options = IndexOptions { threads: 1, heap_bytes: 16 << 20, commit_changes_max: 2 };
    let site = Site::with(options);
    for n in 0..5 {
        site.put(&format!("http://a/{n}"), &[("Title", "x")]);
    }
    let apply = |cancelled: &dyn Fn() -> bool| {
        apply_to(site.index(), site.epoch, &site.log.borrow(), cancelled).serial
    };
    // Cancelled before the first change, then in the middle of a commit: nothing is committed.
    assert_eq!(apply(&|| true), 0);
    let asked = Cell::new(0);
    assert_eq!(apply(&|| 3 < asked.replace(asked.get() + 1)), 0);
    site.check("*", "");
    assert_eq!(apply(&|| site.index().covered().is_some()), 2);
    site.check("*", "0 1");
    assert_eq!(site.apply().serial, 5);
    site.check("*", "0 1 2 3 4");
}

#[test]
fn a_full_disk_has_a_message_of_its_own() {
    let site = Site::new();
    let full = io::Error::from_raw_os_error(28);
    let wrapped = io::Error::other(io::Error::from_raw_os_error(28));
    let text = TantivyError::InternalError(full.to_string());
    for error in [text, wrapped.into(), full.into()] {
        let said = site.index().failed(error).to_string();
        assert!(said.starts_with("no space left for the full-text index in /"), "{said}");
    }
    let other = TantivyError::InternalError("odd".to_owned());
    assert!(site.index().failed(other).to_string().contains("remove the folder"));
}

const SAME: &[(&str, &str)] =
    &[("Title", "Same"), ("MD5", "aa"), ("File-Size", "3"), ("Type", "Text")];

#[test]
fn one_object_represents_all_of_the_same_content() {
    let site = Site::new();
    site.put("http://b.org/two", SAME);
    site.put("http://c.org/three", SAME);
    site.put("http://d.org/empty", &[("Title", "Same"), ("MD5", "bb"), ("File-Size", "0")]);
    site.put("http://e.org/empty", &[("Title", "Same"), ("MD5", "bb"), ("File-Size", "0")]);
    site.apply();
    let check = |query: &str, expected: &str| {
        let answer = site.ask(query, |request| request.sort = Sort::Url);
        let seen: Vec<String> = answer
            .hits
            .iter()
            .map(|hit| {
                let others: Vec<_> =
                    hit.duplicates.iter().map(|it| document::title_of(&it.url)).collect();
                format!("{}[{}]", document::title_of(&hit.url), others.join(","))
            })
            .collect();
        assert_eq!(seen.join(" "), expected, "{query}");
        assert_eq!(answer.total, seen.len() as u64);
    };
    check("title:same size:>0", "two[three]");
    check("same", "two[three] empty[] empty[]");
    assert_eq!(site.ask("same", |request| request.duplicates = true).total, 4);
    // The representing object is found by URL and host of the other, and counted under that host.
    check("three", "two[three]");
    check("host:c.org", "two[three]");
    let hosts = site.ask("title:same", |_| ()).facets["host"].clone();
    assert!(hosts.contains(&("c.org".to_owned(), 1)), "{hosts:?}");
    // An object with a smaller URL takes over as the representing one, in a commit of its own.
    site.put("http://a.org/one", SAME);
    site.apply();
    check("title:same size:>0", "one[two,three]");
    // That object changes its content, so the next one takes over again.
    site.put("http://a.org/one", &[("Title", "Other"), ("MD5", "cc"), ("File-Size", "3")]);
    site.apply();
    check("title:same size:>0", "two[three]");
    check("three", "two[three]");
    // The representing object is deleted, and then the last one of the group.
    site.delete("http://b.org/two");
    site.apply();
    check("title:same size:>0", "three[]");
    check("two", "");
    site.delete("http://c.org/three");
    site.apply();
    check("title:same size:>0", "");
}

#[test]
fn duplicates_at_two_gatherers_keep_their_provenance() {
    let site = Site::new();
    site.put_from("aaaa", "http://a.org/x", &[SAME, &[("Gatherer-Name", "First")]].concat());
    site.put_from("bbbb", "http://a.org/x", &[SAME, &[("Gatherer-Name", "Second")]].concat());
    site.apply();
    let answer = site.ask("same", |_| ());
    assert_eq!(answer.total, 1);
    assert_eq!(answer.hits[0].oid, "aaaa:http://a.org/x");
    assert_eq!(answer.hits[0].duplicates[0].gatherer, "Second");
    assert_eq!(answer.hits[0].duplicates[0].oid, "bbbb:http://a.org/x");
    site.check("gatherer:second", "x");
}

#[test]
fn a_small_commit_is_one_segment_whatever_the_threads() {
    let site =
        Site::with(IndexOptions { threads: 2, heap_bytes: 32 << 20, ..IndexOptions::default() });
    for n in 0..20 {
        site.put(&format!("http://a/{n}"), &[("Title", "x")]);
    }
    site.apply();
    assert_eq!(site.index().stats().segments, 1);
}
