//! `harvest bench`: how well a broker answers.

mod measures;
mod route;
mod trec;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use broker::answer::{Answer, Hit, Matching};
use clap::Subcommand;
use http::StatusCode;
use net::client::{Client, Request};
use serde::Serialize;
use url::Url;
use web::foreign::harmless;

use self::measures::{Judged, Measures};
use self::trec::{Judgment, Names, Topic};
use crate::admin::Places;
use crate::commands::search;
use crate::{admin, output};

/// Number of hits that each query asks for: as deep as the measures look.
const HITS_ASKED: usize = 100;

/// Measure a broker.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Relevance(Relevance),
    Route(route::Route),
}

/// Ask a broker many queries whose right objects are known, and measure its answers as TREC does.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
FILE of --queries: lines `ID TEXT`, with a tab or a space between them, or classic TREC topics
(<top> <num> … <title> … </top>), of which the title is asked.
FILE of --qrels: lines `QUERY 0 DOCUMENT RELEVANCE`; a relevance above 0 is right, a higher one
better. DOCUMENT is the URL of an object, the end of its path (a/b.html), or the last part of its
path without the extension (b). In both, lines that begin with # are remarks.

first, in ten   share of queries with a right object as first hit, and among the first ten
MRR@10          mean of 1 / rank of the first right hit, if it is among the first ten
nDCG@10         gain of the first ten hits over that of the best order, as in trec_eval
MAP, recall@100 mean average precision, and share of the right objects, in the first 100 hits

Examples:
  harvest bench relevance --queries topics.tsv --qrels qrels.txt
  harvest bench relevance --queries topics.tsv --qrels qrels.txt --each
  harvest bench relevance --queries topics.tsv --qrels qrels.txt --json | jq .mean.ndcg_10")]
pub(crate) struct Relevance {
    /// The queries.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// The right objects of each query.
    #[arg(long, value_name = "FILE")]
    qrels: PathBuf,
    /// How many of the words side by side a hit has: all of them, any, or the best there are.
    #[arg(long = "match", value_name = "best|all|any", value_parser = search::matching)]
    matching: Option<Matching>,
    /// List the queries too, the worst first, each with the rank of its first right hit.
    #[arg(long)]
    each: bool,
    /// Print the measures, those of each query too, as JSON.
    #[arg(long)]
    json: bool,
    /// The broker to ask, the first of several; default: the one that `harvest search` asks.
    #[arg(long, value_name = "URL", env = "HARVEST_BROKER", value_parser = search::places)]
    broker: Vec<Places>,
}

/// The report, as its JSON has it.
#[derive(Debug, Serialize)]
struct Report {
    /// Number of queries that have a right object.
    queries: usize,
    /// Number of queries without any hit, refused ones included.
    no_hit: usize,
    /// Number of queries that the broker did not understand.
    refused: usize,
    /// The means of the measures of all queries.
    mean: Measures,
    /// The queries in the order of their file.
    each: Vec<Asked>,
}

/// One query with the measures of its answer.
#[derive(Debug, Serialize)]
struct Asked {
    query: String,
    text: String,
    /// Number of hits, at most [`HITS_ASKED`].
    hits: usize,
    /// Rank of the first right hit, from 1.
    first_relevant: Option<usize>,
    /// The broker's message, if it did not understand the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(flatten)]
    measures: Measures,
}

/// Runs a measurement.
pub(crate) async fn run(command: BenchCommand) -> anyhow::Result<ExitCode> {
    let args = match command {
        BenchCommand::Relevance(args) => args,
        BenchCommand::Route(args) => return route::run(args).await,
    };
    let topics = trec::topics(&shown(&args.queries), &read(&args.queries)?)?;
    let judged = trec::judgments(&shown(&args.qrels), &read(&args.qrels)?)?;
    let broker = search::broker(&args.broker)?;
    let report = measure((&args, &broker), &topics, &judged).await?;
    let left_out = topics.len() - report.queries;
    if 0 < left_out {
        let count = output::counted(left_out as u64, "query");
        output::note(&format!("{count} left out: no right object in {}", shown(&args.qrels)));
    }
    if args.json {
        output::json(&report)?;
    } else {
        output::line(harmless(&report.text(args.each)).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Asks the queries that have a right object, one after the other, and measures the answers.
async fn measure(
    (args, broker): (&Relevance, &Url),
    topics: &[Topic],
    judged: &BTreeMap<String, Vec<Judgment>>,
) -> anyhow::Result<Report> {
    let client = admin::client();
    let mut each = Vec::new();
    for topic in topics {
        let judgments = judged.get(&topic.id).map(Vec::as_slice).unwrap_or_default();
        if judgments.iter().all(|it| it.relevance == 0) {
            continue;
        }
        let (hits, refused) = match ask(&client, (args, broker), &topic.text).await? {
            Ok(hits) => (hits, None),
            Err(message) => (Vec::new(), Some(message)),
        };
        let answer = judge(&hits, judgments);
        each.push(Asked {
            query: topic.id.clone(),
            text: topic.text.clone(),
            hits: hits.len(),
            first_relevant: answer.first_relevant(),
            refused,
            measures: answer.measures(),
        });
    }
    ensure!(
        !each.is_empty(),
        "no query of {} has a right object in {}: is it for other queries?",
        shown(&args.queries),
        shown(&args.qrels)
    );
    Ok(Report::new(each))
}

/// Asks one query. Returns the hits, or the message of a broker that does not understand it: people
/// type such queries too, and find nothing.
async fn ask(
    client: &Client,
    (args, broker): (&Relevance, &Url),
    text: &str,
) -> anyhow::Result<Result<Vec<Hit>, String>> {
    let response = client
        .send(Request::get(address((args, broker), text)?))
        .await
        .with_context(|| format!("no broker answers at {broker}; start one with `harvest up`"))?;
    let status = response.status;
    let body = response.bytes(admin::ANSWER_BYTES_MAX).await?;
    let message = || admin::failure_message(&body);
    // The broker marks mistakes in queries, in contrast to unknown parameters.
    let is_of_query = || {
        let json: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
        json.is_some_and(|it| it.pointer("/error/offset").is_some())
    };
    if status == StatusCode::BAD_REQUEST && is_of_query() {
        return Ok(Err(message()));
    }
    if !status.is_success() {
        bail!("the broker at {broker} answers {status} to {text:?}: {}", message());
    }
    let answer: Answer = serde_json::from_slice(&body)
        .with_context(|| format!("what is at {broker} is no broker of this version"))?;
    Ok(Ok(answer.hits))
}

fn address((args, broker): (&Relevance, &Url), text: &str) -> anyhow::Result<Url> {
    let plain = [("facets", "false"), ("snippets", "false")];
    search::query_address(broker, text, HITS_ASKED, args.matching, plain)
}

/// Finds the judged documents among the hits. An object that a hit names as its duplicate is the hit.
fn judge(hits: &[Hit], judgments: &[Judgment]) -> Judged {
    let documents = |hit: &Hit| {
        let urls = hit.duplicates.iter().map(|it| &it.url).chain([&hit.url]);
        let names: Vec<Names> = urls.map(|url| Names::new(url)).collect();
        let is_hit = |it: &Judgment| names.iter().any(|names| names.contain(&it.document));
        let found = judgments.iter().enumerate().filter(|(_, it)| is_hit(it));
        found.map(|(at, _)| at).collect()
    };
    let relevances: Vec<u32> = judgments.iter().map(|it| it.relevance).collect();
    Judged::new(&hits.iter().map(documents).collect::<Vec<_>>(), &relevances)
}

impl Report {
    fn new(each: Vec<Asked>) -> Self {
        let measures: Vec<Measures> = each.iter().map(|it| it.measures).collect();
        Self {
            queries: each.len(),
            no_hit: each.iter().filter(|it| it.hits == 0).count(),
            refused: each.iter().filter(|it| it.refused.is_some()).count(),
            mean: Measures::mean(&measures),
            each,
        }
    }

    /// Writes the report for a person; `each` lists the queries, the worst first.
    fn text(&self, each: bool) -> String {
        let mean = &self.mean;
        let mut text = format!("{:<11}{:>5}\n", "queries", self.queries);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<11}{:>5}, {} refused", "no hit", self.no_hit, self.refused);
        for (name, value) in [
            ("first", mean.first),
            ("in ten", mean.in_ten),
            ("MRR@10", mean.reciprocal_rank_10),
            ("nDCG@10", mean.ndcg_10),
            ("MAP", mean.average_precision),
            ("recall@100", mean.recall_100),
        ] {
            let _ = writeln!(text, "{name:<11}{value:>5.3}");
        }
        if each {
            let mut worst: Vec<&Asked> = self.each.iter().collect();
            let rank = |it: &Asked| it.first_relevant.unwrap_or(usize::MAX);
            let ndcg = |it: &Asked| it.measures.ndcg_10;
            worst.sort_by(|a, b| rank(b).cmp(&rank(a)).then(ndcg(a).total_cmp(&ndcg(b))));
            let mut table = output::table(["rank", "nDCG@10", "query", "text"]);
            for it in worst {
                let rank = match (it.first_relevant, &it.refused) {
                    (Some(rank), _) => rank.to_string(),
                    (None, Some(_)) => "refused".to_owned(),
                    (None, None) => "-".to_owned(),
                };
                table.add_row([&rank, &format!("{:.3}", ndcg(it)), &it.query, &it.text]);
            }
            let _ = writeln!(text, "\n{}", table.trim_fmt());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use broker::answer::Duplicate;

    use super::*;

    fn asked(query: &str, first_relevant: Option<usize>, refused: Option<&str>) -> Asked {
        let hits = first_relevant.unwrap_or(0);
        let measures = Measures { ndcg_10: 0.25, ..Measures::default() };
        let (text, refused) = (format!("\u{1b}{query}"), refused.map(str::to_owned));
        Asked { query: query.to_owned(), text, hits, first_relevant, refused, measures }
    }

    #[test]
    fn a_report_lists_the_worst_first() {
        let each = vec![
            asked("good", Some(1), None),
            asked("late", Some(40), None),
            asked("refused", None, Some("no")),
            asked("late too", Some(9), None),
        ];
        let report = Report::new(each);
        let counts = (report.queries, report.no_hit, report.refused);
        assert_eq!((counts, report.mean.ndcg_10), ((4, 1, 1), 0.25));
        assert!(!report.text(false).contains("late"));
        let text = report.text(true);
        let ranks: Vec<&str> = text
            .lines()
            .map(str::trim_start)
            .skip_while(|line| !line.starts_with("rank"))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(ranks, ["rank", "refused", "40", "9", "1"], "{text}");
        assert!(text.starts_with("queries        4\nno hit         1, 1 refused\n"), "{text}");
    }

    #[test]
    fn a_duplicate_is_the_hit_that_names_it() {
        let hit = |url: &str, duplicates: &[&str]| Hit {
            url: url.to_owned(),
            duplicates: duplicates
                .iter()
                .map(|url| Duplicate { url: (*url).to_owned(), ..Duplicate::default() })
                .collect(),
            ..Hit::default()
        };
        let judgments = [("a.txt", 1), ("b.html", 2)]
            .map(|(document, relevance)| Judgment { document: document.to_owned(), relevance });
        let hits = [hit("file:///c", &[]), hit("file:///x/a.html", &["file:///y/a.txt"])];
        assert_eq!(judge(&hits, &judgments).first_relevant(), Some(2));
        assert_eq!(judge(&hits[..1], &judgments).first_relevant(), None);
    }

    #[test]
    fn the_query_is_encoded_and_match_sent_to_who_asks_for_it() {
        let mut args = Relevance {
            queries: PathBuf::new(),
            qrels: PathBuf::new(),
            matching: None,
            each: false,
            json: false,
            broker: vec![],
        };
        let broker = Url::parse("http://h/search").unwrap();
        let url = |args: &Relevance| address((args, &broker), "C++ & x").unwrap().to_string();
        let asked = "http://h/search/api/search?q=C%2B%2B+%26+x&limit=100";
        let plain = "facets=false&snippets=false";
        assert_eq!(url(&args), format!("{asked}&{plain}"));
        args.matching = Some(Matching::Any);
        assert_eq!(url(&args), format!("{asked}&match=any&{plain}"));
    }
}
