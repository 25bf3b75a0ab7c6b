//! The broker's metrics: the samples of `GET /metrics` of the admin listener.
//!
//! Sans-I/O.

use std::time::Duration;

use collection::pull::Summary;
use collection::{Applied, feed};
use daemon::metrics::Sample;
use exchange::push::{self, hub, subscriber};

use crate::page::DearSearches;
use crate::status::{SourceStatus, Status, Updates};

/// Counters in addition to status, since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of pulls that succeeded.
    pub pulls: u64,
    /// Number of pulls that failed.
    pub failures: u64,
    /// Number of pulled changes.
    pub changes: u64,
    /// Number of pulled bytes, compressed.
    pub bytes: u64,
    /// Numbers of changes by outcome.
    pub applied: Applied,
    /// Number of objects whose time-to-live has ended.
    pub expired: u64,
    /// Number of compactions of the collection.
    pub compactions: u64,
    /// Counters of the broker's own feed.
    pub feed: feed::Counters,
    /// Counters of the broker's own hub.
    pub hub: hub::Counters,
    /// Counters of notifications from the sources' hubs.
    pub notices: subscriber::Counters,
    /// Counters of the broker's own OAI-PMH repository.
    pub oai: exchange::repository::Counters,
    /// Searches that take long.
    pub dear: DearSearches,
    /// Time that indexing took.
    pub indexing: Duration,
    /// Time that content summaries took.
    pub summarizing: Duration,
}

impl Counters {
    pub(crate) fn handle_pull(&mut self, pulled: &Summary) {
        self.pulls += 1;
        self.changes += pulled.changes;
        self.bytes += pulled.bytes;
        self.applied += pulled.applied;
    }
}

/// Returns all samples of the broker.
pub fn samples(status: &Status, counters: &Counters) -> Vec<Sample> {
    let mut samples = vec![
        Sample::gauge("harvest_broker_objects", "Live objects.", status.objects as f64),
        Sample::gauge("harvest_broker_serial", "Serial of the collection.", status.serial as f64),
        Sample::gauge(
            "harvest_broker_index_behind",
            "Serials that the index does not cover yet.",
            status.serial.saturating_sub(status.index_covered.unwrap_or_default()) as f64,
        ),
        Sample::gauge("harvest_broker_sources", "Sources.", status.sources.len() as f64),
        Sample::gauge(
            "harvest_broker_expiry_held",
            "Objects whose expiry waits for an admin.",
            status.held.map_or(0.0, |held| held.would_expire as f64),
        ),
        Sample::gauge(
            "harvest_broker_accepting",
            "1 while the collection takes changes.",
            f64::from(u8::from(status.collection_problem.is_none())),
        ),
        total(
            "harvest_broker_damaged_total",
            "Damaged members found in the collection.",
            status.damaged_total,
        ),
        Sample::gauge(
            "harvest_broker_takedowns",
            "Takedowns in force.",
            status.takedowns.active as f64,
        ),
        total(
            "harvest_broker_takedown_refused_total",
            "Records refused because they are suppressed.",
            status.takedowns.refused,
        ),
        total(
            "harvest_broker_takedown_forged_total",
            "Notices of takedown that were not genuine.",
            status.takedowns.forged,
        ),
        total("harvest_broker_pulls_total", "Pulls that succeeded.", counters.pulls),
        total("harvest_broker_pull_failures_total", "Pulls that failed.", counters.failures),
        total("harvest_broker_pulled_changes_total", "Changes pulled.", counters.changes),
        total("harvest_broker_pulled_bytes_total", "Compressed bytes pulled.", counters.bytes),
        total("harvest_broker_expired_total", "Objects expired.", counters.expired),
        total("harvest_broker_compactions_total", "Compactions.", counters.compactions),
        total(
            "harvest_broker_dear_searches_total",
            "Searches that take long, let in.",
            counters.dear.begun,
        ),
        total(
            "harvest_broker_dear_searches_refused_total",
            "Searches that take long, refused.",
            counters.dear.refused,
        ),
    ];
    samples.extend(status.ready.samples());
    samples.extend(times(counters));
    samples.extend(applied(&counters.applied));
    samples.extend(served(&counters.feed));
    samples.extend(push::metrics::hub(&status.push, &counters.hub));
    samples.extend(push::metrics::subscriber(&counters.notices));
    samples.extend(exchange::repository::samples(&counters.oai));
    samples.extend(status.listening.samples());
    samples.extend(schedule(status));
    status.sources.iter().for_each(|it| sample_source(it, &mut samples));
    samples
}

/// Returns the measured and the expected values of the schedule.
fn schedule(status: &Status) -> Vec<Sample> {
    let expected = &status.expected;
    // More freshness than the aim is not a fault; more pulls than the budget are one.
    let is_theta = status.aim.as_ref().is_some_and(|it| it.setting == "theta");
    let met = expected.aim == "met" || (expected.aim == "all_longest" && is_theta);
    let at_bound = |bound, count: u64| {
        let help = "Sources at a bound of their interval, or whose bounds contradict each other.";
        Sample::gauge("harvest_broker_sources_at_bound", help, count as f64).with("bound", bound)
    };
    let mut samples = vec![
        Sample::gauge("harvest_broker_theta", "Freshness aimed at.", status.theta),
        Sample::gauge(
            "harvest_broker_freshness_expected",
            "Expected freshness at the present intervals.",
            expected.freshness,
        ),
        Sample::gauge(
            "harvest_broker_freshness_planned",
            "Freshness by the policy's plan.",
            expected.planned_freshness,
        ),
        Sample::gauge(
            "harvest_broker_pulls_expected_per_hour",
            "Expected pulls at the present intervals.",
            expected.pulls_per_hour,
        ),
        at_bound("shortest", expected.at_shortest),
        at_bound("longest", expected.at_longest),
        at_bound("contradictory", expected.contradictory),
        Sample::gauge(
            "harvest_broker_aim_met",
            "1 while the policy's aim is met or surpassed within the bounds of intervals and pulls.",
            f64::from(u8::from(met)),
        ),
    ];
    let freshness = ("harvest_broker_freshness", "Measured freshness, all sources.");
    samples.extend(status.freshness.map(|it| Sample::gauge(freshness.0, freshness.1, it)));
    samples
}

/// Adds the updates of a source and their cost (Liu §3).
fn sample_updates(source: &SourceStatus, samples: &mut Vec<Sample>) {
    let Updates { count, interval_mean_seconds, interval_deviation_seconds, cost, .. } =
        source.updates;
    let mut add = |sample: Option<Sample>| {
        samples.extend(sample.map(|it| it.with("source", &source.name)));
    };
    let gauge = |name, help, value: Option<f64>| Some(Sample::gauge(name, help, value?));
    let changed = source.updates.status.as_deref().map(|it| f64::from(u8::from(it == "changed")));
    add(gauge("harvest_source_changed", "1 when the last pull found changes.", changed));
    add(gauge("harvest_source_pull_cost", "Cost of a pull, in requests.", source.pull_cost));
    add(gauge("harvest_source_pull_seconds", "Duration of a pull.", source.pull_seconds));
    let due = source.next_due_ms.map(|it| it as f64 / 1_000.0);
    add(gauge("harvest_source_next_due_timestamp_seconds", "Time of the next due pull.", due));
    add(Some(total("harvest_source_updates_total", "Pulls that found changes.", count)));
    add(gauge(
        "harvest_source_update_interval_seconds",
        "Mean interval between updates.",
        interval_mean_seconds,
    ));
    add(gauge(
        "harvest_source_update_interval_deviation_seconds",
        "Standard deviation of the intervals between updates.",
        interval_deviation_seconds,
    ));
    add(Some(total("harvest_source_requests_total", "Pulls that succeeded.", cost.requests)));
    let empty = "Pulls without changes.";
    add(Some(total("harvest_source_requests_empty_total", empty, cost.requests_empty)));
    add(Some(total("harvest_source_records_total", "Pulled changes.", cost.records)));
}

fn sample_source(source: &SourceStatus, samples: &mut Vec<Sample>) {
    let mut add = |name, help, value: Option<f64>| {
        let sample = value.map(|it| Sample::gauge(name, help, it).with("source", &source.name));
        samples.extend(sample);
    };
    add("harvest_source_objects", "Objects held by a source.", Some(source.objects as f64));
    add("harvest_source_elements", "Objects at a source.", source.elements.map(|it| it as f64));
    add("harvest_source_rate_per_second", "Estimated changes.", source.rate_per_second);
    add("harvest_source_interval_seconds", "Pull interval.", source.interval_seconds);
    add("harvest_source_freshness", "Measured freshness of a source.", source.freshness);
    add(
        "harvest_source_errors_in_a_row",
        "Failures since the last success.",
        Some(f64::from(source.errors.in_a_row)),
    );
    let held = f64::from(u8::from(source.held.is_some()));
    add("harvest_source_held", "1 while a source waits for an admin.", Some(held));
    sample_updates(source, samples);
    for (kind, count) in &source.errors.by_kind {
        let help = "Pulls that failed, by source and kind.";
        let sample = total("harvest_source_errors_total", help, *count);
        samples.push(sample.with("source", &source.name).with("kind", kind));
    }
}

fn applied(applied: &Applied) -> impl Iterator<Item = Sample> + use<> {
    let outcomes = [
        ("updated", applied.updated),
        ("refreshed", applied.refreshed),
        ("deleted", applied.deleted),
        ("ignored", applied.ignored),
        ("oversized", applied.oversized),
        ("refused", applied.refused),
    ];
    let help = "Pulled changes, by outcome.";
    let one = move |(outcome, count)| {
        total("harvest_broker_applied_total", help, count).with("outcome", outcome)
    };
    outcomes.into_iter().map(one)
}

fn served(feed: &feed::Counters) -> [Sample; 7] {
    [
        total("harvest_feed_deltas_total", "Deltas answered.", feed.deltas),
        total("harvest_feed_woken_total", "Long polls answered with something new.", feed.woken),
        total("harvest_feed_redirects_total", "Requests sent to a snapshot.", feed.redirects),
        total("harvest_feed_snapshots_total", "Snapshots made.", feed.snapshots),
        total("harvest_feed_refused_total", "Requests refused.", feed.refused),
        total("harvest_feed_bytes_total", "Bytes of all bodies begun.", feed.bytes),
        Sample::gauge("harvest_feed_waiting", "Waiting long polls.", feed.waiting as f64),
    ]
}

fn times(counters: &Counters) -> [Sample; 2] {
    let total = |name, help, time: Duration| Sample::counter(name, help, time.as_secs_f64());
    let (indexing, summarizing) = (counters.indexing, counters.summarizing);
    let help = "Time that content summaries took.";
    [
        total("harvest_broker_indexing_seconds_total", "Time that indexing took.", indexing),
        total("harvest_broker_summarizing_seconds_total", help, summarizing),
    ]
}

fn total(name: &'static str, help: &'static str, value: u64) -> Sample {
    Sample::counter(name, help, value as f64)
}

#[cfg(test)]
mod tests {
    use daemon::ListenerStatus;
    use freshness::history::Cost;

    use super::*;
    use crate::status::Expected;

    /// Renders the metrics of `status` and checks that they have the line `expected`.
    fn check(status: &Status, expected: &str) {
        let applied = Applied { ignored: 4, ..Applied::default() };
        let counters = Counters { pulls: 7, applied, ..Counters::default() };
        let text = daemon::metrics::render(&samples(status, &counters));
        assert!(text.lines().any(|line| line == expected), "no {expected:?} in:\n{text}");
    }

    #[test]
    fn metrics_have_the_values_of_the_status() {
        let source = SourceStatus {
            name: "a \"b\"".to_owned(),
            rate_per_second: Some(0.5),
            objects: 3,
            pull_cost: Some(2.5),
            updates: Updates {
                status: Some("unchanged".to_owned()),
                count: 6,
                interval_mean_seconds: Some(40.0),
                cost: Cost { requests: 11, requests_empty: 5, records: 90 },
                ..Updates::default()
            },
            ..SourceStatus::default()
        };
        let expected = Expected {
            aim: "met".to_owned(),
            freshness: 0.9,
            pulls_per_hour: 12.0,
            at_longest: 3,
            ..Expected::default()
        };
        let status = Status {
            serial: 9,
            index_covered: Some(7),
            freshness: Some(0.91),
            expected,
            listening: ListenerStatus {
                listener: [("slow".to_owned(), 2)].into(),
                ..ListenerStatus::default()
            },
            sources: vec![source],
            ..Status::default()
        };
        check(&status, "harvest_broker_index_behind 2");
        check(&status, "harvest_broker_pulls_total 7");
        check(&status, "harvest_broker_freshness 0.91");
        check(&status, r#"harvest_broker_applied_total{outcome="ignored"} 4"#);
        check(&status, "harvest_feed_waiting 0");
        check(&status, r#"harvest_http_events_total{event="slow"} 2"#);
        check(&status, r#"harvest_source_objects{source="a \"b\""} 3"#);
        check(&status, r#"harvest_source_rate_per_second{source="a \"b\""} 0.5"#);
        check(&status, "harvest_broker_freshness_expected 0.9");
        check(&status, "harvest_broker_pulls_expected_per_hour 12");
        check(&status, "harvest_broker_aim_met 1");
        check(&status, r#"harvest_broker_sources_at_bound{bound="longest"} 3"#);
        check(&status, r#"harvest_source_changed{source="a \"b\""} 0"#);
        check(&status, r#"harvest_source_pull_cost{source="a \"b\""} 2.5"#);
        check(&status, r#"harvest_source_update_interval_seconds{source="a \"b\""} 40"#);
        check(&status, r#"harvest_source_updates_total{source="a \"b\""} 6"#);
        check(&status, r#"harvest_source_requests_empty_total{source="a \"b\""} 5"#);
    }
}
