//! Statistics: hit rates, sources of answers, neighbors, sizes; and by name the objects that are requested
//! most, slow origins, and what is under way.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use web::chart::{Axis, Chart, Series};

use crate::counts::{Span, Totals};
use crate::neighbors::{Neighbor, Tally};
use crate::proxy::Proxy;
use crate::resolution::Kind;

/// Number of objects, of origins, and of fetches that are listed.
const LISTED_MAX: usize = 50;

/// Names of the latest spans, and their lengths, in seconds.
const SPANS: [(&str, u64); 4] = [
    ("last 5 minutes", 300),
    ("last hour", 3_600),
    ("last day", 86_400),
    ("since the start", u64::MAX),
];

/// Upper ends of the classes by size, in bytes; one more has what is longer.
const CLASSES: [u64; 6] = [1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20];

/// Statistics of a cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Time since the start, in seconds.
    pub uptime: u64,
    /// What was answered lately: in the last 5 minutes, hour, and day, and since the start.
    pub lately: Vec<Lately>,
    /// What was answered from minute to minute, of the last hour; the latest last.
    pub minutes: Vec<Span>,
    /// What was answered from hour to hour, of the last two days.
    pub hours: Vec<Span>,
    /// Answers since the start, by where their bodies came from.
    pub answers: Vec<AnswersFrom>,
    /// Numbers of objects requested since the start, by whom they were requested from.
    pub routes: BTreeMap<String, u64>,
    /// The neighbors.
    pub neighbors: Vec<NeighborStatus>,
    /// Bodies in memory.
    pub memory: Sizes,
    /// Records on disk.
    pub disk: Sizes,
    /// Number of fetches and tunnels under way.
    pub under_way: u64,
    /// What is known by name; for holders of the administration's token alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named: Option<Named>,
}

/// What was answered lately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lately {
    /// How lately: `last 5 minutes`, `last hour`, `last day` or `since the start`.
    pub name: String,
    /// What was answered.
    #[serde(flatten)]
    pub span: Span,
}

/// Answers from one source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswersFrom {
    /// `hit`, `joined`, `validated`, `stale`, `miss`, `passed`, `own` or `tunnel`.
    pub from: String,
    /// Number of answers.
    pub requests: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// A neighbor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NeighborStatus {
    /// Its host.
    pub host: String,
    /// Its port for ICP.
    pub port: u16,
    /// `sibling` or `parent`.
    pub kind: String,
    /// Whether its answers are not waited for, since it leaves questions unanswered.
    pub is_dead: bool,
    /// Number of questions by ICP.
    pub asked: u64,
    /// Number of its answers that it has the object.
    pub hits: u64,
    /// Number of its answers that it has it not.
    pub misses: u64,
    /// Number of objects that were requested from it.
    pub requested: u64,
    /// Smoothed time from a question to its answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<f64>,
}

/// Objects by size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Number of objects.
    pub objects: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// The same for classes by size.
    pub classes: Vec<Class>,
}

/// Objects of some sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// They have at most so many bytes, and more than those of the class before; `None`: any number.
    pub bytes_max: Option<u64>,
    /// Number of objects.
    pub objects: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

/// What is known by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The objects that were requested most in this hour and the one before.
    pub objects: Vec<Requested>,
    /// The origins of these hours, the slowest first.
    pub origins: Vec<OriginStatus>,
    /// Fetches that others can join, the longest first.
    pub fetches: Vec<Fetch>,
}

/// An object that is requested often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// Its URL; the end of a long one is missing.
    pub url: String,
    /// Number of requests, at least.
    pub requests: u64,
}

/// An origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginStatus {
    /// Its host, with the port unless that is the scheme's.
    pub host: String,
    /// Number of requests.
    pub requests: u64,
    /// Requests without an answer, or with one that it fails.
    pub failures: u64,
    /// Median of the latest 32 times to the head of the answer, in milliseconds.
    pub median_ms: u64,
}

/// A fetch under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    /// The URL.
    pub url: String,
    /// Time since it began, in seconds.
    pub seconds: u64,
    /// Bytes that have come.
    pub bytes: u64,
    /// Bytes that are promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<u64>,
    /// Number of clients that want it.
    pub clients: u64,
}

impl Statistics {
    /// Returns the statistics; what is known by name only if `is_named`. Blocks.
    pub(crate) fn of(proxy: &Proxy, is_named: bool) -> Self {
        let (counts, fetcher) = (proxy.counts(), proxy.fetcher());
        let now = counts.now();
        let (memory, disk) = (proxy.objects().in_memory(), proxy.objects().on_disk());
        let [in_memory, on_disk] = proxy.objects().lengths();
        let routes = fetcher.routes().into_iter();
        Self {
            uptime: now.0.as_secs(),
            lately: counts.history(|history| {
                let span = |it| history.last(Duration::from_secs(it), now);
                SPANS.map(|(name, it)| Lately { name: name.to_owned(), span: span(it) }).into()
            }),
            minutes: counts.history(|it| it.minutes(now)),
            hours: counts.history(|it| it.hours(now)),
            answers: counts.all().map(source).into(),
            routes: routes.map(|(code, count)| (code.to_owned(), count)).collect(),
            neighbors: fetcher.neighbors().all().map(neighbor).collect(),
            memory: sizes(&in_memory, memory.1),
            disk: sizes(&on_disk, disk.1),
            under_way: fetcher.under_way() as u64,
            named: is_named.then(|| named(proxy)),
        }
    }

    /// Draws the share of hits over time: over the last hour, and over two days.
    pub(super) fn charts(&self) -> Vec<(&'static str, String)> {
        let hour = chart("The last hour", "min", 60, &self.minutes);
        let days = chart("The last two days", "h", 3_600, &self.hours);
        // One span is no line.
        let all = [(&self.minutes, ("hour", hour)), (&self.hours, ("days", days))]
            .map(|(spans, it)| (1 < spans.len()).then_some(it));
        all.into_iter().flatten().map(|(prefix, it)| (prefix, it.inline(prefix))).collect()
    }
}

fn source((from, requests, bytes): (&str, u64, u64)) -> AnswersFrom {
    AnswersFrom { from: from.to_owned(), requests, bytes }
}

fn neighbor((settings, tally, is_dead): (&Neighbor, Tally, bool)) -> NeighborStatus {
    let kind = match settings.kind {
        Kind::Sibling => "sibling",
        Kind::Parent => "parent",
    };
    NeighborStatus {
        host: settings.host.clone(),
        port: settings.port(),
        kind: kind.to_owned(),
        is_dead,
        asked: tally.asked,
        hits: tally.hits,
        misses: tally.misses,
        requested: tally.chosen,
        round_trip_ms: tally.round_trip.map(|it| it.as_secs_f64() * 1_000.0),
    }
}

/// Sorts lengths into classes; all take `bytes`.
fn sizes(lengths: &[u64], bytes: u64) -> Sizes {
    let ends = CLASSES.map(Some).into_iter().chain([None]);
    let mut classes: Vec<Class> =
        ends.map(|bytes_max| Class { bytes_max, ..Class::default() }).collect();
    for length in lengths {
        let is_in = |it: &&mut Class| it.bytes_max.is_none_or(|max| *length <= max);
        if let Some(class) = classes.iter_mut().find(is_in) {
            class.objects += 1;
            class.bytes += length;
        }
    }
    Sizes { objects: lengths.len() as u64, bytes, classes }
}

fn named(proxy: &Proxy) -> Named {
    let objects = proxy.counts().objects().into_iter();
    let objects = objects.map(|it| Requested { requests: it.count - it.excess, url: it.name });
    let origins = proxy.counts().origins().into_iter().map(|it| OriginStatus {
        host: it.name,
        requests: it.value.requests,
        failures: it.value.failures,
        median_ms: it.value.median_ms(),
    });
    let fetches = proxy.fetcher().joinable().into_iter().map(|(url, transfer, time)| Fetch {
        url,
        seconds: time.as_secs(),
        bytes: transfer.arrived(),
        promised: transfer.promised(),
        clients: transfer.readers() as u64,
    });
    let (mut origins, mut fetches): (Vec<_>, Vec<_>) = (origins.collect(), fetches.collect());
    origins.sort_by_key(|it| std::cmp::Reverse(it.median_ms));
    fetches.sort_by_key(|it| std::cmp::Reverse(it.seconds));
    origins.truncate(LISTED_MAX);
    fetches.truncate(LISTED_MAX);
    Named { objects: objects.take(LISTED_MAX).collect(), origins, fetches }
}

/// Draws the share of hits over time. Spans without a request are gaps.
fn chart(title: &str, unit: &str, unit_seconds: u64, spans: &[Span]) -> Chart {
    let line = |name: &str, share: fn(&Totals) -> f64| {
        let point = |it: &Span| (-(it.ago as f64) / unit_seconds as f64, share(&it.totals));
        Series::line(name, spans.iter().map(point).collect())
    };
    Chart {
        title: title.to_owned(),
        description: format!("{title}: the share of hits of all requests, and of all bytes."),
        x: Axis::new("Time").unit(unit),
        y: Axis::new("Hits").percent(),
        series: vec![
            line("requests", |it| it.hits as f64 / it.requests as f64),
            line("bytes", |it| it.hit_bytes as f64 / it.bytes as f64),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_sorted_by_size() {
        let sizes = sizes(&[0, 1_024, 1_025, 1 << 20, 1 << 40], 7);
        let seen: Vec<_> = sizes.classes.iter().map(|it| (it.objects, it.bytes)).collect();
        let expected = [(2, 1_024), (1, 1_025), (0, 0), (0, 0), (1, 1 << 20), (0, 0), (1, 1 << 40)];
        assert_eq!((sizes.objects, sizes.bytes, seen), (5, 7, expected.to_vec()));
    }

    #[test]
    fn a_chart_has_gaps_where_nothing_was_requested() {
        let span = |ago, requests, hits| Span {
            ago,
            seconds: 60,
            totals: Totals { requests, hits, bytes: requests, hit_bytes: hits },
        };
        let chart = chart("T", "min", 60, &[span(120, 4, 1), span(60, 0, 0), span(0, 2, 2)]);
        let web::chart::Marks::Line(points) = &chart.series[0].marks else { panic!("no line") };
        assert_eq!((points[0], points[2]), ((-2.0, 0.25), (0.0, 1.0)));
        assert!(points[1].1.is_nan());
        assert!(chart.inline("p").contains("<svg"));
    }
}
