//! The worker's side: takes objects from its socket and answers with their summaries; or becomes a
//! program of the site.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::wire::{self, Ask, Order, Ready, Told};
use super::{Clock, fence};
use crate::extract::{self, EssenceSettings};

/// Where programs of the site are looked for.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Does what the process that started this one orders on standard input: serves it there, if that is a
/// socket, until it is closed; or becomes a program. Gives up everything that is not needed first, so that
/// nothing else can be done in this process afterwards: to be called from the main thread, before any other
/// has begun. `clock` tells the time.
///
/// # Errors
///
/// The socket failed, the program cannot be started, or what came is not from a gatherer of the same
/// build.
pub fn serve(clock: Clock) -> io::Result<()> {
    // Unbuffered: what comes behind the order is for others to read.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let order = wire::read(&mut input, 0).map_err(|error| {
        io::Error::new(error.kind(), format!("this is started by `harvest gatherer run`: {error}"))
    })?;
    match order.0 {
        Order::Serve { settings, memory_bytes_max } => {
            answer_all(input, &settings, memory_bytes_max, clock)
        }
        Order::Become { fence, folder, words, variables } => {
            Err(becomes(&fence, &folder, &words, variables))
        }
    }
}

fn answer_all(
    mut asks: File,
    settings: &EssenceSettings,
    memory_bytes_max: u64,
    clock: Clock,
) -> io::Result<()> {
    let mut answers = BufWriter::new(asks.try_clone()?);
    let missing = fence::enclose(memory_bytes_max);
    wire::write(&mut answers, &Ready { missing }, &[])?;
    loop {
        let (ask, body) = match wire::read::<Ask>(&mut asks, u64::MAX) {
            Ok(it) => it,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        answer(ask, body, (settings, clock), &mut answers)?;
    }
}

fn answer(
    ask: Ask,
    body: Vec<u8>,
    (settings, clock): (&EssenceSettings, Clock),
    to: &mut impl Write,
) -> io::Result<()> {
    let deadline = clock() + Duration::from_millis(ask.time_ms_max);
    let cancelled = || deadline < clock();
    let mut left_out = BTreeMap::new();
    let object = ask.object(body);
    let found = extract::extract_selected(object, settings, &cancelled, &mut |why| {
        *left_out.entry(why).or_insert(0) += 1;
    });
    for summary in found {
        wire::write_summary(to, summary)?;
    }
    let left_out = left_out.into_iter().collect();
    wire::write(to, &Told::End { left_out }, &[])
}

/// Puts a program behind fences in the place of this one; returns why that was not to be.
fn becomes(
    fence: &fence::Program,
    folder: &Path,
    words: &[String],
    variables: Vec<(String, PathBuf)>,
) -> io::Error {
    let Some((program, arguments)) = words.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "no program is named");
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .env("LC_ALL", "C.UTF-8")
        .envs(variables);
    // What the system lacks was said when the first worker was started, at the gatherer's start at the latest.
    let _missing = fence::enclose_program(fence);
    let error = command.exec();
    let hint = "if it begins with #!, is what follows there, with no carriage return behind it?";
    io::Error::new(error.kind(), format!("{program} cannot be run: {error}; {hint}"))
}
