//! `harvest oai identify`, `formats` and `sets`: a repository's description of itself.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use anyhow::bail;
use exchange::harvester::Repository;
use oai::repository::description::Description;
use oai::repository::oap::Totals;
use oai::response::{self, Format, Reading, Set, Xml};
use serde_json::json;

use super::{RepositoryArgs, plain};
use crate::output;

/// Maximum number of pages of a list of sets that are requested.
const SET_PAGES_MAX: u32 = 10_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Identify {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Formats {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// Only the formats of this item.
    #[arg(long, value_name = "IDENTIFIER")]
    identifier: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sets {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn identify(args: &Identify) -> anyhow::Result<ExitCode> {
    let (found, reading) = args.repository.open()?.identify().await?;
    if args.json {
        output::line(&identify_json(&found, &reading).to_string())?;
    } else {
        output::line(&identify_text(&found, &reading))?;
        for note in &reading.notes {
            output::note(&format!("{}: {note}", args.repository.base));
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
    row("deleted records", deleted_policy(found.deleted_record));
    row("datestamps", found.granularity.name());
    row("compressions", &found.compressions.join(", "));
    row("its clock", &date(reading.response.response_date));
    for description in &found.descriptions {
        let (name, value) = describe(description);
        row(name, &value);
    }
    lines.join("\n")
}

/// Returns label and text of a description; an unknown one is shown as its XML.
fn describe(description: &Xml) -> (&'static str, String) {
    match Description::read(description) {
        Some(Description::Identifiers { repository, sample }) => {
            ("identifiers", format!("of {repository}, such as {sample}"))
        }
        Some(Description::Friends(friends)) => ("knows", friends.join(" ")),
        Some(Description::Branding(it)) => {
            let parts = [it.title, Some(it.icon), it.link];
            ("picture", parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
        Some(Description::Totals(Totals { elements, list })) => {
            let of = list.map_or_else(String::new, |it| format!(" of {it} with deleted ones"));
            ("records", format!("{elements}{of}"))
        }
        Some(Description::Syndication(it)) => {
            let often = it.frequency.as_deref().unwrap_or("1");
            let period = it.period.as_deref().unwrap_or("daily");
            let since = it.base.map_or_else(String::new, |it| format!(", since {it}"));
            ("updated", format!("{period}, {often} times in each{since}"))
        }
        None => ("description", description.0.clone()),
    }
}

/// Writes a table: aligned for a terminal, or with tabs for a program.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    if !io::stdout().is_terminal() {
        let lines = std::iter::once(head.map(str::to_owned)).chain(rows);
        return lines.map(|it| it.join("\t")).collect::<Vec<_>>().join("\n");
    }
    let mut table = output::table(head);
    for row in rows {
        table.add_row(row);
    }
    table.to_string()
}

fn deleted_policy(policy: response::Deleted) -> &'static str {
    match policy {
        response::Deleted::No => "no: it reports none",
        response::Deleted::Persistent => "persistent: it reports all, for ever",
        response::Deleted::Transient => "transient: it reports them for some time",
    }
}

pub(crate) async fn formats(args: &Formats) -> anyhow::Result<ExitCode> {
    let formats = args.repository.open()?.formats(args.identifier.clone()).await?;
    if args.json {
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
    let row = |it: &Format| [plain(&it.prefix), plain(&it.namespace), plain(&it.schema)];
    table(["prefix", "namespace", "schema"], formats.iter().map(row))
}

pub(crate) async fn sets(args: &Sets) -> anyhow::Result<ExitCode> {
    let all = all_sets(&args.repository.open()?).await?;
    if args.json {
        let all = all.iter().map(|it| json!({ "setSpec": it.spec, "setName": it.name }));
        output::line(&all.collect::<serde_json::Value>().to_string())?;
    } else {
        let row = |it: &Set| [plain(&it.spec), plain(&it.name)];
        output::line(&table(["set", "name"], all.iter().map(row)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the sets of a repository; unreadable ones are named on standard error.
pub(super) async fn all_sets(repository: &Repository) -> anyhow::Result<Vec<Set>> {
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
            bail!(
                "{} returns the same resumption token for its sets again and again",
                repository.base_url()
            );
        }
        token = next;
        if token.is_none() {
            break;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_descriptions_are_shown_in_words() {
        let check = |xml: &str, expected: (&str, &str)| {
            let (name, value) = describe(&Xml(xml.to_owned()));
            assert_eq!((name, value.as_str()), expected);
        };
        check(
            "<i:oai-identifier xmlns:i='http://www.openarchives.org/OAI/2.0/oai-identifier'>\
             <i:scheme>oai</i:scheme><i:repositoryIdentifier>a.org</i:repositoryIdentifier>\
             <i:delimiter>:</i:delimiter><i:sampleIdentifier> oai:a.org:1&amp;2 \
             </i:sampleIdentifier></i:oai-identifier>",
            ("identifiers", "of a.org, such as oai:a.org:1&2"),
        );
        let totals = Totals { elements: 5, list: Some(6) };
        check(&totals.to_xml().0, ("records", "5 of 6 with deleted ones"));
        let schedule = oai::syndication::Syndication {
            frequency: Some("2".to_owned()),
            ..oai::syndication::Syndication::default()
        };
        check(&schedule.to_xml().0, ("updated", "daily, 2 times in each"));
        for xml in ["<x xmlns='urn:x'>y</x>", "junk"] {
            check(xml, ("description", xml));
        }
    }

    #[test]
    fn a_table_for_a_program_is_not_padded() {
        let rows = [["a", "b c"], ["long name", "d"]].map(|it| it.map(str::to_owned));
        // Tests usually have no terminal.
        let shown = table(["set", "name"], rows.into_iter());
        if !io::stdout().is_terminal() {
            assert_eq!(shown, "set\tname\na\tb c\nlong name\td");
        }
    }
}
