//! The FTP client: lists folders and fetches files over control connections that it keeps.
//!
//! Data connections are passive, and go to the other end of their control connection alone. Files
//! are sent as they are (`TYPE I`). Nothing is written, and no transfer is taken up again.
//!
//! Source: RFC 959 and RFC 1123 §4.1 (the protocol), RFC 4217 (TLS), RFC 2389 (FEAT), RFC 2428
//! (EPSV), RFC 3659 (MLSD, SIZE, MDTM), RFC 1738 §3.2 (URLs). docs/decisions/ftp.md says why this
//! is no library.

mod cache;
mod download;
mod list;
mod path;
mod reply;
mod session;
mod time;

pub use download::Download;
pub use list::{Entry, EntryKind, Facts, Folder, Form, Listing};
pub use path::Target;
pub use reply::{Flaw, Replies, Reply};
pub use time::Moment;

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::clock;
use crate::connect::Connector;
use crate::fetch::{Bounds, Connection, Fault, FetchError, Login, Server, unescaped};
use cache::{Cache, Key};
use session::{Data, Session, expect};

/// Port of servers whose URLs name none (RFC 959 §8).
pub const PORT: u16 = 21;

/// The same where TLS begins with the connection.
pub const TLS_PORT: u16 = 990;

/// Name of users who have none (RFC 1635).
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether control connections that begin without TLS go on with it, and data connections have
    /// it (RFC 4217). Those of `ftps` URLs begin with it. Default `false`.
    pub start_tls: bool,
    /// The name and password where a URL names none. Default: `anonymous`, with the password
    /// `harvest@`.
    pub login: Option<Login>,
    /// Whether a password other than that of `anonymous` may be sent without TLS to other hosts
    /// than this one. Default `false`.
    pub allow_unencrypted_password: bool,
    /// Maximum number of control connections, used and unused; each may have one data connection.
    /// Default 64.
    pub connections_max: usize,
    /// Time for which an unused control connection is kept. Default 60 s.
    pub idle: Duration,
    /// Bounds of each file or list.
    pub bounds: Bounds,
    /// Certificates (DER) of authorities to trust in addition to the system's.
    pub extra_roots: Vec<Vec<u8>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start_tls: false,
            login: None,
            allow_unencrypted_password: false,
            connections_max: 64,
            idle: Duration::from_secs(60),
            bounds: Bounds::default(),
            extra_roots: Vec::new(),
        }
    }
}

/// A fetched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it is larger than allowed, so that only its beginning is here.
    pub truncated: bool,
}

/// An FTP client; its clones share the kept connections.
#[derive(Clone, Debug)]
pub struct Client {
    settings: Arc<Settings>,
    tls: Connector,
    cache: Cache<Session>,
}

/// What a client is asked for.
#[derive(Clone, Copy)]
enum Task {
    Fetch,
    Open,
    List,
    ListTree,
    Facts,
}

/// The answer to a task.
enum Answer {
    Data(Data, Form),
    Facts(Facts),
    /// The connection that a file comes over.
    Begun(Connection),
}

impl Client {
    /// Returns a client.
    pub fn new(settings: Settings) -> Self {
        let tls = Connector::new(settings.extra_roots.clone(), None);
        let cache = Cache::new(settings.connections_max, settings.idle);
        Self { settings: Arc::new(settings), tls, cache }
    }

    /// Fetches a file.
    ///
    /// # Errors
    ///
    /// The URL cannot be sent, the host cannot be reached or is refused by the guard, the exchange
    /// took too long or broke off, or the server refuses.
    pub async fn fetch(&self, url: &Url) -> Result<Fetched, FetchError> {
        let data = self.data(url, Task::Fetch).await?.0;
        Ok(Fetched { bytes: data.bytes, truncated: data.truncated })
    }

    /// Begins to fetch a file, of any size.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch).
    pub async fn open(&self, url: &Url) -> Result<Download, FetchError> {
        let failed = |fault| FetchError::new(shown(url), fault);
        let (key, session, answer) = self.reach(url, Task::Open).await.map_err(failed)?;
        match answer {
            Ok(Answer::Begun(connection)) => {
                Ok(Download::new(self.clone(), shown(url), (key, session, connection)))
            }
            answer => Err(failed(match self.keep(key, session, answer) {
                Err(fault) => fault,
                Ok(_) => Fault::protocol("the server sent something else"),
            })),
        }
    }

    /// Lists a folder: with facts, if the server has them.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch).
    pub async fn list(&self, url: &Url) -> Result<Listing, FetchError> {
        self.listing(url, Task::List).await
    }

    /// Lists a folder with all below it, by one `LIST -R`. The first folder of the list is the one
    /// that was listed; paths of the others are as the server has them.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch); [`Fault::Refused`] if the server lists no trees, so that the
    /// caller lists each folder.
    pub async fn list_tree(&self, url: &Url) -> Result<Listing, FetchError> {
        self.listing(url, Task::ListTree).await
    }

    /// Returns size and time of a file.
    ///
    /// # Errors
    ///
    /// As [`fetch`](Self::fetch). A server that does not know the commands is no error.
    pub async fn facts(&self, url: &Url) -> Result<Facts, FetchError> {
        match self.ask(url, Task::Facts).await {
            Ok(Answer::Facts(facts)) => Ok(facts),
            Ok(Answer::Data(..) | Answer::Begun(_)) => Ok(Facts::default()),
            Err(fault) => Err(FetchError::new(shown(url), fault)),
        }
    }

    async fn listing(&self, url: &Url, task: Task) -> Result<Listing, FetchError> {
        let (mut data, form) = self.data(url, task).await?;
        if data.truncated {
            // The last line is not complete.
            let end = data.bytes.iter().rposition(|it| *it == b'\n').unwrap_or(0);
            data.bytes.truncate(end);
        }
        let now = i64::try_from(clock::now_ms() / 1_000).unwrap_or(i64::MAX);
        Ok(Listing { truncated: data.truncated, ..Listing::parse(&data.bytes, form, now) })
    }

    async fn data(&self, url: &Url, task: Task) -> Result<(Data, Form), FetchError> {
        match self.ask(url, task).await {
            Ok(Answer::Data(data, form)) => Ok((data, form)),
            Ok(Answer::Facts(_) | Answer::Begun(_)) => {
                Ok((Data { bytes: Vec::new(), truncated: false }, Form::Free))
            }
            Err(fault) => Err(FetchError::new(shown(url), fault)),
        }
    }

    /// Does a task over a kept connection, or else over a new one. If a kept one is lost, the task
    /// is done once more.
    async fn ask(&self, url: &Url, task: Task) -> Result<Answer, Fault> {
        let (key, session, answer) = self.reach(url, task).await?;
        self.keep(key, session, answer)
    }

    /// Does a task; returns the session by which it was done, too.
    async fn reach(
        &self,
        url: &Url,
        task: Task,
    ) -> Result<(Key, Session, Result<Answer, Fault>), Fault> {
        let target = Target::of(url).map_err(Fault::url)?;
        if target.is_folder && matches!(task, Task::Fetch | Task::Open | Task::Facts) {
            return Err(Fault::url("it is a folder, which is listed, not fetched"));
        }
        let key = self.key(url)?;
        while let Some(mut session) = self.cache.take(&key) {
            match perform(&mut session, &target, task, &self.settings.bounds).await {
                // The server closed the connection while it was kept, or is closing it just now.
                Err(Fault::Cut { .. }) => {}
                Err(Fault::Busy { reply }) if reply.starts_with("421") => {}
                answer => return Ok((key, session, answer)),
            }
        }
        let permit = self.cache.permit(&key.server, self.settings.bounds.timeouts.connect).await?;
        let Key { server, is_implicit, login } = &key;
        let opened = Session::open(&self.settings, server, *is_implicit, login, &self.tls, permit);
        let mut session = Box::pin(opened).await?;
        let answer = perform(&mut session, &target, task, &self.settings.bounds).await;
        Ok((key, session, answer))
    }

    /// Keeps a session that can be used further.
    fn keep(
        &self,
        key: Key,
        session: Session,
        answer: Result<Answer, Fault>,
    ) -> Result<Answer, Fault> {
        let is_usable = match &answer {
            Ok(Answer::Data(data, _)) => !data.truncated,
            Ok(Answer::Facts(_)) | Err(Fault::Refused { .. }) => true,
            Ok(Answer::Begun(_)) | Err(_) => false,
        };
        if is_usable {
            let used = session.used();
            self.cache.keep(key, session, used);
        }
        answer
    }

    fn key(&self, url: &Url) -> Result<Key, Fault> {
        let (is_implicit, port) = match url.scheme() {
            "ftp" => (false, PORT),
            "ftps" => (true, TLS_PORT),
            _ => return Err(Fault::url("it is neither ftp nor ftps")),
        };
        let login = if url.username().is_empty() {
            let anonymous =
                || Login { name: ANONYMOUS.to_owned(), password: "harvest@".to_owned() };
            self.settings.login.clone().unwrap_or_else(anonymous)
        } else {
            let text = |part: &str| {
                String::from_utf8(unescaped(part)).map_err(|error| Fault::url(error.to_string()))
            };
            Login {
                name: text(url.username())?,
                password: text(url.password().unwrap_or_default())?,
            }
        };
        Ok(Key { server: Server::of(url, port)?, is_implicit, login })
    }
}

async fn perform(
    session: &mut Session,
    target: &Target,
    task: Task,
    bounds: &Bounds,
) -> Result<Answer, Fault> {
    let path = target.below(&session.home);
    let (command, form): (&[u8], _) = match task {
        Task::Facts => return facts(session, &path).await.map(Answer::Facts),
        Task::Fetch => {
            let data = session.fetch(&[b"RETR ", &path], bounds.bytes_max).await?;
            return Ok(Answer::Data(data, Form::Free));
        }
        Task::Open => return session.begin(&[b"RETR ", &path]).await.map(Answer::Begun),
        Task::List if session.has_facts => (b"MLSD", Form::Facts),
        Task::List => (b"LIST", Form::Free),
        Task::ListTree => (b"LIST -R", Form::Free),
    };
    // As an argument of LIST the path could be taken for an option or a pattern.
    expect(&session.ask(&[b"CWD ", &path]).await?, &[250, 200])?;
    match session.fetch(&[command], bounds.bytes_max).await {
        Err(Fault::Refused { .. }) if form == Form::Facts => {
            session.has_facts = false;
            Ok(Answer::Data(session.fetch(&[b"LIST"], bounds.bytes_max).await?, Form::Free))
        }
        data => Ok(Answer::Data(data?, form)),
    }
}

async fn facts(session: &mut Session, path: &[u8]) -> Result<Facts, Fault> {
    if session.has_facts
        && let Some(reply) = fact(session, b"MLST ", path, 250).await?
        && let Some(facts) = reply.facts()
    {
        return Ok(facts);
    }
    let size = fact(session, b"SIZE ", path, 213).await?;
    let modified = fact(session, b"MDTM ", path, 213).await?;
    Ok(Facts { size: size.and_then(|it| it.size()), modified: modified.and_then(|it| it.moment()) })
}

/// Asks for facts of a file; `None` if the server does not know the command.
async fn fact(
    session: &mut Session,
    command: &[u8],
    path: &[u8],
    expected: u16,
) -> Result<Option<Reply>, Fault> {
    let reply = session.ask(&[command, path]).await?;
    match reply.code {
        500..=504 => Ok(None),
        _ => expect(&reply, &[expected]).map(|()| Some(reply)),
    }
}

/// Returns a URL without its password.
fn shown(url: &Url) -> Url {
    let mut url = url.clone();
    // A URL without a host has no password either.
    let _ = url.set_password(None);
    url
}
