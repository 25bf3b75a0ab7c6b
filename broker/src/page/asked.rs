//! Others on the page of results: which brokers were asked, and who has a hit; what engines of other makes have.
//!
//! Sans-I/O.

use serde::Serialize;
use web::foreign::harmless;
use web::templates::grouped;

use super::display_url::DisplayUrl;
use super::results::shortened;
use crate::answer::{AskedBroker, AskedState, Foreign, ForeignHit, FromBroker};

/// Longest description of a failure, in characters.
const PROBLEM_CHARS_MAX: usize = 200;
/// Number of hits of other engines that are shown.
const FOREIGN_HITS_MAX: usize = 10;

/// A broker that was asked.
#[derive(Debug, Serialize)]
pub(super) struct AskedShown {
    name: String,
    href: Option<String>,
    /// What came of it, in words.
    outcome: String,
}

/// Another broker that has a hit.
#[derive(Debug, Serialize)]
pub(super) struct BrokerShown {
    name: String,
    href: String,
}

/// What engines of other makes have.
#[derive(Debug, Serialize)]
pub(super) struct ForeignShown {
    hits: Vec<ForeignHitShown>,
    asked: Vec<AskedShown>,
}

#[derive(Debug, Serialize)]
struct ForeignHitShown {
    title: String,
    /// `None` if no page of it can be opened.
    href: Option<String>,
    place: String,
    description: String,
    engines: String,
}

impl ForeignShown {
    pub(super) fn new(foreign: &Foreign) -> Self {
        let hits = foreign.hits.iter().take(FOREIGN_HITS_MAX).map(ForeignHitShown::new).collect();
        Self { hits, asked: foreign.asked.iter().map(AskedShown::new).collect() }
    }
}

impl ForeignHitShown {
    fn new(hit: &ForeignHit) -> Self {
        let place = DisplayUrl::of(&hit.url);
        Self {
            title: harmless(&hit.title).into_owned(),
            href: place.href,
            place: place.text,
            description: harmless(&hit.description).into_owned(),
            engines: harmless(&hit.engines.join(", ")).into_owned(),
        }
    }
}

impl AskedShown {
    pub(super) fn new(asked: &AskedBroker) -> Self {
        let mut outcome = match (asked.state, &asked.problem) {
            (AskedState::Answered, _) if asked.total == 1 => "1 result".to_owned(),
            (AskedState::Answered, _) => format!("{} results", grouped(asked.total)),
            (AskedState::Late, _) => "did not answer in time".to_owned(),
            (AskedState::Closed, _) => "wants a token".to_owned(),
            (AskedState::Failed, None) => "failed".to_owned(),
            (AskedState::Failed, Some(problem)) => {
                format!("failed: {}", shortened(&harmless(problem), PROBLEM_CHARS_MAX))
            }
        };
        for warning in &asked.warnings {
            outcome += &format!("; {}", shortened(&harmless(warning), PROBLEM_CHARS_MAX));
        }
        if let Some(via) = &asked.via {
            outcome += &format!(", asked by {}", harmless(via));
        }
        let name = harmless(&asked.broker.name).into_owned();
        Self { name, href: web_address(&asked.broker), outcome }
    }
}

impl BrokerShown {
    /// Returns `None` if no page of the broker can be opened.
    pub(super) fn new(broker: &FromBroker) -> Option<Self> {
        let name = harmless(&broker.name).into_owned();
        Some(Self { name, href: web_address(broker)? })
    }
}

/// Returns the address of a broker, if a browser opens it as a page.
fn web_address(broker: &FromBroker) -> Option<String> {
    let is_web = broker.url.starts_with("http://") || broker.url.starts_with("https://");
    is_web.then(|| broker.url.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_engines_send_runs_nothing() {
        let hit = |url: &str| ForeignHit {
            title: "a\u{202e}b".to_owned(),
            url: url.to_owned(),
            engines: vec!["x".to_owned(), "y".to_owned()],
            ..ForeignHit::default()
        };
        let hits = vec![hit("javascript:alert(1)"), hit(""), hit("https://h/a%20b")];
        let shown = ForeignShown::new(&Foreign { asked: Vec::new(), hits });
        let hrefs: Vec<_> = shown.hits.iter().map(|it| it.href.as_deref()).collect();
        assert_eq!(hrefs, [None, None, Some("https://h/a%20b")]);
        assert_eq!((&*shown.hits[0].title, &*shown.hits[0].engines), ("a\u{fffd}b", "x, y"));
    }

    #[test]
    fn what_came_of_a_broker_is_said_in_words() {
        let asked = |state, total, problem: Option<&str>| {
            let broker = FromBroker {
                name: "A\u{202e}".to_owned(),
                url: "javascript:x".to_owned(),
                ..FromBroker::default()
            };
            let problem = problem.map(str::to_owned);
            let via = Some("B\u{202e}".to_owned());
            let asked =
                AskedBroker { broker, state, total, problem, via, ..AskedBroker::default() };
            AskedShown::new(&asked)
        };
        for (state, total, problem, expected) in [
            (AskedState::Answered, 1, None, "1 result"),
            (AskedState::Answered, 1_200, None, "1,200 results"),
            (AskedState::Late, 0, None, "did not answer in time"),
            (AskedState::Closed, 0, None, "wants a token"),
            (AskedState::Failed, 0, Some("it answers 500"), "failed: it answers 500"),
        ] {
            let shown = asked(state, total, problem);
            let expected = format!("{expected}, asked by B\u{fffd}");
            assert_eq!((shown.outcome, shown.href), (expected, None));
            assert_eq!(shown.name, "A\u{fffd}");
        }
        let warnings = vec!["it boasts\u{202e}".to_owned()];
        let shown = AskedShown::new(&AskedBroker { warnings, ..AskedBroker::default() });
        assert_eq!(shown.outcome, "0 results; it boasts\u{fffd}");
    }
}
