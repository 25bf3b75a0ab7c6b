//! Other brokers on the page of results: who was asked, and who has a hit.
//!
//! Sans-I/O.

use serde::Serialize;
use web::foreign::harmless;
use web::templates::grouped;

use super::results::shortened;
use crate::answer::{AskedBroker, AskedState, FromBroker};

/// Longest description of a failure, in characters.
const PROBLEM_CHARS_MAX: usize = 200;

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

impl AskedShown {
    pub(super) fn new(asked: &AskedBroker) -> Self {
        let outcome = match (asked.state, &asked.problem) {
            (AskedState::Answered, _) if asked.total == 1 => "1 result".to_owned(),
            (AskedState::Answered, _) => format!("{} results", grouped(asked.total)),
            (AskedState::Late, _) => "did not answer in time".to_owned(),
            (AskedState::Closed, _) => "wants a token".to_owned(),
            (AskedState::Failed, None) => "failed".to_owned(),
            (AskedState::Failed, Some(problem)) => {
                format!("failed: {}", shortened(&harmless(problem), PROBLEM_CHARS_MAX))
            }
        };
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
    fn what_came_of_a_broker_is_said_in_words() {
        let asked = |state, total, problem: Option<&str>| {
            let broker = FromBroker {
                name: "A\u{202e}".to_owned(),
                url: "javascript:x".to_owned(),
                ..FromBroker::default()
            };
            let problem = problem.map(str::to_owned);
            AskedShown::new(&AskedBroker { broker, state, total, took_ms: 1, problem })
        };
        for (state, total, problem, expected) in [
            (AskedState::Answered, 1, None, "1 result"),
            (AskedState::Answered, 1_200, None, "1,200 results"),
            (AskedState::Late, 0, None, "did not answer in time"),
            (AskedState::Closed, 0, None, "wants a token"),
            (AskedState::Failed, 0, Some("it answers 500"), "failed: it answers 500"),
        ] {
            let shown = asked(state, total, problem);
            assert_eq!((&*shown.outcome, shown.href), (expected, None));
            assert_eq!(shown.name, "A\u{fffd}");
        }
    }
}
