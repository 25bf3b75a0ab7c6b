//! The peak memory of this process and of the workers that it starts.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Peak resident memory, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Peak {
    pub(crate) own: u64,
    /// Of the largest worker.
    pub(crate) workers: u64,
}

impl std::fmt::Debug for Peak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} + {} MiB", self.own >> 20, self.workers >> 20)
    }
}

pub(crate) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<u64>,
}

impl Watch {
    /// Starts to check the workers at this interval: the memory of an ended one cannot be read.
    pub(crate) fn start(every: Duration) -> Self {
        // Resets the peak that the kernel has recorded.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut most = 0;
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                most = workers().into_iter().filter_map(|it| peak_of(&it)).fold(most, u64::max);
            }
            most
        });
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> Peak {
        drop(self.stop);
        let workers = self.thread.join().unwrap();
        Peak { own: peak_of("self").unwrap(), workers }
    }
}

/// Returns the ids of this process's children, started by any of its threads.
pub(crate) fn workers() -> Vec<String> {
    let mut all = Vec::new();
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let list = thread.map(|it| std::fs::read_to_string(it.path().join("children")));
        let list = list.and_then(|it| it).unwrap_or_default();
        all.extend(list.split_whitespace().map(str::to_owned));
    }
    all
}

fn peak_of(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}
