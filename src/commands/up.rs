//! `harvest up`: a gatherer and a broker with defaults, in one process, for the folders and repositories
//! named.
//!
//! It is the two daemons and nothing else: the broker collects over a real HTTP connection, and
//! follows the gatherer, so that a change is found within two seconds.

mod places;
mod show;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use broker::config::Config;
use broker::error::Error;
use broker::source::Source;
use broker::status::SourceStatus;
use gatherer::spec::{Repository, Root};
use indicatif::MultiProgress;
use net::clock;
use net::shutdown::Shutdown;
use tokio::task::JoinSet;
use url::Url;

use self::places::Places;
use self::show::Show;
use crate::commands::worker;
use crate::output;
use crate::process::Signals;

/// What the broker calls the gatherer in its own process: the same at every start, whatever the port.
const SOURCE: &str = "local";

/// How many ports after the default one are tried.
const PORTS_TRIED: u16 = 100;

/// How long both daemons may take to stop; each sees to it that it takes less. What is cut short then is
/// lost to nobody: commits are whole or not there, and the next start goes on.
const DRAIN: Duration = Duration::from_millis(1_700);

/// After so many failures in a row `--once` gives up.
const FAILURES_MAX: u32 = 3;

/// Gather, index and search folders and OAI-PMH repositories, and keep watching them.
///
/// Hidden files, and what a .gitignore file names, are left out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest up                      the current folder; then open the page it prints
  harvest up /usr/share/doc --once
  harvest up ~/Mail ~/Papers --listen 127.0.0.1:9000
  harvest up https://archive.example.org/oai")]
pub(crate) struct Args {
    /// The folders, and base URLs of OAI-PMH repositories; the current folder if none is named.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to store everything; default: a folder in your data directory for these PATHs.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to serve the search page; default: 127.0.0.1 and port 8501, or the next free one.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Gather, collect and index what is there, print a summary and stop.
    #[arg(long)]
    once: bool,
    /// Do not open the page in a browser.
    #[arg(long)]
    no_open: bool,
    /// Delete what is gone even where so much is gone at once that it is held.
    #[arg(long)]
    confirm: bool,
}

/// Both daemons, bound.
#[derive(Debug)]
struct Pair {
    gatherer: gatherer::Server,
    broker: broker::server::Server,
}

/// Runs both daemons until Ctrl-C, or once.
pub(crate) async fn run(args: Args, bars: MultiProgress) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let places = places::places(&args.paths)?;
    let data = match &args.data {
        Some(data) => std::path::absolute(data)?,
        None => places::data_for(&places)?,
    };
    // What is in private files is in there too.
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&data);
    made.with_context(|| format!("cannot create {}", data.display()))?;
    let pair = tokio::select! {
        pair = Pair::bind(&places, &data, args.listen, args.once) => pair?,
        _ = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    let work = work(&args, &data, Show::new(bars), &pair);

    let shutdown = Shutdown::new();
    let mut daemons = pair.spawn(&shutdown);
    let outcome = tokio::select! {
        outcome = work => outcome,
        _ = signals.next() => Ok(()),
        ended = daemons.join_next() => Err(reason(ended)),
    };
    shutdown.start();
    let drained = async {
        while let Some(ended) = daemons.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        drained = drained => drained?,
        _ = signals.next() => {}
        () = tokio::time::sleep(DRAIN) => tracing::info!("stopped before everything was drained"),
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

/// Shows how gathering, collecting and indexing go; then, unless all is done, waits for ever.
fn work(
    args: &Args,
    data: &Path,
    show: Show,
    pair: &Pair,
) -> impl Future<Output = anyhow::Result<()>> + use<> {
    let (gatherer, broker) = (pair.gatherer.handle(), pair.broker.handle());
    let (address, admin) = (pair.address(), pair.gatherer.admin_addr());
    let (once, confirm) = (args.once, args.confirm);
    let open_page = !args.no_open && output::is_terminal();
    let data = data.to_owned();
    async move {
        let start = clock::monotonic();
        let mut progress = show.gathering(gatherer.progress(), 1).await?;
        if confirm && !gatherer.confirm(None).is_empty() {
            // What is held may be of repositories alone: their harvests are waited for all the same.
            gatherer.gather();
            progress = show.gathering(gatherer.progress(), progress.passes_done + 1).await?;
        }
        let gathered = clock::monotonic().duration_since(start);
        show.collecting(&progress);
        tokio::select! {
            done = broker.caught_up(SOURCE, gatherer.version()) => done?,
            problem = failure(&broker), if once => bail!("the broker cannot go on: {problem}"),
        }
        let took = clock::monotonic().duration_since(start);
        show.done(&progress, gathered, broker.status().await.objects, took)?;
        for root in gatherer.status().roots.iter().filter(|root| root.hold.is_some()) {
            let held = output::counted(root.held, "object");
            output::line(&format!(
                "held      {held} gone from {}: add --confirm to delete them",
                root.url
            ))?;
        }
        for problem in gatherer.problems().iter().filter(|it| it.kind == gatherer::HARVEST_PROBLEM)
        {
            output::line(&format!("failed    {}: {}", problem.object, problem.message))?;
        }
        if once {
            let shown = data.display().to_string();
            let bytes = tokio::task::spawn_blocking(move || places::bytes_in(&data)).await?;
            return Ok(output::line(&format!(
                "stored    {} in {shown}",
                indicatif::HumanBytes(bytes)
            ))?);
        }
        if progress.problems > 0 {
            output::line(&format!("problems  http://{}/problems", admin))?;
        }
        output::line(&format!("search at {address}"))?;
        if output::is_terminal() {
            output::note("Ctrl-C stops; until then changes are found within seconds");
        }
        if open_page {
            open(&address);
        }
        std::future::pending().await
    }
}

impl Pair {
    /// Binds a gatherer for `places` and a broker that follows it.
    async fn bind(
        places: &Places,
        data: &Path,
        listen: Option<SocketAddr>,
        once: bool,
    ) -> anyhow::Result<Self> {
        let mut config = gatherer::Config::for_paths(&places.folders, &data.join("gatherer"));
        config.wait_for_space = !once;
        config.worker = Some(worker::program());
        let repositories = places.repositories.iter().cloned().map(Repository::new);
        config.roots.extend(repositories.map(Root::Repository));
        if let Some(host) = places.repositories.first().and_then(Url::host_str)
            && config.name.is_empty()
        {
            config.name = host.to_owned();
        }
        let name = config.name.clone();
        let gatherer = Box::pin(gatherer::Server::bind(config)).await?;
        let url = Url::parse(&format!("http://{}/", gatherer.local_addr()))?;
        let source = Source { follow: true, ..Source::gatherer(SOURCE, url) };
        let mut config = Config::new(name, data.join("broker"));
        config.sources = vec![source];
        config.daemon.admin_listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let broker = match listen {
            Some(listen) => Box::pin(broker::server::Server::bind(at(listen, config))).await?,
            None => Box::pin(bind_somewhere(config)).await?,
        };
        Ok(Self { gatherer, broker })
    }

    /// Where the search page is.
    fn address(&self) -> String {
        let mut address = self.broker.local_addr();
        if address.ip().is_unspecified() {
            address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        format!("http://{address}/")
    }

    /// Runs both until `shutdown` starts.
    fn spawn(self, shutdown: &Shutdown) -> JoinSet<anyhow::Result<()>> {
        let mut daemons = JoinSet::new();
        let serving = self.gatherer.run(shutdown.clone());
        daemons.spawn(async { serving.await.context("the gatherer stopped") });
        let serving = self.broker.run(shutdown.clone());
        daemons.spawn(async { serving.await.context("the broker stopped") });
        daemons
    }
}

/// Waits until the broker has failed so often that it will not help to try again.
async fn failure(broker: &broker::server::Handle) -> String {
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    // Looks in a row: a damaged index is well again after the next try.
    let mut index_fails = 0;
    loop {
        tick.tick().await;
        let status = broker.status().await;
        index_fails = if status.index_problem.is_some() { index_fails + 1 } else { 0 };
        let index = status.index_problem.filter(|_| FAILURES_MAX <= index_fails);
        let failing = |it: &&SourceStatus| FAILURES_MAX <= it.errors.in_a_row;
        let source = status.sources.iter().find(failing).and_then(|it| it.errors.last.clone());
        if let Some(problem) = index.or(source) {
            return problem;
        }
    }
}

/// Why a daemon ended although nobody stopped it.
fn reason(ended: Option<Result<anyhow::Result<()>, tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok(Err(error))) => error,
        Some(Err(panic)) => panic.into(),
        Some(Ok(Ok(()))) | None => anyhow!("a daemon stopped by itself"),
    }
}

/// Binds a broker to the first port of this machine, from the default one on, that nobody listens to.
async fn bind_somewhere(config: Config) -> anyhow::Result<broker::server::Server> {
    let first = broker::config::LISTEN.port();
    for port in first..first.saturating_add(PORTS_TRIED) {
        let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        match broker::server::Server::bind(at(listen, config.clone())).await {
            Err(Error::Daemon(daemon::Error::Net(net::Error::AddressInUse { .. }))) => {}
            bound => return Ok(bound?),
        }
    }
    bail!("all ports from {first} on are in use; name another with --listen")
}

fn at(listen: SocketAddr, mut config: Config) -> Config {
    config.daemon.listen = listen;
    config
}

/// Opens the page in whatever the user browses with, if there is a screen.
fn open(address: &str) {
    let linux = !cfg!(target_os = "macos");
    let set = |name| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    if linux && !set("DISPLAY") && !set("WAYLAND_DISPLAY") {
        return;
    }
    let opener = if linux { "xdg-open" } else { "open" };
    let mut command = tokio::process::Command::new(opener);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = command.spawn() {
        tracing::info!(opener, %error, "the page cannot be opened");
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt as _;

    use collection::{Collection, Options, Stamp};

    use super::*;

    /// Runs once over `folder` and returns how many objects the broker then has.
    async fn check(folder: &Path, data: &Path, confirm: bool, expected: u64) {
        let args = Args {
            paths: vec![folder.to_owned()],
            data: Some(data.to_owned()),
            listen: Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)),
            once: true,
            no_open: true,
            confirm,
        };
        run(args, MultiProgress::new()).await.unwrap();
        let now = Stamp(clock::now_ms());
        let dir = data.join("broker").join("collection");
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
        // What was committed within the present second is not told of yet.
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
    async fn a_port_in_use_is_said_so() {
        let dir = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = taken.local_addr().unwrap();
        let places = places::places(&[dir.path().to_owned()]).unwrap();
        let error =
            Pair::bind(&places, &dir.path().join("data"), Some(listen), false).await.unwrap_err();
        assert!(error.to_string().contains("in use"), "{error:#}");
        let config = |name: &str| {
            let mut config = Config::new(name, dir.path().join(name));
            config.daemon.admin_listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
            config
        };
        let (one, other) = (bind_somewhere(config("one")), bind_somewhere(config("other")));
        let (one, other) = tokio::join!(one, other);
        assert_ne!(one.unwrap().local_addr(), other.unwrap().local_addr());
    }
}
