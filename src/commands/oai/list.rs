//! `harvest oai list`: the headers of records, in the order of the repository.

use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use exchange::harvester::{Error, Repository};
use oai::request::is_within;
use oai::response::{Body, Header};
use oai::{Code, Listed, Request, Scope, Selection};
use serde_json::json;

use super::show::all_sets;
use super::{RepositoryArgs, SelectionArgs, plain};
use crate::output;

pub(super) const EXAMPLES: &str = "Deleted records have a D before their identifier.

Examples:
  harvest oai list https://repository.example/oai --limit 20
  harvest oai list https://repository.example/oai --from 2026-01-01 --json | jq -r .identifier";

/// Maximum number of pages of a list that are requested.
const PAGES_MAX: u64 = 10_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    repository: RepositoryArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Only records in this set or in a set below it.
    #[arg(long, value_name = "SET")]
    set: Option<String>,
    /// Stop after this number of records.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Go on from this resumption token, which a list that broke off has printed.
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["from", "until", "set"])]
    resume: Option<String>,
    /// As JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// Prints headers. The exit code is 1 when some could not be read.
pub(crate) async fn run(args: &List) -> anyhow::Result<ExitCode> {
    let repository = args.repository.open()?;
    args.selection.check()?;
    let SelectionArgs { from, until, ref prefix } = args.selection;
    let selection = Selection { prefix: prefix.clone(), from, until, set: args.set.clone() };
    let mut scope = args.resume.clone().map_or(Scope::Selection(selection), Scope::Token);
    // The token of a page whose number is a power of two: if the pages form a loop, this token
    // comes again.
    let mut before = String::new();
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut is_complete = true;
    for nth in 1..PAGES_MAX {
        let request = Request::List { listed: Listed::Identifiers, scope: scope.clone() };
        let reading = match (repository.ask(&request).await, &scope) {
            // No record matches: an empty list.
            (Err(Error::Refused { faults, .. }), Scope::Selection(_))
                if faults.iter().all(|it| it.code == Code::NoRecordsMatch) =>
            {
                args.check_set(&repository).await?;
                break;
            }
            (read, Scope::Selection(_)) => read?,
            (read, Scope::Token(token)) => {
                read.with_context(|| format!("the list broke off; go on with --resume '{token}'"))?
            }
        };
        let Body::Headers(page) = reading.response.body else {
            bail!("{} does not answer ListIdentifiers", args.repository.base);
        };
        if nth == 1 && !page.items.iter().all(|it| args.is_of_set(it)) {
            args.check_set(&repository).await?;
        }
        left = print(&page.items, left, args.json)?;
        for bad in &page.quarantined {
            is_complete = false;
            let name = bad.identifier.as_deref().unwrap_or("?");
            output::note(&format!("{} cannot be read: {}", plain(name), plain(&bad.problem)));
        }
        let Some(token) = page.token.map(|it| it.value).filter(|it| !it.is_empty()) else { break };
        if left == 0 {
            break;
        }
        if token == before {
            bail!(
                "{} has returned the token {token:?} before: its list has no end",
                args.repository.base
            );
        }
        if nth.is_power_of_two() {
            before.clone_from(&token);
        }
        scope = Scope::Token(token);
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl List {
    /// Returns whether a record is in the set, or names no set.
    fn is_of_set(&self, header: &Header) -> bool {
        let Some(set) = &self.set else { return true };
        header.sets.is_empty() || header.sets.iter().any(|it| is_within(it, set))
    }

    /// Fails if the repository does not list the set: then an empty list, or records of other sets,
    /// do not answer the question.
    async fn check_set(&self, repository: &Repository) -> anyhow::Result<()> {
        let Some(set) = &self.set else { return Ok(()) };
        let base = repository.base_url();
        if !all_sets(repository).await?.iter().any(|it| is_within(&it.spec, set)) {
            bail!("{base} does not list the set {set}; `harvest oai sets {base}` shows its sets");
        }
        Ok(())
    }
}

/// Prints up to `left` headers, and returns how many may still be printed.
fn print(headers: &[Header], left: u64, json: bool) -> io::Result<u64> {
    let mut out = BufWriter::new(io::stdout().lock());
    let wanted = usize::try_from(left).unwrap_or(usize::MAX);
    for header in headers.iter().take(wanted) {
        let line = if json { in_json(header) } else { in_text(header) };
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(left.saturating_sub(u64::try_from(headers.len()).unwrap_or(u64::MAX)))
}

fn in_text(header: &Header) -> String {
    let date = header.datestamp.map_or_else(|| "?".to_owned(), |it| it.to_string());
    let mark = if header.deleted { 'D' } else { ' ' };
    let sets = plain(&header.sets.join(" "));
    format!("{date:20} {mark} {}  {sets}", plain(&header.identifier)).trim_end().to_owned()
}

fn in_json(header: &Header) -> String {
    json!({
        "identifier": header.identifier,
        "datestamp": header.datestamp.map(|it| it.to_string()),
        "deleted": header.deleted,
        "sets": header.sets,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use oai::Datestamp;

    use super::*;

    #[test]
    fn a_header_is_a_line() {
        let mut header = Header {
            identifier: "oai:a:1\u{1b}".to_owned(),
            datestamp: Datestamp::parse("2026-01-31"),
            sets: vec!["a".to_owned(), "b:c".to_owned()],
            deleted: false,
        };
        assert_eq!(in_text(&header), "2026-01-31             oai:a:1\u{fffd}  a b:c");
        header = Header { datestamp: None, deleted: true, sets: Vec::new(), ..header };
        assert_eq!(in_text(&header), "?                    D oai:a:1\u{fffd}");
        assert_eq!(
            in_json(&header),
            r#"{"datestamp":null,"deleted":true,"identifier":"oai:a:1\u001b","sets":[]}"#
        );
    }
}
