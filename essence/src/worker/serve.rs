//! The worker's side: a loop that reads objects from a socket and answers with their summaries, or
//! the start of a program of the site.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use formats::object::{Object, Rest};

use super::fence::{self, ProgramFence};
use super::wire::{self, Asker, Order, Ready, Reply, Request};
use super::{Clock, Deadline};
use crate::extract::{self, EssenceSettings};

/// Search path of the site's programs.
pub(super) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Executes the order on standard input: serves the socket there until it is closed, or becomes a
/// program. Gives up all other rights first, so that this process can do nothing else afterwards.
/// Call this function from the main thread, before other threads are started. `clock` returns the
/// time.
///
/// # Errors
///
/// The socket failed, the program cannot be started, or the order is not from a gatherer of the
/// same build.
pub fn serve(clock: Clock) -> io::Result<()> {
    // Unbuffered, since the bytes after the order are read elsewhere.
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let order = wire::read(&mut input, 0).map_err(|error| {
        io::Error::new(error.kind(), format!("this is started by `harvest gatherer run`: {error}"))
    })?;
    match order.0 {
        Order::Serve { settings, memory_bytes_max } => {
            answer_all(input, &settings, memory_bytes_max, clock)
        }
        Order::Become { fence, folder, words, variables } => {
            Err(execute(&fence, &folder, &words, variables))
        }
    }
}

fn answer_all(
    mut requests: File,
    settings: &EssenceSettings,
    memory_bytes_max: u64,
    clock: Clock,
) -> io::Result<()> {
    let mut replies = BufWriter::new(requests.try_clone()?);
    let asker = Arc::new(Asker(Mutex::new(requests.try_clone()?)));
    let missing = fence::enclose(memory_bytes_max);
    wire::write(&mut replies, &Ready { missing }, &[])?;
    loop {
        let (request, body) = match wire::read::<Request>(&mut requests, u64::MAX) {
            Ok(it) => it,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let deadline = Deadline::new(clock, Duration::from_millis(request.time_ms_max));
        let object = request.object(body, Some(Rest::new(asker.clone())));
        answer(object, settings, &|| deadline.is_over(), &mut replies)?;
    }
}

fn answer(
    object: Object,
    settings: &EssenceSettings,
    cancelled: &dyn Fn() -> bool,
    to: &mut impl Write,
) -> io::Result<()> {
    let mut left_out = BTreeMap::new();
    let summaries = extract::extract_selected(object, settings, cancelled, &mut |why| {
        *left_out.entry(why).or_insert(0) += 1;
    });
    for summary in summaries {
        wire::write_summary(to, summary)?;
    }
    let left_out = left_out.into_iter().collect();
    wire::write(to, &Reply::End { left_out }, &[])
}

/// Replaces this process by a program behind fences; returns the error if this fails.
fn execute(
    fence: &ProgramFence,
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
    // Missing fences are reported by the first worker, which the gatherer has started before.
    let _missing = fence::enclose_program(fence);
    let error = command.exec();
    let hint = "if it begins with #!, is what follows there, with no carriage return behind it?";
    io::Error::new(error.kind(), format!("{program} cannot be run: {error}; {hint}"))
}
