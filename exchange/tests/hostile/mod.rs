//! A hostile repository with the faults of repositories in the field, one at a time.
//!
//! It is a server on a raw socket, so that every layer can be wrong: connection, HTTP, encoding,
//! XML, protocol, clock, data. Its items are generated; its clock advances by a second with each
//! request. [`Server::heal`] makes it honest, and a harvester must be able to continue from its
//! checkpoint.

pub(crate) mod mode;
mod pages;
mod transfer;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub(crate) use mode::{Expected, Mode};
use pages::Document;
use wire::{Answer, Manner, Request};
pub(crate) use world::DAMAGED;
use world::{Item, Slot, World};

/// Records of a page.
const PAGE: usize = 10;
/// The wrong page, if the fault has one.
const BAD_PAGE: usize = 2;
/// Longest accepted request target, in bytes; a longer one gets 414.
const TARGET_BYTES_MAX: usize = 8_000;

/// The server; ends when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    base_url: String,
    state: Arc<Mutex<ServerState>>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct ServerState {
    world: World,
    healed: bool,
    /// Address of the listener, and of another one that is always honest.
    hosts: [String; 2],
    /// Number of occurrences of the fault.
    shown: u32,
    /// Whether the server has reached the point after which it answers nothing.
    down: bool,
    /// The queries so far, in order.
    asked: Vec<String>,
    first_token: Option<String>,
    /// Bytes or pieces sent of endless answers.
    streamed: u64,
}

impl Server {
    /// Starts it on a free port of loopback; `now` is Unix seconds.
    pub(crate) async fn start(mode: Mode, now: i64) -> Self {
        let listeners = [listener().await, listener().await];
        let hosts = listeners.each_ref().map(|it| it.local_addr().unwrap().to_string());
        let base_url = format!("http://{}/oai", hosts[0]);
        let world = World::new(mode, now);
        let state = ServerState {
            world,
            healed: false,
            hosts,
            shown: 0,
            down: false,
            asked: Vec::new(),
            first_token: None,
            streamed: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let mut tasks = JoinSet::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            tasks.spawn(accept(listener, Arc::clone(&state), number == 1));
        }
        Self { base_url, state, _tasks: tasks }
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    pub(crate) fn heal(&self) {
        self.state().healed = true;
    }

    pub(crate) fn is_healed(&self) -> bool {
        self.state().healed
    }

    pub(crate) fn change(&self) {
        self.state().world.change();
    }

    pub(crate) fn truth(&self) -> BTreeMap<String, Option<String>> {
        self.state().world.truth()
    }

    pub(crate) fn damaged(&self) -> String {
        self.state().world.items[DAMAGED].identifier.clone()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    pub(crate) fn streamed(&self) -> u64 {
        self.state().streamed
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap()
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

async fn accept(listener: TcpListener, state: Arc<Mutex<ServerState>>, other: bool) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(serve(stream, Arc::clone(&state), other));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, state: Arc<Mutex<ServerState>>, other: bool) {
    let mut open = Some(stream);
    while let Some(mut stream) = open.take() {
        let Some(asked) = wire::read(&mut stream).await else { return };
        let answer = state.lock().unwrap().answer(&asked, other);
        let streamed;
        (open, streamed) = wire::send(stream, answer).await;
        state.lock().unwrap().streamed += streamed;
    }
}

impl ServerState {
    fn answer(&mut self, asked: &Request, other: bool) -> Answer {
        self.world.clock += 1;
        self.asked.push(format!("{} {}?{}", asked.method, asked.path, asked.query));
        let mode = if self.healed || other { Mode::Honest } else { self.world.mode };
        if TARGET_BYTES_MAX < asked.target_bytes {
            return Answer::status(414);
        }
        if let Some(answer) = self.before(mode, asked) {
            return answer;
        }
        // Healing changes the documents. The data keep their oddities.
        let written_as = if self.healed && !is_of_data(self.world.mode) {
            Mode::Honest
        } else {
            self.world.mode
        };
        let real = std::mem::replace(&mut self.world.mode, written_as);
        let answer = self.document(mode, asked);
        self.world.mode = real;
        answer
    }

    /// Returns an answer that does not depend on the verb, if the mode has one.
    fn before(&mut self, mode: Mode, asked: &Request) -> Option<Answer> {
        let moved = |to: String, status| Some(Answer::status(status).header("Location", to));
        let Request { path, query, .. } = asked;
        match mode {
            Mode::BusyForEver if self.down => Some(Answer::status(503)),
            Mode::BrokenForEver if self.down => Some(Answer::status(500)),
            Mode::NotFound if self.down => Some(Answer::status(404)),
            Mode::Forbidden if self.down => Some(Answer::status(403)),
            Mode::RedirectMoved if path == "/oai" => moved(format!("/moved?{query}"), 301),
            Mode::RedirectLoop => moved(format!("{path}?{query}"), 302),
            Mode::RedirectHost => moved(format!("http://{}/oai?{query}", self.hosts[1]), 302),
            Mode::RedirectDead => moved(format!("https://{}/oai?{query}", self.hosts[1]), 301),
            Mode::RedirectScheme => moved("file:///etc/passwd".to_owned(), 302),
            Mode::BusyAtIdentify if self.shows(1) => {
                Some(Answer::status(503).header("Retry-After", "1"))
            }
            Mode::HtmlIdentify if asked.get("verb") == Some("Identify") => Some(html()),
            _ => None,
        }
    }

    fn document(&mut self, mode: Mode, asked: &Request) -> Answer {
        let world_mode = self.world.mode;
        let base_url = format!("http://{}/oai", self.hosts[0]);
        let inner = match asked.get("verb") {
            Some("Identify") => pages::identify(&self.world, &base_url),
            Some("ListMetadataFormats") => pages::formats(world_mode),
            Some("ListSets") => pages::sets(world_mode),
            Some(verb @ ("ListRecords" | "ListIdentifiers")) => {
                return self.list(mode, asked, verb, &base_url);
            }
            Some("GetRecord") => self.one(asked),
            _ => pages::error(world_mode, "badVerb"),
        };
        let document = Document::new(&self.world, &base_url, asked, inner);
        self.sent(mode, asked, false, pages::encoded(world_mode, &document.text()))
    }

    fn one(&self, asked: &Request) -> String {
        let mode = self.world.mode;
        let wanted = |it: &&Item| Some(it.identifier.as_str()) == asked.get("identifier");
        match self.world.items.iter().find(wanted) {
            Some(item) => pages::element(mode, "GetRecord", &pages::record(mode, item)),
            None => pages::error(mode, "idDoesNotExist"),
        }
    }

    /// Returns whether the fault occurs now: the first `times` calls return true.
    fn shows(&mut self, times: u32) -> bool {
        self.shown += 1;
        self.shown <= times
    }

    fn list(&mut self, mode: Mode, asked: &Request, verb: &str, base_url: &str) -> Answer {
        let written_as = self.world.mode;
        let (slot, code) = match self.slot(mode, asked) {
            Ok(slot) => (slot, None),
            Err(code) => (Slot::default(), Some(code)),
        };
        let page = slot.page;
        let (items, next) = self.world.page(&slot, page_size(mode));
        let bad = code.is_none() && items.iter().any(|it| it.index == DAMAGED);
        if let Some(answer) = self.instead(mode, asked, page, bad).filter(|_| code.is_none()) {
            return answer;
        }
        let listed = code.is_none();
        let inner = match code.or_else(|| self.refused(mode, page)) {
            Some(code) => pages::error(written_as, code),
            None => self.listed(mode, asked, (verb, bad), &slot, (items, next)),
        };
        let failed = mode == Mode::ErrorStatus && inner.contains("<error ");
        let document = Document::new(&self.world, base_url, asked, inner);
        let mut answer = self.sent(mode, asked, bad, pages::encoded(written_as, &document.text()));
        if failed {
            answer.status = 400;
        }
        if mode == Mode::ClockBack && page == 3 && self.shows(1) {
            self.world.clock -= 7_200;
        }
        let moves = matches!(mode, Mode::MovesKept | Mode::MovesLost);
        if moves && listed && page == 0 && self.shows(1) {
            (0..4).for_each(|it| self.world.touch(it));
        }
        answer
    }

    /// Returns the list and position of a request, or the code of its error.
    fn slot(&self, mode: Mode, asked: &Request) -> Result<Slot, &'static str> {
        if let Some(token) = asked.get("resumptionToken") {
            let token = self.plain_token(token).ok_or("badResumptionToken")?;
            let mut slot = Slot::of_token(&token).ok_or("badResumptionToken")?;
            if mode == Mode::SetLost {
                slot.set = None;
                slot.size = None;
            }
            return Ok(slot);
        }
        let prefix = if mode == Mode::FormatMissing { "marcxml" } else { "oai_dc" };
        match asked.get("metadataPrefix") {
            Some(it) if it == prefix => {}
            Some(_) => return Err("cannotDisseminateFormat"),
            None => return Err("badArgument"),
        }
        let days = matches!(
            self.world.mode,
            Mode::DayOnly | Mode::DayOnlyUnsaid | Mode::DayWithSeconds | Mode::GranularityMissing
        );
        let bound = |name: &str, of_day: i64| match asked.get(name) {
            None => Ok(None),
            Some(text) if days && text.len() != 10 => Err("badArgument"),
            Some(text) => {
                let at = world::read(text).ok_or("badArgument")?;
                Ok(Some(if text.len() == 10 { at + of_day } else { at }))
            }
        };
        let set = asked.get("set").map(str::to_owned);
        let slot = Slot {
            from: bound("from", 0)?,
            until: bound("until", 86_399)?,
            set,
            ..Slot::default()
        };
        if self.world.size(&slot) == 0 { Err("noRecordsMatch") } else { Ok(slot) }
    }

    /// Returns the code of a page's error, if it has one.
    fn refused(&mut self, mode: Mode, page: usize) -> Option<&'static str> {
        let late = page == BAD_PAGE;
        match mode {
            Mode::TokenRefusedOnce if page == 3 && self.shows(1) => Some("badResumptionToken"),
            Mode::TokenExpired | Mode::ErrorStatus if late && self.shows(1) => {
                Some("badResumptionToken")
            }
            Mode::TokenRefused if late => Some("badResumptionToken"),
            Mode::TokenNoRecords if late => Some("noRecordsMatch"),
            _ => None,
        }
    }

    /// Returns the answer that the mode sends instead of a page, if it has one.
    fn instead(&mut self, mode: Mode, asked: &Request, page: usize, bad: bool) -> Option<Answer> {
        self.down |= BAD_PAGE <= page;
        let busy = || Answer::status(503);
        let after = |value: String| Some(Answer::status(503).header("Retry-After", value));
        let now = u64::try_from(self.world.clock).unwrap();
        let date = |secs: u64| {
            httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs))
        };
        match mode {
            Mode::BusySeconds if bad && self.shows(1) => after("1".to_owned()),
            Mode::BusyDate if bad && self.shows(1) => after(date(now + 1)),
            Mode::BusyPastDate if bad && self.shows(1) => after(date(now - 86_400)),
            Mode::BusyUnsaid if bad && self.shows(1) => Some(busy()),
            Mode::BusyAbsurd if bad && self.shows(1) => after("1000000000".to_owned()),
            Mode::BusyNegative if bad && self.shows(1) => after("-5".to_owned()),
            Mode::TooMany if bad && self.shows(1) => {
                Some(Answer::status(429).header("Retry-After", "1"))
            }
            Mode::BrokenTwice if bad && self.shows(2) => Some(Answer::status(500)),
            Mode::BusyForEver | Mode::BrokenForEver | Mode::NotFound | Mode::Forbidden => {
                self.before(mode, asked)
            }
            Mode::ClosedUnanswered if bad => Some(raw(b"")),
            Mode::NoHttp if bad => Some(raw(b"* OK IMAP4rev1 ready\r\n")),
            Mode::HeadersHuge if bad => {
                let lines = "X-Filler: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n";
                let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", lines.repeat(60_000));
                Some(raw(head.as_bytes()))
            }
            Mode::HtmlPage if bad => Some(html()),
            Mode::EmptyPage if bad => Some(Answer::xml(Vec::new())),
            Mode::BlankPage if bad => Some(Answer::xml(b" \n".repeat(40))),
            Mode::NoContent if bad => Some(Answer::status(204)),
            Mode::OtherRoot if bad => Some(Answer::xml(
                b"<?xml version=\"1.0\"?><rss version=\"2.0\"><channel/></rss>".to_vec(),
            )),
            Mode::Silent if bad => Some(Answer::status(200).manner(Manner::Silent)),
            Mode::HeadDrips if bad => Some(Answer::status(200).manner(Manner::HeadDrips)),
            Mode::RedirectOnce if bad && asked.path == "/oai" && self.shows(1) => {
                let to = format!("/moved?{}", asked.query);
                Some(Answer::status(302).header("Location", to))
            }
            _ => None,
        }
    }

    /// Returns the verb element with its items and token.
    fn listed(
        &mut self,
        mode: Mode,
        asked: &Request,
        (verb, bad): (&str, bool),
        slot: &Slot,
        (items, mut next): (Vec<Item>, Option<Slot>),
    ) -> String {
        let written_as = self.world.mode;
        let write = |it: &Item| match verb {
            "ListIdentifiers" => pages::header(written_as, it) + "\n",
            _ => pages::record(written_as, it),
        };
        let mut content: Vec<String> = items.iter().map(write).collect();
        if mode == Mode::PageEmpty && slot.page == BAD_PAGE && slot.cursor.is_multiple_of(2) {
            // The same position again, with another token.
            content.clear();
            next = Some(Slot { cursor: slot.cursor + 1, page: slot.page + 1, ..slot.clone() });
        }
        if mode == Mode::Repeats && 0 < slot.page {
            let before = Slot { after: None, ..slot.clone() };
            let (all, _) = self.world.page(&Slot { cursor: 0, ..before }, usize::MAX);
            let again = all.iter().take(slot.cursor).rev().take(3).rev().map(write);
            content.splice(0..0, again);
        }
        let token = self.token(mode, asked, slot, next.as_ref());
        let half = content.len() / 2;
        let element = |verb: &str, it: &str| pages::element(written_as, verb, it);
        match mode {
            Mode::VerbMissing if bad => String::new(),
            Mode::VerbOther if bad => {
                let headers: String =
                    items.iter().map(|it| pages::header(written_as, it)).collect();
                element("ListIdentifiers", &(headers + &token))
            }
            Mode::VerbTwice if bad => {
                let second = content.split_off(half).concat() + &token;
                element(verb, &content.concat()) + &element(verb, &second)
            }
            Mode::ErrorUnknown if bad => pages::error(written_as, "outOfPaper"),
            Mode::ErrorUncoded if bad => "<error>something</error>".to_owned(),
            Mode::ErrorAndRecords if bad => {
                pages::error(written_as, "noRecordsMatch")
                    + &element(verb, &(content.concat() + &token))
            }
            _ => element(verb, &(content.concat() + &token)),
        }
    }

    /// Returns the token's element; empty without a token.
    fn token(&mut self, mode: Mode, asked: &Request, slot: &Slot, next: Option<&Slot>) -> String {
        let this = asked.get("resumptionToken").unwrap_or_default().to_owned();
        let token_element = |value: &str| pages::token(&self.world, slot, value);
        let Some(next) = next else {
            return match mode {
                Mode::TokenFirst => token_element(self.first_token.as_deref().unwrap_or_default()),
                Mode::TokenBlankLast => token_element(" \n\t "),
                Mode::TokenNoneLast => String::new(),
                Mode::TokenOnOnePage => token_element(""),
                _ if this.is_empty() => String::new(),
                _ => token_element(""),
            };
        };
        let value = self.dressed_token(&next.token());
        let late = slot.page == BAD_PAGE;
        let token = match mode {
            Mode::TokenSame if late => token_element(&this),
            Mode::TokenCycle if slot.page == BAD_PAGE + 1 => {
                let back = Slot { page: BAD_PAGE, cursor: slot.cursor - PAGE, ..slot.clone() };
                token_element(&self.dressed_token(&back.token()))
            }
            Mode::TokenNoneEarly if late => String::new(),
            Mode::TokenUnread if late => format!("<resumptionToken>{}", pages::escaped(&value)),
            _ => token_element(&value),
        };
        self.first_token.get_or_insert(value);
        token
    }

    /// Returns the published form of a token's value.
    fn dressed_token(&self, plain: &str) -> String {
        match self.world.mode {
            Mode::TokenOdd => format!("{plain} a+b&c=d%41/?#;<>\"'ü"),
            Mode::TokenLong => format!("{plain} {}", "t".repeat(20_000)),
            _ => plain.to_owned(),
        }
    }

    /// Returns the value within a published token, if it is valid.
    fn plain_token(&self, token: &str) -> Option<String> {
        let plain = token.split(' ').next()?;
        // Tokens from before the healing stay valid.
        let dressed = self.dressed_token(plain) == token;
        (dressed || self.healed).then(|| plain.to_owned())
    }
}

fn page_size(mode: Mode) -> usize {
    match mode {
        Mode::PagesOfOne => 1,
        Mode::DeletedMany => 2_000,
        Mode::TokenOnOnePage => 1_000,
        _ => PAGE,
    }
}

/// Returns whether the fault is one of the data, rather than of the behavior.
fn is_of_data(mode: Mode) -> bool {
    matches!(
        mode,
        Mode::ClockAhead
            | Mode::ClockBehind
            | Mode::ClockBack
            | Mode::CaseAlone
            | Mode::IdentifierOdd
            | Mode::Unsorted
            | Mode::DeletionsUnsaid
            | Mode::DayOnly
    )
}

fn html() -> Answer {
    let body = "<!DOCTYPE html>\n<html><head><title>Maintenance</title></head>\
                <body><p>Back soon<br>&nbsp;</body></html>\n";
    let mut answer = Answer::status(200).header("Content-Type", "text/html");
    answer.body = body.as_bytes().to_vec();
    answer
}

fn raw(bytes: &[u8]) -> Answer {
    Answer::status(200).manner(Manner::Raw(bytes.to_vec()))
}
