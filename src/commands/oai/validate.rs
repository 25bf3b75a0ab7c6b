//! `harvest oai validate`: the conformance of a repository to OAI-PMH.

use std::process::ExitCode;
use std::time::Duration;

use http::{HeaderValue, header};
use net::client::{Client, Request};
use oai::conformance::{self, BOUNDS, Check, Reply, Report, SECOND_PAGE, Verdict, WholeList};
use oai::harvest::OAI_DC;
use oai::request::Verb;
use oai::response::{Header, Identify, Token};
use serde_json::json;
use url::Url;

use super::{RepositoryArgs, plain};
use crate::{admin, output};

pub(super) const EXAMPLES: &str = "\
Each line is one check. A failed check has its reason and advice; a note is no failure.
The repository needs at least one record in oai_dc. About fifty requests are made, and up to a hundred more
for the list of all records.

Examples:
  harvest oai validate http://127.0.0.1:8501/oai
  harvest oai validate https://repository.example/oai --json | jq '.[] | select(.verdict == \"fail\")'";

/// Largest response, in bytes: registries accept no larger ones.
const RESPONSE_BYTES_MAX: u64 = 100_000_000;

/// Longest pause in a Retry-After header, in seconds; a longer one is a fault.
const RETRY_SECS_MAX: u64 = 3_600;

/// Maximum number of parts of the list of all records that are read.
const PARTS_MAX: u64 = 100;

/// Number of times that a request is made again after a pause.
const RETRIES_MAX: u32 = 3;

/// Longest time that this command waits before it repeats a request, in seconds.
const WAIT_SECS_MAX: u64 = 60;

#[derive(Debug, clap::Args)]
pub(crate) struct Validate {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// Print the checks as JSON.
    #[arg(long)]
    json: bool,
}

/// Makes all checks, and prints their results. The exit code is 1 when a check failed.
pub(crate) async fn run(args: &Validate) -> anyhow::Result<ExitCode> {
    let base = args.repository.open()?.base_url().clone();
    let mut session = Session {
        client: admin::client(),
        base,
        token: args.repository.token.clone(),
        report: Report::default(),
    };
    session.all().await?;
    let checks = session.report.finish();
    if args.json {
        let all = checks.iter().map(in_json);
        output::line(&all.collect::<serde_json::Value>().to_string())?;
    } else {
        for check in &checks {
            output::line(&in_text(check))?;
        }
    }
    let failed = checks.iter().filter(|it| matches!(it.verdict, Verdict::Fail(..))).count();
    let summary = match failed {
        0 => format!("{} passes all checks", args.repository.base),
        count => {
            let checks = output::counted(u64::try_from(count).unwrap_or(u64::MAX), "check");
            format!("{} fails {checks}", args.repository.base)
        }
    };
    output::note(&summary);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The checks of one repository.
#[derive(Debug)]
struct Session {
    client: Client,
    base: Url,
    token: Option<String>,
    report: Report,
}

impl Session {
    async fn all(&mut self) -> anyhow::Result<()> {
        let reply = self.get(Verb::Identify, "verb=Identify").await?;
        let Some(identify) = self.report.identify(&reply, self.base.as_str()) else {
            return Ok(());
        };
        self.formats(None).await?;
        let reply = self.get(Verb::ListSets, "verb=ListSets").await?;
        let set = self.report.sets(&reply);
        self.whole_list().await?;
        let Some((header, token)) = self.list(None).await? else {
            self.wrong(&identify, "oai:x:1", None).await?;
            return self.post(None).await;
        };
        self.second_page(token.as_ref()).await?;
        if let Some(set) = set {
            self.of_set(&set).await?;
        }
        let identifier = header.identifier.as_str();
        self.formats(Some(identifier)).await?;
        let reply = self.get(Verb::GetRecord, &get_record(identifier)).await?;
        self.report.record(&reply, identifier, &identify);
        self.bounds(&header).await?;
        let token = token.as_ref().map(|it| it.value.as_str());
        self.wrong(&identify, identifier, token).await?;
        self.post(Some(identifier)).await
    }

    async fn formats(&mut self, identifier: Option<&str>) -> anyhow::Result<()> {
        let mut query = "verb=ListMetadataFormats".to_owned();
        if let Some(identifier) = identifier {
            query.push_str(&format!("&identifier={}", encoded(identifier)));
        }
        let reply = self.get(Verb::ListMetadataFormats, &query).await?;
        self.report.formats(&reply, identifier.is_some());
        Ok(())
    }

    /// Lists headers; returns the first that is not deleted, and the token of an unfinished list.
    async fn list(&mut self, set: Option<&str>) -> anyhow::Result<Option<(Header, Option<Token>)>> {
        let mut query = format!("verb=ListIdentifiers&metadataPrefix={OAI_DC}");
        if let Some(set) = set {
            query.push_str(&format!("&set={}", encoded(set)));
        }
        let reply = self.get(Verb::ListIdentifiers, &query).await?;
        Ok(self.report.list(&reply, set))
    }

    /// Requests the second page of a list twice, with the same token.
    async fn second_page(&mut self, token: Option<&Token>) -> anyhow::Result<()> {
        let Some(token) = token else {
            self.report.skip(SECOND_PAGE, "the list has one part");
            return Ok(());
        };
        let query = format!("verb=ListIdentifiers&resumptionToken={}", encoded(&token.value));
        let first = self.get(Verb::ListIdentifiers, &query).await?;
        let second = self.get(Verb::ListIdentifiers, &query).await?;
        self.report.second_page(token, &first, &second);
        Ok(())
    }

    /// Reads the list of all records, up to [`PARTS_MAX`] parts.
    async fn whole_list(&mut self) -> anyhow::Result<()> {
        let mut list = WholeList::default();
        let mut query = format!("verb=ListRecords&metadataPrefix={OAI_DC}");
        for _ in 0..PARTS_MAX {
            let reply = self.get(Verb::ListRecords, &query).await?;
            let Some(token) = list.take(&reply) else { break };
            query = format!("verb=ListRecords&resumptionToken={}", encoded(&token));
        }
        self.report.whole_list(list);
        Ok(())
    }

    async fn of_set(&mut self, set: &str) -> anyhow::Result<()> {
        let Some((header, _)) = self.list(Some(set)).await? else { return Ok(()) };
        let reply = self.get(Verb::GetRecord, &get_record(&header.identifier)).await?;
        self.report.record_of_set(&reply, &header.identifier, set);
        Ok(())
    }

    /// Checks that the bounds of dates are inclusive.
    async fn bounds(&mut self, header: &Header) -> anyhow::Result<()> {
        let Some(stamp) = header.datestamp else {
            self.report.skip(BOUNDS, "the record has no datestamp");
            return Ok(());
        };
        let dates = format!("from={stamp}&until={stamp}");
        let mut query = format!("verb=ListRecords&metadataPrefix={OAI_DC}&{dates}");
        // A day may have many records.
        for _ in 0..20 {
            let reply = self.get(Verb::ListRecords, &query).await?;
            let Some(token) = self.report.bounds(&reply, header) else { return Ok(()) };
            query = format!("verb=ListRecords&resumptionToken={}", encoded(&token));
        }
        self.report.skip(BOUNDS, "there are too many records of that date");
        Ok(())
    }

    async fn wrong(
        &mut self,
        identify: &Identify,
        identifier: &str,
        token: Option<&str>,
    ) -> anyhow::Result<()> {
        for wrong in conformance::wrong_requests(identify, identifier, token) {
            let reply = self.get(Verb::ListIdentifiers, &wrong.query).await?;
            self.report.wrong(&reply, &wrong);
        }
        Ok(())
    }

    async fn post(&mut self, identifier: Option<&str>) -> anyhow::Result<()> {
        let reply = self.request(Verb::Identify, "verb=Identify", true).await?;
        self.report.post(&reply);
        if let Some(identifier) = identifier {
            let reply = self.request(Verb::GetRecord, &get_record(identifier), true).await?;
            self.report.post(&reply);
        }
        Ok(())
    }

    async fn get(&mut self, verb: Verb, query: &str) -> anyhow::Result<Reply> {
        self.request(verb, query, false).await
    }

    /// Makes a request, and the checks of every response; a busy repository is asked again.
    async fn request(&mut self, verb: Verb, query: &str, is_post: bool) -> anyhow::Result<Reply> {
        let mut tries = 0;
        loop {
            let mut request = if is_post {
                let form = HeaderValue::from_static("application/x-www-form-urlencoded");
                Request::post(self.base.clone(), query.to_owned())
                    .header(header::CONTENT_TYPE, form)
            } else {
                let mut url = self.base.clone();
                let before = self.base.query().map(|it| format!("{it}&")).unwrap_or_default();
                url.set_query(Some(&format!("{before}{query}")));
                Request::get(url)
            };
            request = request.token(self.token.clone()).allow_private(true);
            request.response_bytes_max = Some(RESPONSE_BYTES_MAX);
            let answer = self.client.send(request).await?;
            let status = answer.status.as_u16();
            if status == 503 && tries < RETRIES_MAX {
                let wait = answer.header(header::RETRY_AFTER.as_str()).unwrap_or_default();
                let wait = wait.trim().parse().ok().filter(|it| *it <= RETRY_SECS_MAX);
                self.pause(query, wait).await;
                tries += 1;
                continue;
            }
            let kind = answer.header(header::CONTENT_TYPE.as_str()).unwrap_or_default().to_owned();
            let bytes = answer.bytes(RESPONSE_BYTES_MAX).await?;
            let reply = Reply::new(query, verb, status, &kind, bytes.to_vec());
            self.report.any(&reply);
            return Ok(reply);
        }
    }

    /// Waits as long as a busy repository asks for, up to [`WAIT_SECS_MAX`].
    async fn pause(&mut self, query: &str, wait: Option<u64>) {
        self.report.busy(query, wait.is_some());
        tokio::time::sleep(Duration::from_secs(wait.unwrap_or(1).clamp(1, WAIT_SECS_MAX))).await;
    }
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn get_record(identifier: &str) -> String {
    format!("verb=GetRecord&metadataPrefix={OAI_DC}&identifier={}", encoded(identifier))
}

fn in_text(check: &Check) -> String {
    let name = plain(&check.name);
    match &check.verdict {
        Verdict::Pass => format!("pass  {name}"),
        Verdict::Fail(why, advice) => format!("FAIL  {name}\n      {}\n      {advice}", plain(why)),
        Verdict::Note(text) => format!("note  {name}: {}", plain(text)),
        Verdict::Skip(why) => format!("skip  {name}: {}", plain(why)),
    }
}

fn in_json(check: &Check) -> serde_json::Value {
    let (verdict, why, advice) = match &check.verdict {
        Verdict::Pass => ("pass", None, None),
        Verdict::Fail(why, advice) => ("fail", Some(why), Some(advice)),
        Verdict::Note(text) => ("note", Some(text), None),
        Verdict::Skip(why) => ("skip", Some(why), None),
    };
    json!({ "check": check.name, "verdict": verdict, "why": why, "advice": advice })
}
