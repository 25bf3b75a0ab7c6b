//! The NNTP client: reads overviews and articles of newsgroups over one connection.
//!
//! Source: RFC 3977 (the protocol), RFC 4643 (names and passwords), RFC 4642 and RFC 8143 (TLS).
//! New articles are found by their numbers: most servers refuse NEWNEWS, which is never sent.

mod codec;
mod group;
mod overview;
mod session;

pub use codec::{Block, Codec, Event, Flaw, Reply};
pub use group::Group;
pub use overview::{Overview, Overviews};

pub use crate::fetch::Login;

use std::ops::RangeInclusive;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use crate::connect::Connector;
use crate::fetch::{Bounds, Fault, FetchError, Server};
use session::Session;

/// Port of servers whose URLs name none (RFC 3977 §3.1).
pub const PORT: u16 = 119;

/// The same where TLS begins with the connection (RFC 8143 §1).
pub const TLS_PORT: u16 = 563;

/// Largest block of overviews that is accepted, in bytes.
const OVERVIEWS_BYTES_MAX: usize = 16 << 20;

/// Settings of a [`Reader`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server: `nntp://HOST` or `news://HOST`, and for TLS from the beginning `nntps://HOST` or
    /// `snews://HOST`. The path does not count.
    pub url: Url,
    /// Whether a connection that begins without TLS goes on with it (STARTTLS). Default `false`.
    pub start_tls: bool,
    /// The name and password to show.
    pub login: Option<Login>,
    /// Whether the password may be sent without TLS to other hosts than this one. Default `false`.
    pub allow_unencrypted_password: bool,
    /// Time after which an unused connection is replaced. Default 150 s, less than the three
    /// minutes that servers wait (RFC 3977 §3.1).
    pub idle: Duration,
    /// Bounds of each article.
    pub bounds: Bounds,
    /// Certificates (DER) of authorities to trust in addition to the system's.
    pub extra_roots: Vec<Vec<u8>>,
}

impl Settings {
    /// Returns the default settings for a server.
    pub fn new(url: Url) -> Self {
        Self {
            url,
            start_tls: false,
            login: None,
            allow_unencrypted_password: false,
            idle: Duration::from_secs(150),
            bounds: Bounds::default(),
            extra_roots: Vec::new(),
        }
    }
}

/// The part of an article to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Head and body.
    Article,
    /// The head.
    Head,
    /// The body.
    Body,
    /// Nothing: whether the article is there.
    Stat,
}

/// An article, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Article {
    /// Its message id, with the angle brackets.
    pub id: String,
    /// The part; lines end in CR LF.
    pub bytes: Vec<u8>,
    /// Whether it is larger than allowed, so that only its beginning is here.
    pub truncated: bool,
}

/// Result of looking for an article by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It is there.
    Found(Article),
    /// Its number is below those that the server keeps, by the last [`Reader::group`].
    Expired,
    /// The server keeps articles around it, but not this one: it was canceled, or never came.
    Canceled,
}

/// Reader of one server's news.
#[derive(Debug)]
pub struct Reader {
    settings: Settings,
    server: Server,
    tls: Connector,
    session: Option<Session>,
    /// The group that was chosen last.
    group: Option<Group>,
}

impl Reader {
    /// Returns a reader; it connects when it is first asked for something.
    ///
    /// # Errors
    ///
    /// The URL is not that of a news server, or the name or password cannot be sent.
    pub fn new(settings: Settings) -> Result<Self, FetchError> {
        let failed = |fault| FetchError::new(&settings.url, fault);
        let port = match settings.url.scheme() {
            "nntp" | "news" => PORT,
            "nntps" | "snews" => TLS_PORT,
            _ => return Err(failed(Fault::url("it is not nntp://HOST or nntps://HOST"))),
        };
        if !settings.url.username().is_empty() || settings.url.password().is_some() {
            return Err(failed(Fault::url("put name and password into the settings")));
        }
        if let Some(Login { name, password }) = &settings.login
            && ![name, password].iter().all(|it| is_word(it))
        {
            return Err(failed(Fault::url("the name or password is empty or has blanks")));
        }
        let server = Server::of(&settings.url, port).map_err(failed)?;
        let tls = Connector::new(settings.extra_roots.clone(), None);
        Ok(Self { settings, server, tls, session: None, group: None })
    }

    /// Chooses a group; `None` if the server does not have it.
    ///
    /// # Errors
    ///
    /// The name cannot be one of a group, or the server cannot be asked.
    pub async fn group(&mut self, name: &str) -> Result<Option<Group>, FetchError> {
        let chosen = self.choose(name).await;
        chosen.map_err(|fault| FetchError::new(self.url(name, None), fault))
    }

    async fn choose(&mut self, name: &str) -> Result<Option<Group>, Fault> {
        if !is_word(name) {
            return Err(Fault::url(format!("{name:?} is no name of a group")));
        }
        self.group = None;
        let (reply, _) = self.ask(&format!("GROUP {name}"), 0).await?;
        self.group = match reply.code {
            211 => Some(Group::parse(&reply.text, name).ok_or_else(|| odd(&reply))?),
            411 => None,
            _ => return Err(refused(&reply)),
        };
        Ok(self.group.clone())
    }

    /// Reads the overviews of a range of numbers in the chosen group, one of [`Group::ranges`].
    ///
    /// # Errors
    ///
    /// No group is chosen, or the server cannot be asked.
    pub async fn overviews(&mut self, range: RangeInclusive<u64>) -> Result<Overviews, FetchError> {
        let read = self.read_overviews(&range).await;
        read.map_err(|fault| FetchError::new(self.chosen_url(Some(*range.start())), fault))
    }

    async fn read_overviews(&mut self, range: &RangeInclusive<u64>) -> Result<Overviews, Fault> {
        self.chosen()?;
        let (first, last) = (*range.start(), *range.end());
        let command = format!("OVER {first}-{last}");
        let (reply, block) = self.ask(&command, OVERVIEWS_BYTES_MAX).await?;
        match reply.code {
            224 if block.truncated => Err(Fault::protocol(format!(
                "the overviews of articles {first} to {last} are larger than 16 MiB"
            ))),
            224 => Ok(Overviews::parse(&block.bytes, first, last)),
            // No articles with these numbers.
            420 | 423 => Ok(Overviews::default()),
            _ => Err(refused(&reply)),
        }
    }

    /// Reads part of the article with this number in the chosen group.
    ///
    /// # Errors
    ///
    /// No group is chosen, or the server cannot be asked. An article that is gone is no error.
    pub async fn article(&mut self, part: Part, number: u64) -> Result<Lookup, FetchError> {
        let read = self.read_article(part, number).await;
        read.map_err(|fault| FetchError::new(self.chosen_url(Some(number)), fault))
    }

    async fn read_article(&mut self, part: Part, number: u64) -> Result<Lookup, Fault> {
        let low = self.chosen()?.low;
        let (command, expected) = match part {
            Part::Article => ("ARTICLE", 220),
            Part::Head => ("HEAD", 221),
            Part::Body => ("BODY", 222),
            Part::Stat => ("STAT", 223),
        };
        let command = format!("{command} {number}");
        let (reply, block) = self.ask(&command, self.settings.bounds.bytes_max).await?;
        match reply.code {
            code if code == expected => {
                let id = reply.text.split(|it| *it == b' ').nth(1).unwrap_or_default();
                let id = String::from_utf8_lossy(id).into_owned();
                Ok(Lookup::Found(Article { id, bytes: block.bytes, truncated: block.truncated }))
            }
            420 | 423 | 430 if number < low => Ok(Lookup::Expired),
            420 | 423 | 430 => Ok(Lookup::Canceled),
            _ => Err(refused(&reply)),
        }
    }

    /// Reads the article with this message id, which has its angle brackets. One that is not there is
    /// [`Lookup::Canceled`].
    ///
    /// # Errors
    ///
    /// The id cannot be one, or the server cannot be asked.
    pub async fn article_by_id(&mut self, id: &str) -> Result<Lookup, FetchError> {
        let read = self.read_by_id(id).await;
        read.map_err(|fault| FetchError::new(&self.settings.url, fault))
    }

    async fn read_by_id(&mut self, id: &str) -> Result<Lookup, Fault> {
        if !is_word(id) || !id.starts_with('<') || !id.ends_with('>') {
            return Err(Fault::url(format!("{id:?} is no message id")));
        }
        let (reply, block) =
            self.ask(&format!("ARTICLE {id}"), self.settings.bounds.bytes_max).await?;
        let (bytes, truncated) = (block.bytes, block.truncated);
        match reply.code {
            220 => Ok(Lookup::Found(Article { id: id.to_owned(), bytes, truncated })),
            423 | 430 => Ok(Lookup::Canceled),
            _ => Err(refused(&reply)),
        }
    }

    fn chosen(&self) -> Result<&Group, Fault> {
        self.group.as_ref().ok_or_else(|| Fault::url("no group is chosen"))
    }

    /// Sends a command and returns the answer, of whose block up to `block_bytes_max` bytes are
    /// kept. If a connection from before is lost, the command is sent once more over a new one.
    async fn ask(
        &mut self,
        command: &str,
        block_bytes_max: usize,
    ) -> Result<(Reply, Block), Fault> {
        let is_fresh = |it: &Session| it.used() + self.settings.idle > Instant::now();
        if let Some(mut session) = self.session.take().filter(is_fresh) {
            match session.ask(command, block_bytes_max).await {
                Ok((reply, block)) if reply.code != 400 => {
                    self.session = Some(session);
                    return Ok((reply, block));
                }
                Ok(_) | Err(Fault::Cut { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        let mut session = Session::open(&self.settings, &self.server, &self.tls).await?;
        if let Some(group) = &mut self.group {
            let (reply, _) = session.ask(&format!("GROUP {}", group.name), 0).await?;
            if reply.code != 211 {
                return Err(refused(&reply));
            }
            *group = Group::parse(&reply.text, &group.name).ok_or_else(|| odd(&reply))?;
        }
        let (reply, block) = session.ask(command, block_bytes_max).await?;
        if reply.code != 400 {
            self.session = Some(session);
        }
        Ok((reply, block))
    }

    fn chosen_url(&self, number: Option<u64>) -> Url {
        self.url(self.group.as_ref().map_or("", |it| &it.name), number)
    }

    /// Returns the URL of a group or of an article in it (RFC 5538 §4).
    fn url(&self, group: &str, number: Option<u64>) -> Url {
        let mut url = self.settings.url.clone();
        url.set_path(&match number {
            Some(number) => format!("/{group}/{number}"),
            None => format!("/{group}"),
        });
        url
    }
}

/// Returns whether a text can be an argument of a command (RFC 3977 §9.2).
fn is_word(text: &str) -> bool {
    let is_visible = |it: char| !it.is_control() && !it.is_whitespace();
    (1..=255).contains(&text.len()) && text.chars().all(is_visible)
}

/// Returns the fault of a reply that is not the one hoped for.
fn refused(reply: &Reply) -> Fault {
    let shown = reply.shown();
    match reply.code {
        400 | 403 => Fault::Busy { reply: shown },
        480..=483 => Fault::Login { reply: shown },
        400..=599 => Fault::Refused { reply: shown },
        _ => odd(reply),
    }
}

fn odd(reply: &Reply) -> Fault {
    Fault::protocol(format!("the server gave the unexpected reply \"{}\"", reply.shown()))
}
