//! `harvest search`: a query to a broker from the shell.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use broker::answer::{Answer, Hit, Matching, Notice, Reasons};
use clap::builder::ArgPredicate;
use http::StatusCode;
use net::client::Request;
use query::QueryError;
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
    #[arg(
        value_name = "QUERY",
        allow_hyphen_values = true,
        required = false,
        required_unless_present = "like",
        default_value_if("like", ArgPredicate::IsPresent, "")
    )]
    query: String,
    /// Find objects about the same as this one: its URL, absolute path or OID.
    #[arg(long, value_name = "URL")]
    like: Option<String>,
    /// Print the broker's answer as JSON.
    #[arg(long)]
    json: bool,
    /// Maximum number of hits, up to 1000.
    #[arg(long, value_name = "N", default_value_t = broker::answer::HITS_DEFAULT)]
    limit: usize,
    /// How many of the words side by side a hit has: all of them, any, or the best there are.
    #[arg(long = "match", value_name = "best|all|any", default_value = "best", value_parser = matching)]
    matching: Matching,
    /// Say why each hit stands where it stands.
    #[arg(long)]
    explain: bool,
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
    if let Some(notice) = &answer.notice {
        output::note(&output::harmless(&format!("note: {}", marked(&args.query, notice))));
    }
    if args.json {
        output::line(String::from_utf8_lossy(&body).trim_end())?;
    } else {
        output::line(
            output::harmless(&render(&answer, args.matching == Matching::Best)).trim_end(),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn address(args: &Args) -> anyhow::Result<Url> {
    let explain = args.explain.then_some(("explain", "true"));
    let facets = (!args.json).then_some(("facets", "false"));
    let like = args.like.as_deref().map(|it| ("like", it));
    let more = explain.into_iter().chain(facets).chain(like);
    query_address(&args.broker, &args.query, args.limit, args.matching, more)
}

/// Returns the URL of a broker's answer to a query.
pub(super) fn query_address<'a>(
    broker: &Url,
    query: &str,
    limit: usize,
    matching: Matching,
    more: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> anyhow::Result<Url> {
    let mut base = broker.clone();
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", broker.path()));
    }
    let mut url =
        base.join("api/search").with_context(|| format!("{broker} is no address of a broker"))?;
    let limit = limit.to_string();
    let mut pairs = url.query_pairs_mut();
    pairs.append_pair("q", query).append_pair("limit", &limit);
    // A broker of an earlier version does not know it.
    if matching != Matching::default() {
        pairs.append_pair("match", matching.name());
    }
    pairs.extend_pairs(more);
    drop(pairs);
    Ok(url)
}

/// Reads the value of `--match`.
pub(super) fn matching(name: &str) -> Result<Matching, String> {
    let expected = || format!("expected {}", Matching::ALL.map(Matching::name).join(", "));
    Matching::by_name(name).ok_or_else(expected)
}

/// Returns the broker's message about a wrong query, with the wrong part marked if it is named.
fn point_out(query: &str, body: &[u8]) -> String {
    let message = admin::failure_message(body);
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let number =
        |name: &str| usize::try_from(json.as_ref()?.get("error")?.get(name)?.as_u64()?).ok();
    match (number("offset"), number("length")) {
        (Some(offset), Some(length)) => marked(query, &Notice { message, offset, length }),
        _ => message,
    }
}

/// Returns the message of a notice, and under it the query with carets below the part that is meant.
fn marked(query: &str, notice: &Notice) -> String {
    let Notice { message, offset, length } = notice;
    let error = QueryError { offset: *offset, len: *length, message: String::new() };
    let caret = error.caret(query).replace('\n', "\n    ");
    format!("{message}\n    {caret}")
}

/// Writes the answer for a person.
fn render(answer: &Answer, is_best: bool) -> String {
    let millis = answer.took_us.div_ceil(1000);
    let (all, some) = (answer.total_all, answer.total.saturating_sub(answer.total_all));
    let mut text = match (all, some) {
        (_, 0) => format!("{} in {millis} ms\n", output::counted(all, "object")),
        (0, _) => {
            let some = output::counted(some, "object");
            format!("{some} with some of the words in {millis} ms; none has all of them\n")
        }
        _ => {
            let all = output::counted(all, "object");
            format!("{all} in {millis} ms, and {some} more with some of the words\n")
        }
    };
    if let Some(suggestion) = &answer.suggestion {
        let found = "nothing has all of the words; found for";
        let what = if answer.respelled { found } else { "did you mean" };
        text += &format!("{what}: {suggestion}\n");
    }
    for (rank, hit) in (1..).zip(&answer.hits) {
        // By any of the words, those with all of them stand anywhere.
        if is_best && 0 < all && rank == all + 1 {
            text += "\n     with some of the words:\n";
        }
        render_hit(&mut text, rank, hit);
    }
    text
}

fn render_hit(text: &mut String, rank: u64, hit: &Hit) {
    let kind = if hit.r#type.is_empty() { String::new() } else { format!("  [{}]", hit.r#type) };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n{rank:>3}. {}{kind}\n     {}", one_line(&hit.title), plain(&hit.url));
    let excerpt = one_line(&hit.snippet.text);
    if !excerpt.is_empty() {
        let place = hit.snippet.place.as_deref().map(|it| one_line(it) + ": ").unwrap_or_default();
        let _ = writeln!(text, "     {place}{excerpt}");
    }
    for duplicate in &hit.duplicates {
        let similar = if duplicate.similar { ", nearly the same" } else { "" };
        let _ = writeln!(text, "     also {}{similar}", plain(&duplicate.url));
    }
    if let Some(why) = &hit.reasons {
        let Reasons { words, title, name, near, standing, age } = why;
        let _ = writeln!(
            text,
            "     score {:.2}: words {words:.2} × title {title:.2} × name {name:.2} × near {near:.2} × \
             standing {standing:.2} × age {age:.2}",
            why.score()
        );
    }
}

/// Returns the path of a local file, which can be pasted into a command; other URLs as they are.
fn plain(url: &str) -> Cow<'_, str> {
    let file = Url::parse(url).ok().filter(|it| it.scheme() == "file");
    let path = file.as_ref().and_then(|it| it.to_file_path().ok());
    // What is behind it is a part of the file.
    let inside = url.split_once('#').map(|(_, inside)| format!("#{inside}")).unwrap_or_default();
    path.map_or(Cow::Borrowed(url), |path| Cow::Owned(format!("{}{inside}", path.display())))
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
        let matching = Matching::Best;
        let query = query.to_owned();
        let like = query.is_empty().then(|| "http://h/a?b".to_owned());
        let args = Args { query, like, json: true, limit: 3, matching, explain: false, broker };
        assert_eq!(address(&args).unwrap().as_str(), expected);
    }

    #[test]
    fn the_query_is_encoded_and_the_base_url_kept() {
        check("http://h:1", "a&b +c", "http://h:1/api/search?q=a%26b+%2Bc&limit=3");
        check("https://h/search", "x", "https://h/search/api/search?q=x&limit=3");
        check("http://h", "", "http://h/api/search?q=&limit=3&like=http%3A%2F%2Fh%2Fa%3Fb");
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
            url: "file:///a%20b".to_owned(),
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
        let answer =
            Answer { total: 1, total_all: 1, took_us: 1200, hits: vec![hit], ..Answer::default() };
        assert_eq!(
            render(&answer, true),
            "1 object in 2 ms\n\n  1. A title  [HTML]\n     /a b\n     page 3: some words\n     also /b\n"
        );
    }
}
