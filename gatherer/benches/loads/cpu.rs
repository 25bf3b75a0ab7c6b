//! CPU time of servers, from `/proc`.

use std::collections::BTreeMap;
use std::fs;

/// Clock ticks a second in `/proc`, on every Linux that Rust supports.
const TICKS: f64 = 100.0;

/// What `/proc` tells of a process.
struct Process {
    parent: u32,
    /// User and system time, with that of all children that it has waited for, in ticks.
    ticks: u64,
}

/// Returns the CPU seconds so far, user and system, of a process, of those below it that live, and of those that have
/// ended and were waited for. The kernel counts in nanoseconds and tells ticks of 10 ms.
pub(crate) fn tree_secs(id: u32) -> f64 {
    let all = processes();
    let is_below = |mut at: u32| {
        while at != id {
            match all.get(&at) {
                Some(process) => at = process.parent,
                None => return false,
            }
        }
        true
    };
    let ticks: u64 = all.iter().filter(|it| is_below(*it.0)).map(|it| it.1.ticks).sum();
    ticks as f64 / TICKS
}

fn processes() -> BTreeMap<u32, Process> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let entry = entry.unwrap();
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        // It may have ended since.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name before it may have spaces and brackets.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        let parent = u32::try_from(number(1)).unwrap();
        found.insert(id, Process { parent, ticks: (11..15).map(number).sum() });
    }
    found
}
