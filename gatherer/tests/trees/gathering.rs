//! Tests of gathering real trees: walks, repeated reads, problems, and stops.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{Bench, Tree, settings_of};
use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Collection, Oid, Options};
use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{self, Map, Root};
use net::client::{Client, Settings};
use url::Url;

#[tokio::test(flavor = "multi_thread")]
async fn every_record_names_its_origin() {
    let tree = Tree::with(&["a.txt"]);
    let config = Config { name: "Docs".into(), ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    let record = bench.file("a.txt").await;
    let text = |name| record.text(name).unwrap_or_default().into_owned();
    assert_eq!(record.template, "FILE");
    assert_eq!(text("Gatherer-Name"), "Docs");
    assert_eq!(text("Gatherer-Id"), bench.handle.id());
    assert_eq!(text("Gatherer-Root"), spec::file_url(&bench.tree.root()));
    assert_eq!(text("Time-to-Live"), "2592000");
    assert_eq!(text("Refresh-Rate"), "604800");
    assert_eq!(text("MD5"), soif::digest::Md5::of(b"a.txt").to_string());
    assert!(record.number("Update-Time").unwrap() > 1_600_000_000);
    assert!(record.number("Gatherer-Port").is_some() && !text("Gatherer-Host").is_empty());
    assert!(text("Gatherer-Version").starts_with("0."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_reads_only_what_has_changed() {
    let names: Vec<String> = (0..200).map(|n| format!("d{}/f{n}.txt", n % 7)).collect();
    let tree = Tree::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    names.iter().for_each(|name| tree.date(name, 1_000_000));
    let bench = Bench::start(tree).await;
    assert_eq!(bench.handle.status().objects, 200);
    let first = bench.handle.version();
    let (tree, took) = bench.stop().await;
    assert!(took.as_millis() < 2_000, "{took:?}");

    tree.write("d0/f0.txt", "other");
    tree.write("new.txt", "new");
    fs::remove_file(tree.path("d1/f1.txt")).unwrap();
    tree.date("d0/f0.txt", 2_000_000);
    tree.date("new.txt", 2_000_000);
    // The same content with another time is read, but not published again.
    tree.date("d2/f2.txt", 0);

    let bench = Bench::start(tree).await;
    assert_eq!(bench.read(), 3, "{:#?}", bench.handle.stages());
    let progress = bench.handle.progress().borrow().clone();
    assert_eq!((progress.updated, progress.deleted, progress.unchanged), (2, 1, 198));
    assert_eq!((progress.files_seen, progress.files_done), (200, 200));
    assert_eq!(bench.handle.status().objects, 200);
    assert_eq!(bench.handle.version().epoch, first.epoch);
    // Two updates, one delete, one confirmation of the root.
    assert_eq!(bench.handle.version().serial, first.serial + 4);
    bench.assert_conserved();

    let before = bench.handle.version();
    bench.gather().await;
    assert_eq!(bench.read(), 3, "nothing has changed");
    assert_eq!(bench.handle.version().serial, before.serial + 1, "the confirmation");
}

/// As after an upgrade to a release that says more of every file.
#[tokio::test(flavor = "multi_thread")]
async fn attributes_that_are_new_come_as_one_wave_of_updates() {
    const FILES: u64 = 150;
    let tree = Tree::new();
    for n in 0..FILES {
        let name = format!("f{n}.txt");
        tree.write(
            &name,
            &format!("The cat of house {n} is that of the people with a dog. ").repeat(9),
        );
        tree.date(&name, 1_000_000);
    }
    let mut config = tree.config();
    let detail = &mut config.essence.detail;
    (detail.language, detail.text_print) = (false, false);
    let bench = Bench::start_with(tree, config).await;
    let (before, first) = (bench.file("f0.txt").await, bench.handle.version());
    assert_eq!((before.get("Text-Print"), before.get("Language")), (None, None));
    let (tree, _) = bench.stop().await;

    let bench = Bench::start(tree).await;
    let progress = bench.handle.progress().borrow().clone();
    assert_eq!((progress.updated, progress.deleted), (FILES, 0));
    assert_eq!(bench.handle.status().objects, FILES);
    assert_eq!(bench.handle.version().epoch, first.epoch);
    assert_eq!(bench.handle.version().serial, first.serial + FILES + 1, "and the confirmation");
    let after = bench.file("f0.txt").await;
    assert_eq!(after.text("Language").as_deref(), Some("en"));
    assert_eq!(after.get("Text-Print").map(<[u8]>::len), Some(64));
    for name in ["MD5", "Last-Modification-Time", "File-Size", "Keywords"] {
        assert_eq!(after.get(name), before.get(name), "{name}");
    }
    let (tree, _) = bench.stop().await;
    let bench = Bench::start(tree).await;
    assert_eq!(bench.read(), 0, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_dated_in_the_future_is_read_again_and_noted_once() {
    let tree = Tree::with(&["a.txt", "b.txt"]);
    tree.date("a.txt", 9_000_000_000);
    tree.date("b.txt", 1_000_000);
    let config = Config { watch: Watch::Off, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    let commits = async || {
        let text = bench.get_admin("metrics").await.1;
        let line = text.lines().find(|it| it.starts_with("harvest_gatherer_commits_total"));
        line.unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let (read, before) = (bench.read(), commits().await);
    bench.gather().await;
    assert_eq!((bench.read(), commits().await), (read + 1, before + 1), "the confirmation");
    bench.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_entry_of_a_tree_is_gathered_or_reported() {
    let tree = Tree::with(&["plain.txt", ".hidden", ".git/config", "skip.o"]);
    let odd: Vec<PathBuf> = [
        &b"line\nfeed"[..],
        b"\xff\xfe",
        b"-rf",
        b"50% #1?",
        "caf\u{e9}".as_bytes(),
        "cafe\u{301}".as_bytes(),
        &[b'n'; 255],
    ]
    .iter()
    .map(|name| PathBuf::from(OsStr::from_bytes(name)))
    .collect();
    for name in &odd {
        fs::write(tree.root().join(name), name.as_os_str().as_bytes()).unwrap();
    }
    let deep: PathBuf = std::iter::repeat_n("d", 1_000).collect();
    fs::create_dir_all(tree.root().join(&deep)).unwrap();
    fs::write(tree.root().join(&deep).join("f"), "deep").unwrap();
    let mode = rustix::fs::Mode::RWXU;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, tree.path("fifo"), fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.path("socket")).unwrap();
    symlink("/dev/zero", tree.path("zero")).unwrap();
    symlink("loop", tree.path("loop")).unwrap();
    symlink("nowhere", tree.path("broken")).unwrap();
    symlink("plain.txt", tree.path("alias")).unwrap();
    fs::File::create(tree.path("sparse")).unwrap().set_len(1 << 40).unwrap();

    let mut config = Config { read_bytes_max: 1 << 20, ..tree.config() };
    settings_of(&mut config).exclude = vec!["*.o".into()];
    let bench = Bench::start_with(tree, config).await;
    bench.assert_conserved();
    for name in &odd {
        let record = bench.file(name).await;
        assert!(record.url.bytes().all(|byte| byte.is_ascii_graphic()), "{}", record.url);
    }
    bench.file(deep.join("f")).await;
    bench.file("sparse").await;
    let objects = odd.len() as u64 + 3;
    assert_eq!(bench.handle.status().objects, objects);
    let bad = ["link-broken broken", "link-escape zero", "link-loop loop", "special fifo"];
    let named = bench.problems();
    assert!(bad.iter().all(|it| named.contains(&(*it).to_owned())), "{named:?}");
    let [walk, ..] = bench.handle.stages();
    for (why, count) in [("special", 2), ("hidden", 2), ("excluded", 1), ("link", 1)] {
        assert_eq!(walk.dropped.get(why), Some(&count), "{why}: {walk:?}");
    }
    // Cured problems are removed from the list. Of `sparse` only the front was searched for words.
    fs::write(bench.tree.path("nowhere"), "somewhere").unwrap();
    for name in ["zero", "loop", "fifo", "socket"] {
        fs::remove_file(bench.tree.path(name)).unwrap();
    }
    bench.until("nowhere", true).await;
    bench.gather().await;
    assert_eq!(bench.problems(), ["limit sparse"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_is_a_problem_and_stops_nothing() {
    let tree = Tree::with(&["a.txt"]);
    let mut config = tree.config();
    // A regular file that even root cannot read.
    config.roots.push(Root::Tree(spec::Tree::new("/proc/self/mem")));
    let bench = Bench::start_with(tree, config).await;
    bench.file("a.txt").await;
    assert_eq!(bench.problems(), ["unreadable mem"]);
    let (status, text) = bench.get_admin("problems").await;
    assert!(status == 200 && text.contains("file:///proc/self/mem"), "{text}");
    bench.assert_conserved();
}

/// Writes a tar file whose members have these words as content.
fn write_tar(tree: &Tree, name: &str, members: &[(&str, &str)]) {
    let mut builder = tar::Builder::new(fs::File::create(tree.path(name)).unwrap());
    for (path, words) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(words.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, path, words.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_an_archive_come_change_and_go_with_it() {
    let tree = Tree::with(&["a.txt"]);
    write_tar(&tree, "x.tar", &[("one.txt", "one"), ("two.txt", "two"), ("three.txt", "three")]);
    let bench = Bench::start(tree).await;
    assert_eq!(bench.handle.status().objects, 5);
    let member = |name: &str| format!("{}#{name}", spec::file_url(&bench.tree.path("x.tar")));
    let two = bench.object(&member("two.txt")).await.unwrap();
    assert_eq!(two.text("Gatherer-Root").unwrap(), spec::file_url(&bench.tree.root()));

    let before = bench.handle.version().serial;
    write_tar(&bench.tree, "x.tar", &[("one.txt", "one"), ("two.txt", "2"), ("four.txt", "four")]);
    bench.until_url(&member("four.txt"), |it| it.is_some()).await;
    bench.until_url(&member("three.txt"), |it| it.is_none()).await;
    // The archive, two.txt and four.txt are updated, three.txt is deleted; one.txt is unchanged.
    assert_eq!(bench.handle.version().serial, before + 4);
    fs::remove_file(bench.tree.path("x.tar")).unwrap();
    bench.until_url(&member("one.txt"), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 1);
    bench.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_long_names_are_bounded_by_the_size_of_a_note() {
    let tree = Tree::with(&["a.txt"]);
    let file = fs::File::create(tree.path("names.tar.gz")).unwrap();
    let packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let mut builder = tar::Builder::new(packed);
    for n in 0..500 {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_cksum();
        let name = format!("{}{n}", "\u{1}".repeat(4_000));
        builder.append_data(&mut header, name, std::io::empty()).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap();
    let bench = Bench::start(tree).await;
    bench.file("a.txt").await;
    let archive = bench.file("names.tar.gz").await;
    assert_eq!(archive.text("Type").unwrap(), "GNUCompressedTar");
    assert_eq!(bench.problems(), ["limit names.tar.gz"; 2], "the names, and the text of them");
    let objects = bench.handle.status().objects;
    assert!((300..400).contains(&objects), "{objects}");
    bench.assert_conserved();
}

/// Variable with the folder for the child process of the next test, which permissions restrict.
const VISITOR: &str = "HARVEST_TEST_VISITOR";

/// Is the child process of the next test. Does nothing without the variable.
#[tokio::test(flavor = "multi_thread")]
async fn visitor() {
    let Ok(folder) = std::env::var(VISITOR) else { return };
    let tree = Tree { folder: tempfile::tempdir_in(folder).unwrap() };
    fs::create_dir(tree.root()).unwrap();
    for name in ["open.txt", "closed/a.txt", "closed/b.txt", "file.txt"] {
        tree.write(name, name);
    }
    let config = Config { watch: Watch::Off, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    assert_eq!(bench.handle.status().objects, 4);
    let allow = |name: &str, mode| {
        fs::set_permissions(bench.tree.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    bench.tree.write("file.txt", "changed, and closed");
    allow("closed", 0);
    allow("file.txt", 0);
    bench.gather().await;
    assert_eq!(bench.problems(), ["unreadable closed", "unreadable file.txt"]);
    assert_eq!(bench.handle.status().objects, 4, "what cannot be looked at is not gone");
    bench.assert_conserved();
    allow("closed", 0o755);
    allow("file.txt", 0o644);
    fs::remove_file(bench.tree.path("closed/b.txt")).unwrap();
    bench.gather().await;
    assert_eq!(bench.handle.status().objects, 3);
    assert!(!bench.problems().contains(&"unreadable file.txt".to_owned()), "it was read again");
    bench.until_text("file.txt", "changed, and closed").await;
    fs::remove_dir_all(bench.tree.root()).unwrap();
}

#[test]
fn unreadable_paths_are_reported_and_nothing_below_them_is_deleted() {
    // Permissions do not restrict root: then the child runs as `nobody`, who may read only a copy
    // of this program.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let copy = folder.path().join("copy");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = std::process::Command::new(&copy);
    command.args(["--exact", "gathering::visitor", "--nocapture"]).env(VISITOR, folder.path());
    command.current_dir(folder.path());
    if rustix::process::geteuid().is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, 65_534);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_gives_objects_their_public_urls() {
    let tree = Tree::with(&["a b.txt", "papers/1.txt"]);
    let map = |prefix: &str, directory: PathBuf| Map {
        url_prefix: Url::parse(prefix).unwrap(),
        directory,
    };
    let maps = vec![
        map("https://example.org/", tree.root()),
        map("https://papers.example.org/p/", tree.path("papers")),
    ];
    let config = Config { maps, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    let urls = ["https://example.org/a%20b.txt", "https://papers.example.org/p/1.txt"];
    for url in urls {
        assert!(bench.object(url).await.is_some(), "{url}");
    }
    let (tree, _) = bench.stop().await;

    // Without the maps the same files have other URLs, and the old ones are gone.
    let bench = Bench::start(tree).await;
    bench.file("a b.txt").await;
    for url in urls {
        assert!(bench.object(url).await.is_none(), "{url}");
    }
    assert_eq!(bench.handle.status().objects, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_directory_is_not_gathered() {
    let tree = Tree::with(&["a.txt"]);
    let data = tree.path("var/data");
    let mut config = tree.config();
    config.daemon.data.clone_from(&data);
    settings_of(&mut config).hidden = true;
    let bench = Bench::start_with(tree, config).await;
    assert!(data.join("collection").is_dir());
    assert_eq!(bench.handle.status().objects, 1);
}

/// With new settings everything is read again, but only changed records are published.
#[tokio::test(flavor = "multi_thread")]
async fn records_unchanged_by_new_settings_are_not_published_again() {
    let tree = Tree::with(&["a.txt", "b.md"]);
    let mut config = tree.config();
    let bench = Bench::start_with(tree, config.clone()).await;
    let with = async |config: &Config| {
        let passes = bench.handle.progress().borrow().passes_done;
        bench.handle.reload(config.clone()).unwrap();
        let progress = bench.passes(passes + 1).await;
        (progress.updated, progress.unchanged)
    };
    config.essence.programs_read = vec![bench.tree.root()];
    assert_eq!(with(&config).await, (0, 0), "both are read");
    assert_eq!(with(&config).await, (0, 2), "once");
    config.ttl += std::time::Duration::from_secs(60);
    assert_eq!(with(&config).await, (2, 0), "what settings change is published");
    bench.assert_conserved();
}

#[tokio::test(flavor = "multi_thread")]
async fn new_settings_apply_without_a_restart_or_ask_for_one() {
    let tree = Tree::with(&["a.txt", "b.md"]);
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("c.txt"), "c").unwrap();
    let config = tree.config();
    let bench = Bench::start_with(tree, config.clone()).await;

    let mut new = config.clone();
    settings_of(&mut new).exclude = vec!["*.md".into()];
    new.roots.push(Root::Tree(spec::Tree::new(other.path())));
    bench.handle.reload(new.clone()).unwrap();
    bench.until("b.md", false).await;
    bench.until_url(&spec::file_url(&other.path().join("c.txt")), |it| it.is_some()).await;
    // The new root is watched.
    fs::write(other.path().join("d.txt"), "d").unwrap();
    bench.until_url(&spec::file_url(&other.path().join("d.txt")), |it| it.is_some()).await;

    let mut listen = new.clone();
    listen.daemon.listen = "127.0.0.1:1".parse().unwrap();
    let text = bench.handle.reload(listen).unwrap_err().to_string();
    assert!(text.contains("listen") && text.contains("restart"), "{text}");
    let mut bad = new.clone();
    settings_of(&mut bad).include = vec!["a[".into()];
    let text = bench.handle.reload(bad).unwrap_err().to_string();
    assert!(text.contains("\"a[\""), "{text}");

    // The removed root has few objects, which are deleted. b.md is no longer excluded.
    bench.handle.reload(config).unwrap();
    bench.until("b.md", true).await;
    bench.until_url(&spec::file_url(&other.path().join("c.txt")), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_administration_answer() {
    let bench = Bench::start(Tree::with(&["a.txt"])).await;
    let (status, page) = bench.get("").await;
    assert!(status == 200 && page.contains("<h1>root</h1>"), "{page}");
    let folder = bench.tree.root().display().to_string();
    assert!(!page.contains(&folder), "the public page names no folder");
    assert_eq!(bench.get("healthz").await.0, 200);
    assert_eq!(bench.get("object").await.0, 400);
    assert_eq!(bench.get("object?oid=file:///none").await.0, 404);
    assert_eq!(bench.get("status").await.0, 404, "only the admin listener has it");

    let (status, text) = bench.get_admin("status").await;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    assert_eq!(json["roots"][0]["files"], 1);
    assert_eq!(json["progress"]["phase"], "idle");
    assert_eq!(json["watch"], "notify");
    let (status, text) = bench.get_admin("metrics").await;
    assert!(status == 200 && text.contains("harvest_gatherer_objects 1\n"), "{text}");
    assert_eq!(bench.get_admin("healthz").await.0, 200);

    for token in [None, Some("x".repeat(64))] {
        assert_eq!(bench.post_as("gather", token.clone()).await.0, 401);
        assert_eq!(bench.post_as("confirm", token).await.0, 401);
    }
    assert_eq!(bench.post("confirm").await.0, 404, "nothing is held");
    assert_eq!(bench.gather().await.passes_done, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn gathered_records_can_be_pulled_and_a_long_poll_gets_changes() {
    let bench = Bench::start(Tree::with(&["a.txt", "b.txt"])).await;
    let folder = tempfile::tempdir().unwrap();
    let now = collection::Stamp(net::clock::now_ms());
    let (copy, _) = Collection::open(folder.path(), Options::default(), now).unwrap();
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let base = bench.public.clone();
    let limits = PullLimits::default();
    let ask = FeedClient::new(client, base, "docs").allow_private(true);
    let puller = Puller::new(ask, copy.clone(), limits);
    let summary = puller.pull(None).await.unwrap();
    assert_eq!((summary.objects, copy.len()), (2, 2));
    assert_eq!(summary.version, bench.handle.version());
    let oid = Oid::new(bench.handle.id(), &spec::file_url(&bench.tree.path("a.txt")));
    assert!(copy.get(&oid).unwrap().is_some());

    let (summary, ()) = tokio::join!(puller.pull(Some(crate::support::PATIENCE)), async {
        fs::remove_file(bench.tree.path("a.txt")).unwrap();
    });
    assert_eq!(summary.unwrap().applied.deleted, 1);
    assert!(copy.get(&oid).unwrap().is_none());
    let (status, text) = bench.get_admin("metrics").await;
    assert!(status == 200 && text.contains("harvest_gatherer_feed_deltas_total"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_stays_and_a_second_gatherer_on_the_same_data_is_refused() {
    let bench = Bench::start(Tree::with(&["a.txt"])).await;
    let id = bench.handle.id().to_owned();
    let text = gatherer::Server::bind(bench.tree.config()).await.unwrap_err().to_string();
    assert!(text.contains("in use"), "{text}");
    let bench = Bench::start(bench.stop().await.0).await;
    assert_eq!((bench.handle.id(), id.len()), (id.as_str(), 16));
    let (tree, _) = bench.stop().await;
    fs::write(tree.data().join("id"), "nonsense").unwrap();
    let text = gatherer::Server::bind(tree.config()).await.unwrap_err().to_string();
    assert!(text.contains("does not hold an id"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_in_the_middle_of_a_pass_loses_nothing() {
    let names: Vec<String> = (0..2_000).map(|n| format!("f{n}.txt")).collect();
    let tree = Tree::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let server = gatherer::Server::bind(tree.config()).await.unwrap();
    let (shutdown, mut progress) = (net::shutdown::Shutdown::new(), server.handle().progress());
    let task = tokio::spawn(server.run(shutdown.clone()));
    progress.wait_for(|it| 0 < it.files_seen).await.unwrap();
    let began = net::clock::monotonic();
    shutdown.start();
    task.await.unwrap().unwrap();
    assert!((net::clock::monotonic() - began).as_millis() < 2_000);
    let bench = Bench::start(tree).await;
    assert_eq!(bench.handle.status().objects, 2_000);
    assert!(bench.file(Path::new("f1999.txt")).await.get("MD5").is_some());
    bench.assert_conserved();
}
