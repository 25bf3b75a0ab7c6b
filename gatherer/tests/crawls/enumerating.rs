//! Tests of what tells a crawl of objects besides links: lists, feeds, programs and the disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::support::site::{Site, again, config, start, start_with, web_of};
use crate::support::{Bench, Tree};
use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{Enumeration, Map, Root, Web};

const TEXT: &[(&str, &str)] = &[("content-type", "text/plain")];

/// Checks that there are records of these paths of the site, and no others.
#[track_caller]
fn is_all<'a>(
    bench: &'a Bench,
    site: &'a Site,
    paths: &'a [&str],
) -> impl Future<Output = ()> + 'a {
    let caller = std::panic::Location::caller();
    async move {
        for path in paths {
            let found = bench.object(&site.at(path)).await;
            assert!(found.is_some(), "{path}, {caller}: {:#?}", bench.handle.problems());
        }
        assert_eq!(bench.handle.status().objects, paths.len() as u64, "{caller}");
    }
}

fn asked(site: &Site) -> Vec<String> {
    site.take_asked().into_iter().map(|it| it.0).collect()
}

/// Starts a gatherer of the site whose URLs are also listed elsewhere.
async fn enumerating(site: &Site, tree: Tree, enumeration: Vec<Enumeration>) -> Bench {
    let mut settings = config(&tree, site);
    web_of(&mut settings).enumeration = enumeration;
    start_with(tree, settings).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaf_is_what_it_lists_and_nothing_else() {
    let site = Site::start(&[
        ("/a", "<a href=linked>l</a>"),
        ("/b", "<title>B</title>"),
        ("/linked", "<title>Linked</title>"),
    ])
    .await;
    site.answer("/moved", 301, &[("location", "/linked")], "");
    let tree = Tree::new();
    tree.write("list.txt", &format!("# two\n{}\n\n{}\n", site.at("/b"), site.at("/a")));
    let settings = format!(
        "name = \"a\"\ndata = \"/d\"\n[[leaf]]\nname = \"papers\"\nurls = [{:?}, {:?}]\nfile = {:?}\n\
         grace = \"0 s\"\n",
        site.at("/a"),
        site.at("/moved"),
        tree.path("list.txt"),
    );
    let roots = Config::parse(&settings).unwrap().roots;
    let settings = Config { watch: Watch::Off, roots, ..tree.config() };
    let bench = start_with(tree, settings).await;
    is_all(&bench, &site, &["/a", "/b"]).await;
    let asked = asked(&site);
    assert!(!asked.iter().any(|it| it == "/linked" || it.contains("sitemap")), "{asked:?}");
    assert_eq!(bench.problems(), ["unreachable moved"]);
    assert_eq!(bench.root().url, "leaf:papers");
    site.set("/a", "<title>Another</title>");
    again(&bench).await;
    bench.until_url(&site.at("/a"), |it| it.unwrap().text("Title").is_some()).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_lead_to_what_no_page_names() {
    let site = Site::start(&[("/", "<title>Start</title>"), ("/news/a", "A"), ("/b", "B")]).await;
    let feed = "<rss><channel><link>/</link><item><link>/news/a</link></item></channel></rss>";
    site.answer("/feed.xml", 200, &[("content-type", "application/rss+xml")], feed);
    site.answer("/pub/c.txt", 200, TEXT, "C");
    site.answer("/pub/deep/d.txt", 200, TEXT, "D");
    let files = "./pub:\ntotal 8\ndrwxr-xr-x 2 a a 4096 Jan  1  2024 deep\n\
                 -rw-r--r-- 1 a a 1 Jan  1  2024 c.txt\n\n./pub/deep:\ntotal 4\n\
                 -rw-r--r-- 1 a a 1 Jan  1  2024 d.txt\n";
    site.answer("/ls-lR", 200, TEXT, files);
    let tree = Tree::new();
    tree.write("urls.txt", &site.at("/b"));
    let addresses = ["/feed.xml", "/ls-lR", "/gone.xml"];
    let addresses =
        addresses.map(|it| Enumeration::Address(site.url.join(it).unwrap())).into_iter();
    let named = addresses.chain([Enumeration::File(tree.path("urls.txt"))]).collect();
    let bench = enumerating(&site, tree, named).await;
    is_all(&bench, &site, &["/", "/news/a", "/b", "/pub/c.txt", "/pub/deep/d.txt"]).await;
    // The lists themselves are no objects; one that cannot be had is named.
    assert_eq!(bench.problems(), ["list gone.xml"]);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_lists_and_says_what_went_wrong() {
    let site = Site::start(&[("/", "<title>Start</title>"), ("/a", "A"), ("/b", "B")]).await;
    let tree = Tree::new();
    let program = |name: &str, lines: &str| {
        tree.write(name, &format!("#!/bin/sh\n{lines}\n"));
        fs::set_permissions(tree.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        Enumeration::Program(tree.path(name))
    };
    // What it leaves behind ends with it.
    let left = tree.path("left");
    let leaves = format!("sleep 1000 & echo $! > {left:?}; ");
    let named = vec![
        program("good", &format!("{leaves}echo \"$1\"a; read url; echo \"$url\"b")),
        program("bad", "echo almost >&2; echo no database >&2; exit 3"),
        Enumeration::Program(tree.path("none")),
    ];
    let bench = enumerating(&site, tree, named).await;
    is_all(&bench, &site, &["/", "/a", "/b"]).await;
    assert_eq!(bench.problems(), ["list bad", "list none"]);
    let pid = fs::read_to_string(left).unwrap();
    let command = fs::read_to_string(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
    assert!(!command.starts_with("sleep"), "{command}");
    let problems = bench.handle.problems();
    let bad = problems.iter().find(|it| it.object.ends_with("/bad")).unwrap();
    assert!(bad.message.contains("3") && bad.message.contains("no database"), "{bad:?}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_on_the_way_leads_to_its_entries_also_when_it_has_not_changed() {
    let page = "<link rel=alternate type=application/atom+xml href=feed>";
    let site = Site::start(&[("/", page), ("/a", "A")]).await;
    let feed = "<feed><entry><link href=\"/a\"/></entry></feed>";
    let headers = [("content-type", "application/atom+xml"), ("etag", "\"1\"")];
    site.answer("/feed", 200, &headers, feed);
    let bench = start(&site).await;
    is_all(&bench, &site, &["/", "/feed", "/a"]).await;
    site.take_asked();
    again(&bench).await;
    assert!(asked(&site).contains(&"/a".to_owned()));
    is_all(&bench, &site, &["/", "/feed", "/a"]).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_map_has_on_the_disk_is_not_asked_for() {
    let site = Site::start(&[("/", "<a href=files/a.txt>a</a> <a href=files/b.txt>b</a>")]).await;
    site.answer("/files/b.txt", 200, TEXT, "from the server");
    let tree = Tree::new();
    tree.write("files/a.txt", "from the disk");
    tree.date("files/a.txt", 1_700_000_000);
    let outside = tree.folder.path().join("secret");
    fs::write(&outside, "secret").unwrap();
    std::os::unix::fs::symlink(outside, tree.path("files/b.txt")).unwrap();
    let mut settings = config(&tree, &site);
    let url_prefix = site.url.join("/files/").unwrap();
    settings.maps = vec![Map { url_prefix, directory: tree.path("files") }];
    let bench = start_with(tree, settings).await;
    is_all(&bench, &site, &["/", "/files/a.txt", "/files/b.txt"]).await;
    let text = async |path: &str| {
        let record = bench.object(&site.at(path)).await.unwrap();
        record.text("Partial-Text").unwrap().trim().to_owned()
    };
    assert_eq!(text("/files/a.txt").await, "from the disk");
    assert_eq!(text("/files/b.txt").await, "from the server", "a link leads out of the folder");
    let asked = asked(&site);
    assert!(!asked.contains(&"/files/a.txt".to_owned()), "{asked:?}");
    bench.tree.write("files/a.txt", "changed on the disk");
    again(&bench).await;
    bench
        .until_url(&site.at("/files/a.txt"), |it| {
            it.unwrap().text("Partial-Text").unwrap().contains("changed")
        })
        .await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn robots_txt_is_remembered_over_passes_and_restarts() {
    let site = Site::start(&[("/", "<a href=a>a</a> <a href=private>p</a>"), ("/a", "A")]).await;
    site.set("/private", "P");
    site.answer("/robots.txt", 200, TEXT, "User-agent: *\nDisallow: /private\n");
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).interval = Duration::from_millis(200);
    let bench = start_with(tree, settings.clone()).await;
    bench.crawled(4).await;
    let count = |asked: &[String]| asked.iter().filter(|it| *it == "/robots.txt").count();
    assert_eq!(count(&asked(&site)), 1, "it holds for a day");
    // Whoever asks for a pass wants what is there now.
    site.answer("/robots.txt", 200, TEXT, "User-agent: *\nDisallow: /a\n");
    bench.handle.gather();
    bench.until_url(&site.at("/private"), |it| it.is_some()).await;
    bench.until_url(&site.at("/a"), |it| it.is_none()).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_becomes_a_list_is_no_object_any_more() {
    let site = Site::start(&[("/", "<a href=news>n</a>"), ("/news", "<a href=a>a</a>")]).await;
    site.set("/a", "A");
    let tree = Tree::new();
    let settings = config(&tree, &site);
    let bench = start_with(tree, settings.clone()).await;
    is_all(&bench, &site, &["/", "/news", "/a"]).await;
    let (tree, _) = bench.stop().await;
    site.answer("/news", 200, TEXT, &site.at("/a"));
    let bench =
        enumerating(&site, tree, vec![Enumeration::Address(site.url.join("/news").unwrap())]).await;
    bench.until_url(&site.at("/news"), |it| it.is_none()).await;
    is_all(&bench, &site, &["/", "/a"]).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_root_lets_go_another_one_keeps() {
    let site = Site::start(&[("/a/", "<a href=/b/x>x</a>"), ("/b/", "<a href=x>x</a>")]).await;
    site.answer("/b/x", 200, &[("content-type", "text/html"), ("etag", "\"1\"")], "<p>X");
    let tree = Tree::new();
    let base = config(&tree, &site);
    let Some(Root::Web(web)) = base.roots.first().cloned() else { panic!("{base:?}") };
    let at = |path: &str, allow: &[&str]| {
        let allow = allow.iter().map(|it| (*it).to_owned()).collect();
        Root::Web(Web { url: site.url.join(path).unwrap(), allow, ..web.clone() })
    };
    let (wide, narrow) = (at("/a/", &["/a/*", "/b/*"]), at("/b/", &[]));
    let both = Config { roots: vec![wide.clone(), narrow.clone()], ..base.clone() };
    let bench = start_with(tree, both.clone()).await;
    is_all(&bench, &site, &["/a/", "/b/", "/b/x"]).await;
    let (tree, _) = bench.stop().await;
    let bench = start_with(tree, Config { roots: vec![narrow], ..base.clone() }).await;
    bench.until_url(&site.at("/a/"), |it| it.is_none()).await;
    again(&bench).await;
    bench.until_url(&site.at("/b/x"), |it| it.is_some()).await;
    is_all(&bench, &site, &["/b/", "/b/x"]).await;
    let (tree, _) = bench.stop().await;
    // And the other way round.
    let bench = start_with(tree, both).await;
    let (tree, _) = bench.stop().await;
    let bench = start_with(tree, Config { roots: vec![wide], ..base }).await;
    again(&bench).await;
    bench.until_url(&site.at("/b/x"), |it| it.is_some()).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_a_host_are_kept_within_its_bandwidth() {
    let text = "word ".repeat(1_000);
    let site = Site::start(&[("/", "<a href=a>a</a> <a href=b>b</a>"), ("/a", &text)]).await;
    site.set("/b", &format!("{text}b"));
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).bandwidth = Some(10_000);
    let began = net::clock::monotonic();
    let bench = start_with(tree, settings).await;
    is_all(&bench, &site, &["/", "/a", "/b"]).await;
    // One of the two pages of 5,000 bytes has to wait for the other.
    let took = net::clock::monotonic() - began;
    assert!(Duration::from_millis(450) <= took, "{took:?}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_end_is_a_trap_beyond_what_is_set_also_in_a_sitemap() {
    let site = Site::start(&[("/", "<title>Start</title>")]).await;
    for it in 0..12 {
        site.set(&format!("/flat/{it}"), &format!("<title>Page {it}</title>"));
    }
    let urls: String = (0..12).map(|it| format!("<url><loc>/flat/{it}</loc></url>")).collect();
    site.answer("/sitemap.xml", 200, TEXT, &format!("<urlset>{urls}</urlset>"));
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).trap_urls_max = Some(5);
    let bench = start_with(tree, settings.clone()).await;
    assert_eq!(bench.handle.status().objects, 6);
    let traps = bench.handle.problems().into_iter().filter(|it| it.kind == "trap");
    let [trap] = &traps.collect::<Vec<_>>()[..] else { panic!("{:#?}", bench.handle.problems()) };
    assert_eq!(trap.object, site.at("/flat/5"));
    assert!(trap.message.contains(&format!("that begin with {} are", site.at("/flat/"))));
    assert!(
        trap.message.ends_with("; set `trap_urls_max` to raise the cap of 5, for all traps"),
        "{trap:?}"
    );
    let state = bench.handle.explain(&site.url.join("flat/5").unwrap()).remove(0).state;
    assert_eq!(state, "out: too many URLs in one folder or of one page");
    // Each pass lets in as many new ones, and all if the cap allows it.
    again(&bench).await;
    assert_eq!(bench.handle.status().objects, 11);
    web_of(&mut settings).trap_urls_max = Some(100);
    bench.handle.reload(settings).unwrap();
    bench.status(|it| it.objects == 13).await;
    bench.assert_conserved();
    bench.stop().await;
}
