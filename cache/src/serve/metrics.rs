//! The metrics of a cache. They have no names of clients' choice, whose number nobody bounds.

use daemon::metrics::Sample;

use super::Status;
use crate::proxy::Proxy;

/// Returns the samples.
pub(super) fn samples(status: &Status, proxy: &Proxy) -> Vec<Sample> {
    let gauge = |name, help, value: u64| Sample::gauge(name, help, value as f64);
    let mut samples = Vec::new();
    for (from, requests, bytes) in proxy.counts().all() {
        let help = "Answers since the start, by where they came from.";
        let count = Sample::counter("harvest_cache_answers_total", help, requests as f64);
        let help = "Bytes of the bodies of answers, by where they came from.";
        let sum = Sample::counter("harvest_cache_answered_bytes_total", help, bytes as f64);
        samples.extend([count.with("from", from), sum.with("from", from)]);
    }
    samples.extend([
        gauge(
            "harvest_cache_objects",
            "URLs of which something is stored in memory.",
            status.objects,
        ),
        gauge("harvest_cache_bytes", "Memory of what is stored.", status.bytes),
        gauge("harvest_cache_disk_objects", "Objects on disk.", status.disk_objects),
        gauge("harvest_cache_disk_bytes", "Disk of what is stored.", status.disk_bytes),
        gauge(
            "harvest_cache_disk_fails",
            "1 while nothing is stored on disk, since it is full or fails.",
            u64::from(status.disk_problem.is_some()),
        ),
        gauge("harvest_cache_under_way", "Fetches and tunnels under way.", status.under_way),
    ]);
    let help = "Objects requested, by whom they were requested from.";
    samples.extend(status.routes.iter().map(|(code, count)| {
        Sample::counter("harvest_cache_requested_total", help, *count as f64)
            .with("code", code.as_str())
    }));
    let help = "ICP datagrams that could not be read, or that nobody had asked for.";
    samples.push(Sample::counter(
        "harvest_cache_icp_ignored_total",
        help,
        status.icp_ignored as f64,
    ));
    let help = "Lines that the access log has dropped.";
    samples.push(Sample::counter(
        "harvest_cache_log_dropped_total",
        help,
        status.log_dropped as f64,
    ));
    samples.extend(neighbors(proxy));
    samples.extend(status.listening.samples());
    samples
}

fn neighbors(proxy: &Proxy) -> impl Iterator<Item = Sample> {
    let neighbors = proxy.fetcher().neighbors().all();
    neighbors.flat_map(|(neighbor, tally, is_dead)| {
        let name = format!("{}:{}", neighbor.host, neighbor.port());
        let of = |sample: Sample| sample.with("neighbor", name.as_str());
        let counter = |name, help, value: u64| of(Sample::counter(name, help, value as f64));
        let help = "1 while the neighbor's answers are waited for.";
        let up =
            of(Sample::gauge("harvest_cache_neighbor_up", help, f64::from(u8::from(!is_dead))));
        let help = "Smoothed time from a question to the neighbor's answer.";
        let time = tally.round_trip.map_or(f64::NAN, |it| it.as_secs_f64());
        let help_asked = "Questions by ICP to the neighbor.";
        let help_answers = "Answers of the neighbor to questions by ICP.";
        let help_requested = "Objects requested from the neighbor.";
        [
            up,
            of(Sample::gauge("harvest_cache_neighbor_round_trip_seconds", help, time)),
            counter("harvest_cache_neighbor_asked_total", help_asked, tally.asked),
            counter("harvest_cache_neighbor_answers_total", help_answers, tally.hits)
                .with("answer", "hit"),
            counter("harvest_cache_neighbor_answers_total", help_answers, tally.misses)
                .with("answer", "miss"),
            counter("harvest_cache_neighbor_requested_total", help_requested, tally.chosen),
        ]
    })
}
