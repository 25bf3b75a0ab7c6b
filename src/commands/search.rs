//! `harvest search`: a query to a broker from the shell.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use broker::answer::{Answer, Hit};
use http::StatusCode;
use net::client::Request;
use url::Url;

use crate::{admin, output};

/// Ask a broker.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest search 'solar panels'
  harvest search 'title:budget AND type:PDF -draft' --limit 3
  harvest search 'author:\"Ada Lovelace\" OR analy*' --json | jq '.hits[].url'")]
pub(crate) struct Args {
    /// Words, "phrases", field:term, AND OR NOT + -, prefix*, fuzzy~1, /regex/, ranges.
    #[arg(value_name = "QUERY", allow_hyphen_values = true)]
    query: String,
    /// Print the broker's answer as JSON.
    #[arg(long)]
    json: bool,
    /// Maximum number of hits, up to 100.
    #[arg(long, value_name = "N", default_value_t = broker::answer::HITS_DEFAULT)]
    limit: usize,
    /// The broker to ask.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8501/",
        env = "HARVEST_BROKER"
    )]
    broker: Url,
}

/// Sends the query, and prints the answer.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let request = Request::get(address(&args)?);
    let response = admin::client().send(request).await.with_context(|| {
        format!(
            "no broker answers at {}; start one with `harvest up`, or name it with --broker",
            args.broker
        )
    })?;
    let status = response.status;
    let body = response.bytes(admin::ANSWER_BYTES_MAX).await?;
    if status == StatusCode::BAD_REQUEST {
        bail!("{}", point_out(&args.query, &body));
    }
    if !status.is_success() {
        bail!("the broker at {} answers {status}: {}", args.broker, admin::failure_message(&body));
    }
    let answer: Answer = serde_json::from_slice(&body)
        .with_context(|| format!("what is at {} is no broker of this version", args.broker))?;
    if args.json {
        output::line(String::from_utf8_lossy(&body).trim_end())?;
    } else {
        output::line(output::harmless(&render(&answer)).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn address(args: &Args) -> anyhow::Result<Url> {
    let mut base = args.broker.clone();
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", args.broker.path()));
    }
    let mut url = base
        .join("api/search")
        .with_context(|| format!("{} is no address of a broker", args.broker))?;
    url.query_pairs_mut()
        .append_pair("q", &args.query)
        .append_pair("limit", &args.limit.to_string());
    Ok(url)
}

/// Returns the broker's message about a wrong query, with the wrong part marked if it is named.
fn point_out(query: &str, body: &[u8]) -> String {
    let message = admin::failure_message(body);
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let number =
        |name: &str| usize::try_from(json.as_ref()?.get("error")?.get(name)?.as_u64()?).ok();
    let (Some(offset), Some(length)) = (number("offset"), number("length")) else { return message };
    let columns = |to: usize| query.get(..to).unwrap_or(query).chars().count();
    let (from, to) = (columns(offset), columns(offset.saturating_add(length)));
    let shown: String = query.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let marks = "^".repeat(to.saturating_sub(from).max(1));
    format!("{message}\n    {shown}\n    {:from$}{marks}", "")
}

/// Writes the answer for a person.
fn render(answer: &Answer) -> String {
    let millis = answer.took_us.div_ceil(1000);
    let mut text = format!("{} in {millis} ms\n", output::counted(answer.total, "object"));
    for (index, hit) in answer.hits.iter().enumerate() {
        render_hit(&mut text, index + 1, hit);
    }
    text
}

fn render_hit(text: &mut String, rank: usize, hit: &Hit) {
    let kind = if hit.r#type.is_empty() { String::new() } else { format!("  [{}]", hit.r#type) };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n{rank:>3}. {}{kind}\n     {}", one_line(&hit.title), hit.url);
    let excerpt = one_line(&hit.snippet.text);
    if !excerpt.is_empty() {
        let place = hit.snippet.place.as_deref().map(|it| one_line(it) + ": ").unwrap_or_default();
        let _ = writeln!(text, "     {place}{excerpt}");
    }
    for duplicate in &hit.duplicates {
        let _ = writeln!(text, "     also {}", duplicate.url);
    }
}

/// Returns `text` with every run of white space as one space.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use broker::answer::{Duplicate, Snippet};

    use super::*;

    fn check(broker: &str, query: &str, expected: &str) {
        let broker = Url::parse(broker).unwrap();
        let args = Args { query: query.to_owned(), json: false, limit: 3, broker };
        assert_eq!(address(&args).unwrap().as_str(), expected);
    }

    #[test]
    fn the_query_is_encoded_and_the_base_url_kept() {
        check("http://h:1", "a&b +c", "http://h:1/api/search?q=a%26b+%2Bc&limit=3");
        check("https://h/search", "x", "https://h/search/api/search?q=x&limit=3");
    }

    #[test]
    fn a_wrong_query_is_shown_with_the_spot() {
        let body = br#"{"error":{"message":"no","offset":4,"length":2}}"#;
        assert_eq!(point_out("é a)) b", body), "no\n    é a)) b\n       ^^");
        assert_eq!(
            point_out("x", br#"{"error":{"message":"no","offset":1,"length":0}}"#),
            "no\n    x\n     ^"
        );
        assert_eq!(point_out("x", br#"{"error":{"message":"limit?"}}"#), "limit?");
    }

    #[test]
    fn an_answer_is_a_list() {
        let hit = Hit {
            url: "file:///a".to_owned(),
            title: "A\ntitle".to_owned(),
            r#type: "HTML".to_owned(),
            snippet: Snippet {
                text: "some  words\n".to_owned(),
                place: Some("page 3".to_owned()),
                ..Snippet::default()
            },
            duplicates: vec![Duplicate { url: "file:///b".to_owned(), ..Duplicate::default() }],
            ..Hit::default()
        };
        let answer = Answer { total: 1, took_us: 1200, hits: vec![hit], ..Answer::default() };
        assert_eq!(
            render(&answer),
            "1 object in 2 ms\n\n  1. A title  [HTML]\n     file:///a\n     page 3: some words\n     also file:///b\n"
        );
    }
}
