//! The cases: what a cache has to do by a clause of an RFC, as lines of text.
//!
//! `## CLAUSE` begins a section, and `must: …` or `may: …` a case: what a cache must do, or what a good
//! one does. Its lines are
//!
//! - `> METHOD [/PATH] | HEADER: VALUE | …`: a request begins a turn;
//! - `< STATUS | HEADER: VALUE | … | body=TEXT`: what the origin answers in it; without one, `200` and a
//!   body of its own; `< close` breaks off, `< interim STATUS | …` comes before the answer;
//! - `>> BYTES`, `<< BYTES`: the same as bytes, with `\r` and `\n`, to which nothing is added; the origin
//!   closes after them;
//! - `= …`: what is seen of it ([`Seen`]);
//! - `wait SECONDS`.
//!
//! `{now-60}` is a date, `{base}` the case's own base URL, and `{host}` its host.

use std::str::FromStr;

/// What is seen of an answer, and of what the origin was asked for it.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// The origin was not asked, and the body is that of an earlier turn.
    Hit,
    /// The origin was not asked.
    Quiet,
    /// The origin was asked, and so was for no earlier turn's body.
    Asked,
    /// The origin is asked in the end.
    LaterAsked,
    /// The origin was asked whether something has changed.
    Validated,
    Status(u16),
    NotStatus(u16),
    Body(String),
    /// A header has this value, or any.
    Has(String, Option<String>),
    /// A header is missing, or has another value.
    Lacks(String, Option<String>),
    /// A header's number is within these.
    Number(String, u64, u64),
    /// The origin was sent a header with this value, or any.
    Sent(String, Option<String>),
    Unsent(String),
    /// `Cache-Status` can be read, and has so many members.
    Caches(usize),
    /// Its last member has a parameter with this value, or any; a number may be one of `LEAST..MOST`.
    Cache(String, Option<String>),
    Uncached(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    /// Time before it, in seconds.
    pub(crate) wait: u64,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<String>,
    /// The whole request, as bytes.
    pub(crate) raw: Option<String>,
    pub(crate) answer: Vec<Message>,
    pub(crate) seen: Vec<Seen>,
}

/// A message of the origin.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// It breaks off.
    Close,
    /// These bytes are the whole answer.
    Raw(String),
    Answer {
        status: u16,
        headers: Vec<String>,
        body: Option<String>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) clause: String,
    pub(crate) title: String,
    pub(crate) is_must: bool,
    pub(crate) turns: Vec<Turn>,
}

/// Reads all cases of a text.
pub(crate) fn cases(text: &str) -> Vec<Case> {
    let (mut all, mut clause, mut wait) = (Vec::<Case>::new(), String::new(), 0);
    for line in text.lines().filter(|it| !it.is_empty()) {
        let (mark, rest) = line.split_once(' ').unwrap();
        let case = all.last_mut();
        let turn = || case.unwrap().turns.last_mut().unwrap();
        match mark {
            "##" => rest.clone_into(&mut clause),
            "must:" | "may:" => all.push(Case {
                clause: clause.clone(),
                title: rest.to_owned(),
                is_must: mark == "must:",
                turns: Vec::new(),
            }),
            ">" | ">>" => {
                let raw = || Turn { raw: Some(unescaped(rest)), ..Turn::default() };
                let turn = if mark == ">" { turn_of(rest) } else { raw() };
                let turn = Turn { wait, ..turn };
                wait = 0;
                all.last_mut().unwrap().turns.push(turn);
            }
            "<" => turn().answer.push(message(rest)),
            "<<" => turn().answer.push(Message::Raw(unescaped(rest))),
            "=" => turn().seen.push(rest.parse().unwrap_or_else(|()| panic!("{line}"))),
            "wait" => wait = rest.parse().unwrap(),
            _ => panic!("{line}"),
        }
    }
    all
}

fn parts(text: &str) -> impl Iterator<Item = String> {
    text.split(" | ").map(|it| it.trim().to_owned())
}

fn unescaped(text: &str) -> String {
    text.replace("\\r", "\r").replace("\\n", "\n")
}

fn turn_of(text: &str) -> Turn {
    let mut parts = parts(text);
    let line = parts.next().unwrap();
    let (method, path) = line.split_once(' ').unwrap_or((&line, ""));
    Turn {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: parts.collect(),
        ..Turn::default()
    }
}

fn message(text: &str) -> Message {
    if text == "close" {
        return Message::Close;
    }
    let mut parts = parts(text.strip_prefix("interim ").unwrap_or(text));
    let status = parts.next().unwrap().parse().unwrap();
    let (mut headers, mut body) = (Vec::new(), None);
    for part in parts {
        match part.strip_prefix("body=") {
            Some(it) => body = Some(it.to_owned()),
            None => headers.push(part),
        }
    }
    Message::Answer { status, headers, body }
}

impl FromStr for Seen {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let header = || {
            let (name, value) = rest.split_once(':').unwrap_or((rest, ""));
            let value = Some(value.trim().to_owned()).filter(|it| !it.is_empty());
            (name.to_ascii_lowercase(), value)
        };
        let ((name, value), number) = (header(), rest.parse().map_err(drop));
        Ok(match word {
            "hit" => Self::Hit,
            "quiet" => Self::Quiet,
            "asked" => Self::Asked,
            "later" => Self::LaterAsked,
            "validated" => Self::Validated,
            "status" => Self::Status(number?),
            "not" => Self::NotStatus(number?),
            "body" => Self::Body(rest.to_owned()),
            "has" => Self::Has(name, value),
            "lacks" => Self::Lacks(name, value),
            "sent" => Self::Sent(name, value),
            "unsent" => Self::Unsent(name),
            "caches" => Self::Caches(usize::from(number?)),
            "uncached" => Self::Uncached(name),
            "cache" => {
                let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
                let value = Some(value.to_owned()).filter(|it| !it.is_empty());
                Self::Cache(name.to_owned(), value)
            }
            "number" => {
                let [name, least, most] = rest.split(' ').collect::<Vec<_>>()[..] else {
                    return Err(());
                };
                let number = |it: &str| it.parse().map_err(drop);
                Self::Number(name.to_ascii_lowercase(), number(least)?, number(most)?)
            }
            _ => return Err(()),
        })
    }
}
