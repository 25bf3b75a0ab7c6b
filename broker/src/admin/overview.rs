//! The broker's overview: sentences about its status.
//!
//! Sans-I/O.

use daemon::overview::{Overview, PROBLEMS_MAX, Problem, Trouble};
use web::templates::{ago, grouped};

use crate::status::{SourceStatus, Status};

const LINKS: &[(&str, &str)] =
    &[("freshness", "Freshness"), ("views", "Views"), ("status", "Status"), ("metrics", "Metrics")];
/// Number of consecutive failures from which a source is in trouble, since a single one is normal
/// in networks. A source that was never pulled is in trouble after its first failure.
const FAILURES_MIN: u32 = 2;
/// Maximum number of harvests under way of which the overview says what they do.
const HARVESTS_MAX: usize = 10;

/// Returns the overview; `about` has the public facts, and `now_ms` is in Unix milliseconds.
pub(super) fn overview(
    status: &Status,
    about: Vec<(&'static str, String)>,
    now_ms: u64,
) -> Overview {
    let sources = &status.sources;
    let expiry = status.held.map(|it| {
        let what = format!(
            "{} of {} objects would expire at once, and wait until you confirm that they are to be deleted",
            grouped(it.would_expire),
            grouped(it.of),
        );
        Trouble::new("expiry", what).with_command("harvest broker confirm")
    });
    let warnings = sources.iter().flat_map(|it| {
        let problem =
            |message: &String| Problem { object: it.name.clone(), message: message.clone() };
        it.warnings.iter().map(problem)
    });
    let problems_total = sources.iter().map(|it| it.warnings.len() as u64).sum();
    Overview {
        kind: "Broker",
        id: status.id.clone(),
        troubles: Trouble::of(&status.ready)
            .chain(status.listening.troubles())
            .chain(sources.iter().filter_map(|it| failing(it, now_ms)))
            .chain(sources.iter().filter_map(held))
            .chain(expiry)
            .chain(sources.iter().filter_map(hub))
            .collect(),
        now: now(status),
        facts: vec![
            ("Objects", grouped(status.objects)),
            ("Sources that answer", answering(sources)),
            ("Measured freshness", percent(status.freshness)),
            ("Pulls since the start", grouped(status.pulls)),
        ],
        problems: warnings.take(PROBLEMS_MAX).collect(),
        problems_total,
        about,
        links: LINKS.to_vec(),
    }
}

fn failing(source: &SourceStatus, now_ms: u64) -> Option<Trouble> {
    let errors = &source.errors;
    let is_new = source.last_pull.is_none() && 0 < errors.in_a_row;
    if errors.in_a_row < FAILURES_MIN && !is_new {
        return None;
    }
    let mut last = errors.last.clone().unwrap_or_else(|| "it failed".to_owned());
    if !last.ends_with(['.', '?']) {
        last.push('.');
    }
    let last_success = source.last_pull.as_ref().map_or_else(
        || "No pull has succeeded yet".to_owned(),
        |it| {
            let ago = ago(now_ms.saturating_sub(it.at_ms) / 1_000);
            format!("The last pull that succeeded was {ago} ago, and its records are still served")
        },
    );
    let times = grouped(u64::from(errors.in_a_row));
    let what = format!("{last} Failures in a row: {times}. {last_success}.");
    let command = format!("harvest broker pull {} -c broker.toml", source.name);
    Some(Trouble::new(source.name.clone(), what).with_command(command))
}

fn held(source: &SourceStatus) -> Option<Trouble> {
    let why = source.held.as_ref()?;
    let what = format!("{why}: none of its objects is deleted until you confirm the loss");
    let command = format!("harvest broker confirm --source {} -c broker.toml", source.name);
    Some(Trouble::new(source.name.clone(), what).with_command(command))
}

fn hub(source: &SourceStatus) -> Option<Trouble> {
    let problem = source.push.as_ref()?.problem.as_ref()?;
    let what = format!(
        "its hub does not announce changes: {problem}. The source is pulled at its usual interval."
    );
    Some(Trouble::new(source.name.clone(), what))
}

fn answering(sources: &[SourceStatus]) -> String {
    let answers = sources.iter().filter(|it| it.errors.in_a_row == 0 && it.last_pull.is_some());
    format!("{} of {}", grouped(answers.count() as u64), grouped(sources.len() as u64))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "not yet".to_owned(), |it| format!("{:.1} %", it * 100.0))
}

fn now(status: &Status) -> Vec<String> {
    let pulling: Vec<&str> =
        status.sources.iter().filter(|it| it.pulling).map(|it| it.name.as_str()).collect();
    let mut now = vec![match pulling.as_slice() {
        [] => "No source is being pulled.".to_owned(),
        [name] => format!("{name} is being pulled."),
        [name, ..] => {
            format!("{name} and {} more are being pulled.", grouped(pulling.len() as u64 - 1))
        }
    }];
    let harvests = status.sources.iter().filter_map(|it| Some((&it.name, it.activity.as_ref()?)));
    now.extend(
        harvests.take(HARVESTS_MAX).map(|(name, does)| format!("The harvest of {name} {does}.")),
    );
    let behind = status.serial.saturating_sub(status.index_covered.unwrap_or(0));
    if 0 < behind && status.objects != 0 {
        now.push(format!("Changes still to be indexed: {}.", grouped(behind)));
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{Errors, LastPull};

    #[test]
    fn a_failing_source_comes_first_whatever_the_freshness() {
        let source = |name: &str, in_a_row, last: Option<&str>| SourceStatus {
            name: name.to_owned(),
            last_pull: Some(LastPull {
                at_ms: 1_000,
                kind: "delta".to_owned(),
                changes: 1,
                bytes: 1,
                took_seconds: 1.0,
            }),
            errors: Errors { in_a_row, last: last.map(str::to_owned), ..Errors::default() },
            ..SourceStatus::default()
        };
        let down = source("b", 7, Some("connection refused"));
        let once = source("c", 1, Some("reset"));
        let held = SourceStatus { held: Some("LOSS".to_owned()), ..source("d", 0, None) };
        let status = Status {
            freshness: Some(1.0),
            sources: vec![source("a", 0, None), down, once, held],
            ..Status::default()
        };
        let overview = overview(&status, vec![("Location", "Hall 2".to_owned())], 7_201_000);
        let named: Vec<&str> = overview.troubles.iter().map(|it| it.about.as_str()).collect();
        assert_eq!(named, ["b", "d"]);
        let what = &overview.troubles[0].what;
        assert!(what.contains("connection refused") && what.contains("2 h ago"), "{what}");
        assert!(what.contains("Failures in a row: 7."), "{what}");
        assert_eq!(overview.facts[1].1, "2 of 4");
        assert_eq!(overview.facts[2].1, "100.0 %");
    }
}
