//! Tests of read access: the administration needs its token; no public answer has paths or secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{Collection, Options, Stamp};
use net::clock;

use crate::daemons::{broker_settings, free_port, gatherer_settings};
use crate::harness::{PATIENCE, Running, ask, harvest, run, run_ok, small_tree, texts, write};

/// A running daemon with its settings and data.
struct Daemon {
    kind: &'static str,
    settings: PathBuf,
    data: PathBuf,
    running: Running,
}

impl Daemon {
    fn start(kind: &'static str, settings: PathBuf, data: PathBuf) -> Self {
        let mut running = Running::start(harvest([kind, "run", "-c", text(&settings)]));
        running.line_with(" runs");
        Self { kind, settings, data, running }
    }

    fn stop(mut self) -> (&'static str, PathBuf, PathBuf) {
        assert!(self.running.stop("TERM").success(), "{}", self.kind);
        (self.kind, self.settings.clone(), self.data.clone())
    }

    fn admin(&self) -> String {
        let address = fs::read_to_string(self.data.join("admin.address")).unwrap();
        format!("http://{}/", address.split(' ').next().unwrap())
    }

    fn token(&self) -> String {
        fs::read_to_string(self.data.join("admin.token")).unwrap().trim().to_owned()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A gatherer, and a broker and a replicator that take its records.
struct Site {
    folder: tempfile::TempDir,
    /// Public addresses of the gatherer, the broker and the replicator's feeds.
    public: [String; 3],
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let public = [(); 3].map(|()| format!("127.0.0.1:{}", free_port()));
        Self { folder, public }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn base(&self, at: usize) -> String {
        format!("http://{}/", self.public[at])
    }

    /// Starts all three daemons with `line` added to their settings.
    fn start(&self, line: &str) -> [Daemon; 3] {
        let listen = |settings: String, at: usize| {
            let listen = format!("listen = \"{}\"", self.public[at]);
            format!("{line}\n{}", settings.replace("listen = \"127.0.0.1:0\"", &listen))
        };
        let settings = gatherer_settings(self.folder.path(), "http://www.example.org/docs/");
        let file = write(self.folder.path(), "gatherer.toml", listen(settings, 0));
        let gatherer = Daemon::start("gatherer", file, self.path("gatherer-data"));
        let first =
            format!("{}object?oid=http://www.example.org/docs/site/index.html", self.base(0));
        let began = clock::monotonic();
        while ask("GET", &first, &[]).0 != 200 {
            assert!(began.elapsed() < PATIENCE, "{first} is not there");
        }
        let settings = broker_settings(self.folder.path(), &[(&self.base(0), true)]);
        let file = write(self.folder.path(), "broker.toml", listen(settings, 1));
        let broker = Daemon::start("broker", file, self.path("broker-data"));
        let (address, member) = (format!("127.0.0.1:{}", free_port()), self.path("member"));
        let of = format!("docs={}", self.base(0));
        let rest = ["--group", "g", "--address", &address, "--collection", &of];
        let file = member.join("replicator.toml");
        if !file.exists() {
            run_ok(["replicator", "init", text(&member)].iter().chain(&rest));
            let more = format!("feed_listen = \"{}\"\n{line}\n", self.public[2]);
            let settings = more + &fs::read_to_string(&file).unwrap();
            fs::write(&file, settings).unwrap();
        }
        let replicator = Daemon::start("replicator", file, member.join("data"));
        [gatherer, broker, replicator]
    }
}

/// Returns the header for `any:TOKEN`, as a browser sends it.
fn password(token: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let pair = format!("any:{token}");
    let threes = pair.as_bytes().chunks(3).map(|three| {
        let bits = three.iter().fold(0_usize, |bits, it| bits << 8 | usize::from(*it));
        let bits = bits << (8 * (3 - three.len()));
        let four = [18, 12, 6, 0].map(|at| char::from(DIGITS[bits >> at & 63]));
        four[..=three.len()].iter().collect::<String>()
    });
    format!("Basic {}", threes.collect::<String>())
}

#[test]
fn the_administration_needs_the_token_if_the_settings_say_so() {
    let site = Site::new();
    small_tree(&site.path("tree"));
    for daemon in site.start("admin_read = \"token\"") {
        let (kind, admin) = (daemon.kind, daemon.admin());
        let (page, command) = match kind {
            "gatherer" => ("problems", "confirm"),
            "broker" => ("freshness", "confirm"),
            _ => ("", "publish?tree=docs"),
        };
        let (bearer, browser) = (format!("Bearer {}", daemon.token()), password(&daemon.token()));
        for path in [page, "status", "metrics"] {
            let (code, head, body) = ask("GET", &format!("{admin}{path}"), &[]);
            let seen = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(code, 401, "{kind} {path}: {seen}");
            assert!(head.contains("Basic realm=") && seen.contains("admin.token"), "{head} {seen}");
            for sent in [&bearer, &browser] {
                let header = ("Authorization", sent.as_str());
                assert_eq!(
                    ask("GET", &format!("{admin}{path}"), &[header]).0,
                    200,
                    "{kind} {path}"
                );
            }
            let wrong = ("Authorization", "Basic YW55OndvcmQ");
            assert_eq!(ask("GET", &format!("{admin}{path}"), &[wrong]).0, 401, "{kind} {path}");
        }
        for path in ["healthz", "readyz"] {
            let (code, _, body) = ask("GET", &format!("{admin}{path}"), &[]);
            assert_ne!(code, 401, "{kind} {path}: {}", String::from_utf8_lossy(&body));
        }
        // Credentials that a browser sends by itself allow no command.
        let header = ("Authorization", browser.as_str());
        assert_eq!(ask("POST", &format!("{admin}{command}"), &[header]).0, 401, "{kind}");
        let seen = run_ok([kind, "status", "-c", text(&daemon.settings)]);
        assert!(seen.contains("harvest "), "{seen}");
        // The command reports a token that it cannot read.
        let (token, aside) = (daemon.data.join("admin.token"), daemon.data.join("aside"));
        fs::rename(&token, &aside).unwrap();
        let output = run([kind, "status", "-c", text(&daemon.settings)]);
        let (_, err) = texts(&output);
        assert!(!output.status.success() && err.contains("admin.token"), "{err}");
        daemon.stop();
    }
}

/// Fetches every public route, and checks that no answer has the data folder or a secret. Returns
/// the number of 503 answers of each daemon.
fn check_public(site: &Site, daemons: &[Daemon; 3]) -> [u64; 3] {
    let oid = "oid=http://www.example.org/docs/site/index.html";
    let shared = [
        "feed",
        "feed?since=0",
        "snapshot/none",
        "healthz",
        "readyz",
        "oai?verb=Identify",
        "oai?verb=ListSets",
        "oai?verb=ListRecords&metadataPrefix=oai_dc",
        "oai?verb=ListRecords&metadataPrefix=soif",
        "oai?verb=none",
        "oai/schemas/soif.xsd",
        ".well-known/resourcesync",
        "resourcesync/capabilitylist.xml",
        "resourcesync/resourcelist.xml",
        "resourcesync/changelist.xml",
        "hub",
        "push/none",
        "assets/none",
        "none",
        "status",
        "metrics",
        "object",
        "object?oid=none",
        "",
    ];
    let of_broker = ["?q=orchard", "?q=%22", "api/search?q=orchard", "api/search?q=%22&sort=none"];
    let feed = "collections/docs/feed";
    let of_replicator = [feed, "collections/none/feed", "collections/docs/snapshot/none"];
    let mut unavailable = [0; 3];
    for (at, daemon) in daemons.iter().enumerate() {
        let mut paths: Vec<String> = shared.iter().map(|it| (*it).to_owned()).collect();
        let own: &[&str] = [&[][..], &of_broker, &of_replicator][at];
        paths.extend(own.iter().map(|it| (*it).to_owned()));
        let id = fs::read_to_string(site.path("gatherer-data/id")).unwrap();
        paths.extend(
            [oid.to_owned(), format!("{oid}%20{}", id.trim())].map(|it| format!("object?{it}")),
        );
        let key = fs::read(daemon.data.join("identity.key")).unwrap();
        let secrets = [daemon.token().into_bytes(), key];
        // Only the data folder: a gatherer's records may have the `file:` URLs of its roots.
        let folder = text(&daemon.data).as_bytes();
        while let Some(path) = paths.pop() {
            for method in ["GET", "POST"] {
                let (code, head, body) = ask(method, &format!("{}{path}", site.base(at)), &[]);
                let whole = [head.as_bytes(), &unpacked(&body)].concat();
                let seen = String::from_utf8_lossy(&whole).into_owned();
                let has = |it: &[u8]| whole.windows(it.len()).any(|at| at == it);
                assert!(!has(folder), "{} {method} {path}: {seen}", daemon.kind);
                assert!(!secrets.iter().any(|it| has(it)), "{} {method} {path}", daemon.kind);
                unavailable[at] += u64::from(code == 503 && path != "readyz");
                // A feed redirects to its snapshot.
                if let Some(next) =
                    head.lines().find_map(|it| it.strip_prefix("location: snapshot/"))
                {
                    let folder = if at == 2 { "collections/docs/" } else { "" };
                    let next = format!("{folder}snapshot/{}", next.trim());
                    if !paths.contains(&next) && method == "GET" {
                        paths.push(next);
                    }
                }
            }
        }
    }
    unavailable
}

/// Returns the bytes of an answer, also without gzip if it is compressed.
fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A body that is no gzip, or breaks off, is read as it came.
    drop(std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(body), &mut bytes));
    bytes.extend_from_slice(body);
    bytes
}

/// Closes the last segment of a collection that no daemon has open.
fn seal(data: &Path) {
    let now = Stamp(clock::now_ms());
    let (collection, _) =
        Collection::open(&data.join("collection"), Options::default(), now).unwrap();
    collection.compact(now).unwrap();
}

/// Changes a byte of the first gzip member with changes in a file.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(&bytes);
    let mut members = std::iter::from_fn(|| decoder.next_member().unwrap());
    let member = members.find(|it| !it.header.entries.is_empty()).unwrap();
    bytes[usize::try_from(member.offset + member.length - 30).unwrap()] ^= 4;
    let mut permissions = fs::metadata(file).unwrap().permissions();
    permissions.set_mode(0o644);
    fs::set_permissions(file, permissions).unwrap();
    fs::write(file, bytes).unwrap();
}

/// Returns the largest gzip file of a folder.
fn largest(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let packed = files.filter(|it| it.extension().is_some_and(|it| it == "gz"));
    packed.max_by_key(|it| fs::metadata(it).unwrap().len()).unwrap()
}

#[test]
fn no_public_answer_has_a_path_or_a_secret() {
    let site = Site::new();
    small_tree(&site.path("tree"));
    let daemons = site.start("");
    assert_eq!(check_public(&site, &daemons), [0, 0, 0]);
    for (_, _, data) in daemons.map(Daemon::stop).iter().take(2) {
        seal(data);
    }
    // Without the tree, lost objects cannot be gathered or fetched again.
    fs::rename(site.path("tree"), site.path("aside")).unwrap();
    let daemons = site.start("");
    daemons.iter().take(2).for_each(|it| damage(&largest(&it.data.join("collection"))));
    let trees = fs::read_dir(daemons[2].data.join("trees")).unwrap();
    trees.for_each(|it| damage(&largest(&it.unwrap().path().join("current"))));
    // The answers of a replica break off, instead of having status 503.
    let [gatherer, broker, _] = check_public(&site, &daemons);
    assert!(0 < gatherer && 0 < broker, "{gatherer} {broker}");
    daemons.into_iter().for_each(|it| drop(it.stop()));
}
