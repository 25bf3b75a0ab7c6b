//! `harvest up`: a gatherer with a search page, for folders, web sites and repositories.
//!
//! The gatherer is the usual daemon. The index is a cursor on its collection, in the same process,
//! so that everything is stored once, and a change is found within two seconds.

mod earlier;
mod kinds;
mod list;
mod problems;
mod reach;
pub(crate) mod records;
mod show;
mod surroundings;
mod taken;
mod targets;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use broker::server::front::Front;
use daemon::auth::AdminAddress;
use formats::FullText;
use gatherer::Opener;
use gatherer::progress::Hold;
use gatherer::spec::URLS_MAX;
use indicatif::MultiProgress;
use net::clock;
use net::shutdown::Shutdown;
use tokio::task::JoinSet;
use url::Url;

use super::gatherer::ConfirmAnswer;
use super::registry;

use self::kinds::Kind;
use self::records::{Claim, Held, Record};
use self::show::ProgressView;
use self::surroundings::Around;
use self::targets::Targets;
use crate::admin::{Admin, Places};
use crate::commands::worker;
use crate::output;
use crate::process::Signals;

/// Number of ports that are tried, from the default one on.
const PORTS_TRIED: u16 = 100;

/// Longest time for both parts to stop; each limits itself to less. Nothing is lost at the limit:
/// commits are atomic, and the next start goes on.
const DRAIN: Duration = Duration::from_millis(1_700);

/// Number of failures in a row after which `--once` gives up.
const FAILURES_MAX: u32 = 3;

/// Gather, index and search folders, web sites, FTP folders, Gopher holes, newsgroups and OAI-PMH
/// repositories, and keep watching them.
///
/// Hidden files, and files that a .gitignore file names, are left out. Of a web site, the folder of the
/// address is gathered, as its robots.txt allows, slowly and up to a number of pages.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest up                      the current folder; then open the page it prints
  harvest up /usr/share/doc --once
  harvest up ~/Mail ~/Papers --listen 127.0.0.1:9000
  harvest up https://www.example.org/docs/ --urls-max 10000
  harvest up https://archive.example.org/oai
  harvest up ftp://ftp.example.org/pub/ news://news.example.org/comp.answers
  harvest up --list               what was gathered, what runs, and what it takes of the disk
  harvest up --remove ~/Mail      forget it")]
pub(crate) struct Args {
    /// The folders, addresses of what is elsewhere, and base URLs of OAI-PMH repositories; the current
    /// folder if none is named.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What the addresses are; default: as their hosts answer the first time.
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<Kind>,
    /// Maximum number of pages, files or articles at each address.
    #[arg(long, value_name = "NUMBER", default_value_t = URLS_MAX as u64, value_parser = clap::value_parser!(u64).range(1..))]
    urls_max: u64,
    /// Maximum number of hosts of each web site or Gopher hole.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    hosts_max: u64,
    /// Seconds between two requests to a host; none at this machine's own.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    delay: f64,
    /// Where to store everything; default: a folder in your data directory for these PATHs.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to serve the search page, for all who reach that; default: 127.0.0.1 and port 8501, or
    /// the next free one, for your user alone.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// A registry that is asked, before a site is gathered for the first time, whether somebody gathers it already; of
    /// several the nearest that answers.
    #[arg(long, value_name = "URL", env = "HARVEST_REGISTRY", value_parser = registry::places)]
    registry: Vec<Places>,
    /// Gather a site although somebody gathers it already.
    #[arg(long)]
    anyway: bool,
    /// Gather and index once, print a summary and stop.
    #[arg(long)]
    once: bool,
    /// Do not open the page in a browser.
    #[arg(long)]
    no_open: bool,
    /// Confirm deletions that are held because many files are gone at once.
    #[arg(long)]
    confirm: bool,
    /// List what was gathered: root, address while it runs, size on disk, last use.
    #[arg(long, conflicts_with_all = ["paths", "data", "listen", "once", "confirm"])]
    list: bool,
    /// Remove what was gathered of the PATHs; not while it runs.
    #[arg(long, conflicts_with_all = ["data", "listen", "once", "confirm", "list"])]
    remove: bool,
    /// Print all failures and notes of the last gathering of the PATHs.
    #[arg(long, conflicts_with_all = ["listen", "once", "confirm", "list", "remove"])]
    problems: bool,
}

/// The gatherer, listening but not yet running, and the index of its collection with the pages.
#[derive(Debug)]
struct Up {
    gatherer: gatherer::Server,
    front: Front,
    around: Arc<Around>,
    /// The record of this process; `None` if it cannot be written.
    held: Option<Held>,
}

/// Gathers and serves until Ctrl-C, or once; or lists, removes, or prints problems.
pub(crate) async fn run(args: Args, bars: MultiProgress) -> anyhow::Result<ExitCode> {
    if args.list {
        return list::list();
    }
    if args.remove {
        return list::remove(&args.paths);
    }
    let mut signals = Signals::listen()?;
    let targets = targets::targets(&args.paths)?;
    let data = match &args.data {
        Some(data) => targets::outside(data, &targets)?,
        None => targets::data_for(&targets)?,
    };
    if args.problems {
        return problems::command(&targets, &data).await;
    }
    if !args.anyway {
        taken::ask(Places::all(&args.registry), &targets.urls, &data).await?;
    }
    // The data folder holds the contents of private files too.
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&data);
    made.with_context(|| format!("cannot create {}", data.display()))?;
    let held = match claim(&targets, &data, args.data.is_some()) {
        Claimed::Running(record) => {
            return tokio::select! {
                shown = again(&record, &args) => shown,
                _ = signals.next() => Ok(ExitCode::SUCCESS),
            };
        }
        Claimed::Ours(held) => held,
    };
    let mut up = tokio::select! {
        up = Up::bind(&targets, &data, &args) => up?,
        _ = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    up.held = held;
    up.announce(&args)?;
    let command = targets::problems_command(&targets, args.data.as_deref());
    let work = work(&args, (&data, command), ProgressView::new(bars), &up);
    run_until(up, work, signals).await
}

/// Runs the parts until `work` has ended, a signal comes or a part fails; then drains them.
async fn run_until(
    mut up: Up,
    work: impl Future<Output = anyhow::Result<ExitCode>>,
    mut signals: Signals,
) -> anyhow::Result<ExitCode> {
    // The record stays locked until everything is drained.
    let _held = up.held.take();
    let shutdown = Shutdown::new();
    let mut parts = up.spawn(&shutdown);
    let outcome = tokio::select! {
        outcome = work => outcome,
        _ = signals.next() => Ok(ExitCode::SUCCESS),
        ended = parts.join_next() => Err(reason(ended)),
    };
    shutdown.start();
    let drained = async {
        while let Some(ended) = parts.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        drained = drained => drained?,
        _ = signals.next() => {}
        () = tokio::time::sleep(DRAIN) => tracing::info!("stopped before everything was drained"),
    }
    outcome
}

/// Whether this process may gather.
enum Claimed {
    /// It may. Without a record if none can be written.
    Ours(Option<Held>),
    Running(Record),
}

/// Takes the record of the data folder, unless a running process gathers the same. Blocks.
fn claim(targets: &Targets, data: &Path, is_named: bool) -> Claimed {
    let running = records::all().into_iter().filter(|it| it.is_running).map(|it| it.record);
    if let Some(same) = running.into_iter().find(|it| !is_named && it.is_of(targets)) {
        return Claimed::Running(same);
    }
    match records::claim(targets, data) {
        Ok(Claim::Ours(held)) => Claimed::Ours(Some(held)),
        Ok(Claim::Running(record)) if record.is_of(targets) => Claimed::Running(record),
        // Of other folders: the lock of the data says who has it.
        Ok(Claim::Running(_)) => Claimed::Ours(None),
        Err(error) => {
            tracing::warn!("`harvest search` will not find this by itself: {error:#}");
            Claimed::Ours(None)
        }
    }
}

/// Shows the page of the process that gathers the same.
async fn again(record: &Record, args: &Args) -> anyhow::Result<ExitCode> {
    let (record, page) = records::started(record).await?;
    if args.once {
        bail!("it is gathered already, by the `harvest up` at {page}: stop that one first");
    }
    if args.confirm {
        let admin = admin_of(&record).context("that `harvest up` has no administration address")?;
        let answer = admin.post("confirm", &[]).await?;
        return admin.print(&answer, false, |answer: &ConfirmAnswer| answer.to_string());
    }
    output::line(&format!("search at {page}"))?;
    output::note("it runs already, and finds changes by itself");
    if args.listen.is_some() {
        output::note("--listen has no effect on it: stop it first to serve elsewhere");
    }
    if !args.no_open && output::is_terminal() {
        let link = link_of(&record).await;
        reach::open(link.as_deref().unwrap_or(page.as_str()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a one-time link of a running process; `None` if it opens no files.
async fn link_of(record: &Record) -> Option<String> {
    let answer = admin_of(record)?.post("session", &[]).await.ok()?;
    let answer: serde_json::Value = serde_json::from_slice(&answer).ok()?;
    Some(answer.get("link")?.as_str()?.to_owned())
}

/// Returns the administration of a running process; `None` if it cannot be reached.
fn admin_of(record: &Record) -> Option<Admin> {
    let at = AdminAddress { address: record.admin?, is_secure: false };
    Admin::of_data(&at, &record.data().join("gatherer")).ok()
}

/// Shows the progress of gathering and indexing. Then returns if `--once` is given, or else waits
/// forever. `data` is the data folder, and the command that prints all problems.
fn work(
    args: &Args,
    (data, command): (&Path, String),
    view: ProgressView,
    up: &Up,
) -> impl Future<Output = anyhow::Result<ExitCode>> + use<> {
    let (gatherer, front, around) = (up.gatherer.handle(), up.front.clone(), up.around.clone());
    let (once, confirm) = (args.once, args.confirm);
    let data = data.to_owned();
    async move {
        let start = clock::monotonic();
        let crawls = || gatherer.crawls();
        let mut progress = view.gathering(gatherer.progress(), crawls, 1).await?;
        if confirm && !gatherer.confirm(None).is_empty() {
            // The new pass waits for harvests too: the deletions may be those of repositories.
            gatherer.gather();
            let passes = progress.passes_done + 1;
            progress = view.gathering(gatherer.progress(), crawls, passes).await?;
        }
        let gathered = clock::monotonic().duration_since(start);
        view.indexing(&progress);
        tokio::select! {
            done = front.caught_up() => done?,
            problem = failure(&front), if once => bail!("the index cannot go on: {problem}"),
        }
        around.note_caught_up();
        let took = clock::monotonic().duration_since(start);
        view.done(&progress, gathered, gatherer.status().objects, took)?;
        problems::print(&gatherer, &command)?;
        let is_whole = report_roots(&gatherer)?;
        if once {
            let shown = data.display().to_string();
            let bytes = tokio::task::spawn_blocking(move || targets::bytes_in(&data)).await?;
            output::line(&format!("stored    {} in {shown}", indicatif::HumanBytes(bytes)))?;
            return Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        if output::is_terminal() {
            output::note("Ctrl-C stops; until then changes are found within seconds");
        }
        std::future::pending().await
    }
}

/// Prints which roots are held, and which could not be read; returns whether all could.
fn report_roots(gatherer: &gatherer::Handle) -> anyhow::Result<bool> {
    for root in gatherer.status().roots.iter().filter(|root| root.hold.is_some()) {
        let held = output::counted(root.held, "object");
        let (what, confirmed) = match root.hold {
            Some(Hold::Alike { .. }) => ("alike now in", "take them"),
            _ => ("gone from", "delete them"),
        };
        output::line(&format!(
            "held      {held} {what} {}: add --confirm to {confirmed}",
            root.url
        ))?;
    }
    let mut is_whole = true;
    let failed = [
        gatherer::HARVEST_PROBLEM,
        gatherer::problems::ROOT_PROBLEM,
        gatherer::problems::CRAWL_PROBLEM,
    ];
    for problem in gatherer.problems().iter().filter(|it| failed.contains(&it.kind.as_str())) {
        is_whole = false;
        output::line(&format!("failed    {}: {}", problem.object, problem.message))?;
    }
    Ok(is_whole)
}

impl Up {
    /// Binds a gatherer for `targets`, and opens the index of its collection.
    async fn bind(targets: &Targets, data: &Path, args: &Args) -> anyhow::Result<Self> {
        let (listen, once, named) = (args.listen, args.once, args.data.is_some());
        let mut config = gatherer::Config::for_paths(&targets.folders, &data.join("gatherer"));
        // The text is on this disk anyway.
        config.full_text = FullText::All;
        config.wait_for_space = !once;
        config.worker = Some(worker::program());
        for (url, kind) in kinds::kinds(&targets.urls, args.kind, data).await? {
            config.roots.push(kinds::root(url, kind, args)?);
        }
        if let Some(host) = targets.urls.first().and_then(Url::host_str)
            && config.name.is_empty()
        {
            config.name = host.to_owned();
        }
        let name = config.name.clone();
        let gatherer = match listen {
            Some(listen) => Box::pin(gatherer::Server::bind(with_listen(listen, config))).await?,
            None => Box::pin(bind_somewhere(config)).await?.for_user_alone(),
        };
        let (collection, data) = (gatherer.handle().collection(), data.to_owned());
        let page = Url::parse(&reach::here(gatherer.local_addr()))?;
        let opener = reach::opener().map(|it| Opener::new(it, &page, gatherer.admin_addr()));
        let opener = opener.transpose()?.flatten().map(Arc::new);
        let around = Arc::new(Around::new(gatherer.handle().progress(), opener.clone()));
        let told = around.clone();
        let opening = move || {
            let front = Front::open(collection, &data, &name, told)?;
            // Only now is it certain that no other process runs on the folder.
            earlier::handle(&data, named)?;
            anyhow::Ok(front)
        };
        let front = tokio::task::spawn_blocking(opening).await??;
        let check = front.clone();
        let mut gatherer = gatherer.with_front(front.routes(), move || check.check());
        if let Some(opener) = opener {
            gatherer = gatherer.with_opener(opener);
        }
        Ok(Self { gatherer, front, around, held: None })
    }

    /// Says where the search page is, and opens it: it answers while files are gathered.
    fn announce(&mut self, args: &Args) -> anyhow::Result<()> {
        let listen = self.gatherer.local_addr();
        let page = reach::here(listen);
        let (url, admin) = (Url::parse(&page)?, self.gatherer.admin_addr());
        if let Some(held) = &mut self.held {
            // What ends by itself is not for queries.
            held.announce(Some(url).filter(|_| !args.once), admin, self.gatherer.handle().id())?;
        }
        if args.once {
            return Ok(());
        }
        output::line(&format!("search at {page}"))?;
        if !listen.ip().is_loopback() {
            let elsewhere = reach::elsewhere(listen);
            for page in elsewhere.iter().filter(|it| **it != page) {
                output::line(&format!("also at   {page} from other machines"))?;
            }
            output::note(
                "warning: everyone who reaches this address can search what is gathered, and read the full \
                 texts (the page shows them, and the feed serves them); without --listen only you can, on this machine",
            );
        }
        if !args.no_open && output::is_terminal() {
            // The link lets this browser open what is found.
            let link = self.around.opener.as_ref().map(|it| it.link()).transpose()?;
            reach::open(&link.unwrap_or(page));
        }
        Ok(())
    }

    /// Runs both parts until `shutdown` starts.
    fn spawn(self, shutdown: &Shutdown) -> JoinSet<anyhow::Result<()>> {
        let mut parts = JoinSet::new();
        let gathering = self.gatherer.run(shutdown.clone());
        parts.spawn(async { gathering.await.context("the gatherer stopped") });
        let searching = self.front.run(shutdown.clone());
        parts.spawn(async { searching.await.context("the index stopped") });
        parts
    }
}

/// Waits for [`FAILURES_MAX`] looks in a row at which the index had a problem; returns the problem.
async fn failure(front: &Front) -> String {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    // A single problem may pass: the next try repairs a damaged index.
    let mut fails = 0;
    loop {
        tick.tick().await;
        let problem = front.problem();
        fails = if problem.is_some() { fails + 1 } else { 0 };
        if let Some(problem) = problem.filter(|_| FAILURES_MAX <= fails) {
            return problem;
        }
    }
}

/// Returns the reason why a part ended without a signal.
fn reason(ended: Option<Result<anyhow::Result<()>, tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok(Err(error))) => error,
        Some(Err(panic)) => panic.into(),
        Some(Ok(Ok(()))) | None => anyhow!("a part of it stopped by itself"),
    }
}

/// Binds a gatherer to the first free port of this machine, from the search page's usual one on.
async fn bind_somewhere(config: gatherer::Config) -> anyhow::Result<gatherer::Server> {
    let first = broker::config::LISTEN.port();
    for port in first..first.saturating_add(PORTS_TRIED) {
        let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        match gatherer::Server::bind(with_listen(listen, config.clone())).await {
            Err(gatherer::Error::Daemon(daemon::Error::Net(net::Error::Bind {
                error, ..
            }))) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return Ok(bound?),
        }
    }
    bail!("all ports from {first} on are in use; name another with --listen")
}

fn with_listen(listen: SocketAddr, mut config: gatherer::Config) -> gatherer::Config {
    config.daemon.listen = listen;
    config
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt as _;

    use collection::{Collection, Options, Stamp};

    use super::*;

    fn args_for(folder: &Path, data: &Path) -> Args {
        Args {
            paths: vec![folder.to_owned()],
            data: Some(data.to_owned()),
            listen: Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)),
            once: false,
            no_open: true,
            confirm: false,
            list: false,
            remove: false,
            problems: false,
            kind: None,
            urls_max: 250,
            hosts_max: 1,
            delay: 1.0,
            registry: vec![],
            anyway: false,
        }
    }

    /// Runs once over `folder` and checks the number of objects.
    async fn check(folder: &Path, data: &Path, confirm: bool, expected: u64) {
        let args = Args { once: true, confirm, ..args_for(folder, data) };
        run(args, MultiProgress::new()).await.unwrap();
        let now = Stamp(clock::now_ms());
        let dir = data.join("gatherer").join("collection");
        let (collection, _) = Collection::open(&dir, Options::default(), now).unwrap();
        assert_eq!(collection.len(), expected, "confirmed: {confirm}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_great_loss_is_held_until_confirmed() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, data) = (dir.path().join("folder"), dir.path().join("data"));
        fs::create_dir(&folder).unwrap();
        for i in 0..120 {
            fs::write(folder.join(format!("{i}.txt")), format!("number {i}")).unwrap();
        }
        check(&folder, &data, false, 120).await;
        let mode = fs::metadata(&data).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "only its owner reads what was gathered");
        for i in 5..120 {
            fs::remove_file(folder.join(format!("{i}.txt"))).unwrap();
        }
        check(&folder, &data, false, 120).await;
        check(&folder, &data, true, 5).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_repository_is_harvested_and_indexed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir(&folder).unwrap();
        for i in 0..3 {
            fs::write(folder.join(format!("{i}.txt")), format!("number {i}")).unwrap();
        }
        // A gatherer is a repository too.
        let config = gatherer::Config::for_paths(&[folder], &dir.path().join("origin"));
        let server = gatherer::Server::bind(config).await.unwrap();
        let url = format!("http://{}/oai", server.local_addr());
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let origin = tokio::spawn(server.run(shutdown.clone()));
        handle.progress().wait_for(|it| it.passes_done == 1).await.unwrap();
        // OAI-PMH does not list commits of the present second yet.
        let second = clock::now_ms() / 1_000;
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        while clock::now_ms() / 1_000 < second + 3 {
            tick.tick().await;
        }
        check(Path::new(&url), &dir.path().join("data"), false, 3).await;
        shutdown.start();
        origin.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_port_in_use_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = taken.local_addr().unwrap();
        let targets = targets::targets(&[dir.path().to_owned()]).unwrap();
        let data = dir.path().join("data");
        let args = Args { listen: Some(listen), ..args_for(dir.path(), &data) };
        let error = Up::bind(&targets, &data, &args).await.unwrap_err();
        assert!(error.to_string().contains("in use"), "{error:#}");
        let config = |name: &str| gatherer::Config::for_paths(&[], &dir.path().join(name));
        let (one, other) = (bind_somewhere(config("one")), bind_somewhere(config("other")));
        let (one, other) = tokio::join!(one, other);
        assert_ne!(one.unwrap().local_addr(), other.unwrap().local_addr());
    }
}
