//! An FTP control connection that is logged in, and its data connections.

use std::io;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use url::Host;

use super::Settings;
use super::path::is_sendable;
use super::reply::{Replies, Reply};
use crate::client::Timeouts;
use crate::connect::Connector;
use crate::fetch::{Bounds, Connection, Fault, Login, Server, Watch};

/// Maximum number of preliminary replies (1xx) before the one to a command.
const PRELIMINARY_MAX: usize = 16;

/// A control connection that is logged in.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    replies: Replies,
    server: Server,
    bounds: Bounds,
    /// TLS of data connections, if they have it.
    tls: Option<Connector>,
    /// The folder after login.
    pub(super) home: Vec<u8>,
    /// Whether the server knows MLSD.
    pub(super) has_facts: bool,
    /// Whether the server is asked for ports by PASV, as it does not know EPSV.
    old: bool,
    /// Room for the connections.
    _permit: OwnedSemaphorePermit,
}

/// The content of a file or list.
pub(super) struct Data {
    pub(super) bytes: Vec<u8>,
    pub(super) truncated: bool,
}

impl Session {
    /// Connects to a server and logs in.
    pub(super) async fn open(
        settings: &Settings,
        server: &Server,
        is_implicit: bool,
        login: &Login,
        tls: &Connector,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, Fault> {
        let bounds = settings.bounds;
        let mut connection = Connection::open(server, &bounds).await?;
        if is_implicit {
            connection = connection.secure(tls, server).await?;
        }
        let mut session = Self {
            connection,
            replies: Replies::default(),
            server: server.clone(),
            bounds,
            tls: None,
            home: Vec::new(),
            has_facts: false,
            old: false,
            _permit: permit,
        };
        let greeting = session.last_reply().await?;
        expect(&greeting, &[220])?;
        if settings.start_tls && !is_implicit {
            expect(&session.ask(&[b"AUTH TLS"]).await?, &[234])?;
            // What came before TLS may be anybody's.
            if session.replies.has_rest() {
                return Err(Fault::protocol("the server sent more before TLS began"));
            }
            session.connection = session.connection.secure(tls, server).await?;
        }
        session.log_in(login, settings.allow_unencrypted_password).await?;
        if session.connection.is_secure() {
            // Data connections are as secure (RFC 4217 §9).
            expect(&session.ask(&[b"PBSZ 0"]).await?, &[200])?;
            expect(&session.ask(&[b"PROT P"]).await?, &[200])?;
            session.tls = Some(tls.clone());
        }
        expect(&session.ask(&[b"TYPE I"]).await?, &[200])?;
        let reply = session.ask(&[b"PWD"]).await?;
        expect(&reply, &[257])?;
        session.home = reply.path().filter(|it| is_sendable(it)).ok_or_else(|| odd(&reply))?;
        let features = session.ask(&[b"FEAT"]).await?;
        // MLST announces both it and MLSD (RFC 3659 §7.8).
        session.has_facts = features.code == 211 && features.has_feature("MLST");
        Ok(session)
    }

    async fn log_in(&mut self, login: &Login, unencrypted: bool) -> Result<(), Fault> {
        let is_anonymous = login.name == super::ANONYMOUS;
        if !is_anonymous && !self.connection.may_carry_password(unencrypted) {
            return Err(Fault::Unencrypted);
        }
        let mut reply = self.ask(&[b"USER ", login.name.as_bytes()]).await?;
        if reply.code == 331 {
            reply = self.ask(&[b"PASS ", login.password.as_bytes()]).await?;
        }
        match reply.code {
            230 | 202 => Ok(()),
            332 | 500..=599 => Err(Fault::Login { reply: reply.shown() }),
            _ => Err(refused(&reply)),
        }
    }

    /// Returns when the connection was last used.
    pub(super) fn used(&self) -> Instant {
        self.connection.used
    }

    /// Sends a command, given in parts, and returns its last reply.
    pub(super) async fn ask(&mut self, command: &[&[u8]]) -> Result<Reply, Fault> {
        self.send(command).await?;
        self.last_reply().await
    }

    async fn send(&mut self, command: &[&[u8]]) -> Result<(), Fault> {
        let command = command.concat();
        if !is_sendable(&command) {
            return Err(Fault::url("a name or password has CR, LF or NUL"));
        }
        self.connection.send(&[&command[..], b"\r\n"].concat()).await
    }

    /// Returns the next reply that is not preliminary.
    async fn last_reply(&mut self) -> Result<Reply, Fault> {
        for _ in 0..PRELIMINARY_MAX {
            let reply = self.reply().await?;
            if 200 <= reply.code {
                return Ok(reply);
            }
        }
        Err(Fault::protocol("the server announces a reply again and again"))
    }

    async fn reply(&mut self) -> Result<Reply, Fault> {
        let mut watch = Watch::reply(&self.bounds.timeouts);
        let mut bytes = Vec::new();
        loop {
            let next = self.replies.next_reply();
            if let Some(reply) = next.map_err(|flaw| Fault::protocol(flaw.to_string()))? {
                return Ok(reply);
            }
            bytes.clear();
            if self.connection.read(&mut watch, &mut bytes).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.replies.feed(&bytes);
        }
    }

    /// Sends a command whose answer is data, and returns up to `bytes_max` bytes of it. After
    /// truncated data the session cannot be used further.
    pub(super) async fn fetch(
        &mut self,
        command: &[&[u8]],
        bytes_max: usize,
    ) -> Result<Data, Fault> {
        let mut connection = self.begin(command).await?;
        let data = read_all(&mut connection, &self.bounds.timeouts, bytes_max).await?;
        drop(connection);
        if !data.truncated {
            self.end().await?;
        }
        Ok(data)
    }

    /// Sends a command whose answer is data, and returns the connection that they come over.
    pub(super) async fn begin(&mut self, command: &[&[u8]]) -> Result<Connection, Fault> {
        let port = self.passive_port().await?;
        // The port is at the other end of this connection, whatever address the server names.
        let host = match self.connection.address {
            std::net::IpAddr::V4(address) => Host::Ipv4(address),
            std::net::IpAddr::V6(address) => Host::Ipv6(address),
        };
        let at = Server { host, port };
        let mut connection = Connection::open(&at, &self.bounds).await?;
        self.send(command).await?;
        let begun = self.reply().await?;
        expect(&begun, &[125, 150])?;
        if let Some(tls) = &self.tls {
            connection = connection.secure(tls, &self.server).await?;
        }
        Ok(connection)
    }

    /// Reads the reply that all data were sent, after the end of their connection.
    pub(super) async fn end(&mut self) -> Result<(), Fault> {
        expect(&self.last_reply().await?, &[226, 250])
    }

    async fn passive_port(&mut self) -> Result<u16, Fault> {
        if !self.old {
            let reply = self.ask(&[b"EPSV"]).await?;
            match reply.code {
                229 => return reply.extended_port().ok_or_else(|| odd(&reply)),
                500..=599 => self.old = true,
                _ => return Err(refused(&reply)),
            }
        }
        let reply = self.ask(&[b"PASV"]).await?;
        expect(&reply, &[227])?;
        reply.passive_port().ok_or_else(|| odd(&reply))
    }
}

async fn read_all(
    connection: &mut Connection,
    timeouts: &Timeouts,
    bytes_max: usize,
) -> Result<Data, Fault> {
    let mut watch = Watch::data(timeouts);
    let mut bytes = Vec::new();
    while read(connection, &mut watch, &mut bytes).await? != 0 {
        if bytes_max < bytes.len() {
            bytes.truncate(bytes_max);
            return Ok(Data { bytes, truncated: true });
        }
    }
    Ok(Data { bytes, truncated: false })
}

/// Appends the data that come next to `bytes`; returns their number, 0 at the end.
pub(super) async fn read(
    connection: &mut Connection,
    watch: &mut Watch,
    bytes: &mut Vec<u8>,
) -> Result<usize, Fault> {
    match connection.read(watch, bytes).await {
        // Many servers end TLS without saying so; the reply tells whether all was sent.
        Err(Fault::Cut { source })
            if connection.is_secure() && source.kind() == io::ErrorKind::UnexpectedEof =>
        {
            Ok(0)
        }
        read => read,
    }
}

/// Checks that a reply has one of these codes.
pub(super) fn expect(reply: &Reply, codes: &[u16]) -> Result<(), Fault> {
    if codes.contains(&reply.code) { Ok(()) } else { Err(refused(reply)) }
}

/// Returns the fault of a reply that is not the one hoped for.
fn refused(reply: &Reply) -> Fault {
    let shown = reply.shown();
    match reply.code {
        // 120: the server says when it will be ready. The data of 425 and 426 broke off.
        120 | 400..=499 => Fault::Busy { reply: shown },
        530 | 532 | 332 => Fault::Login { reply: shown },
        500..=599 => Fault::Refused { reply: shown },
        _ => odd(reply),
    }
}

fn odd(reply: &Reply) -> Fault {
    Fault::protocol(format!("the server gave the unexpected reply \"{}\"", reply.shown()))
}
