//! Statistics and lists of a cache, as a terminal shows them.

use std::time::Duration;

use cache::{Listing, NeighborStatus, Statistics};
use comfy_table::ContentArrangement;
use indicatif::{HumanCount, HumanDuration};
use web::templates::size;

use crate::output;

/// Number of objects, of origins, and of fetches that are shown.
const SHOWN_MAX: usize = 10;

/// Returns statistics as text.
pub(super) fn top(it: &Statistics) -> String {
    let mut parts = vec![format!(
        "running for {}, {} under way; {} in memory ({}), {} on disk ({})",
        HumanDuration(Duration::from_secs(it.uptime)),
        it.under_way,
        output::counted(it.memory.objects, "object"),
        size(it.memory.bytes),
        output::counted(it.disk.objects, "object"),
        size(it.disk.bytes)
    )];
    parts.push(rates(it));
    if let Some(named) = &it.named {
        let objects = named.objects.iter().take(SHOWN_MAX);
        let rows = objects.map(|it| [HumanCount(it.requests).to_string(), it.url.clone()]);
        parts.extend(table(["requests", "objects of this hour and the one before"], rows));
        let rows = named.origins.iter().take(SHOWN_MAX).map(|it| {
            let [requests, failures] =
                [it.requests, it.failures].map(|it| HumanCount(it).to_string());
            [format!("{} ms", HumanCount(it.median_ms)), requests, failures, it.host.clone()]
        });
        parts.extend(table(
            ["first byte", "requests", "failed", "origins, the slowest first"],
            rows,
        ));
        let rows = named.fetches.iter().take(SHOWN_MAX).map(|it| {
            let of = it.promised.map_or_else(String::new, |it| format!(" of {}", size(it)));
            let time = HumanDuration(Duration::from_secs(it.seconds)).to_string();
            [time, format!("{}{of}", size(it.bytes)), it.clients.to_string(), it.url.clone()]
        });
        parts.extend(table(["for", "came", "clients", "fetches that others can join"], rows));
    }
    let headings = ["neighbor", "", "state", "round trip", "asked", "hits", "misses", "requested"];
    parts.extend(table(headings, it.neighbors.iter().map(neighbor)));
    parts.join("\n\n")
}

fn rates(it: &Statistics) -> String {
    let share = |part: u64, all: u64| match all {
        0 => "–".to_owned(),
        _ => format!("{:.1} %", 100.0 * part as f64 / all as f64),
    };
    let rows = it.lately.iter().map(|it| {
        let totals = &it.span.totals;
        let hits = share(totals.hits, totals.requests);
        let of_bytes = share(totals.hit_bytes, totals.bytes);
        let requests = HumanCount(totals.requests).to_string();
        [it.name.clone(), requests, hits, size(totals.bytes), of_bytes]
    });
    table(["", "requests", "hits", "bytes", "hits, by bytes"], rows).unwrap_or_default()
}

fn neighbor(it: &NeighborStatus) -> [String; 8] {
    let state = match (it.is_dead, it.round_trip_ms) {
        (true, _) => "dead",
        (false, Some(_)) => "alive",
        (false, None) => "not heard yet",
    };
    let round_trip = it.round_trip_ms.map_or_else(String::new, |it| format!("{it:.1} ms"));
    let [asked, hits, misses, requested] =
        [it.asked, it.hits, it.misses, it.requested].map(|it| HumanCount(it).to_string());
    let name = format!("{}:{}", it.host, it.port);
    [name, it.kind.clone(), state.to_owned(), round_trip, asked, hits, misses, requested]
}

/// Returns the stored objects as text; the URL comes last, as it may be long.
pub(super) fn objects(it: &Listing) -> String {
    let rows = it.objects.iter().map(|it| {
        let object = &it.object;
        let span = |seconds| HumanDuration(Duration::from_secs(seconds)).to_string();
        let left = span(object.left.unsigned_abs());
        let left = if object.left < 0 { format!("stale for {left}") } else { left };
        let place = if object.is_in_memory { "memory" } else { "disk" };
        let vary = object.vary.iter().map(|it| format!("  ({it})"));
        let url = std::iter::once(it.url.clone()).chain(vary).collect();
        [
            object.status.to_string(),
            size(object.bytes),
            place.to_owned(),
            span(object.age),
            left,
            url,
        ]
    });
    let headings = ["status", "size", "where", "age", "lifetime left", "URL"];
    table(headings, rows).unwrap_or_else(|| "nothing is stored that fits".to_owned())
}

/// Returns a table; `None`: it has no rows.
fn table<const N: usize>(
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Option<String> {
    let mut table = output::table(headings);
    // Long names go on to the next line of the terminal, so that they can be copied.
    table.set_content_arrangement(ContentArrangement::Disabled);
    rows.for_each(|row| {
        table.add_row(row);
    });
    (!table.is_empty()).then(|| table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use cache::{Lately, Listed, Named, Requested, Span, StoredObject, Totals};

    use super::*;

    #[test]
    fn statistics_are_tables() {
        let totals = Totals { requests: 3_000, hits: 1_000, bytes: 2_048, hit_bytes: 1_024 };
        let span = Span { totals, ..Span::default() };
        let urls =
            ["http://h/a", "http://h/b"].map(|it| Requested { url: it.to_owned(), requests: 7 });
        let told = top(&Statistics {
            uptime: 120,
            lately: vec![Lately { name: "last hour".to_owned(), span }],
            neighbors: vec![NeighborStatus {
                host: "h".to_owned(),
                port: 1,
                is_dead: true,
                ..Default::default()
            }],
            named: Some(Named { objects: urls.into(), ..Named::default() }),
            ..Statistics::default()
        });
        let expected = [
            "running for 2 minutes",
            "3,000",
            "33.3 %",
            "2.0 KiB",
            "50.0 %",
            "http://h/b",
            "h:1",
            "dead",
        ];
        let places = expected.map(|it| told.find(it).unwrap_or_else(|| panic!("{it}: {told}")));
        assert!(places.is_sorted() && !told.contains("first byte"), "{told}");
    }

    #[test]
    fn stored_objects_are_a_table() {
        let object = StoredObject { status: 200, bytes: 9, left: -60, ..StoredObject::default() };
        let listed = Listed { url: "http://h/a".to_owned(), object };
        let told = objects(&Listing { objects: vec![listed], is_cut: false });
        assert!(told.contains("disk") && told.contains("stale for 60 seconds"), "{told}");
        assert!(told.ends_with("http://h/a"), "{told}");
        assert_eq!(objects(&Listing::default()), "nothing is stored that fits");
    }
}
