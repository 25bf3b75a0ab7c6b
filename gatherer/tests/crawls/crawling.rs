//! Tests of web sites as roots: crawled, followed, held, resumed and forgotten.

use std::time::Duration;

use crate::support::site::{Site, again, config, start, start_with, web_of};
use crate::support::{Bench, Tree};
use gatherer::progress::Hold;
use gatherer::spec::Web;

/// Returns the status of each path that was asked for since the last call, sorted; without the name
/// that nobody gave to anything, and the usual list.
fn asked(site: &Site) -> Vec<String> {
    let asked = site.take_asked();
    let aside = ["harvest-asks-for-nothing", "/sitemap.xml"];
    let asked = asked.iter().filter(|it| !aside.iter().any(|aside| it.0.contains(aside)));
    let mut asked: Vec<String> = asked.map(|(path, status)| format!("{status} {path}")).collect();
    asked.sort();
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_crawled_within_its_wishes_and_followed() {
    let site = Site::start(&[
        (
            "/",
            "<title>Start</title><a href=a>a</a><a href='b?x=1#y'>b</a><a href=private/c>c</a>\
               <a rel=nofollow href=d>d</a><a href=e>e</a><a href=old>o</a><a href=none>n</a>\
               <a href='http://other.example/'>x</a>",
        ),
        ("/a", "<title>Of apples</title><a href=/>up</a><a href=a/deep>deep</a>"),
        ("/a/deep", "<title>Deep</title>pomology"),
        ("/b?x=1", "<meta name=robots content=nofollow><a href=f>f</a>"),
        ("/private/c", "secret"),
        ("/d", "d"),
        ("/e", "<meta name=robots content=noindex><a href=g>g</a>"),
        ("/f", "f"),
        ("/g", "<title>Behind e</title>"),
        ("/new", "<title>New</title>"),
    ])
    .await;
    site.answer("/robots.txt", 200, &[], "User-agent: *\nDisallow: /private/\n");
    site.answer("/old", 301, &[("location", "/new")], "");
    let bench = start(&site).await;
    let expected = [
        "200 /",
        "200 /a",
        "200 /a/deep",
        "200 /b?x=1",
        "200 /e",
        "200 /g",
        "200 /new",
        "200 /robots.txt",
        "301 /old",
        "404 /none",
    ];
    assert_eq!(asked(&site), expected);
    let status = bench.handle.status();
    assert_eq!(status.objects, 6, "{status:#?}\n{:#?}", bench.handle.problems());
    let record = bench.object(&site.at("/a")).await.unwrap();
    let text = |name: &str| record.text(name).unwrap_or_default().into_owned();
    assert_eq!((text("Title").as_str(), text("Type").as_str()), ("Of apples", "HTML"));
    assert_eq!(text("Gatherer-Root"), site.url.as_str());
    assert_eq!(bench.object(&site.at("/e")).await, None, "noindex");
    assert!(bench.object(&site.at("/g")).await.is_some());

    // Nothing that has not changed is sent again, and it leads where it led before.
    site.set("/a", "<title>Of pears</title><a href=a/deep>deep</a>");
    let version = bench.handle.status().version;
    again(&bench).await;
    let expected = [
        "200 /a",
        "200 /e",
        "200 /robots.txt",
        "301 /old",
        "304 /",
        "304 /a/deep",
        "304 /b?x=1",
        "304 /g",
        "304 /new",
        "404 /none",
    ];
    assert_eq!(asked(&site), expected);
    bench
        .until_url(&site.at("/a"), |it| {
            it.is_some_and(|it| it.text("Title").unwrap() == "Of pears")
        })
        .await;
    assert_ne!(bench.handle.status().version, version);
    assert_eq!(bench.handle.status().objects, 6);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_asked_for_only_while_a_page_leads_to_it() {
    let site = Site::start(&[
        ("/", "<a href=a>a</a><a href=none>n</a><a href=old>o</a>"),
        ("/a", "a"),
        ("/new", "new"),
    ])
    .await;
    site.answer("/old", 301, &[("location", "/new")], "");
    let bench = start(&site).await;
    assert_eq!(asked(&site).len(), 6);
    site.set("/", "<a href=a>a</a>");
    again(&bench).await;
    assert!(!asked(&site).iter().any(|it| it.contains("none") || it.contains("old")));
    assert_eq!(bench.handle.status().roots[0].files, 3);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_is_not_asked_for_again_after_a_stop() {
    let links: String = (0..20).map(|it| format!("<a href=p{it}>p</a>")).collect();
    let site = Site::start(&[("/", &format!("{links}<a href=late/>late</a>"))]).await;
    for it in 0..20 {
        site.set(&format!("/p{it}"), &format!("<title>{it}</title><a href=late/{it}>late</a>"));
        site.set(&format!("/late/{it}"), &format!("late {it}"));
    }
    site.set("/late/", "late");
    site.stall(Some("late"));
    let tree = Tree::new();
    let settings = config(&tree, &site);
    let bench = Bench::start_with(tree, settings.clone()).await;
    site.stalled().await;
    // All pages but those that are left unanswered are committed.
    bench.status(|it| it.objects == 21).await;
    let (tree, _) = bench.stop().await;
    assert_eq!(asked(&site).len(), 22, "the start, 20 pages and robots.txt");

    site.stall(None);
    let bench = start_with(tree, settings).await;
    let asked = asked(&site);
    assert!(asked.iter().all(|it| it.contains("late") || it.contains("robots")), "{asked:?}");
    assert_eq!(bench.handle.status().objects, 42);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_gone_for_certain_is_deleted() {
    let site = Site::start(&[
        ("/", "<a href=a>a</a><a href=b>b</a><a href=c>c</a><a href=d>d</a><a href=e>e</a>"),
        ("/a", "a"),
        ("/b", "b"),
        ("/c", "c"),
        ("/d", "d"),
        ("/e", "e"),
    ])
    .await;
    let bench = start(&site).await;
    assert_eq!(bench.handle.status().objects, 6);
    // Nobody links to the pages any more, and one of them is not found.
    site.set("/", "empty");
    site.remove("/a");
    site.answer("/b", 410, &[], "");
    site.set("/c", "<meta name=robots content=noindex>c");
    site.answer("/d", 500, &[], "");
    again(&bench).await;
    bench.until_url(&site.at("/b"), |it| it.is_none()).await;
    bench.until_url(&site.at("/c"), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 4);
    again(&bench).await;
    bench.until_url(&site.at("/a"), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 3);

    // A wall, a login page or a broken server says nothing about the pages.
    let wall: &[(&str, &str)] = &[("cf-mitigated", "challenge"), ("server", "cloudflare")];
    let login = "<title>Sign in</title><form><input type=password></form>";
    let challenge: &[(&str, &str)] = &[];
    for (status, headers, body) in [(403, wall, ""), (200, challenge, login), (500, challenge, "")]
    {
        site.answer_all(status, headers, body);
        for _ in 0..2 {
            again(&bench).await;
        }
        assert_eq!(bench.handle.status().objects, 3, "{status}");
        let problems = bench.problems();
        assert_eq!(status == 403, problems.iter().any(|it| it.starts_with("wall")), "{problems:?}");
    }
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_seems_to_be_gone_has_a_time_of_grace() {
    let pages = [
        ("/", "<a href=a>a</a><a href=b>b</a><a href=c>c</a>"),
        ("/a", "a"),
        ("/b", "b"),
        ("/c", "c"),
    ];
    let site = Site::start(&pages).await;
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).grace = Duration::from_secs(3_600);
    let bench = start_with(tree, settings).await;
    site.answer("/a", 410, &[], "");
    site.set("/b", "<meta name=robots content=noindex>b");
    site.answer("/c", 200, &[("content-encoding", "gzip")], "this is no gzip");
    let before = bench.object(&site.at("/c")).await;
    for _ in 0..3 {
        again(&bench).await;
        assert_eq!(bench.handle.status().objects, 4);
    }
    assert_eq!(bench.object(&site.at("/c")).await, before, "what cannot be read says nothing");
    for (path, text) in &pages[1..] {
        site.set(path, text);
    }
    again(&bench).await;
    site.take_asked();
    again(&bench).await;
    assert_eq!(asked(&site), ["304 /", "304 /a", "304 /b", "304 /c", "404 /robots.txt"]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loss_of_a_great_part_is_held_until_it_is_confirmed() {
    let links: String = (0..120).map(|it| format!("<a href=p{it}>p</a>")).collect();
    let site = Site::start(&[("/", &links)]).await;
    (0..120).for_each(|it| site.set(&format!("/p{it}"), &it.to_string()));
    let bench = start(&site).await;
    assert_eq!(bench.handle.status().objects, 121);
    (0..110).for_each(|it| site.answer(&format!("/p{it}"), 410, &[], ""));
    again(&bench).await;
    let status = bench.status(|it| it.roots[0].hold.is_some()).await;
    assert_eq!(status.roots[0].hold, Some(Hold::Lost { lost: 110, of: 121 }));
    assert_eq!(status.objects, 121);
    assert_eq!(bench.handle.confirm(None), [site.url.as_str()]);
    bench.status(|it| it.objects == 11 && it.roots[0].hold.is_none()).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_caps_leave_pages_out_and_delete_what_they_exclude() {
    let site = Site::start(&[
        ("/docs/", "<a href=a>a</a><a href=b>b</a><a href=x/c>c</a><a href=/other>o</a>"),
        ("/docs/a", "<a href=deep>d</a>"),
        ("/docs/deep", "deep"),
        ("/docs/b", "b"),
        ("/docs/x/c", "c"),
        ("/other", "other"),
    ])
    .await;
    let (tree, root) = (Tree::new(), site.url.join("docs/").unwrap());
    let mut settings = config(&tree, &site);
    *web_of(&mut settings) = Web { url: root, depth: 1, ..web_of(&mut settings).clone() };
    let bench = start_with(tree, settings.clone()).await;
    let expected = ["200 /docs/", "200 /docs/a", "200 /docs/b", "200 /docs/x/c", "404 /robots.txt"];
    assert_eq!(asked(&site), expected);

    web_of(&mut settings).deny = vec!["/docs/x".to_owned()];
    bench.handle.reload(settings.clone()).unwrap();
    bench.until_url(&site.at("/docs/x/c"), |it| it.is_none()).await;

    // A problem goes with its reason.
    site.answer("/docs/b", 403, &[], "");
    again(&bench).await;
    bench.status(|it| it.problems.contains_key("unreachable")).await;
    site.set("/docs/b", "b");
    again(&bench).await;
    bench.until_problems(&[]).await;

    // A site that is no longer in the settings is forgotten.
    settings.roots.clear();
    bench.handle.reload(settings).unwrap();
    bench.status(|it| it.objects == 0 && it.roots.is_empty()).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_cannot_be_had_is_a_problem_with_its_reason() {
    let site = Site::start(&[]).await;
    let bench = start(&site).await;
    let problems = bench.handle.problems();
    let failed = problems.iter().find(|it| it.kind == "crawl").unwrap();
    assert_eq!(failed.object, site.url.as_str());
    assert!(failed.message.contains("404"), "{failed:?}");
    bench.stop().await;

    let odd = Site::start(&[("/", "x")]).await;
    odd.answer("/robots.txt", 200, &[("content-encoding", "gzip")], "User-agent: *\nDisallow: /");
    let bench = start(&odd).await;
    assert_eq!(bench.handle.status().objects, 0, "what cannot be read may forbid all");
    bench.stop().await;

    let closed = Site::start(&[("/", "x")]).await;
    closed.answer("/robots.txt", 500, &[], "");
    let bench = start(&closed).await;
    let problems = bench.handle.problems();
    let failed = problems.iter().find(|it| it.kind == "crawl").unwrap();
    assert!(failed.message.contains("robots.txt"), "{failed:?}");
    assert_eq!(asked(&closed), ["500 /robots.txt"]);
    bench.stop().await;

    let moved = Site::start(&[]).await;
    moved.answer("/", 301, &[("location", "http://other.example/")], "");
    let bench = start(&moved).await;
    let problems = bench.handle.problems();
    let failed = problems.iter().find(|it| it.kind == "crawl").unwrap();
    assert!(failed.message.contains("http://other.example/"), "{failed:?}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_that_do_not_answer_keep_no_other_waiting() {
    let mut sites = Vec::new();
    for _ in 0..5 {
        sites.push(Site::start(&[("/", "<title>Start</title>")]).await);
    }
    let (tree, fifth) = (Tree::new(), sites.pop().unwrap());
    let mut settings = config(&tree, &fifth);
    let last = settings.roots.pop().unwrap();
    for site in &sites {
        site.stall(Some("/"));
        settings.roots.extend(config(&tree, site).roots);
    }
    let bench = Bench::start_with(tree, settings.clone()).await;
    for site in &sites {
        site.stalled().await;
    }
    settings.roots.push(last);
    bench.handle.reload(settings).unwrap();
    bench.until_url(&fifth.at("/"), |it| it.is_some()).await;
    assert_eq!(bench.handle.status().objects, 1);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_lead_to_pages_to_which_nothing_else_does() {
    let site = Site::start(&[
        ("/docs/", "start"),
        ("/docs/alone", "<title>Alone</title>"),
        ("/other", "o"),
    ])
    .await;
    site.answer(
        "/robots.txt",
        200,
        &[],
        "Sitemap: /lists/all.xml\nUser-agent: *\nDisallow: /docs/no\n",
    );
    let index = "<sitemapindex><sitemap><loc>/lists/one.xml</loc></sitemap>\
                 <sitemap><loc>/lists/all.xml</loc></sitemap></sitemapindex>";
    site.answer("/lists/all.xml", 200, &[], index);
    let urls = "<urlset><url><loc>/docs/alone</loc></url><url><loc>/docs/no</loc></url>\
                <url><loc>/other</loc></url><url><loc>http://other.example/</loc></url></urlset>";
    site.answer("/lists/one.xml", 200, &[], urls);
    let (tree, root) = (Tree::new(), site.url.join("docs/").unwrap());
    let mut settings = config(&tree, &site);
    web_of(&mut settings).url = root;
    let bench = start_with(tree, settings).await;
    let expected = [
        "200 /docs/",
        "200 /docs/alone",
        "200 /lists/all.xml",
        "200 /lists/one.xml",
        "200 /robots.txt",
    ];
    assert_eq!(asked(&site), expected);
    assert_eq!(bench.handle.status().objects, 2);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_explained_and_a_host_can_be_paused() {
    let site = Site::start(&[
        ("/", "<a href=a>a</a><a href=no/b>b</a><a href=skip/c>c</a><a href=none>n</a>"),
        ("/a", "<a href=x>x</a>"),
        ("/x", "x"),
    ])
    .await;
    site.answer("/robots.txt", 200, &[], "User-agent: *\nDisallow: /no/\n");
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).deny = vec!["/skip".to_owned()];
    let bench = start_with(tree, settings).await;
    assert_eq!(bench.handle.status().objects, 3);
    let explain = |path: &str| {
        let all = bench.handle.explain(&site.url.join(path).unwrap());
        assert_eq!(all.len(), 1);
        all.into_iter().next().unwrap()
    };
    let a = explain("a");
    assert_eq!((a.state.as_str(), a.records, a.links), ("done", 1, 1), "{a:?}");
    assert_eq!(a.robots.as_deref(), Some("robots.txt has no line for it"));
    assert!(a.answered.is_some() && a.problem.is_none());
    for (path, expected) in [
        ("no/b", "out: line 2 of robots.txt"),
        ("skip/c", "out: `deny` has \"/skip\""),
        ("none", "failed: status 404"),
        ("never", "unknown"),
    ] {
        let explained = explain(path);
        assert!(explained.state.starts_with(expected), "{path}: {explained:?}");
    }
    assert!(explain("no/b").robots.unwrap().contains("Disallow"), "{:?}", explain("no/b"));
    assert!(explain("none").problem.unwrap().contains("missing"));
    let crawl = bench.handle.status().roots.remove(0).crawl.unwrap();
    assert_eq!((crawl.waiting, crawl.failed, crawl.refused), (0, 1, 1), "{crawl:?}");

    // A paused host is left alone, also in the next pass, until it is resumed.
    let query = format!("host={}", site.url.host_str().unwrap());
    assert_eq!(bench.post(&format!("pause?{query}")).await.0, 200);
    again(&bench).await;
    site.take_asked();
    again(&bench).await;
    assert_eq!(asked(&site), [] as [&str; 0]);
    let crawl = bench.handle.status().roots.remove(0).crawl.unwrap();
    assert!(crawl.hosts[0].why.as_ref().unwrap().contains("administrator"), "{crawl:?}");
    assert_eq!(explain("a").state, "waiting: an administrator paused the host");
    assert_eq!(bench.handle.status().objects, 3);
    assert_eq!(bench.post(&format!("resume?{query}")).await.0, 200);
    again(&bench).await;
    assert!(asked(&site).contains(&"304 /a".to_owned()));
    let (status, body) = bench.get_admin(&format!("explain?url={}", site.at("a"))).await;
    assert!(status == 200 && body.contains("\"state\""), "{status} {body}");
    assert_eq!(bench.get_admin("explain?url=nothing").await.0, 400);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_pages_that_turn_to_one_are_held() {
    let links: String = (0..120).map(|it| format!("<a href=p{it}>p</a>")).collect();
    let site = Site::start(&[("/", &links)]).await;
    let text = |it: u32| format!("<title>Page {it}</title><p>all of number {it} and nothing else");
    (0..120).for_each(|it| site.set(&format!("/p{it}"), &text(it)));
    let bench = start(&site).await;
    let notice = "<title>Back soon</title><p>We are working on it, come back tomorrow";
    (0..3).for_each(|it| site.set(&format!("/p{it}"), notice));
    again(&bench).await;
    // A few are taken, at the end of the pass: they are one page now.
    let is_notice = |it: &soif::Record| it.text("Title").unwrap() == "Back soon";
    bench.until_url(&site.at("/p0"), |it| it.is_some_and(is_notice)).await;
    for it in [1, 2] {
        bench.until_url(&site.at(&format!("/p{it}")), |it| it.is_none()).await;
    }
    let another = "<title>Closed</title><p>For good, and with many thanks to all of you";
    (3..120).for_each(|it| site.set(&format!("/p{it}"), another));
    again(&bench).await;
    let status = bench.status(|it| it.roots[0].hold.is_some()).await;
    assert_eq!(status.roots[0].hold, Some(Hold::Alike { alike: 117, of: 121 }));
    let closed = async || {
        let mut closed = 0;
        for it in 3..120 {
            let record = bench.object(&site.at(&format!("/p{it}"))).await;
            closed += u32::from(record.is_none_or(|it| it.text("Title").unwrap() == "Closed"));
        }
        closed
    };
    assert_eq!(closed().await, 1, "the first of them");
    again(&bench).await;
    assert_eq!(closed().await, 1, "it does not wear away");
    assert_eq!(bench.handle.confirm(None), [site.url.as_str()]);
    bench.status(|it| it.roots[0].hold.is_none()).await;
    assert_eq!(closed().await, 117);
    bench.stop().await;
}
