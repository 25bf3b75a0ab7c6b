//! `harvest search`: a query to a broker from the shell.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use broker::answer::{Answer, AskedState, Everywhere, Hit, Matching, Notice, Reasons, Snippet};
use clap::builder::ArgPredicate;
use http::StatusCode;
use query::QueryError;
use url::Url;
use web::foreign::{harmless, visible};

use super::up::records;
use crate::admin::Places;
use crate::output::Style;
use crate::{admin, output};

/// The broker that is asked if no `harvest up` runs, as `harvest broker run` listens there.
const BROKER: &str = "http://127.0.0.1:8501/";

/// Ask a broker, or the running `harvest up`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  harvest search solar panels
  harvest search 'title:budget AND type:PDF -draft' --limit 3
  harvest search --everywhere 'glaciers of the Andes'
  harvest search oak --broker https://a.example/ --broker https://b.example/
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
    /// More words of the query.
    #[arg(value_name = "QUERY", hide = true)]
    more: Vec<String>,
    /// Find objects about the same as this one: its URL, path or OID.
    #[arg(long, value_name = "URL")]
    like: Option<String>,
    /// Print the broker's answer as JSON.
    #[arg(long)]
    json: bool,
    /// Maximum number of hits, up to 1000.
    #[arg(long, value_name = "N", default_value_t = broker::answer::HITS_DEFAULT)]
    limit: usize,
    /// How many of the words side by side a hit has: all of them, any, or the best there are;
    /// default: what the broker's settings say.
    #[arg(long = "match", value_name = "best|all|any", value_parser = matching)]
    matching: Option<Matching>,
    /// Say why each hit stands where it stands.
    #[arg(long)]
    explain: bool,
    /// Ask other brokers, too: those that the broker's registry lists and that are worth asking.
    #[arg(long)]
    everywhere: bool,
    /// The broker to ask; default: the `harvest up` that runs for the current folder, else the only
    /// one that runs, else http://127.0.0.1:8501/. Several have the same, as replicas do: the nearest is
    /// asked, and the next one if that does not answer.
    #[arg(long, value_name = "URL", env = "HARVEST_BROKER", value_parser = places)]
    broker: Vec<Places>,
}

impl Args {
    /// Returns the words of the query, side by side.
    fn query(&self) -> String {
        [std::slice::from_ref(&self.query), &self.more].concat().join(" ")
    }
}

/// Returns the object that is meant by `name`: an OID, a URL, or the absolute path of a file.
fn named(name: &str) -> Cow<'_, str> {
    let path = Path::new(name);
    match std::path::absolute(path).ok().filter(|_| path.exists()) {
        Some(path) => path.display().to_string().into(),
        None => name.into(),
    }
}

/// Sends the query, and prints the answer.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let brokers = match &*args.broker {
        [] => vec![broker(&[])?],
        named => Places::all(named),
    };
    let query = args.query();
    let asked = admin::ask_nearest(&brokers, |it| address(&args, it)).await;
    let (broker, status, body) = asked.with_context(|| {
        let places = admin::either(&brokers);
        format!(
            "no broker answers at {places}; start one with `harvest up`, or name it with --broker"
        )
    })?;
    if status == StatusCode::BAD_REQUEST {
        bail!("{}", point_out(&query, &body));
    }
    if !status.is_success() {
        bail!("the broker at {broker} answers {status}: {}", admin::failure_message(&body));
    }
    let answer: Answer = serde_json::from_slice(&body)
        .with_context(|| format!("what is at {broker} is no broker of this version"))?;
    if let Some(notice) = &answer.notice {
        output::note(&harmless(&format!("note: {}", marked(&query, notice))));
    }
    if let Some(activity) = &answer.activity {
        output::note(&harmless(&format!("note: {activity}; search again later to find the rest")));
    }
    if args.json {
        output::line(String::from_utf8_lossy(&body).trim_end())?;
    } else {
        output::line(render(&answer, Style::of_output()).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the addresses of brokers.
pub(super) fn places(text: &str) -> Result<Places, String> {
    Places::read(text, |it| Url::parse(it).map_err(|error| error.to_string()))
}

/// Returns the broker to ask: the first that is named, or else the running `harvest up`.
pub(super) fn broker(named: &[Places]) -> anyhow::Result<Url> {
    if let Some(first) = Places::all(named).into_iter().next() {
        return Ok(first);
    }
    let running = records::page_for(&std::env::current_dir().unwrap_or_default())?;
    running.map_or_else(|| Ok(Url::parse(BROKER)?), Ok)
}

fn address(args: &Args, broker: &Url) -> anyhow::Result<Url> {
    let explain = args.explain.then_some(("explain", "true"));
    let facets = (!args.json).then_some(("facets", "false"));
    let like = args.like.as_deref().map(named);
    let like = like.as_deref().map(|it| ("like", it));
    let scope = args.everywhere.then_some(("scope", "everywhere"));
    let more = explain.into_iter().chain(facets).chain(like).chain(scope);
    query_address(broker, &args.query(), args.limit, args.matching, more)
}

/// Returns the URL of a broker's answer to a query.
pub(super) fn query_address<'a>(
    broker: &Url,
    query: &str,
    limit: usize,
    matching: Option<Matching>,
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
    if let Some(matching) = matching {
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
    if query.is_empty() {
        return message.clone();
    }
    let error = QueryError { offset: *offset, len: *length, message: String::new() };
    let caret = error.caret(query).replace('\n', "\n    ");
    format!("{message}\n    {caret}")
}

/// Writes the answer for a person. All text of others is made harmless to the terminal.
fn render(answer: &Answer, style: Style) -> String {
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
        text += &format!("{what}: {}\n", style.bold(&harmless(suggestion)));
    }
    for (rank, hit) in (1..).zip(&answer.hits) {
        // By any of the words, those with all of them stand anywhere.
        if answer.matching == Matching::Best && 0 < all && rank == all + 1 {
            text += "\n     with some of the words:\n";
        }
        render_hit(&mut text, rank, hit, style);
    }
    if let Some(everywhere) = &answer.everywhere {
        render_asked(&mut text, everywhere);
    }
    text
}

/// Says who was asked, and what came of it.
fn render_asked(text: &mut String, everywhere: &Everywhere) {
    let known = output::counted(everywhere.known, "broker");
    let own = everywhere.asked.iter().filter(|it| it.via.is_none()).count();
    let _ = writeln!(text, "\nasked {own} of {known}:");
    for it in &everywhere.asked {
        let mut outcome = match it.state {
            AskedState::Answered => {
                format!("{} in {} ms", output::counted(it.total, "object"), it.took_ms)
            }
            AskedState::Late => "did not answer in time".to_owned(),
            AskedState::Closed => "wants a token".to_owned(),
            AskedState::Failed => format!("failed: {}", it.problem.as_deref().unwrap_or_default()),
        };
        for warning in &it.warnings {
            outcome += &format!("; {warning}");
        }
        if let Some(via) = &it.via {
            outcome += &format!(", asked by {via}");
        }
        let (name, url) = (one_line(&it.broker.name), visible(&it.broker.url));
        let _ = writeln!(text, "  {name} ({url}): {}", one_line(&outcome));
    }
}

fn render_hit(text: &mut String, rank: u64, hit: &Hit, style: Style) {
    let kind = if hit.r#type.is_empty() { String::new() } else { format!("  [{}]", hit.r#type) };
    let (title, place) = (one_line(&hit.title), style.link(&hit.url, &visible(&plain(&hit.url))));
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "\n{rank:>3}. {}{}\n     {}",
        style.bold(&title),
        style.faint(&harmless(&kind)),
        style.green(&place)
    );
    if let Some(broker) = &hit.broker {
        let _ = writeln!(text, "     at {}", style.faint(&one_line(&broker.name)));
    }
    let excerpt = excerpt(&hit.snippet, style);
    if !excerpt.is_empty() {
        let place = hit.snippet.place.as_deref().map(|it| one_line(it) + ": ").unwrap_or_default();
        let _ = writeln!(text, "     {}{excerpt}", style.faint(&place));
    }
    for duplicate in &hit.duplicates {
        let relation = match duplicate.relation(&hit.url, hit.modified) {
            "" => String::new(),
            relation => format!(", {relation}"),
        };
        let place = style.link(&duplicate.url, &visible(&plain(&duplicate.url)));
        let _ = writeln!(text, "     also {}{relation}", style.green(&place));
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

/// Returns a snippet as one line, the words of the query marked.
fn excerpt(snippet: &Snippet, style: Style) -> String {
    let mut marked = String::new();
    let mut end = 0;
    for (from, to) in &snippet.highlights {
        let before = snippet.text.get(end..*from).unwrap_or_default();
        let Some(word) = snippet.text.get(*from..*to) else { continue };
        marked += &harmless(before);
        marked += &style.bold(&harmless(word));
        end = *to;
    }
    marked += &harmless(snippet.text.get(end..).unwrap_or_default());
    joined(&marked)
}

/// Returns `text` without control characters, and with every run of white space as one space.
fn one_line(text: &str) -> String {
    joined(&harmless(text))
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use broker::answer::Duplicate;

    use super::*;

    fn args(query: &str) -> Args {
        Args {
            query: query.to_owned(),
            more: vec![],
            like: query.is_empty().then(|| "http://h/a?b".to_owned()),
            json: true,
            limit: 3,
            matching: None,
            explain: false,
            everywhere: false,
            broker: vec![],
        }
    }

    fn check(broker: &str, args: &Args, expected: &str) {
        let broker = Url::parse(broker).unwrap();
        assert_eq!(address(args, &broker).unwrap().as_str(), expected);
    }

    #[test]
    fn the_query_is_encoded_and_the_base_url_kept() {
        check("http://h:1", &args("a&b +c"), "http://h:1/api/search?q=a%26b+%2Bc&limit=3");
        check("https://h/search", &args("x"), "https://h/search/api/search?q=x&limit=3");
        let like = "http://h/api/search?q=&limit=3&like=http%3A%2F%2Fh%2Fa%3Fb";
        check("http://h", &args(""), like);
    }

    #[test]
    fn flags_are_sent() {
        let flagged = Args { matching: Some(Matching::Any), explain: true, ..args("x") };
        let address = "http://h/api/search?q=x&limit=3&match=any&explain=true";
        check("http://h", &flagged, address);
        let shown = Args { json: false, ..args("x") };
        check("http://h", &shown, "http://h/api/search?q=x&limit=3&facets=false");
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
            render(&answer, Style::PLAIN),
            "1 object in 2 ms\n\n  1. A title  [HTML]\n     /a b\n     page 3: some words\n     also /b\n"
        );
        let link =
            |url: &str, text: &str| format!("\u{1b}]8;;{url}\u{1b}\\{text}\u{1b}]8;;\u{1b}\\");
        assert_eq!(
            render(&answer, Style::TERMINAL).lines().nth(3).unwrap(),
            format!("     \u{1b}[32m{}\u{1b}[0m", link("file:///a%20b", "/a b"))
        );
        let without_color = Style { color: false, ..Style::TERMINAL };
        let text = render(&answer, without_color);
        assert!(!text.contains("\u{1b}[") && text.contains(&link("file:///b", "/b")), "{text}");
    }

    #[test]
    fn a_hit_says_why_it_stands_there_and_what_is_older() {
        let url = "http://h/a";
        let other = |url: &str, modified| Duplicate {
            url: url.to_owned(),
            modified,
            similar: true,
            ..Duplicate::default()
        };
        let reasons =
            Reasons { words: 2.0, title: 1.5, name: 1.0, near: 1.25, standing: 0.8, age: 1.01 };
        let hit = Hit {
            url: url.to_owned(),
            modified: Some(9),
            duplicates: vec![other(url, Some(5)), other("http://h/a.txt", Some(5))],
            reasons: Some(reasons),
            ..Hit::default()
        };
        let answer = Answer { total: 1, total_all: 1, hits: vec![hit], ..Answer::default() };
        let expected = "1 object in 0 ms\n\n  1. \n     http://h/a\n\
             \x20    also http://h/a, an older version\n\
             \x20    also http://h/a.txt, nearly the same\n\
             \x20    score 3.03: words 2.00 × title 1.50 × name 1.00 × near 1.25 × standing 0.80 × age 1.01\n";
        assert_eq!(render(&answer, Style::PLAIN), expected);
    }

    #[test]
    fn text_of_others_commands_no_terminal() {
        let odd = "\u{1b}]0;x\u{7}";
        let hit = Hit {
            url: format!("javascript:{odd}"),
            title: odd.to_owned(),
            r#type: odd.to_owned(),
            snippet: Snippet {
                text: format!("{odd} word {odd}"),
                highlights: vec![(5, 6), (6, 10), (900, 1)],
                place: Some(odd.to_owned()),
                ..Snippet::default()
            },
            duplicates: vec![Duplicate { url: odd.to_owned(), ..Duplicate::default() }],
            ..Hit::default()
        };
        let suggestion = Some(odd.to_owned());
        let answer =
            Answer { total: 1, total_all: 1, hits: vec![hit], suggestion, ..Answer::default() };
        let text = render(&answer, Style::PLAIN);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
        let text = render(&answer, Style::TERMINAL);
        assert!(!text.contains("\u{1b}]"), "no link and no command: {text:?}");
        assert!(text.contains("\u{1b}[1m"), "{text:?}");
    }
}
