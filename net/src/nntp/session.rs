//! An NNTP connection that is ready for commands: greeted, secure where wanted, logged in.

use tokio::time::Instant;

use super::codec::{Block, Codec, Event, Reply};
use super::{Login, Settings, odd, refused};
use crate::client::Timeouts;
use crate::connect::Connector;
use crate::fetch::{Connection, Fault, Server, Watch, decode};

/// Largest list of capabilities that is read, in bytes.
const CAPABILITIES_BYTES_MAX: usize = 16 * 1024;

/// A connection that is ready for commands.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    codec: Codec,
    timeouts: Timeouts,
    /// Whether the server knows OVER by its older name alone.
    old: bool,
}

impl Session {
    /// Connects to a server.
    pub(super) async fn open(
        settings: &Settings,
        server: &Server,
        tls: &Connector,
    ) -> Result<Self, Fault> {
        let mut connection = Connection::open(server, &settings.bounds).await?;
        if matches!(settings.url.scheme(), "nntps" | "snews") {
            connection = connection.secure(tls, server).await?;
        }
        let timeouts = settings.bounds.timeouts;
        let mut session = Self { connection, codec: Codec::new(0), timeouts, old: false };
        let (greeting, _) = session.answer().await?;
        if !matches!(greeting.code, 200 | 201) {
            return Err(refused(&greeting));
        }
        // Servers that begin in another mode know TLS and passwords only in this one; those that
        // have one mode alone may not know the command.
        session.ask("MODE READER", 0).await?;
        if settings.start_tls && !session.connection.is_secure() {
            session = session.start_tls(tls, server).await?;
        }
        if let Some(login) = &settings.login {
            session.log_in(login, settings.allow_unencrypted_password).await?;
        }
        let (reply, list) = session.ask("CAPABILITIES", CAPABILITIES_BYTES_MAX).await?;
        let list = decode(&list.bytes);
        let mut labels = list.lines().filter_map(|it| it.split(' ').next());
        session.old = reply.code != 101 || !labels.any(|it| it.eq_ignore_ascii_case("OVER"));
        Ok(session)
    }

    /// Returns when the connection was last used.
    pub(super) fn used(&self) -> Instant {
        self.connection.used
    }

    /// Sends a command and returns the answer, of whose block up to `block_bytes_max` bytes are
    /// kept.
    pub(super) async fn ask(
        &mut self,
        command: &str,
        block_bytes_max: usize,
    ) -> Result<(Reply, Block), Fault> {
        let older = if self.old && command.starts_with("OVER ") { "X" } else { "" };
        self.codec.keep(block_bytes_max);
        self.connection.send(format!("{older}{command}\r\n").as_bytes()).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<(Reply, Block), Fault> {
        let mut watch = Watch::reply(&self.timeouts);
        let mut bytes = Vec::new();
        let mut in_block = false;
        loop {
            match self.codec.next_event().map_err(|flaw| Fault::protocol(flaw.to_string()))? {
                Some(Event::Reply(reply)) => return Ok((reply, Block::default())),
                Some(Event::Block(reply, block)) => return Ok((reply, block)),
                None => {}
            }
            if !in_block && self.codec.is_in_block() {
                (in_block, watch) = (true, Watch::data(&self.timeouts));
            }
            bytes.clear();
            if self.connection.read(&mut watch, &mut bytes).await? == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
            self.codec.feed(&bytes);
        }
    }

    /// Makes the connection secure (RFC 4642 §2.2).
    async fn start_tls(mut self, tls: &Connector, server: &Server) -> Result<Self, Fault> {
        let (reply, _) = self.ask("STARTTLS", 0).await?;
        if reply.code != 382 {
            return Err(refused(&reply));
        }
        // What came before TLS may be anybody's.
        if self.codec.has_rest() {
            return Err(Fault::protocol("the server sent more before TLS began"));
        }
        let connection = self.connection.secure(tls, server).await?;
        Ok(Self { connection, ..self })
    }

    /// Shows name and password (RFC 4643 §2.3).
    async fn log_in(&mut self, login: &Login, unencrypted: bool) -> Result<(), Fault> {
        if !self.connection.may_carry_password(unencrypted) {
            return Err(Fault::Unencrypted);
        }
        let (mut reply, _) = self.ask(&format!("AUTHINFO USER {}", login.name), 0).await?;
        if reply.code == 381 {
            (reply, _) = self.ask(&format!("AUTHINFO PASS {}", login.password), 0).await?;
        }
        match reply.code {
            281 => Ok(()),
            502 => Err(Fault::Login { reply: reply.shown() }),
            400..=599 => Err(refused(&reply)),
            _ => Err(odd(&reply)),
        }
    }
}
