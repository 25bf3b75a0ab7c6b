//! `harvest oai validate`: whether a repository answers as OAI-PMH has it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use http::{HeaderValue, header};
use net::client::{Client, Request};
use oai::Code;
use oai::harvest::OAI_DC;
use oai::request::Verb;
use oai::response::{Body, Header, Identify, Record, Token};
use serde_json::json;
use url::Url;

use super::checks::{self, Check, Reply, Verdict};
use super::{Place, plain};
use crate::{admin, output};

pub(super) const EXAMPLES: &str = "\
Each line is one check. What failed says why, and what to do; a note is sound, and worth a thought.
The repository needs at least one record in oai_dc. Some fifty requests are made.

Examples:
  harvest oai validate http://127.0.0.1:8501/oai
  harvest oai validate https://repository.example/oai --json | jq '.[] | select(.verdict == \"fail\")'";

/// Largest response, in bytes: registries take no larger ones.
const RESPONSE_BYTES_MAX: u64 = 100_000_000;

/// Longest pause that a repository may ask for, in seconds.
const RETRY_SECS_MAX: u64 = 3_600;

/// How often a request is made again after a pause.
const RETRIES_MAX: u32 = 3;

/// Longest pause that is waited for, in seconds.
const WAIT_SECS_MAX: u64 = 60;

/// `harvest oai validate`
#[derive(Debug, clap::Args)]
pub(crate) struct Validate {
    #[command(flatten)]
    place: Place,
    /// Print the checks as JSON.
    #[arg(long)]
    json: bool,
}

/// Checks, and prints how that came out. The code is 1 when a check failed.
pub(crate) async fn run(asked: &Validate) -> anyhow::Result<ExitCode> {
    let base = asked.place.repository()?.base_url().clone();
    let mut session = Session {
        client: admin::client(),
        base,
        token: asked.place.token.clone(),
        checks: Vec::new(),
        any: BTreeMap::new(),
    };
    session.all().await?;
    let checks = session.finish();
    if asked.json {
        let all = checks.iter().map(in_json);
        output::line(&all.collect::<serde_json::Value>().to_string())?;
    } else {
        for check in &checks {
            output::line(&in_text(check))?;
        }
    }
    let failed = checks.iter().filter(|it| matches!(it.verdict, Verdict::Fail(..))).count();
    let said = match failed {
        0 => format!("{} passes all checks", asked.place.base),
        count => {
            let checks = output::counted(u64::try_from(count).unwrap_or(u64::MAX), "check");
            format!("{} fails {checks}", asked.place.base)
        }
    };
    output::note(&said);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How often each thing that every response must be was found wrong, and first where.
type Any = BTreeMap<&'static str, (u64, String, &'static str)>;

/// The checks of one repository.
#[derive(Debug)]
struct Session {
    client: Client,
    base: Url,
    token: Option<String>,
    checks: Vec<Check>,
    any: Any,
}

/// What the later checks need of the earlier ones.
#[derive(Debug)]
struct Known {
    identify: Identify,
    /// The first record that is not deleted.
    header: Header,
    /// A token of a list that goes on.
    token: Option<Token>,
}

impl Session {
    async fn all(&mut self) -> anyhow::Result<()> {
        let Some(identify) = self.identify().await? else { return Ok(()) };
        self.formats(None).await?;
        let set = self.sets().await?;
        let Some((header, token)) = self.list(None).await? else {
            self.wrong(&identify, "oai:x:1", None).await?;
            return self.post(None).await;
        };
        let known = Known { identify, header, token };
        self.second_page(&known).await?;
        if let Some(set) = set {
            self.of_set(&set).await?;
        }
        self.formats(Some(&known.header.identifier)).await?;
        self.record(&known).await?;
        self.bounds(&known).await?;
        let token = known.token.as_ref().map(|it| it.value.as_str());
        self.wrong(&known.identify, &known.header.identifier, token).await?;
        self.post(Some(&known.header.identifier)).await
    }

    async fn identify(&mut self) -> anyhow::Result<Option<Identify>> {
        let reply = self.get(Verb::Identify, "verb=Identify").await?;
        let Some(Body::Identify(identify)) = reply.body() else {
            let advice = "nothing else is asked before this is answered";
            self.fail("Identify: it is answered", reply.why_not(), advice);
            return Ok(None);
        };
        self.pass("Identify: it is answered");
        self.checks.extend(checks::of_identify(identify, &reply, self.base.as_str()));
        Ok(Some((**identify).clone()))
    }

    async fn formats(&mut self, identifier: Option<&str>) -> anyhow::Result<()> {
        let mut query = "verb=ListMetadataFormats".to_owned();
        if let Some(identifier) = identifier {
            query.push_str(&format!("&identifier={}", encoded(identifier)));
        }
        let reply = self.get(Verb::ListMetadataFormats, &query).await?;
        let of = if identifier.is_some() { " of an item" } else { "" };
        let name = format!("ListMetadataFormats{of}: oai_dc is there");
        match reply.body() {
            Some(Body::Formats(all)) if all.iter().any(|it| it.prefix == OAI_DC) => self.pass(name),
            Some(Body::Formats(_)) => {
                self.fail(name, "it is not", "every repository has its records in oai_dc");
            }
            _ => self.fail(name, reply.why_not(), "list the formats, oai_dc among them"),
        }
        Ok(())
    }

    /// The first set, if there are any.
    async fn sets(&mut self) -> anyhow::Result<Option<String>> {
        let reply = self.get(Verb::ListSets, "verb=ListSets").await?;
        let name = "ListSets: sets, or noSetHierarchy";
        match reply.body() {
            Some(Body::Sets(page)) if !page.items.is_empty() && page.quarantined.is_empty() => {
                self.pass(name);
                return Ok(page.items.first().map(|it| it.spec.clone()));
            }
            _ if reply.codes() == [Code::NoSetHierarchy] => self.pass(name),
            Some(Body::Sets(_)) => {
                self.fail(name, "there is none, or one without a setSpec", "send noSetHierarchy");
            }
            _ => self.fail(name, reply.why_not(), "list the sets, or send noSetHierarchy"),
        }
        Ok(None)
    }

    /// Lists headers, and returns one and how the list goes on.
    async fn list(&mut self, set: Option<&str>) -> anyhow::Result<Option<(Header, Option<Token>)>> {
        let mut query = format!("verb=ListIdentifiers&metadataPrefix={OAI_DC}");
        if let Some(set) = set {
            query.push_str(&format!("&set={}", encoded(set)));
        }
        let reply = self.get(Verb::ListIdentifiers, &query).await?;
        let of = set.map(|it| format!(" of the set {it}")).unwrap_or_default();
        let Some(Body::Headers(page)) = reply.body() else {
            let advice = "there must be records to list in oai_dc";
            self.fail(format!("ListIdentifiers{of}: records"), reply.why_not(), advice);
            return Ok(None);
        };
        let header = page.items.iter().find(|it| !it.deleted).cloned();
        let name = format!("ListIdentifiers{of}: records");
        match &header {
            Some(_) => self.pass(name),
            None => self.skip(name, "the first part has none that is not deleted"),
        }
        let name = format!("ListIdentifiers{of}: the token of the first part");
        match checks::of_first_page(page.token.as_ref(), page.items.len()) {
            Ok(thoughts) => {
                self.pass(name.clone());
                for it in thoughts {
                    self.check(name.clone(), Verdict::Note(it));
                }
            }
            Err(why) => self.fail(name, why, "leave the token out where a list has one part"),
        }
        let name = format!("ListIdentifiers{of}: datestamps");
        if reply.are_stamps_sound() {
            self.pass(name);
        } else {
            self.fail(name, "some are no dates", "write them in UTC and the granularity");
        }
        let token = page.token.clone().filter(|it| !it.value.is_empty());
        Ok(header.map(|it| (it, token)))
    }

    /// Goes on with a list, twice from the same token.
    async fn second_page(&mut self, known: &Known) -> anyhow::Result<()> {
        let name = "ListIdentifiers: a token leads on, and again to the same";
        let Some(token) = &known.token else {
            self.skip(name, "the list has one part");
            return Ok(());
        };
        let query = format!("verb=ListIdentifiers&resumptionToken={}", encoded(&token.value));
        let first = self.get(Verb::ListIdentifiers, &query).await?;
        let second = self.get(Verb::ListIdentifiers, &query).await?;
        match (first.body(), second.body()) {
            (Some(Body::Headers(one)), Some(Body::Headers(two))) => {
                let is_loop = one.token.as_ref().is_some_and(|it| it.value == token.value);
                if is_loop {
                    self.fail(name, "it leads to itself", "a list must come to its end");
                } else if one.items != two.items {
                    let advice = "a harvester that lost an answer asks with the same token again";
                    self.fail(name, "it leads to other records the second time", advice);
                } else {
                    self.pass(name);
                }
            }
            (Some(Body::Headers(_)), _) => self.fail(name, second.why_not(), "keep tokens good"),
            _ => self.fail(name, first.why_not(), "take the tokens that you hand out"),
        }
        Ok(())
    }

    async fn of_set(&mut self, set: &str) -> anyhow::Result<()> {
        let Some((header, _)) = self.list(Some(set)).await? else { return Ok(()) };
        let name = format!("GetRecord: a record of the set {set} names it");
        let below = format!("{set}:");
        let reply = self.get(Verb::GetRecord, &get_record(&header.identifier)).await?;
        match reply.body() {
            Some(Body::Record(it))
                if it.header.sets.iter().any(|it| it == set || it.starts_with(&below)) =>
            {
                self.pass(name);
            }
            Some(Body::Record(_)) => {
                let advice = "write a setSpec for every set that the item is in";
                self.fail(name, format!("{} does not", header.identifier), advice);
            }
            _ => self.fail(name, reply.why_not(), "hand out every record that is listed"),
        }
        Ok(())
    }

    async fn record(&mut self, known: &Known) -> anyhow::Result<()> {
        let reply = self.get(Verb::GetRecord, &get_record(&known.header.identifier)).await?;
        let name = "GetRecord: the record that was listed";
        let Some(Body::Record(record)) = reply.body() else {
            self.fail(name, reply.why_not(), "hand out every record that is listed");
            return Ok(());
        };
        let record: &Record = record;
        if record.header.identifier == known.header.identifier {
            self.pass(name);
        } else {
            let why = format!("{} came", record.header.identifier);
            self.fail(name, why, "send the record that is asked for");
        }
        let name = "GetRecord: its datestamp is as fine as granularity";
        let stamp = record.header.datestamp;
        let is_fine = stamp.is_some_and(|it| it.granularity() == known.identify.granularity);
        if is_fine && reply.are_stamps_sound() {
            self.pass(name);
        } else {
            let why = stamp.map_or_else(|| "there is none".to_owned(), |it| format!("it is {it}"));
            self.fail(name, why, "write all datestamps in the granularity that Identify names");
        }
        Ok(())
    }

    /// Bounds of dates are inclusive.
    async fn bounds(&mut self, known: &Known) -> anyhow::Result<()> {
        let name = "ListRecords: from and until are inclusive";
        let Some(stamp) = known.header.datestamp else {
            self.skip(name, "the record has no datestamp");
            return Ok(());
        };
        let dates = format!("from={stamp}&until={stamp}");
        let mut query = format!("verb=ListRecords&metadataPrefix={OAI_DC}&{dates}");
        // A day may have many.
        for _ in 0..20 {
            let reply = self.get(Verb::ListRecords, &query).await?;
            let Some(Body::Records(page)) = reply.body() else {
                self.fail(
                    name,
                    reply.why_not(),
                    "a record is within the second that it changed in",
                );
                return Ok(());
            };
            if page.items.iter().any(|it| it.header.identifier == known.header.identifier) {
                self.pass(name);
                return Ok(());
            }
            match &page.token {
                Some(token) if !token.value.is_empty() => {
                    query = format!("verb=ListRecords&resumptionToken={}", encoded(&token.value));
                }
                _ => {
                    let why = format!("{} is not among those of {stamp}", known.header.identifier);
                    self.fail(name, why, "a record is within the second that it changed in");
                    return Ok(());
                }
            }
        }
        self.skip(name, "there are too many records of that date");
        Ok(())
    }

    async fn wrong(
        &mut self,
        identify: &Identify,
        identifier: &str,
        token: Option<&str>,
    ) -> anyhow::Result<()> {
        for wrong in checks::wrong(identify, identifier, token) {
            let reply = self.get(Verb::ListIdentifiers, &wrong.query).await?;
            let names: Vec<&str> = wrong.codes.iter().map(|it| it.name()).collect();
            let name = format!("errors: {} is {}", wrong.name, names.join(" or "));
            let codes = reply.codes();
            if codes.iter().any(|it| wrong.codes.contains(it)) {
                self.pass(name);
            } else {
                let why = match reply.body() {
                    Some(Body::Faults(_)) | None => reply.why_not(),
                    Some(_) => "it is answered as if it were right".to_owned(),
                };
                self.fail(
                    name,
                    format!("{}: {why}", wrong.query),
                    "send that error, under status 200",
                );
            }
        }
        Ok(())
    }

    async fn post(&mut self, identifier: Option<&str>) -> anyhow::Result<()> {
        let reply = self.ask(Verb::Identify, "verb=Identify", true).await?;
        let name = "POST: Identify";
        let advice = "take the same arguments from a form";
        match reply.body() {
            Some(Body::Identify(_)) => self.pass(name),
            _ => self.fail(name, reply.why_not(), advice),
        }
        let Some(identifier) = identifier else { return Ok(()) };
        let reply = self.ask(Verb::GetRecord, &get_record(identifier), true).await?;
        match reply.body() {
            Some(Body::Record(_)) => self.pass("POST: GetRecord"),
            _ => self.fail("POST: GetRecord", reply.why_not(), advice),
        }
        Ok(())
    }

    async fn get(&mut self, asked: Verb, query: &str) -> anyhow::Result<Reply> {
        self.ask(asked, query, false).await
    }

    /// Makes a request, and checks what every response must be.
    async fn ask(&mut self, asked: Verb, query: &str, is_post: bool) -> anyhow::Result<Reply> {
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
            let reply = Reply::new(query, asked, status, &kind, bytes.to_vec());
            for (name, outcome, advice) in checks::of_any(&reply) {
                let entry = self.any.entry(name).or_insert_with(|| (0, String::new(), advice));
                if let Err(why) = outcome {
                    entry.0 += 1;
                    if entry.1.is_empty() {
                        entry.1 = format!("{}: {why}", reply.query);
                    }
                }
            }
            return Ok(reply);
        }
    }

    /// Waits as long as a repository that is busy asks for.
    async fn pause(&mut self, query: &str, wait: Option<u64>) {
        let advice = "send Retry-After in seconds, at most 3600";
        let entry = self.any.entry("busy with a numeric Retry-After, or not at all");
        let entry = entry.or_insert_with(|| (0, String::new(), advice));
        if wait.is_none() {
            entry.0 += 1;
            entry.1 = format!("{query}: status 503 without one");
        }
        tokio::time::sleep(Duration::from_secs(wait.unwrap_or(1).clamp(1, WAIT_SECS_MAX))).await;
    }

    fn check(&mut self, name: impl Into<String>, verdict: Verdict) {
        self.checks.push(Check { name: name.into(), verdict });
    }

    fn pass(&mut self, name: impl Into<String>) {
        self.check(name, Verdict::Pass);
    }

    fn fail(&mut self, name: impl Into<String>, why: impl Into<String>, advice: &'static str) {
        self.check(name, Verdict::Fail(why.into(), advice));
    }

    fn skip(&mut self, name: impl Into<String>, why: &str) {
        self.check(name, Verdict::Skip(why.to_owned()));
    }

    /// All checks, those of every response last.
    fn finish(self) -> Vec<Check> {
        let mut all = self.checks;
        for (name, (count, first, advice)) in self.any {
            let verdict = match count {
                0 => Verdict::Pass,
                1 => Verdict::Fail(first, advice),
                more => Verdict::Fail(format!("{first} (and {} more)", more - 1), advice),
            };
            all.push(Check { name: format!("every response: {name}"), verdict });
        }
        all
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
