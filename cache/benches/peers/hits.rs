//! Hits: the CPU of a request for what is stored, beside nginx that sends the same file.

use std::rc::Rc;

use crate::load::{self, Requests, origin_form, proxy_form};
use crate::servers::{Ours, Process, Site, squid};

pub(crate) const TURNS: usize = 5;

/// A server and what it is asked for, with the CPU of each turn.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) process: Process,
    pub(crate) requests: Requests,
    /// Microseconds a request.
    pub(crate) turns: Vec<f64>,
}

impl Row {
    pub(crate) fn new(
        name: impl Into<String>,
        process: Process,
        requests: impl Fn(usize) -> String + 'static,
    ) -> Self {
        Self { name: name.into(), process, requests: Rc::new(requests), turns: Vec::new() }
    }

    pub(crate) async fn turn(&mut self, connections: usize, numbers: (usize, usize)) {
        let before = self.process.cpu_secs();
        load::run(self.process.address, connections, numbers, &self.requests).await;
        self.turns.push((self.process.cpu_secs() - before) * 1e6 / numbers.1 as f64);
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.turns)
    }
}

/// Returns the median of values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Prints rows beside the first one.
pub(crate) fn print(rows: &[Row]) {
    for row in rows {
        let ratio = row.median() / rows[0].median();
        let least = row.turns.iter().copied().fold(f64::MAX, f64::min);
        let (name, median) = (&row.name, row.median());
        println!("  {name:28} {median:7.1} µs (least {least:.1})  {ratio:5.2}");
    }
}

pub(crate) async fn measure() {
    let site = Site::start();
    let at = site.process().address;
    let origin = format!("[[origin]]\nhost = \"site.test\"\nurl = \"http://{at}/\"\n");
    let (ours, squid) = (Ours::start(&origin), squid("256 MB", false));
    println!("hits: CPU a request, medians of {TURNS} turns, and beside nginx");
    for (path, count) in [("/1k", 20_000), ("/64k", 6_000)] {
        for connections in [1, 32, 256] {
            let form = move |_: usize| origin_form("site.test", path);
            let proxied = move |_: usize| proxy_form(at, path);
            let mut rows = vec![
                Row::new("nginx, a file", site.process(), form),
                Row::new("ours, before a site", ours.process(), form),
                Row::new("ours, a proxy", ours.process(), proxied),
                Row::new("Squid, a proxy", (&squid).into(), proxied),
            ];
            for row in &mut rows {
                row.turn(1, (0, 10)).await;
                row.turns.clear();
            }
            for _ in 0..TURNS {
                for row in &mut rows {
                    row.turn(connections, (0, count)).await;
                }
            }
            println!("{path}, {connections} connections:");
            print(&rows);
        }
    }
}
