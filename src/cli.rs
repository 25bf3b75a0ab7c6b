//! The command line: its subcommands, and the report of their outcome.

use std::io;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use web::foreign::harmless;

use crate::settings::Rejected;
use crate::telemetry::{self, DefaultLevel};
use crate::{commands, output, runtime};

/// Be found without being crawled: gather once beside the data, stream every change, search
/// everywhere.
#[derive(Debug, Parser)]
#[command(name = "harvest", version, max_term_width = 100)]
#[command(after_help = "Examples:
  harvest up ~/Documents          gather, index and search a folder, and keep watching it
  harvest search 'title:budget'   ask from the shell
  harvest broker run -c broker.toml")]
pub(crate) struct Cli {
    #[command(flatten)]
    telemetry: telemetry::Options,
    #[command(subcommand)]
    command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Command {
    Up(commands::up::Args),
    Search(commands::search::Args),
    #[command(subcommand)]
    Gatherer(commands::gatherer::GathererCommand),
    #[command(subcommand)]
    Broker(commands::broker::BrokerCommand),
    #[command(subcommand)]
    Cache(commands::cache::CacheCommand),
    #[command(subcommand)]
    Replicator(commands::replicator::ReplicatorCommand),
    #[command(subcommand)]
    Registry(commands::registry::RegistryCommand),
    #[command(subcommand)]
    Collection(commands::collection::CollectionCommand),
    #[command(subcommand)]
    Soif(commands::soif::SoifCommand),
    #[command(subcommand)]
    Essence(commands::essence::EssenceCommand),
    #[command(subcommand)]
    Oai(commands::oai::OaiCommand),
    #[command(subcommand)]
    Bench(commands::bench::BenchCommand),
    #[command(subcommand)]
    Freshness(commands::freshness::FreshnessCommand),
    Completions(commands::pages::Completions),
    Man(commands::pages::Man),
    #[command(hide = true)]
    Worker,
}

/// Reads the command line, runs the command, and reports a failure in one line.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        // Whoever reads our output, such as `head`, has closed it: that is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(&error_text(&error));
            ExitCode::FAILURE
        }
    }
}

/// Returns the message for a failure: one line with the error and its causes, the outermost first.
/// For rejected settings: a line for each mistake.
pub(crate) fn error_text(error: &anyhow::Error) -> String {
    if error.is::<Rejected>() {
        return error.to_string();
    }
    let mut text = format!("harvest: {error}");
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors repeat the text of their cause.
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    // A cause may have the words of another server.
    harmless(&text).into_owned()
}

/// Returns the whole command line, for completions and manual pages.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let log = |level| telemetry::start(&cli.telemetry, level);
    let level = |is_daemon| if is_daemon { DefaultLevel::Events } else { DefaultLevel::Warnings };
    match cli.command {
        Command::Up(args) => {
            log(DefaultLevel::Warnings).and_then(|bars| block_on(commands::up::run(args, bars)))
        }
        Command::Search(args) => {
            log(DefaultLevel::Warnings)?;
            block_on(commands::search::run(args))
        }
        Command::Gatherer(command) => {
            log(level(matches!(command, commands::gatherer::GathererCommand::Run(_))))?;
            block_on(commands::gatherer::run(command))
        }
        Command::Broker(command) => {
            log(level(matches!(command, commands::broker::BrokerCommand::Run(_))))?;
            block_on(commands::broker::run(command))
        }
        Command::Cache(command) => {
            log(level(matches!(command, commands::cache::CacheCommand::Run(_))))?;
            block_on(commands::cache::run(command))
        }
        Command::Replicator(command) => {
            log(level(matches!(command, commands::replicator::ReplicatorCommand::Run { .. })))?;
            // Disk and decisions have threads of their own. TLS and messages share one thread:
            // waking another one for each message would take more of the processor.
            runtime::on_one_thread(commands::replicator::run(command))?
        }
        Command::Registry(command) => {
            log(level(matches!(command, commands::registry::RegistryCommand::Run(_))))?;
            block_on(commands::registry::run(command))
        }
        Command::Collection(command) => {
            log(DefaultLevel::Warnings)?;
            block_on(commands::collection::run(command))
        }
        Command::Soif(command) => commands::soif::run(command),
        Command::Essence(command) => commands::essence::run(command),
        Command::Oai(command) => {
            let bars = log(DefaultLevel::Warnings)?;
            block_on(commands::oai::run(command, bars))
        }
        Command::Bench(command) => {
            log(DefaultLevel::Warnings)?;
            block_on(commands::bench::run(command))
        }
        Command::Freshness(command) => commands::freshness::run(command),
        Command::Completions(args) => commands::pages::completions(&args),
        Command::Man(args) => commands::pages::man(&args),
        Command::Worker => commands::worker::run(),
    }
}

fn block_on(future: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    runtime::on_all_processors(future)?
}

/// Returns whether our output was closed. A broken pipe of a network connection is something else.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let of_network = error.chain().any(|cause| cause.is::<net::Error>());
    !of_network
        && error.chain().any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        })
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn clap_accepts_the_command_line() {
        Cli::command().debug_assert();
    }

    #[test]
    fn only_a_closed_output_ends_in_silence() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&anyhow::Error::new(broken()).context("printing")));
        let host = "h:1".to_owned();
        let network = net::Error::Connect { host, source: broken() };
        assert!(!is_broken_pipe(&anyhow::Error::new(network)));
    }

    #[test]
    fn an_error_does_not_repeat_its_cause() {
        let inner = io::Error::other("refused");
        let error = anyhow::Error::new(inner).context("it was refused").context("nobody answers");
        assert_eq!(error_text(&error), "harvest: nobody answers: it was refused");
        let foreign = anyhow::anyhow!("the server says \u{1b}[2J");
        assert_eq!(error_text(&foreign), "harvest: the server says \u{fffd}[2J");
    }

    #[test]
    fn usual_command_lines_are_parsed() {
        for line in [
            "harvest up",
            "harvest up a b --data d --listen 127.0.0.1:1 --once --no-open --confirm -vv",
            "harvest up --list",
            "harvest up --remove a b",
            "harvest up --problems a --data d",
            "harvest search x --json --limit 3 --broker http://h:1/",
            "harvest search --like http://h/a",
            "harvest gatherer run -c g.toml --log json",
            "harvest gatherer gather -c g.toml --json",
            "harvest gatherer confirm -c g.toml --root file:///a",
            "harvest registry run -c r.toml",
            "harvest registry list --registry http://h:8502/ --json",
            "harvest registry approve -c r.toml 0011223344556677",
            "harvest broker check -c b.toml",
            "harvest broker status -c b.toml --json",
            "harvest broker pull -c b.toml name",
            "harvest replicator init d --group g --address h:1 --site s --tree t=/srv/t",
            "harvest replicator publish -c r.toml t --accept-loss",
            "harvest replicator topology -c r.toml --svg f --json",
            "harvest collection verify d",
            "harvest collection export d -o f",
            "harvest collection suppress d http://h/* --reason x",
            "harvest collection suppress d --list --json",
            "harvest collection purge d",
            "harvest soif check",
            "harvest soif convert --to json -",
            "harvest essence type a b --rules types.toml --json",
            "harvest essence type a -c gatherer.toml",
            "harvest oai identify http://h/oai --json",
            "harvest oai formats http://h/oai --identifier oai:h:1",
            "harvest oai sets http://h/oai",
            "harvest oai list http://h/oai --from 2026-01-31 --until 2026-02-01 --set a --limit 3",
            "harvest oai harvest http://h/oai --set a --set b --prefix x --original -o d/ --json",
            "harvest oai harvest http://h/oai -o f --checkpoint c --from 2026-01-31T12:00:00Z",
            "harvest oai validate http://h/oai --json",
            "harvest bench relevance --queries q --qrels r --match best --each --broker http://h:1/",
            "harvest bench relevance --queries q --qrels r --json",
            "harvest completions bash",
            "harvest man",
        ] {
            let parsed = Cli::try_parse_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn every_command_of_the_readme_is_parsed() {
        let readme = include_str!("../README.md");
        let blocks = readme.lines().filter_map(|it| it.strip_prefix("    "));
        let blocks = blocks.map(|it| it.strip_prefix("$ ").unwrap_or(it));
        let blocks = blocks.map(|it| it.replace("cargo run --release -- ", "harvest "));
        let sentences = readme.split('`').skip(1).step_by(2).map(str::to_owned);
        let all = blocks.map(|it| (it, true)).chain(sentences.map(|it| (it, false)));
        let all: Vec<_> = all.filter(|(line, _)| line.starts_with("harvest ")).collect();
        assert!(15 <= all.len(), "{all:?}");
        for (line, is_whole) in all {
            // `a|b` stands for two commands.
            let choice = line.split(' ').find(|it| it.contains('|')).unwrap_or("harvest");
            for chosen in choice.split('|') {
                let line = line.replace(choice, chosen).replace("URL", "http://h/");
                let words = line.split(' ').map(|it| it.trim_matches(['"', '\'']));
                let error = Cli::try_parse_from(words).err();
                // A sentence may name a command without all that it needs.
                let is_short = |it: &clap::Error| it.kind() == ErrorKind::MissingRequiredArgument;
                if let Some(error) = error.filter(|it| is_whole || !is_short(it)) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
