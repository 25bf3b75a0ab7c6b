//! `harvest cache`: the daemon that keeps the web's objects for who asks again, and the commands to it.

mod shown;

use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use cache::config::{ADMIN_LISTEN, LISTEN};
use cache::{Config, Explanation, Handle, Listing, Purged, Server, Status, StoredObject};
use clap::Subcommand;
use net::client::{Client, Proxy, Request};
use net::shutdown::Shutdown;
use url::Url;

use crate::admin::Admin;
use crate::{output, process, settings};

/// Run an object cache: a proxy that answers from what it has fetched before.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  harvest cache run                                a proxy for this machine, at 127.0.0.1:3128
  curl -x http://127.0.0.1:3128 http://www.example.org/
  harvest cache get https://www.example.org/       through the proxy; it keeps https, too
  harvest cache get ftp://ftp.example.org/pub/     and ftp, gopher and news
  harvest cache status
  harvest cache top                                hit rates, what is requested most, slow origins
  harvest cache run -c cache.toml                  with settings: a site to stand before, rules")]
pub(crate) enum CacheCommand {
    /// Run the cache until SIGTERM or Ctrl-C; SIGHUP reads the settings again.
    Run(File),
    /// Print every mistake in the settings as FILE:LINE:COL; exit with 1 if there is any.
    Check(settings::File),
    /// Show the status of a running cache.
    Status {
        #[command(flatten)]
        file: File,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch an object through a running cache, and print it; its `Cache-Status` goes to standard
    /// error.
    Get {
        #[command(flatten)]
        file: File,
        /// The object's URL.
        url: Url,
    },
    /// Say what is stored of a URL, how long it is good, and what becomes of the next request.
    Explain {
        #[command(flatten)]
        file: File,
        /// The object's URL.
        url: Url,
        /// Print the cache's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show hit rates, what is requested most, slow origins, fetches under way, and neighbors.
    #[command(after_help = "Examples:
  harvest cache top
  watch harvest cache top
  harvest cache top --json | jq .lately")]
    Top {
        #[command(flatten)]
        file: File,
        /// As JSON, with minutes, hours, and sizes.
        #[arg(long)]
        json: bool,
    },
    /// List what is stored: status, size, place, age, and lifetime left, by URL.
    #[command(after_help = "Examples:
  harvest cache objects
  harvest cache objects --match '^http://www\\.example\\.org/' --limit 10000
  harvest cache objects --match '\\.png$' --json | jq '.objects[].url'")]
    Objects {
        #[command(flatten)]
        file: File,
        /// Those alone whose URLs fit this regular expression, which may fit anywhere in them.
        #[arg(long = "match", value_name = "PATTERN")]
        pattern: Option<String>,
        /// At most so many, up to 100000.
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove what is stored of a URL, or of all URLs that fit a pattern.
    #[command(after_help = "Examples:
  harvest cache purge http://www.example.org/
  harvest cache purge --match '^http://www\\.example\\.org/images/'
  harvest cache purge --match .                    everything")]
    #[command(group(clap::ArgGroup::new("what").required(true).args(["url", "pattern"])))]
    Purge {
        #[command(flatten)]
        file: File,
        /// The object's URL.
        url: Option<Url>,
        /// All objects whose URLs fit this regular expression, which may fit anywhere in them.
        #[arg(long = "match", value_name = "PATTERN")]
        pattern: Option<String>,
        /// Print the cache's answer as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The option that names the settings file.
#[derive(Debug, clap::Args)]
pub(crate) struct File {
    /// The settings file; without one, the defaults hold: 127.0.0.1:3128, 256 MiB of memory.
    #[arg(short, long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) async fn run(command: CacheCommand) -> anyhow::Result<ExitCode> {
    match command {
        CacheCommand::Run(file) => Box::pin(serve(&file)).await,
        CacheCommand::Check(file) => {
            file.check(|path| settings::check_daemon(path, &load(Some(path))?.daemon))
        }
        CacheCommand::Status { file, json } => {
            let admin = admin(&file)?;
            admin.print(&admin.get("status").await?, json, render)
        }
        CacheCommand::Get { file, url } => get(&file, url).await,
        CacheCommand::Explain { file, url, json } => {
            let admin = admin(&file)?;
            let query = query(&[("url", url.as_str())]);
            admin.print(&admin.get(&format!("explain?{query}")).await?, json, explained)
        }
        CacheCommand::Top { file, json } => {
            let admin = admin(&file)?;
            admin.print(&admin.get("top?format=json").await?, json, shown::top)
        }
        CacheCommand::Objects { file, pattern, limit, json } => {
            let admin = admin(&file)?;
            let query = query(&[
                ("format", "json"),
                ("limit", &limit.to_string()),
                ("match", pattern.as_deref().unwrap_or_default()),
            ]);
            let answer = admin.get(&format!("objects?{query}")).await?;
            let is_cut = serde_json::from_slice::<Listing>(&answer).is_ok_and(|it| it.is_cut);
            let outcome = admin.print(&answer, json, shown::objects);
            if is_cut {
                output::note("there are more: raise --limit, or narrow --match");
            }
            outcome
        }
        CacheCommand::Purge { file, url, pattern, json } => {
            let admin = admin(&file)?;
            let query = [("url", url.as_ref().map(Url::as_str)), ("match", pattern.as_deref())];
            let answer = admin.post("purge", &query).await?;
            admin.print(&answer, json, |it: &Purged| {
                format!("{} removed", output::counted(it.purged, "object"))
            })
        }
    }
}

/// Reads the settings; relative paths in them start at the file's folder.
pub(crate) fn load(path: Option<&Path>) -> anyhow::Result<Config> {
    let data = dirs::data_dir().map(|it| it.join("harvest").join("cache"));
    let Some(path) = path else {
        let data =
            data.context("you have no data directory: name one as `data` in a settings file")?;
        return Ok(Config::new(LISTEN, ADMIN_LISTEN, data));
    };
    let data = data.unwrap_or_default();
    let mut config = settings::load(path, |text| Config::parse(text, &data))?;
    config.resolve(&settings::folder(path));
    Ok(config)
}

fn query(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

fn admin(file: &File) -> anyhow::Result<Admin> {
    let config = load(file.config.as_deref())?;
    Admin::new("cache", &config.daemon.admin_address(), &config.daemon.data)
}

async fn serve(file: &File) -> anyhow::Result<ExitCode> {
    let mut signals = process::Signals::listen()?;
    let config = load(file.config.as_deref())?;
    let opening = async { Ok(Server::bind(config).await?) };
    let Some(server) = signals.during(opening).await? else { return Ok(ExitCode::SUCCESS) };
    let (public, admin) = (server.local_addr(), server.admin_addr());
    tracing::info!(%admin, "cache runs: use http://{public} as the proxy");
    let (handle, shutdown) = (server.handle(), Shutdown::new());
    let serving = server.run(shutdown.clone());
    let serving = async { serving.await.context("the cache stopped") };
    let reload = async || process::log_reload(reload(&handle, file));
    process::run(signals, serving, shutdown, reload).await
}

/// Applies the settings as they are now in the file.
fn reload(handle: &Handle, file: &File) -> anyhow::Result<Vec<&'static str>> {
    Ok(handle.reload(load(file.config.as_deref())?))
}

async fn get(file: &File, url: Url) -> anyhow::Result<ExitCode> {
    let config = load(file.config.as_deref())?;
    let mut at = config.daemon.listen;
    if at.ip().is_unspecified() {
        // It listens at each address of this machine.
        at.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    let daemon = &config.daemon;
    // A certificate is for the name in the public URL.
    let proxy = match daemon.base_url.clone().filter(|_| daemon.tls.is_some()) {
        Some(base) => base,
        None => Url::parse(&format!("http://{at}/"))?,
    };
    let proxy = Proxy::new(proxy, None)?.fetching_https();
    let mut extra_roots = Vec::new();
    for path in &daemon.trust {
        extra_roots.extend(net::tls::certificates(path)?);
    }
    let settings = net::client::Settings { allow_private: true, extra_roots, ..Default::default() };
    let client = Client::new(settings);
    let request = Request { response_bytes_max: Some(u64::MAX), ..Request::get(url.clone()) };
    let mut response = client.send(request.proxy(Some(proxy))).await?;
    if let Some(status) = response.header("cache-status") {
        output::note(&format!("cache-status: {status}"));
    }
    if !response.status.is_success() {
        bail!("{url}: {}", response.into_error().await);
    }
    let mut stdout = io::stdout().lock();
    while let Some(bytes) = response.chunk().await? {
        stdout.write_all(&bytes)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns an explanation as text.
fn explained(it: &Explanation) -> String {
    let mut lines = vec![it.url.clone()];
    lines.extend(it.refusal.iter().map(|it| format!("  refused: {it}")));
    for object in &it.stored {
        let StoredObject { status, bytes, is_in_memory, age, lifetime, basis, vary, .. } = object;
        let place = if *is_in_memory { "in memory" } else { "on disk" };
        let size = output::counted(*bytes, "byte");
        lines.push(format!(
            "  stored: {status}, {size} {place}, {age} s old, good for {lifetime} s by {basis}"
        ));
        lines.extend(vary.iter().map(|it| format!("    for requests with {it}")));
    }
    lines.extend(it.given_by.iter().map(|it| format!("  last given by: {it}")));
    lines.extend(it.not_stored.iter().map(|it| format!("  not stored: {it}")));
    lines.push(format!("  the next request: {}", it.next));
    lines.join("\n")
}

/// Returns the status as text.
fn render(status: &Status) -> String {
    let mut lines = vec![format!(
        "{}: {} in memory, {} bytes, {} under way",
        status.name,
        output::counted(status.objects, "URL"),
        status.bytes,
        status.under_way
    )];
    if status.disk_objects != 0 {
        let objects = output::counted(status.disk_objects, "object");
        lines.push(format!("  on disk: {objects}, {} bytes", status.disk_bytes));
    }
    lines.extend(status.disk_problem.iter().map(|it| format!("  nothing is stored on disk: {it}")));
    let answers = status.answers.iter().filter(|(_, count)| **count != 0);
    lines.extend(answers.map(|(from, count)| format!("  {from}: {count}")));
    lines.extend(status.routes.iter().map(|(code, count)| format!("  requested, {code}: {count}")));
    lines.join("\n")
}
