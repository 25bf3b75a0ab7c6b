//! `harvest broker`: the daemon that collects, indexes and answers, and the commands to it.

mod export;
mod taxonomy;
mod tune;
mod view;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use broker::config::Config;
use broker::server::{Handle, Server};
use broker::status::{Aim, SourceStatus, Status};
use clap::Subcommand;
use indicatif::{HumanBytes, HumanCount};
use net::shutdown::Shutdown;
use net::tls::ClientFiles;
use serde::Deserialize;

use super::{push, takedown};
use crate::admin::Admin;
use crate::settings::{self, File, StatusArgs};
use crate::{cli, output, process};

/// Run a broker: collect from sources, index, answer queries.
#[derive(Debug, Subcommand)]
#[command(after_help = "Example of a broker.toml:
  name = \"Library\"
  listen = \"0.0.0.0:8501\"
  data = \"/var/lib/harvest/broker\"

  [[source]]
  kind = \"gatherer\"
  url = \"http://host:8500/\"

  [freshness]
  policy = \"oap\"
  theta = 0.9")]
pub(crate) enum BrokerCommand {
    /// Run the broker until SIGTERM or Ctrl-C; SIGHUP reads the settings again.
    Run(File),
    /// Print every mistake in the settings as FILE:LINE:COL; exit with 1 if there is any. Of a running broker, print
    /// what will go of sources whose query is another one.
    Check(File),
    /// Show the status of a running broker.
    Status(StatusArgs),
    /// Have a running broker pull a source now, or all of them.
    Pull {
        #[command(flatten)]
        file: File,
        /// The source's name.
        source: Option<String>,
        /// Print the broker's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Forecast another policy for a running broker's sources, and apply it with --apply.
    Tune {
        #[command(flatten)]
        file: File,
        #[command(flatten)]
        args: tune::Tune,
    },
    /// Write all that a broker has, or what a query selects of it, as SOIF.
    Export(export::Export),
    /// List, show, try, add, import and remove views: queries with a name.
    #[command(subcommand)]
    View(view::ViewCommand),
    /// Confirm the deletions held back at a source or, without --source, the expiry held back.
    Confirm {
        #[command(flatten)]
        file: File,
        /// The source's name.
        #[arg(long)]
        source: Option<String>,
        /// Print the broker's answer as JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(command: BrokerCommand) -> anyhow::Result<ExitCode> {
    match command {
        BrokerCommand::Run(File { config }) => serve(&config).await,
        BrokerCommand::Check(file) => {
            let code = file.check(|path| check_files(path, &load(path)?))?;
            view::leavings(&file).await?;
            Ok(code)
        }
        BrokerCommand::Status(StatusArgs { file, json }) => {
            let admin = admin(&file)?;
            let now_ms = net::clock::now_ms();
            admin.print(&admin.get("status").await?, json, |status| render(status, now_ms))
        }
        BrokerCommand::Pull { file, source, json } => {
            let admin = admin(&file)?;
            let answer = admin.post("pull", &[("source", source.as_deref())]).await?;
            admin.print(&answer, json, |answer: &PullAnswer| answer.render(source.as_deref()))
        }
        BrokerCommand::Export(args) => export::run(args).await,
        BrokerCommand::View(command) => view::run(command).await,
        BrokerCommand::Tune { file, args } => tune::run(&file, &args).await,
        BrokerCommand::Confirm { file, source, json } => {
            let admin = admin(&file)?;
            let answer = admin.post("confirm", &[("source", source.as_deref())]).await?;
            admin.print(&answer, json, ConfirmAnswer::render)
        }
    }
}

/// The answer to `pull`.
#[derive(Debug, Deserialize)]
struct PullAnswer {
    /// Sources that are due now.
    due: u64,
}

impl PullAnswer {
    fn render(&self, source: Option<&str>) -> String {
        match (source, self.due) {
            (Some(name), _) => format!("{name} is pulled now"),
            (None, 1) => "1 source is pulled now".to_owned(),
            (None, due) => format!("{} are pulled now", output::counted(due, "source")),
        }
    }
}

/// The answer to `confirm`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ConfirmAnswer {
    Expired {
        expired: u64,
    },
    Held {
        held: u64,
        of: u64,
    },
    /// Sources that are confirmed and pulled now.
    Due {
        due: u64,
    },
}

impl ConfirmAnswer {
    fn render(&self) -> String {
        match self {
            Self::Expired { expired } => format!("{} expired", output::counted(*expired, "object")),
            Self::Held { held, of } => {
                let of = HumanCount(*of);
                format!("still held: {} of {of} would expire", HumanCount(*held))
            }
            Self::Due { due } => {
                format!("{} confirmed and pulled now", output::counted(*due, "source"))
            }
        }
    }
}

/// Reads the settings; relative paths in them start at the file's folder.
fn load(path: &Path) -> anyhow::Result<Config> {
    Ok(resolved(settings::load(path, Config::parse)?, path))
}

/// Returns settings of a file whose relative paths start at the file's folder.
pub(super) fn resolved(mut config: Config, path: &Path) -> Config {
    config.daemon.resolve(&settings::folder(path));
    for files in config.sources.iter_mut().filter_map(|it| it.certificate.as_mut()) {
        files.resolve(&settings::folder(path));
    }
    config.templates = config.templates.map(|templates| settings::beside(path, &templates));
    config
}

/// Checks the files that the settings name.
pub(super) fn check_files(path: &Path, config: &Config) -> anyhow::Result<()> {
    settings::check_daemon(path, &config.daemon)?;
    let mut shown = config.sources.iter().filter_map(|it| it.certificate.as_ref());
    Ok(shown.try_for_each(ClientFiles::check)?)
}

fn admin(file: &File) -> anyhow::Result<Admin> {
    let config = load(&file.config)?;
    Admin::new("broker", &config.daemon.admin_address(), &config.daemon.data)
}

async fn serve(path: &Path) -> anyhow::Result<ExitCode> {
    let mut signals = process::Signals::listen()?;
    let config = load(path)?;
    let scheme = config.daemon.scheme();
    let opening = Box::pin(async { Ok(Server::bind(config).await?) });
    let Some(server) = signals.during(opening).await? else { return Ok(ExitCode::SUCCESS) };
    let (public, admin) = (server.local_addr(), server.admin_addr());
    tracing::info!(%admin, "broker runs: search at {scheme}://{public}/");
    let handle = server.handle();
    // Symbolic links are not resolved: they may point elsewhere at the next reading.
    let file = std::path::absolute(path)?;
    server.read_settings_by(&file.clone(), move || {
        load(&file).map_err(|error| cli::error_text(&error))
    });
    let shutdown = Shutdown::new();
    let serving = Box::pin(server.run(shutdown.clone()));
    let serving = async { serving.await.context("the broker stopped") };
    let reload = async || process::log_reload(reload(&handle, path).await);
    process::run(signals, serving, shutdown, reload).await
}

/// Applies the settings as they are now in the file.
async fn reload(handle: &Handle, path: &Path) -> anyhow::Result<Vec<&'static str>> {
    Ok(handle.reload(load(path)?).await?)
}

/// Writes the status for a person at `now_ms`.
pub(super) fn render(status: &Status, now_ms: u64) -> String {
    let mut lines = vec![
        format!("{} ({}), harvest {}", status.name, status.id, status.software),
        format!("search at {}, administration at {}", public_url(status), status.admin_listen),
        format!(
            "{}, epoch {}, serial {}, index at {}",
            output::counted(status.objects, "object"),
            status.epoch,
            status.serial,
            status.index_covered.map_or_else(|| "nothing".to_owned(), |it| it.to_string()),
        ),
        schedule_line(status),
    ];
    lines.extend(aim_advice(status));
    lines.extend(status.ready.faults());
    let problems = [&status.collection_problem, &status.index_problem, &status.catalog_problem];
    let damaged = status.damaged.iter().map(|it| format!("damaged, to be fetched again: {it}"));
    let problems = problems.into_iter().flatten().cloned().chain(damaged);
    for problem in problems {
        lines.push(format!("PROBLEM: {problem}"));
    }
    lines.extend(takedown::status_text(&status.takedowns));
    if let Some(held) = status.held {
        lines.push(format!(
            "HELD: {} of {} would expire; `harvest broker confirm` lets them go",
            HumanCount(held.would_expire),
            HumanCount(held.of)
        ));
    }
    lines.extend(
        status.sources.iter().filter_map(|it| Some(format!("HELD: {}", it.held.as_ref()?))),
    );
    lines.extend(push_lines(status));
    let mut table = output::table([
        "source",
        "objects",
        "per day",
        "updated every",
        "interval",
        "due in",
        "fresh",
        "last pull",
        "failures",
    ]);
    for source in &status.sources {
        table.add_row(row(source, now_ms));
    }
    lines.push(String::new());
    lines.push(table.to_string());
    lines.join("\n")
}

fn public_url(status: &Status) -> String {
    let base_url = status.listening.base_url.clone();
    base_url.unwrap_or_else(|| format!("http://{}/", status.listen))
}

/// Returns the lines about subscribers, about sources of which a part is pulled or whose push fails, and about
/// warnings.
fn push_lines(status: &Status) -> Vec<String> {
    let mut lines = push::status_lines(&status.push);
    lines.extend(status.warnings.iter().map(|it| format!("WARNING: {it}")));
    for source in &status.sources {
        if let Some(part) = &source.part {
            lines.push(format!("of {} is pulled {part}", source.name));
        }
        if let Some(problem) = source.push.as_ref().and_then(|it| it.problem.as_ref()) {
            let name = &source.name;
            lines
                .push(format!("PUSH FAILS at {name}, which is pulled at its intervals: {problem}"));
        }
        lines.extend(source.warnings.iter().map(|it| format!("WARNING: {}: {it}", source.name)));
    }
    lines
}

/// Returns the line with the policy, the freshness and the pulls it takes.
fn schedule_line(status: &Status) -> String {
    let policy = match &status.aim {
        Some(Aim { setting, value }) if setting == "theta" => {
            format!("{} for freshness {value}", status.policy)
        }
        Some(Aim { setting, value }) if setting == "interval" => {
            format!("{} at {}", status.policy, seconds(*value))
        }
        Some(Aim { setting, value }) => format!("{} at {setting} = {value}", status.policy),
        None => status.policy.clone(),
    };
    let expected = &status.expected;
    format!(
        "{policy}: measured {}, expected {:.3} at {:.1} pulls an hour; {}",
        status.freshness.map_or_else(|| "not yet".to_owned(), |it| format!("{it:.3}")),
        expected.freshness,
        expected.pulls_per_hour,
        output::counted(status.pulls, "pull"),
    )
}

/// Returns advice when the bounds keep the policy from its aim.
fn aim_advice(status: &Status) -> Vec<String> {
    let expected = &status.expected;
    let mut lines = Vec::new();
    match expected.aim.as_str() {
        "met" => {}
        "capped" => lines.push(format!(
            "the aim cannot be met: it would take {:.0} pulls an hour, and pulls_per_minute_max lets \
             fewer begin",
            expected.planned_pulls_per_hour
        )),
        "all_shortest" if status.policy == "budget" => lines.push(
            "so many pulls cannot be made: every source is at its shortest interval".to_owned(),
        ),
        "all_longest" if status.policy == "budget" => lines.push(format!(
            "{:.1} pulls an hour are made, more than the budget: every source is at its longest interval",
            expected.planned_pulls_per_hour
        )),
        "all_shortest" => lines.push(format!(
            "the aim cannot be met: with every source at its shortest interval, freshness is {:.3}; a \
             lower interval_min would make it fresher",
            expected.planned_freshness
        )),
        "all_longest" => lines.push(format!(
            "more than was asked for: with every source at its longest interval, freshness is {:.3}; a \
             higher interval_max would save pulls",
            expected.planned_freshness
        )),
        _ => lines.push(format!(
            "the aim cannot be met for all: {} at the shortest interval, {} at the longest",
            output::counted(expected.at_shortest, "source"),
            expected.at_longest
        )),
    }
    if !expected.held_back.is_empty() {
        lines.push(format!(
            "held back by their shortest interval, so that the others are pulled the more: {}",
            expected.held_back.join(", ")
        ));
    }
    if 0 < expected.contradictory {
        lines.push(format!(
            "{}: interval_min is above interval_max or latency_seconds, and holds",
            output::counted(expected.contradictory, "source")
        ));
    }
    lines
}

fn row(source: &SourceStatus, now_ms: u64) -> [String; 9] {
    let none = || "–".to_owned();
    let due = match source.next_due_ms {
        _ if source.pulling => "now".to_owned(),
        Some(due) => seconds(due.saturating_sub(now_ms) as f64 / 1000.0),
        None => none(),
    };
    let updated = source.updates.interval_mean_seconds.map_or_else(none, |mean| {
        let deviation = source.updates.interval_deviation_seconds;
        let deviation = deviation.map(|it| format!(" ± {}", seconds(it))).unwrap_or_default();
        format!("{}{deviation}", seconds(mean))
    });
    let last = source.last_pull.as_ref().map_or_else(none, |it| {
        let ago = seconds(now_ms.saturating_sub(it.at_ms) as f64 / 1000.0);
        format!("{ago} ago: {} {}, {}", it.changes, it.kind, HumanBytes(it.bytes))
    });
    let failures = match &source.errors.last {
        Some(last) if source.errors.in_a_row > 0 => format!("{}: {last}", source.errors.count),
        Some(_) | None => source.errors.count.to_string(),
    };
    [
        source.name.clone(),
        HumanCount(source.objects).to_string(),
        source.rate_per_day.map_or_else(none, |it| format!("{it:.1}")),
        updated,
        match source.interval_seconds {
            _ if source.follow => "followed".to_owned(),
            interval => {
                let interval = interval.map_or_else(none, seconds);
                match source.push.as_ref().map(|it| it.state.as_str()) {
                    Some("active") => format!("{interval}, push"),
                    Some("asking") => format!("{interval}, asking its hub"),
                    Some(_) => format!("{interval}, push fails"),
                    None => interval,
                }
            }
        },
        due,
        source.freshness.map_or_else(none, |it| format!("{it:.3}")),
        last,
        failures,
    ]
}

/// Writes a duration in its best unit.
fn seconds(secs: f64) -> String {
    match secs {
        ..120.0 => format!("{secs:.1} s"),
        ..7_200.0 => format!("{:.0} min", secs / 60.0),
        ..172_800.0 => format!("{:.1} h", secs / 3_600.0),
        _ => format!("{:.1} days", secs / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use broker::status::{Errors, Expected, Held, LastPull, Pushing, Updates};

    use super::*;

    #[test]
    fn answers_are_rendered_as_sentences() {
        let pulling = |json: &str, source: Option<&str>| {
            serde_json::from_str::<PullAnswer>(json).unwrap().render(source)
        };
        assert_eq!(pulling(r#"{"due":1}"#, Some("docs")), "docs is pulled now");
        assert_eq!(pulling(r#"{"due":1}"#, None), "1 source is pulled now");
        assert_eq!(pulling(r#"{"due":3}"#, None), "3 sources are pulled now");
        let confirmed = |json: &str| serde_json::from_str::<ConfirmAnswer>(json).unwrap().render();
        assert_eq!(confirmed(r#"{"expired":1200}"#), "1,200 objects expired");
        assert_eq!(confirmed(r#"{"held":2,"of":9}"#), "still held: 2 of 9 would expire");
    }

    #[test]
    fn durations_have_fitting_units() {
        for (secs, expected) in
            [(0.25, "0.2 s"), (119.0, "119.0 s"), (600.0, "10 min"), (9_000.0, "2.5 h")]
        {
            assert_eq!(seconds(secs), expected);
        }
    }

    #[test]
    fn a_status_shows_subscriptions_and_failed_push() {
        let mut status = Status::default();
        assert_eq!(push_lines(&status), Vec::<String>::new());
        "self".clone_into(&mut status.push.hub);
        status.push.subscriptions = 2;
        let problem = Some("it names no hub".to_owned());
        let warnings = vec!["2 records without a title".to_owned()];
        let push = Some(Pushing { problem, ..Pushing::default() });
        let name = "docs".to_owned();
        status.sources = vec![SourceStatus { name, push, warnings, ..SourceStatus::default() }];
        let expected = [
            "push by self: 2 subscriptions, 0 notifications delivered",
            "PUSH FAILS at docs, which is pulled at its intervals: it names no hub",
            "WARNING: docs: 2 records without a title",
        ];
        assert_eq!(push_lines(&status), expected);
        for (state, expected) in
            [("active", "–, push"), ("asking", "–, asking its hub"), ("failed", "–, push fails")]
        {
            let source = &mut status.sources[0];
            state.clone_into(&mut source.push.as_mut().unwrap().state);
            assert_eq!(row(source, 0)[4], expected);
        }
    }

    #[test]
    fn a_status_shows_what_an_administrator_needs() {
        let source = SourceStatus {
            name: "docs".to_owned(),
            rate_per_day: Some(86.4),
            interval_seconds: Some(30.0),
            updates: Updates {
                interval_mean_seconds: Some(90.0),
                interval_deviation_seconds: Some(600.0),
                ..Updates::default()
            },
            next_due_ms: Some(11_000),
            last_pull: Some(LastPull {
                at_ms: 5_000,
                kind: "delta".to_owned(),
                changes: 3,
                bytes: 2_048,
                took_seconds: 0.1,
            }),
            errors: Errors {
                count: 2,
                in_a_row: 1,
                last: Some("refused".to_owned()),
                ..Errors::default()
            },
            ..SourceStatus::default()
        };
        let status = Status {
            name: "Library".to_owned(),
            held: Some(Held { would_expire: 20, of: 100 }),
            index_problem: Some("disk full".to_owned()),
            policy: "oap".to_owned(),
            aim: Some(Aim { setting: "theta".to_owned(), value: 0.9 }),
            freshness: Some(0.75),
            expected: Expected {
                aim: "all_shortest".to_owned(),
                freshness: 0.8,
                planned_freshness: 0.825,
                pulls_per_hour: 360.0,
                contradictory: 1,
                held_back: vec!["polite".to_owned()],
                ..Expected::default()
            },
            warnings: vec!["broker Liar at http://l/: it boasts".to_owned()],
            sources: vec![source],
            ..Status::default()
        };
        let text = render(&status, 10_000);
        for part in [
            "Library",
            "PROBLEM: disk full",
            "HELD: 20 of 100",
            "WARNING: broker Liar at http://l/: it boasts",
            "docs",
            "86.4",
            "30.0 s",
            "1.0 s",
            "5.0 s ago: 3 delta, 2.00 KiB",
            "2: refused",
            "90.0 s ± 10 min",
            "oap for freshness 0.9: measured 0.750, expected 0.800 at 360.0 pulls an hour",
            "the aim cannot be met: with every source at its shortest interval, freshness is 0.825",
            "1 source: interval_min is above",
            "pulled the more: polite",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn mistakes_name_their_line_and_paths_start_at_the_settings_folder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.toml");
        fs::write(&path, "name = 'n'\ndata = 'd'\nfolow = 1\n").unwrap();
        let message = load(&path).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{}:3:1: ", path.display())), "{message}");
        fs::write(&path, "name = 'n'\ndata = 'd'\n").unwrap();
        assert_eq!(load(&path).unwrap().daemon.data, dir.path().join("d"));
    }
}
