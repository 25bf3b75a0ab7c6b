//! Tests of known pages that are redirected: to where they have moved, and to what stands before them.

use crate::support::Bench;
use crate::support::site::{Site, again, start};

const PAGES: &[(&str, &str)] = &[
    ("/", "<title>Start</title><a href=a>a</a><a href=b>b</a><a href=c>c</a>"),
    ("/a", "<title>A</title><p>Of apples"),
    ("/b", "<title>B</title><p>Of pears"),
    ("/c", "<title>C</title><p>Of plums"),
];

/// Crawls twice, which without grace is enough to delete, and checks that all the pages have their records, and that
/// the page at `path` has a problem that names where it leads.
async fn all_stay(bench: &Bench, site: &Site, path: &str, to: &str) {
    for _ in 0..2 {
        again(bench).await;
    }
    for (page, _) in PAGES {
        assert!(bench.object(&site.at(page)).await.is_some(), "{page} is gone: it leads to {to}");
    }
    let (problems, url) = (bench.handle.problems(), site.at(path));
    let is_named = |it: &gatherer::problems::Entry| {
        it.kind == "unreachable" && it.object == url && it.message.contains(to)
    };
    assert!(problems.iter().any(is_named), "{url} to {to}: {problems:#?}");
}

fn redirect_all(site: &Site, status: u16, to: impl Fn(&str) -> String) {
    for (path, _) in PAGES {
        site.answer(path, status, &[("location", &to(path))], "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_to_which_pages_lead_deletes_nothing() {
    let site = Site::start(PAGES).await;
    let bench = start(&site).await;
    let login = "<title>Sign in</title><form><input type=password></form>";
    site.set("/login?next=/a", login);
    site.answer("/a", 302, &[("location", "/login?next=/a")], "");
    all_stay(&bench, &site, "/a", "/login?next=/a").await;
    for (path, _) in PAGES {
        site.set(&format!("/login?next={path}"), login);
    }
    redirect_all(&site, 302, |path| format!("/login?next={path}"));
    all_stay(&bench, &site, "/b", "/login?next=/b").await;
    // One that nobody knows for a login: as many known pages lead there.
    for (path, _) in PAGES {
        site.set(&format!("/door?to={path}"), &format!("<title>Welcome</title><p>to {path}"));
    }
    for status in [301, 302] {
        redirect_all(&site, status, |path| format!("/door?to={path}"));
        all_stay(&bench, &site, "/c", "4 known pages").await;
    }
    // Everything leads in a circle.
    site.answer_all(302, &[("location", "/login")], login);
    all_stay(&bench, &site, "/", "in a circle").await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_to_which_all_pages_lead_deletes_nothing() {
    let site = Site::start(PAGES).await;
    let bench = start(&site).await;
    for status in [301, 302] {
        site.answer_all(status, &[("location", "http://parked.example/")], "");
        all_stay(&bench, &site, "/a", "http://parked.example/").await;
    }
    bench.assert_conserved();
    bench.stop().await;
    // Each to a page of its own.
    let site = Site::start(PAGES).await;
    let bench = start(&site).await;
    redirect_all(&site, 301, |path| format!("http://other.example{path}"));
    all_stay(&bench, &site, "/a", "http://other.example/a").await;
    // One for now, while the first page is there.
    for (path, text) in PAGES {
        site.set(path, text);
    }
    site.answer("/a", 302, &[("location", "http://other.example/a")], "");
    all_stay(&bench, &site, "/a", "http://other.example/a").await;
    // And for good.
    site.answer("/a", 301, &[("location", "http://other.example/a")], "");
    for _ in 0..2 {
        again(&bench).await;
    }
    bench.until_url(&site.at("/a"), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 3);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_has_moved_within_its_site_has_its_record_there() {
    let site = Site::start(PAGES).await;
    let bench = start(&site).await;
    // Where nothing is, nothing has moved to.
    site.answer("/a", 301, &[("location", "/new%7e#top")], "");
    all_stay(&bench, &site, "/a", "status 404").await;
    site.set("/new%7e", "<title>A</title><p>Of apples, and more");
    again(&bench).await;
    assert!(bench.object(&site.at("/a")).await.is_some(), "gone once is not gone");
    again(&bench).await;
    bench.until_url(&site.at("/a"), |it| it.is_none()).await;
    assert_eq!(bench.object(&site.at("/new%7e")).await.unwrap().text("Title").unwrap(), "A");
    assert_eq!(bench.handle.status().objects, 4);
    // Over another redirect, to a page that was there before.
    site.answer("/b", 302, &[("location", "/between")], "");
    site.answer("/between", 302, &[("location", "/c")], "");
    for _ in 0..2 {
        again(&bench).await;
    }
    bench.until_url(&site.at("/b"), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 3);
    assert!(bench.problems().is_empty(), "{:?}", bench.problems());
    bench.assert_conserved();
    bench.stop().await;
}
