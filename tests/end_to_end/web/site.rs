//! A test of `harvest up` with a real documentation site of thousands of pages, which nginx serves: those of
//! cppreference and libstdc++, as Debian packages them.
//!
//! `HARVEST_SITE_PAGES` is the number of pages that are asked for (default 1,500, of 9,600).

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use net::clock;

use super::{Nginx, REQUESTS_MAX, up};
use crate::harness::{Running, search, total, write};

/// The packages with the site.
const PACKAGES: [&str; 2] = ["libstdc++-12-doc", "cppreference-doc-en-html"];

/// Folders below their `usr/share`, each with the page that leads to the others.
const STARTS: &str = "<title>All</title><a href=/cppreference/doc/html/en/index.html>one</a>\
                      <a href=/doc/gcc-12-base/libstdc++/index.html>other</a>";

/// Time for all of it, five times what it should take.
const LONG: Duration = Duration::from_secs(600);

fn unpack(into: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("net/tests/peers/prepare");
    for package in PACKAGES {
        let prepared = Command::new(&script).arg(package).arg(into).status().unwrap();
        assert!(prepared.success(), "{package} is missing; see above");
    }
}

#[test]
fn a_documentation_of_thousands_of_pages_is_found_also_after_a_kill() {
    let pages = std::env::var("HARVEST_SITE_PAGES").map_or(1_500, |it| it.parse().unwrap());
    // Some of them only lead elsewhere, or are twins.
    let pages_min = pages * 9 / 10;
    let most = pages.to_string();
    let options = ["--urls-max", &most];
    let (nginx, data) = (Nginx::start(), tempfile::tempdir().unwrap());
    let unpacked = tempfile::tempdir().unwrap();
    unpack(unpacked.path());
    for folder in ["doc", "cppreference"] {
        let from = unpacked.path().join("usr/share").join(folder);
        std::os::unix::fs::symlink(from, nginx.site().join(folder)).unwrap();
    }
    write(&nginx.site(), "index.html", STARTS);
    let mut first = Running::start(up(&nginx, data.path(), &options));
    let page = first.search_url();
    let began = clock::monotonic();
    let found = loop {
        let found = usize::try_from(total(&page, "std")).unwrap();
        if pages / 4 <= found {
            break found;
        }
        assert!(began.elapsed() < LONG, "{found} are found");
    };
    first.signal("KILL");
    drop(first);
    let before = nginx.answers().len();
    assert!(found < before && before < pages, "{found} are found of {before}");

    let mut second = Running::start(up(&nginx, data.path(), &options));
    let page = second.search_url();
    let line = second.line_within(LONG, "indexed ");
    let mut times: HashMap<String, usize> = HashMap::new();
    for (path, status) in nginx.answers() {
        if status == 200 && !path.ends_with("/robots.txt") && !path.ends_with("/sitemap.xml") {
            *times.entry(path).or_default() += 1;
        }
    }
    let twice = times.values().filter(|it| 1 < **it).count();
    assert!(pages_min <= times.len(), "{} pages", times.len());
    assert!(twice <= REQUESTS_MAX, "{twice} pages were fetched twice, of {before} before the kill");
    assert!(times.values().all(|it| *it <= 2));
    let objects = line.split_whitespace().nth(1).unwrap().replace(',', "");
    let objects: usize = objects.parse().unwrap_or_else(|it| panic!("{it}: {line}"));
    assert!((pages_min..=times.len()).contains(&objects), "{line}, of {} pages", times.len());
    for (question, answer) in [
        ("std::vector push_back", "container/vector"),
        ("libstdc++ frequently asked questions", "libstdc++/faq"),
    ] {
        let found = search(&page, question);
        let urls: Vec<&str> =
            found["hits"].as_array().unwrap().iter().filter_map(|it| it["url"].as_str()).collect();
        assert!(urls.iter().any(|it| it.contains(answer)), "{question}: {urls:?}");
    }
    assert!(second.stop("INT").success());
}
