//! The worker's side: takes objects from its socket and answers with their summaries.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::time::Duration;

use net::clock;

use super::fence;
use super::wire::{self, Ask, Order, Ready, Told};
use crate::essence;

/// Serves whoever started this process, over its standard input, which is a socket, until that is
/// closed. Gives up everything that it does not need first, so that nothing else can be done in this
/// process afterwards: to be called from the main thread, before any other has begun.
///
/// # Errors
///
/// The socket failed, or what came is not from a gatherer of the same build.
pub fn serve() -> io::Result<()> {
    let socket = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut answers = BufWriter::new(socket.try_clone()?);
    let mut asks = socket;
    let (order, _none): (Order, _) = wire::read(&mut asks, 0)?;
    let missing = fence::enclose(order.memory_bytes_max);
    wire::write(&mut answers, &Ready { missing }, b"")?;
    loop {
        let (ask, body) = match wire::read::<Ask>(&mut asks, u64::MAX) {
            Ok(it) => it,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        answer(ask, body, &order, &mut answers)?;
    }
}

fn answer(ask: Ask, body: Vec<u8>, order: &Order, to: &mut impl Write) -> io::Result<()> {
    let deadline = clock::monotonic() + Duration::from_millis(ask.time_ms_max);
    let cancelled = || deadline < clock::monotonic();
    for summary in essence::extract(ask.object(body), &order.settings, &cancelled) {
        let (told, body) = Told::summary(summary);
        wire::write(to, &told, &body)?;
    }
    wire::write(to, &Told::End, b"")
}
