//! `harvest oai identify`, `formats` and `sets`: what a repository says of itself.

use std::process::ExitCode;

use anyhow::bail;
use comfy_table::{Table, presets};
use oai::response::{self, Format, Reading, Set};
use serde_json::json;

use super::{Place, plain};
use crate::output;

/// Most parts of a list of sets that are asked for.
const SET_PAGES_MAX: u32 = 10_000;

/// `harvest oai identify`
#[derive(Debug, clap::Args)]
pub(crate) struct Identify {
    #[command(flatten)]
    place: Place,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// `harvest oai formats`
#[derive(Debug, clap::Args)]
pub(crate) struct Formats {
    #[command(flatten)]
    place: Place,
    /// Those of this item alone.
    #[arg(long, value_name = "IDENTIFIER")]
    identifier: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// `harvest oai sets`
#[derive(Debug, clap::Args)]
pub(crate) struct Sets {
    #[command(flatten)]
    place: Place,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Shows who a repository is.
pub(crate) async fn identify(asked: &Identify) -> anyhow::Result<ExitCode> {
    let (found, reading) = asked.place.repository()?.identify().await?;
    if asked.json {
        output::line(&identify_json(&found, &reading).to_string())?;
    } else {
        output::line(&identify_text(&found, &reading))?;
        for note in &reading.notes {
            output::note(&format!("{}: {note}", asked.place.base));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn identify_json(found: &response::Identify, reading: &Reading) -> serde_json::Value {
    let descriptions: Vec<&str> = found.descriptions.iter().map(|it| it.0.as_str()).collect();
    json!({
        "repositoryName": found.repository_name,
        "baseURL": found.base_url,
        "protocolVersion": found.protocol_version,
        "adminEmails": found.admin_emails,
        "earliestDatestamp": found.earliest_datestamp.map(|it| it.to_string()),
        "deletedRecord": found.deleted_record.name(),
        "granularity": found.granularity.name(),
        "compressions": found.compressions,
        "descriptions": descriptions,
        "responseDate": reading.response.response_date.map(|it| it.to_string()),
        "repaired": reading.repaired,
        "notes": reading.notes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn identify_text(found: &response::Identify, reading: &Reading) -> String {
    let date = |it: Option<oai::Datestamp>| it.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let mut lines = Vec::new();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            lines.push(format!("{name:16} {}", plain(value)));
        }
    };
    row("name", &found.repository_name);
    row("address", &found.base_url);
    row("protocol", &found.protocol_version);
    row("administrators", &found.admin_emails.join(", "));
    row("earliest change", &date(found.earliest_datestamp));
    row("deleted records", deleted(found.deleted_record));
    row("datestamps", found.granularity.name());
    row("compressions", &found.compressions.join(", "));
    row("its clock", &date(reading.response.response_date));
    for description in &found.descriptions {
        row("description", &description.0);
    }
    lines.join("\n")
}

fn deleted(policy: response::Deleted) -> &'static str {
    match policy {
        response::Deleted::No => "no: it tells of none",
        response::Deleted::Persistent => "persistent: it tells of all, for ever",
        response::Deleted::Transient => "transient: it tells of them for some time",
    }
}

/// Shows metadata formats.
pub(crate) async fn formats(asked: &Formats) -> anyhow::Result<ExitCode> {
    let formats = asked.place.repository()?.formats(asked.identifier.clone()).await?;
    if asked.json {
        let all = formats.iter().map(|it| {
            json!({
                "metadataPrefix": it.prefix,
                "metadataNamespace": it.namespace,
                "schema": it.schema,
            })
        });
        output::line(&all.collect::<serde_json::Value>().to_string())?;
    } else {
        output::line(&formats_text(&formats))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn formats_text(formats: &[Format]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["prefix", "namespace", "schema"]);
    for it in formats {
        table.add_row([plain(&it.prefix), plain(&it.namespace), plain(&it.schema)]);
    }
    table.to_string()
}

/// Shows sets, part after part.
pub(crate) async fn sets(asked: &Sets) -> anyhow::Result<ExitCode> {
    let repository = asked.place.repository()?;
    let mut all: Vec<Set> = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..SET_PAGES_MAX {
        let page = repository.sets(token.clone()).await?;
        all.extend(page.items);
        for bad in page.quarantined {
            output::note(&format!("a set cannot be read: {}", plain(&bad.problem)));
        }
        let next = page.token.map(|it| it.value).filter(|it| !it.is_empty());
        if next.is_some() && next == token {
            bail!("{} hands out the same token of its sets again and again", asked.place.base);
        }
        token = next;
        if token.is_none() {
            break;
        }
    }
    if asked.json {
        let all = all.iter().map(|it| json!({ "setSpec": it.spec, "setName": it.name }));
        output::line(&all.collect::<serde_json::Value>().to_string())?;
    } else {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["set", "name"]);
        for it in &all {
            table.add_row([plain(&it.spec), plain(&it.name)]);
        }
        output::line(&table.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
