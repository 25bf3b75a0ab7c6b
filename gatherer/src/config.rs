//! A gatherer's settings: `gatherer.toml` (docs/settings.md), checked, with all defaults filled in.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use essence::config::{EssenceConfig, Files, list_folder, read_types};
use essence::typing::Recognizer;
use essence::worker;
use exchange::push;
use formats::FullText;
use settings::{Document, Mistake, Table};

use crate::spec::{self, Map, Root, Tree, Web};

/// Default address of the feed.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8500);

/// Default address of the administration: this machine only.
pub const ADMIN_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9500);

/// Default lifetime of a record that is not confirmed: one month, as in the original.
pub const TTL: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Default interval between confirmations: one week, as in the original.
pub const REFRESH_RATE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Default interval between walks over watched roots, in case a watcher has missed changes.
pub const REWALK: Duration = Duration::from_secs(3_600);

/// Default interval between walks over polled roots.
pub const POLL: Duration = Duration::from_secs(60);

/// Default maximum number of bytes that are read of one file; of a larger file, only the beginning
/// is summarized.
pub const READ_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Maximum number of threads that read and summarize.
pub const WORKERS_MAX: u64 = 256;

/// Name of the collection's folder within the data folder.
pub(crate) const COLLECTION: &str = "collection";

/// Minimum interval or lifetime.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Maximum interval or lifetime: ten years.
const INTERVAL_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3_600);

/// Way in which the gatherer notices changes between two passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// By the system's notifications; if there are none, by polling every [`POLL`].
    Notify,
    /// By walking every root at this interval: for network file systems, which send no
    /// notifications.
    Poll(Duration),
    /// Not at all: passes happen at the start, every `rewalk`, and on request.
    Off,
}

/// Writes the way as the [status](crate::Status::watch) shows it.
impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Notify => f.write_str("notify"),
            Self::Poll(interval) => write!(f, "poll {}", interval.as_secs()),
            Self::Off => f.write_str("off"),
        }
    }
}

/// A gatherer's settings, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Its name: the `Gatherer-Name` of its records.
    pub name: String,
    /// Listeners and data folder. The data folder itself is never gathered.
    pub daemon: daemon::Settings,
    /// Roots, each once; no tree lies inside another tree.
    pub roots: Vec<Root>,
    /// Public URLs of directories.
    pub maps: Vec<Map>,
    /// Types whose records have the full text.
    pub full_text: FullText,
    /// Settings of typing, selecting and summarizing.
    pub essence: EssenceConfig,
    /// The `Time-to-Live` of records.
    pub ttl: Duration,
    /// The `Refresh-Rate` of records.
    pub refresh_rate: Duration,
    /// Way in which changes are noticed.
    pub watch: Watch,
    /// Interval between walks over every root, also with a watch.
    pub rewalk: Duration,
    /// Maximum number of bytes a second that all crawls bring together, on average; `None`: any.
    pub bandwidth: Option<u64>,
    /// Settings of notifications.
    pub push: push::Settings,
    /// Maximum number of bytes that are read of one file.
    pub read_bytes_max: u64,
    /// Number of threads that read and summarize; at least 1.
    pub workers: usize,
    /// Settings of the gatherer as an OAI-PMH repository.
    pub oai: exchange::repository::Settings,
    /// Whether to wait while the disk is full. If false, a full disk ends the run; this suits a
    /// gatherer that ends after one pass. Not in the settings file.
    pub wait_for_space: bool,
    /// Command that starts the workers that read foreign bytes; if `None`, this process reads
    /// everything.
    pub worker: Option<worker::Program>,
}

impl Config {
    /// Reads the text of a settings file, and from the disk the files that it names.
    ///
    /// # Errors
    ///
    /// The same as for [`Config::parse_with`].
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        Self::parse_with(text, Files { read: &|path| fs::read_to_string(path), list: &list_folder })
    }

    /// Reads the text of a settings file, and by means of `files` the files that it names.
    ///
    /// # Errors
    ///
    /// Returns the mistakes in these files, with their lines and the expected forms. Show them all.
    pub fn parse_with(text: &str, files: Files<'_>) -> Result<Self, Vec<Mistake>> {
        let document = Document::parse(text)?;
        let root = document.root();
        let mut config = Self::new(PathBuf::new());
        config.name = root.required_string("name");
        config.daemon = config.daemon.read(&root, "/var/lib/harvest/gatherer");
        let interval = |key, default| {
            root.duration_within(key, INTERVAL_MIN..=INTERVAL_MAX).unwrap_or(default)
        };
        config.ttl = interval("ttl", TTL);
        config.refresh_rate = interval("refresh_rate", REFRESH_RATE);
        config.rewalk = interval("rewalk", REWALK);
        let poll = interval("poll", POLL);
        config.watch = match root.choice("watch", &["notify", "poll", "off"]) {
            Some("poll") => Watch::Poll(poll),
            Some("off") => Watch::Off,
            Some(_) | None => Watch::Notify,
        };
        let mut elsewhere = Vec::new();
        let essence = root.table("essence");
        config.essence = EssenceConfig::read(&essence, files, &mut elsewhere);
        let types = elsewhere.is_empty().then_some(&*config.essence.typing);
        config.full_text = full_text(&root, types);
        config.read_bytes_max = root.bytes("read_max").unwrap_or(READ_BYTES_MAX);
        config.bandwidth = spec::bandwidth(&root);
        if let Some(workers) = root.integer("workers", 1..=WORKERS_MAX) {
            config.workers = usize::try_from(workers).unwrap_or(1);
        }
        config.oai = exchange::repository::Settings::read(&root.table("oai"));
        let mut tables = root.tables("root");
        if !root.has("root") && !root.has("leaf") {
            root.mistake("root", "there is nothing to gather", "[[root]] with url = \"file:///…\"");
        }
        let read = |table| Root::read(table, INTERVAL_MAX, config.ttl);
        config.roots = tables.iter().filter_map(read).collect();
        tables.retain(spec::is_remote);
        settings::refuse_repeats(&tables, "url");
        let leaves = root.tables("leaf");
        settings::refuse_repeats(&leaves, "name");
        if 1 < leaves.len() {
            for leaf in &leaves {
                leaf.require("name", "a name for each of several lists");
            }
        }
        let read = |table| Web::read_leaf(table, (INTERVAL_MAX, config.ttl), files);
        let read: Vec<Web> = leaves.iter().filter_map(read).collect();
        config.roots.extend(read.into_iter().map(Root::Web));
        config.push = push::Settings::read(&root.table("push"), config.daemon.base_url.as_ref());
        config.maps = root.tables("map").iter().filter_map(read_map).collect();
        for conflict in spec::conflicts(&config.roots, &config.maps) {
            root.mistake("root", conflict, "trees that do not overlap");
        }
        let mut mistakes = document.finish().err().unwrap_or_default();
        mistakes.append(&mut elsewhere);
        if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
    }

    /// Returns the settings for gathering `paths` (absolute) with the data folder `data`, on local
    /// ports that the system chooses; `harvest up` uses them. `.gitignore` files are honored, since
    /// users do not search for the build products of a project.
    pub fn for_paths(paths: &[PathBuf], data: &Path) -> Self {
        let local = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let mut trees: Vec<Tree> = Vec::new();
        let mut sorted: Vec<&PathBuf> = paths.iter().collect();
        sorted.sort();
        for path in sorted {
            if !trees.iter().any(|tree| path.starts_with(&tree.directory)) {
                trees.push(Tree { gitignore: true, ..Tree::new(path) });
            }
        }
        Self {
            name: paths.first().map_or_else(String::new, |path| {
                path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
            }),
            daemon: daemon::Settings::new(local, local, data),
            roots: trees.into_iter().map(Root::Tree).collect(),
            ..Self::new(data)
        }
    }

    /// Returns the gatherer's attributes that every record gets, in order; `host` and `port` are
    /// those under which others reach the gatherer.
    pub(crate) fn attributes(&self, host: &str, port: u16) -> Vec<(&'static str, String)> {
        vec![
            ("Time-to-Live", self.ttl.as_secs().to_string()),
            ("Refresh-Rate", self.refresh_rate.as_secs().to_string()),
            ("Gatherer-Name", self.name.clone()),
            ("Gatherer-Host", host.to_owned()),
            ("Gatherer-Port", port.to_string()),
            ("Gatherer-Version", env!("CARGO_PKG_VERSION").to_owned()),
        ]
    }

    /// Returns the default settings with the data folder `data`, and no roots.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            name: String::new(),
            daemon: daemon::Settings::new(LISTEN, ADMIN_LISTEN, data),
            roots: Vec::new(),
            maps: Vec::new(),
            full_text: FullText::None,
            essence: EssenceConfig::default(),
            ttl: TTL,
            refresh_rate: REFRESH_RATE,
            watch: Watch::Notify,
            rewalk: REWALK,
            push: push::Settings::default(),
            bandwidth: None,
            read_bytes_max: READ_BYTES_MAX,
            workers: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            oai: exchange::repository::Settings::default(),
            wait_for_space: true,
            worker: None,
        }
    }
}

/// Reads `full_text = ["HTML"]`: types that must be in `known`, or all types.
fn full_text(table: &Table<'_>, known: Option<&Recognizer>) -> FullText {
    if table.strings("full_text").iter().any(|it| it.eq_ignore_ascii_case("all")) {
        return FullText::All;
    }
    let types = read_types(table, "full_text", known);
    if types.is_empty() { FullText::None } else { FullText::Types(types) }
}

fn read_map(table: &Table<'_>) -> Option<Map> {
    table.require("url_prefix", "\"https://www.example.org/\"");
    table.require("directory", "\"/srv/docs\"");
    let (url_prefix, directory) = (table.url("url_prefix"), table.path("directory")?);
    if !directory.is_absolute() {
        table.mistake("directory", format!("{} is not absolute", directory.display()), "/…");
    }
    Some(Map { url_prefix: url_prefix?, directory: directory.components().collect() })
}

#[cfg(test)]
mod tests {
    use std::io;

    use daemon::auth::AdminRead;
    use formats::Type;
    use url::Url;

    use super::*;
    use crate::spec::{Repository, Symlinks};

    /// Checks that the mistakes of a file are `expected`: `LINE: part of the message`.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let shown: Vec<String> = match Config::parse(text) {
            Ok(_) => Vec::new(),
            Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(shown.len(), expected.len(), "{shown:#?}");
        for (shown, expected) in shown.iter().zip(expected) {
            let (line, part) = expected.split_once(": ").unwrap();
            assert!(shown.starts_with(&format!("{line}:")) && shown.contains(part), "{shown}");
        }
    }

    const SMALL: &str = "name = \"a\"\ndata = \"/d\"\n[[root]]\nurl = \"file:///srv/docs\"\n";

    #[test]
    fn settings_of_the_repository_are_read() {
        let config = Config::parse(&format!("{SMALL}[oai]\npage_records = 7\n")).unwrap();
        let expected = exchange::repository::Settings { page_records: 7, ..Default::default() };
        assert_eq!(config.oai, expected);
        check(&format!("{SMALL}[oai]\nadmin_email = \"admin@localhost\"\n"), &["6: an address"]);
    }

    #[test]
    fn a_small_file_has_the_documented_defaults() {
        let config = Config::parse(SMALL).unwrap();
        let roots = vec![Root::Tree(Tree::new("/srv/docs"))];
        let expected = Config { name: "a".into(), roots, ..Config::new("/d") };
        assert_eq!(config, expected);
        assert_eq!(
            (config.daemon.listen.port(), config.daemon.admin_listen.port()),
            (8_500, 9_500)
        );
    }

    #[test]
    fn all_settings_can_be_set() {
        let config = Config::parse(
            "name = \"a\"\ndata = \"/d\"\nlisten = \"[::]:1\"\nadmin_listen = \"127.0.0.1:2\"\nadmin_read = \"token\"\n\
             base_url = \"https://h/x\"\nwatch = \"poll\"\npoll = \"5 s\"\nrewalk = \"2 h\"\n\
             full_text = [\"Text\"]\nttl = \"2 days\"\nrefresh_rate = \"1 day\"\n\
             read_max = \"1 MiB\"\nworkers = 3\n[[root]]\nurl = \"file:///s%20p/\"\n\
             include = [\"*.a\"]\nexclude = [\"*.b\"]\nhidden = true\ngitignore = true\n\
             max_size = \"2 KiB\"\nsymlinks = \"follow\"\n[[map]]\nurl_prefix = \"http://h/\"\n\
             directory = \"/s p\"\n[push]\nhub = \"self\"\n",
        )
        .unwrap();
        assert_eq!(config.daemon.admin_read, AdminRead::Token);
        assert_eq!(config.push.hub, push::settings::HubChoice::Own);
        assert_eq!(config.watch, Watch::Poll(Duration::from_secs(5)));
        assert_eq!(config.full_text, FullText::Types([Type::Text].into()));
        assert_eq!((config.read_bytes_max, config.workers), (1024 * 1024, 3));
        let tree = Tree {
            include: vec!["*.a".into()],
            exclude: vec!["*.b".into()],
            hidden: true,
            gitignore: true,
            file_bytes_max: Some(2_048),
            symlinks: Symlinks::Follow,
            ..Tree::new("/s p")
        };
        assert_eq!(config.roots, [Root::Tree(tree)]);
        assert_eq!(spec::public_url(&config.maps, Path::new("/s p/x")), "http://h/x");
    }

    #[test]
    fn every_mistake_is_named_with_its_line() {
        check(SMALL, &[]);
        check("", &["1: name", "1: data", "1: nothing to gather"]);
        check(&format!("watch = \"inotify\"\n{SMALL}"), &["1: notify"]);
        check(&format!("{SMALL}exclud = []\nmax_size = 5\n"), &["5: exclud", "6: max_size"]);
        check(&format!("{SMALL}exclude = [\"ok\", \"a[\"]\n"), &["5: \"a[\""]);
        check(&SMALL.replace("file:///srv", "smb://srv"), &["4: file:///"]);
        check(&format!("{SMALL}[[root]]\nurl = \"file:///srv/docs/x\"\n"), &["3: lies inside"]);
        check(
            &format!("{SMALL}[[map]]\nurl_prefix = \"x\"\ndirectory = \"y\"\n"),
            &["6: x", "7: not absolute"],
        );
        check(&format!("ttl = \"0 s\"\nworkers = 0\n{SMALL}"), &["1: ttl", "2: workers"]);
    }

    #[test]
    fn a_root_may_be_a_repository() {
        let config = Config::parse(
            "name = \"a\"\ndata = \"/d\"\n[[root]]\nurl = \"https://h.example/oai\"\naccess = \"OAI\"\n\
             [[root]]\nurl = \"file:///srv\"\naccess = \"file\"\n[[root]]\nurl = \"http://i.example/oai\"\naccess = \"oai\"\nprefixes = [\"marc21\", \"oai_dc\"]\n\
             sets = [\"a:b\"]\nfrom = \"2020-01-31\"\ninterval = \"2 h\"\ndelay = \"1 s\"\n\
             keep_original = true\noverlap = \"2 h\"\ntoken = \"t\"\nallow_private = false\n",
        )
        .unwrap();
        let url = |text: &str| Url::parse(text).unwrap();
        let oai = exchange::source::Oai {
            prefixes: vec!["marc21".into(), "oai_dc".into()],
            sets: vec!["a:b".into()],
            from: oai::Datestamp::parse("2020-01-31"),
            delay: Duration::from_secs(1),
            keep_original: true,
            overlap: Duration::from_secs(7_200),
            ..exchange::source::Oai::default()
        };
        let full = Repository {
            oai,
            interval: Duration::from_secs(7_200),
            token: Some(daemon::Token::new("t")),
            allow_private: false,
            ..Repository::new(url("http://i.example/oai"))
        };
        let plain = Repository::new(url("https://h.example/oai"));
        let tree = Root::Tree(Tree::new("/srv"));
        let expected = [Root::Repository(plain), tree, Root::Repository(full)];
        assert_eq!(config.roots, expected, "in the order of the settings");
        let text = |more: &str| format!("{SMALL}[[root]]\naccess = \"oai\"\n{more}");
        let one = "url = \"http://h/oai\"\n";
        check(&text("url = \"http://h/oai?verb=Identify\"\n"), &["7: not a base URL"]);
        check(&text("url = \"file:///x\"\n"), &["7: not a base URL"]);
        check(
            &text("sets = [\"a b\"]\nfrom = \"x\"\n"),
            &["5: url", "7: \"a b\"", "8: not a date"],
        );
        check(&text(&format!("{one}hidden = true\n")), &["8: hidden"]);
        check(&text(&format!("{one}interval = \"15 days\"\n")), &[]);
        check(&text(&format!("{one}interval = \"16 days\"\n")), &["8: longer than half of ttl"]);
        check(&format!("{}[[root]]\naccess = \"oai\"\n{one}", text(one)), &["10: already"]);
        check(&SMALL.replace("[[root]]", "[[root]]\naccess = \"ftp\""), &["4: \"ftp\""]);
    }

    #[test]
    fn paths_inside_paths_are_one_root() {
        let paths = ["/b/c".into(), "/a".into(), "/a/x".into(), "/b/c".into()];
        let config = Config::for_paths(&paths, Path::new("/data"));
        let roots: Vec<_> = config.roots.iter().map(Root::url).collect();
        assert_eq!(roots, ["file:///a", "file:///b/c"]);
        assert_eq!(config.name, "c");
        assert_eq!(config.daemon.listen.port(), 0);
    }

    #[test]
    fn full_text_takes_only_existing_types() {
        let full_text = |text: &str| {
            let text = format!("full_text = {text}\n{SMALL}[essence]\ntypes = ['types.toml']\n");
            let files = |path: &Path| match path.to_str() {
                Some("types.toml") => Ok("[[type]]\nname = 'Recipe'\nby_name = 'x'\n".to_owned()),
                _ => Err(io::Error::from(io::ErrorKind::NotFound)),
            };
            let list = |_: &Path| Err(io::Error::from(io::ErrorKind::NotADirectory));
            let outcome = Config::parse_with(&text, Files { read: &files, list: &list });
            outcome.map(|it| it.full_text).map_err(|found| found[0].to_string())
        };
        let types = FullText::Types([Type::Html, Type::Site(0)].into());
        assert_eq!(full_text("['html', 'recipe']"), Ok(types));
        assert_eq!(full_text("['All']"), Ok(FullText::All));
        assert_eq!(full_text("[]"), Ok(FullText::None));
        let shown = full_text("['HTML', 'Markdwn']").unwrap_err();
        assert!(shown.starts_with("1:22:") && shown.contains("\"Markdown\""), "{shown}");
    }
}
