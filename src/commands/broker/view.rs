//! `harvest broker view`: the views of a running broker, and those in its settings file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use broker::admin::settings_file;
use broker::admin::views::{Tried, ViewStatus};
use broker::config::edit::{self, EditError};
use broker::source::Part;
use broker::status::Status;
use broker::views;
use broker::views::alerts::WebhookStatus;
use query::Query;

use super::{taxonomy, tune};
use crate::output;
use crate::settings::File;

/// What is done with views.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "Examples:
  harvest broker view list -c broker.toml
  harvest broker view try -c broker.toml 'type:PDF AND subject:physics'
  harvest broker view add -c broker.toml physics 'subject:physics' --title Physics
  harvest broker view import -c broker.toml taxonomy.tsv
  harvest broker view remove -c broker.toml physics")]
pub(crate) enum ViewCommand {
    /// List the views of a running broker, each with the number of its objects.
    List {
        #[command(flatten)]
        file: File,
        /// Print the broker's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a view: its query, those of the views around it, and some of its objects.
    Show {
        #[command(flatten)]
        file: File,
        /// The view's name.
        name: String,
    },
    /// Show what a query would have: how many objects, and some of them.
    Try {
        #[command(flatten)]
        file: File,
        /// The query.
        query: String,
        /// A source: also how many of its objects would go if only this were pulled of it.
        #[arg(long)]
        source: Option<String>,
        /// Print the broker's answer as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a view into the settings file, and have the broker read it.
    Add {
        #[command(flatten)]
        file: File,
        /// The view's name: small letters, digits, - and _.
        name: String,
        /// Its query.
        query: String,
        /// Its name for people.
        #[arg(long)]
        title: Option<String>,
        /// The view that it is within.
        #[arg(long)]
        within: Option<String>,
    },
    /// Write a taxonomy into the settings file as a tree of views, and have the broker read it.
    ///
    /// Each line of the taxonomy has a place in the tree, a tab and a query:
    /// Science/Physics, tab, subject:physics. Views that are there already by the
    /// names of such places get the queries of the file; others stay.
    Import {
        #[command(flatten)]
        file: File,
        /// The taxonomy.
        taxonomy: PathBuf,
    },
    /// Remove a view from the settings file, and have the broker read it.
    Remove {
        #[command(flatten)]
        file: File,
        /// The view's name.
        name: String,
    },
}

pub(super) async fn run(command: ViewCommand) -> anyhow::Result<ExitCode> {
    match command {
        ViewCommand::List { file, json } => {
            let admin = super::admin(&file)?;
            admin.print(&admin.get("views?format=json").await?, json, |views: &Vec<ViewStatus>| {
                list(views)
            })
        }
        ViewCommand::Show { file, name } => {
            let admin = super::admin(&file)?;
            let views: Vec<ViewStatus> =
                serde_json::from_slice(&admin.get("views?format=json").await?)?;
            let view = views.iter().find(|it| it.name == name);
            let view = view.with_context(|| {
                format!("there is no view {name:?}; `harvest broker view list` names them")
            })?;
            output::line(&format!("{} ({})\nquery  {}", view.name, view.title, view.query))?;
            if let Some(webhook) = &view.webhook {
                output::line(&state_of(webhook))?;
            }
            let answer = admin.get(&path(&format!("view:{name}"), None)).await?;
            admin.print(&answer, false, tried)
        }
        ViewCommand::Try { file, query, source, json } => {
            let admin = super::admin(&file)?;
            let answer = admin.get(&path(&query, source.as_deref())).await?;
            admin.print(&answer, json, tried)
        }
        ViewCommand::Add { file, name, query, title, within } => {
            let view = edit::NewView { name, query, title, within };
            change(&file, |text| edit::with_view(text, &view)).await
        }
        ViewCommand::Import { file, taxonomy } => {
            let shown = taxonomy.display();
            let text =
                fs::read_to_string(&taxonomy).with_context(|| format!("cannot read {shown}"))?;
            let views = taxonomy::views(&text).with_context(|| format!("in {shown}"))?;
            let done = change(&file, |text| edit::with_views(text, &views)).await?;
            output::line(&format!(
                "it has the {} of {shown}",
                output::counted(views.len() as u64, "view")
            ))?;
            Ok(done)
        }
        ViewCommand::Remove { file, name } => {
            change(&file, |text| edit::without_view(text, &name)).await
        }
    }
}

/// Returns the path that tries a query.
pub(super) fn path(query: &str, source: Option<&str>) -> String {
    let page = String::from("views/try?");
    let begin = page.len();
    let mut asked = url::form_urlencoded::Serializer::for_suffix(page, begin);
    asked.append_pair("q", query).extend_pairs(source.map(|it| ("source", it)));
    asked.finish()
}

/// Prints what would go of each source of which another part is to be pulled than a running broker pulls.
pub(super) async fn leavings(file: &File) -> anyhow::Result<()> {
    let config = super::load(&file.config)?;
    let mut asked = config.sources.iter().filter_map(|it| Some((it, it.part.as_ref()?))).peekable();
    if asked.peek().is_none() {
        return Ok(());
    }
    // The settings may be of a broker that does not run.
    let Ok(admin) = super::admin(file) else { return Ok(()) };
    let Ok(answer) = admin.get("status").await else { return Ok(()) };
    let Ok(status) = serde_json::from_slice::<Status>(&answer) else { return Ok(()) };
    for (source, part) in asked {
        let now = status.sources.iter().find(|it| it.name == source.name);
        let then = part.to_string();
        let Some(now) = now.filter(|it| it.part.as_ref() != Some(&then)) else { continue };
        let name = &source.name;
        // Views are those of the source.
        let Some(query) = query_without_views(part) else {
            let objects = output::counted(now.objects, "object");
            output::line(&format!(
                "source {name}: {then} from now on: of its {objects} here those will go that \
                 its broker does not count to that"
            ))?;
            continue;
        };
        let answer = admin.get(&path(&query.to_string(), Some(name))).await?;
        let Tried { source: Some(it), .. } = serde_json::from_slice(&answer)? else { continue };
        let of = output::counted(it.of, "object");
        output::line(&format!(
            "source {name}: another query: {} of its {of} here will go",
            it.leaving
        ))?;
    }
    Ok(())
}

/// Returns the query of a part, if it names no views.
fn query_without_views(part: &Part) -> Option<&Query> {
    let Part::Query(query) = part else { return None };
    let mut names_views = false;
    query.for_each_leaf(&mut |it| names_views |= it.field.as_deref() == Some(views::FIELD));
    (!names_views).then_some(query)
}

/// Writes the edited settings, and has the broker read them if it runs.
async fn change(
    file: &File,
    edited: impl FnOnce(&str) -> Result<String, EditError>,
) -> anyhow::Result<ExitCode> {
    let path: &Path = &file.config;
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let edited = edited(&text).with_context(|| format!("{shown} stays as it is"))?;
    let admin = super::admin(file)?;
    tune::check_reads(&admin, path).await?;
    settings_file::replace(path, &edited)?;
    if let Err(error) = admin.post("reload", &[]).await {
        bail!(
            "{shown} is changed, but the broker has not read it: send it SIGHUP, or restart it: {error:#}"
        );
    }
    output::line(&format!("{shown} is changed, and taken over"))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns how it goes with a webhook, in a line.
fn state_of(webhook: &WebhookStatus) -> String {
    let state = match (&webhook.problem, &webhook.to) {
        (Some(problem), _) => format!("is not told: {problem}"),
        (None, Some(to)) => format!("is told of all up to {to}"),
        (None, None) => "waits until it is known what the view has".to_owned(),
    };
    format!("webhook  {} {state}", webhook.host)
}

fn list(views: &[ViewStatus]) -> String {
    if views.is_empty() {
        return "no views; `harvest broker view add` makes one".to_owned();
    }
    let mut table = output::table(["view", "objects", "within", "query"]);
    for view in views {
        let within = view.within.as_deref().unwrap_or_default();
        let objects = view.objects.map(|it| indicatif::HumanCount(it).to_string());
        let objects = objects.unwrap_or_else(|| "–".to_owned());
        table.add_row([&view.name, &objects, within, &view.query]);
    }
    table.to_string()
}

fn tried(tried: &Tried) -> String {
    let mut text = format!("{} match {}", output::counted(tried.objects, "object"), tried.query);
    for sample in &tried.samples {
        let _ = write!(text, "\n  {}\n    {}", sample.title, sample.url);
    }
    if let Some(it) = &tried.source {
        let _ =
            write!(text, "\n{} of {} here would go", it.leaving, output::counted(it.of, "object"));
    }
    text
}
