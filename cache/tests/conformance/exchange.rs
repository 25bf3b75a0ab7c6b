//! The exchange: an origin that answers as the case of a request says, and a client, both of bare
//! bytes.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use sfv::{BareItem, Item, List, ListEntry, Parser};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::case::{Case, Message, Seen, Turn};

/// Time in which an answer has to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A message, as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    first_line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Read {
    fn status(&self) -> u16 {
        self.first_line.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
    }

    /// Returns the values of a header, joined.
    fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> =
            self.headers.iter().filter(|it| it.0 == name).map(|it| it.1.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        loop {
            let at = rest.windows(4).position(|it| it == b"\r\n\r\n")?;
            let head = String::from_utf8_lossy(&rest[..at]).into_owned();
            let mut lines = head.split("\r\n");
            let first_line = lines.next()?.to_owned();
            let headers = lines.filter_map(|it| it.split_once(':'));
            let headers = headers
                .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()));
            let read = Self { first_line, headers: headers.collect(), body: String::new() };
            rest = &rest[at + 4..];
            if !(100..200).contains(&read.status()) {
                let body = if read.header("transfer-encoding").is_some() {
                    unchunked(rest)
                } else {
                    String::from_utf8_lossy(rest).into_owned()
                };
                return Some(Self { body, ..read });
            }
        }
    }
}

fn unchunked(mut rest: &[u8]) -> String {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..at]).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap().trim(), 16).unwrap_or(0);
        let end = (at + 2 + size).min(rest.len());
        body.extend_from_slice(&rest[at + 2..end]);
        if size == 0 {
            break;
        }
        rest = &rest[(end + 2).min(rest.len())..];
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// What the origin knows of a case under way.
#[derive(Debug, Default)]
struct Progress {
    turn: usize,
    turns: Vec<Turn>,
    /// What it was asked in each turn.
    asked: Vec<Vec<Read>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    cases: Arc<Mutex<HashMap<String, Progress>>>,
}

impl Origin {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = Self { address: listener.local_addr().unwrap(), cases: Arc::default() };
        let accepting = origin.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().answer(stream));
            }
        });
        origin
    }

    async fn answer(self, mut stream: TcpStream) -> io::Result<()> {
        let mut bytes = Vec::new();
        while !bytes.windows(4).any(|it| it == b"\r\n\r\n") {
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        }
        let mut asked = Read::default();
        let head = String::from_utf8_lossy(&bytes).into_owned();
        let mut lines = head.split("\r\n");
        lines.next().unwrap().clone_into(&mut asked.first_line);
        let headers = lines.filter_map(|it| it.split_once(':'));
        asked.headers = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let target = asked.first_line.split(' ').nth(1).unwrap_or("").to_owned();
        let path = target.split_once("://").map_or(&*target, |it| &it.1[it.1.find('/').unwrap()..]);
        let key = path.split('/').nth(1).unwrap_or("").to_owned();
        let is_head = asked.first_line.starts_with("HEAD ");
        let (turn, number) = {
            let mut cases = self.cases.lock().unwrap();
            let Some(it) = cases.get_mut(&key) else { return Ok(()) };
            it.asked[it.turn].push(asked);
            (it.turns[it.turn].clone(), it.turn + 1)
        };
        let plain = || Message::Answer { status: 200, headers: Vec::new(), body: None };
        let answer = if turn.answer.is_empty() { vec![plain()] } else { turn.answer };
        for message in answer {
            let base = format!("http://{}/{key}", self.address);
            let (status, headers, body) = match message {
                Message::Close => return Ok(()),
                Message::Raw(text) => {
                    stream.write_all(filled(&text, &base).as_bytes()).await?;
                    continue;
                }
                Message::Answer { status, headers, body } => (status, headers, body),
            };
            let mut text = format!("HTTP/1.1 {status} Of Case\r\n");
            let mut line = |it: &str| {
                text.push_str(&filled(it, &base));
                text.push_str("\r\n");
            };
            headers.iter().for_each(|it| line(it));
            if 200 <= status {
                let has =
                    |name: &str| headers.iter().any(|it| it.to_ascii_lowercase().starts_with(name));
                let body = body.unwrap_or_else(|| format!("turn {number}"));
                let body = if [204, 304].contains(&status) { String::new() } else { body };
                if !has("date:") {
                    line("Date: {now}");
                }
                if !has("content-length:") && ![204, 304].contains(&status) {
                    line(&format!("Content-Length: {}", body.len()));
                }
                line("Connection: close");
                text.push_str("\r\n");
                text.push_str(if is_head { "" } else { &body });
            } else {
                text.push_str("\r\n");
            }
            stream.write_all(text.as_bytes()).await?;
        }
        stream.shutdown().await
    }

    fn asked(&self, key: &str, turn: usize) -> Vec<Read> {
        self.cases.lock().unwrap()[key].asked[turn].clone()
    }
}

/// Replaces `{base}`, `{host}`, and a date such as `{now-60}` or `{now+5 rfc850}`.
fn filled(text: &str, base: &str) -> String {
    let host = base.split('/').nth(2).unwrap_or("");
    let text = text.replace("{base}", base).replace("{host}", host);
    let Some((before, rest)) = text.split_once("{now") else { return text };
    let (date, after) = rest.split_once('}').unwrap();
    let (offset, form) = date.split_once(' ').unwrap_or((date, ""));
    let now = Timestamp::now().as_second() + offset.parse::<i64>().unwrap_or(0);
    let form = match form {
        "rfc850" => "%A, %d-%b-%y %H:%M:%S GMT",
        "asctime" => "%a %b %e %H:%M:%S %Y",
        _ => "%a, %d %b %Y %H:%M:%S GMT",
    };
    let date = Timestamp::from_second(now).unwrap().strftime(form).to_string();
    format!("{before}{date}{after}")
}

/// A cache that is tried.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    /// Where it stands before the origin, under the name `www.example.org`, if it can.
    pub(crate) before_origin: Option<SocketAddr>,
}

/// Runs a case. `Err`: what was seen instead.
pub(crate) async fn run(
    case: &Case,
    key: &str,
    origin: &Origin,
    subject: &Subject,
) -> Result<(), String> {
    let asked = vec![Vec::new(); case.turns.len()];
    // Dates are those of its start, so that the same is expected as was sent.
    let base = format!("http://{}/{key}", origin.address);
    let mut turns = case.turns.clone();
    for turn in &mut turns {
        let fill = |it: &mut String| *it = filled(it, &base);
        turn.headers.iter_mut().chain(&mut turn.raw).for_each(fill);
        for message in &mut turn.answer {
            match message {
                Message::Answer { headers, .. } => headers.iter_mut().for_each(fill),
                Message::Raw(text) => fill(text),
                Message::Close => {}
            }
        }
        for seen in &mut turn.seen {
            if let Seen::Has(_, Some(it)) | Seen::Sent(_, Some(it)) = seen {
                fill(it);
            }
        }
    }
    let progress = Progress { turn: 0, turns: turns.clone(), asked };
    origin.cases.lock().unwrap().insert(key.to_owned(), progress);
    let mut bodies = Vec::<String>::new();
    for (index, turn) in turns.iter().enumerate() {
        tokio::time::sleep(Duration::from_secs(turn.wait)).await;
        origin.cases.lock().unwrap().get_mut(key).unwrap().turn = index;
        let is_targeted = case.clause.contains("before an origin");
        let sent = timeout(PATIENCE, send(turn, key, origin, subject, is_targeted)).await;
        let read = sent.map_err(|late| late.to_string())?.map_err(|it| it.to_string())?;
        for seen in &turn.seen {
            check(seen, &read, &bodies, origin, (key, index))
                .await
                .map_err(|why| format!("turn {}: {seen:?}: {why}; {read:?}", index + 1))?;
        }
        bodies.push(read.body);
    }
    Ok(())
}

async fn send(
    turn: &Turn,
    key: &str,
    origin: &Origin,
    subject: &Subject,
    is_targeted: bool,
) -> io::Result<Read> {
    let Turn { method, path, headers, raw, .. } = turn;
    let before = subject.before_origin.filter(|_| is_targeted);
    let (address, target, host) = match before {
        Some(it) => (it, format!("/{key}{path}"), "www.example.org".to_owned()),
        None => {
            let host = origin.address.to_string();
            (subject.address, format!("http://{host}/{key}{path}"), host)
        }
    };
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
    if !headers.iter().any(|it| it.starts_with("Connection:")) {
        text.push_str("Connection: close\r\n");
    }
    headers.iter().for_each(|it| text.push_str(&format!("{it}\r\n")));
    if ["POST", "PUT"].contains(&method.as_str()) {
        text.push_str("Content-Length: 0\r\n");
    }
    text.push_str("\r\n");
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(raw.as_ref().unwrap_or(&text).as_bytes()).await?;
    let mut bytes = Vec::new();
    // Who refuses a request may close before it has read all of it.
    while matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
        if is_whole(&bytes, method == "HEAD") {
            break;
        }
    }
    Read::of(&bytes).ok_or_else(|| io::Error::other("it closed without an answer"))
}

/// Returns whether a message is there to its end, where its length is known.
fn is_whole(bytes: &[u8], is_head: bool) -> bool {
    let Some(read) = Read::of(bytes) else { return false };
    if is_head || [204, 304].contains(&read.status()) {
        return true;
    }
    if read.header("transfer-encoding").is_some() {
        return bytes.ends_with(b"0\r\n\r\n");
    }
    let length = read.header("content-length").and_then(|it| it.parse().ok());
    length.is_some_and(|it: usize| it <= read.body.len())
}

async fn check(
    seen: &Seen,
    read: &Read,
    bodies: &[String],
    origin: &Origin,
    (key, turn): (&str, usize),
) -> Result<(), String> {
    let asked = origin.asked(key, turn);
    let (is_asked, is_earlier) = (!asked.is_empty(), bodies.contains(&read.body));
    let any =
        |names: &[&str]| asked.iter().any(|it| names.iter().any(|name| it.header(name).is_some()));
    let fits = |found: Option<String>, value: &Option<String>| match value {
        Some(value) => found.as_ref() == Some(value),
        None => found.is_some(),
    };
    let is_seen = match seen {
        // A part is none of an earlier body.
        Seen::Hit => !is_asked && (is_earlier || read.status() == 206 || bodies.is_empty()),
        Seen::Quiet => !is_asked,
        Seen::Asked => is_asked,
        Seen::LaterAsked => {
            let began = tokio::time::Instant::now();
            while origin.asked(key, turn).is_empty() && began.elapsed() < PATIENCE / 6 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            !origin.asked(key, turn).is_empty()
        }
        Seen::Validated => any(&["if-none-match", "if-modified-since"]),
        Seen::Status(status) => read.status() == *status,
        Seen::NotStatus(status) => read.status() != *status,
        Seen::Body(body) => read.body == *body,
        Seen::Has(name, value) => fits(read.header(name), value),
        Seen::Lacks(name, value) => !fits(read.header(name), value),
        Seen::Number(name, least, most) => {
            let number = read.header(name).and_then(|it| it.parse::<u64>().ok());
            number.is_some_and(|it| (*least..=*most).contains(&it))
        }
        Seen::Sent(name, value) => asked.iter().any(|it| fits(it.header(name), value)),
        Seen::Unsent(name) => asked.iter().all(|it| it.header(name).is_none()),
        Seen::Caches(count) => caches(read).is_some_and(|it| it.len() == *count),
        Seen::Cache(name, value) => match (cache(read, name), value) {
            (Some(found), Some(value)) => found == *value || is_within(&found, value),
            (found, _) => found.is_some(),
        },
        Seen::Uncached(name) => cache(read, name).is_none(),
    };
    if is_seen { Ok(()) } else { Err(format!("not seen; the origin was asked {asked:?}")) }
}

/// Returns the members of `Cache-Status`; `None`: it is missing, or is no list of caches (RFC 9211 §2).
fn caches(read: &Read) -> Option<Vec<Item>> {
    let list: List = Parser::new(&read.header("cache-status")?).parse().ok()?;
    let named = |it: ListEntry| match it {
        ListEntry::Item(it) => {
            matches!(it.bare_item, BareItem::String(_) | BareItem::Token(_)).then_some(it)
        }
        ListEntry::InnerList(_) => None,
    };
    list.into_iter().map(named).collect()
}

/// Returns a parameter of the last cache, as text.
fn cache(read: &Read, name: &str) -> Option<String> {
    let last = caches(read)?.pop()?;
    let (_, value) = last.params.iter().find(|(key, _)| key.as_str() == name)?;
    Some(match value {
        BareItem::Boolean(value) => value.to_string(),
        BareItem::Integer(value) => i64::from(*value).to_string(),
        BareItem::Token(value) => value.as_str().to_owned(),
        BareItem::String(value) => format!("\"{}\"", value.as_str()),
        other => format!("{other:?}"),
    })
}

/// Returns whether a number is one of `LEAST..MOST`, with both.
fn is_within(number: &str, range: &str) -> bool {
    let ends = range.split_once("..").map(|(least, most)| (least.parse(), most.parse()));
    let (Some((Ok(least), Ok(most))), Ok(number)) = (ends, number.parse::<i64>()) else {
        return false;
    };
    (least..=most).contains(&number)
}
