//! `harvest bench route`: how well a search everywhere answers, beside one index of everything.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use broker::answer::{Answer, AskedState, Matching};
use net::client::{Client, Request};
use net::clock;
use serde::Serialize;
use url::Url;
use web::foreign::harmless;

use super::measures::Measures;
use super::{HITS_ASKED, judge, read, shown, trec};
use crate::admin::Places;
use crate::commands::search;
use crate::{admin, output};

/// Ask many queries everywhere whose right objects are known, and measure the answers, and what they cost.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The files are those of `harvest bench relevance`.

nDCG@10     gain of the first ten hits over that of the best order
central     the same of one index of everything, --central
of central  the share of it that asking a few brokers reaches
asked       mean number of brokers that were asked, of those that are known
messages    requests to other brokers for each query, and the bytes of their answers
saved       share of the brokers that were not asked

Examples:
  harvest bench route --queries topics.tsv --qrels qrels.txt --ask 3
  harvest bench route --queries topics.tsv --qrels qrels.txt --ask 3 --central http://all:8501/")]
pub(crate) struct Route {
    /// The queries.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// The right objects of each query.
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// How many brokers each query asks; default: as the broker's settings say.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=50))]
    ask: Option<u16>,
    /// How many of the words side by side a hit has: all of them, any, or the best there are.
    #[arg(long = "match", value_name = "best|all|any", value_parser = search::matching)]
    matching: Option<Matching>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
    /// A broker that has everything, to compare with.
    #[arg(long, value_name = "URL")]
    central: Option<Url>,
    /// The broker that asks the others, the first of several; default: the one that `harvest search` asks.
    #[arg(long, value_name = "URL", env = "HARVEST_BROKER", value_parser = search::places)]
    broker: Vec<Places>,
}

/// The figures, as their JSON has them.
#[derive(Debug, Default, Serialize)]
struct Figures {
    queries: usize,
    ndcg_10: f64,
    /// Of one index of everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    central_ndcg_10: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_central: Option<f64>,
    /// Means for each query.
    asked: f64,
    known: f64,
    messages: f64,
    bytes: f64,
    took_ms: f64,
    saved: f64,
    /// Answers of brokers that did not come.
    missing: u64,
}

pub(super) async fn run(args: Route) -> anyhow::Result<ExitCode> {
    let topics = trec::topics(&shown(&args.queries), &read(&args.queries)?)?;
    let judged = trec::judgments(&shown(&args.qrels), &read(&args.qrels)?)?;
    let broker = search::broker(&args.broker)?;
    let client = admin::client();
    let ask = args.ask.map(|it| it.to_string());
    let mut everywhere = vec![("scope", "everywhere"), ("facets", "false"), ("snippets", "false")];
    everywhere.extend(ask.as_deref().map(|it| ("ask", it)));
    let central = [("facets", "false"), ("snippets", "false")];
    let mut figures = Figures::default();
    let (mut routed, mut compared) = (Vec::new(), Vec::new());
    for topic in &topics {
        let judgments = judged.get(&topic.id).map(Vec::as_slice).unwrap_or_default();
        if judgments.iter().all(|it| it.relevance == 0) {
            continue;
        }
        let began = clock::monotonic();
        let answer = ask_one(&client, &args, (&broker, &topic.text), &everywhere).await?;
        figures.took_ms += began.elapsed().as_secs_f64() * 1_000.0;
        let asked = answer.everywhere.as_ref().with_context(|| {
            format!(
                "the broker at {broker} asks nobody else: name registries or peers in its settings"
            )
        })?;
        figures.asked += asked.asked.len() as f64;
        figures.known += asked.known as f64;
        figures.messages += asked.messages as f64;
        figures.bytes += asked.bytes as f64;
        let is_missing = |it: &&broker::answer::AskedBroker| it.state != AskedState::Answered;
        figures.missing += asked.asked.iter().filter(is_missing).count() as u64;
        routed.push(judge(&answer.hits, judgments).measures());
        if let Some(url) = &args.central {
            let answer = ask_one(&client, &args, (url, &topic.text), &central).await?;
            compared.push(judge(&answer.hits, judgments).measures());
        }
    }
    ensure!(!routed.is_empty(), "no query of {} has a right object", shown(&args.queries));
    figures.close(&routed, &compared);
    if args.json {
        output::json(&figures)?;
    } else {
        output::line(harmless(&figures.text()).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask_one(
    client: &Client,
    args: &Route,
    (broker, text): (&Url, &str),
    more: &[(&str, &str)],
) -> anyhow::Result<Answer> {
    let more = more.iter().copied();
    let url = search::query_address(broker, text, HITS_ASKED, args.matching, more)?;
    let response = client.send(Request::get(url)).await;
    let response = response.with_context(|| format!("no broker answers at {broker}"))?;
    let status = response.status;
    let body = response.bytes(admin::ANSWER_BYTES_MAX).await?;
    ensure!(status.is_success(), "{broker} answers {status}: {}", admin::failure_message(&body));
    serde_json::from_slice(&body)
        .with_context(|| format!("what is at {broker} is no broker of this version"))
}

impl Figures {
    /// Makes means of the sums.
    fn close(&mut self, routed: &[Measures], compared: &[Measures]) {
        self.queries = routed.len();
        let queries = routed.len() as f64;
        for sum in [
            &mut self.asked,
            &mut self.known,
            &mut self.messages,
            &mut self.bytes,
            &mut self.took_ms,
        ] {
            *sum /= queries;
        }
        self.saved = if self.known == 0.0 { 0.0 } else { 1.0 - self.asked / self.known };
        self.ndcg_10 = Measures::mean(routed).ndcg_10;
        if !compared.is_empty() {
            let central = Measures::mean(compared).ndcg_10;
            self.central_ndcg_10 = Some(central);
            self.of_central = Some(if central == 0.0 { 0.0 } else { self.ndcg_10 / central });
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{:<11}{:>5}\n{:<11}{:>5.3}\n",
            "queries", self.queries, "nDCG@10", self.ndcg_10
        );
        // Writing to a string cannot fail.
        if let (Some(central), Some(share)) = (self.central_ndcg_10, self.of_central) {
            let _ =
                writeln!(text, "{:<11}{central:>5.3}\n{:<11}{share:>5.3}", "central", "of central");
        }
        let _ = writeln!(text, "{:<11}{:.1} of {:.0} brokers", "asked", self.asked, self.known);
        let _ = writeln!(text, "{:<11}{:.1}, {:.0} bytes", "messages", self.messages, self.bytes);
        let _ = writeln!(text, "{:<11}{:.1} ms", "time", self.took_ms);
        let _ = writeln!(text, "{:<11}{:.0} %", "saved", self.saved * 100.0);
        let _ = writeln!(text, "{:<11}{}", "missing", output::counted(self.missing, "answer"));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_means() {
        let measures = |ndcg_10| Measures { ndcg_10, ..Measures::default() };
        let mut figures = Figures { asked: 6.0, known: 64.0, messages: 8.0, ..Figures::default() };
        figures.close(&[measures(0.2), measures(0.4)], &[measures(0.3), measures(0.5)]);
        assert_eq!((figures.queries, figures.asked, figures.known), (2, 3.0, 32.0));
        let text = figures.text();
        for part in ["0.300", "0.400", "0.750", "3.0 of 32 brokers", "91 %"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
