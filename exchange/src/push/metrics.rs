//! Metrics of push.
//!
//! Sans-I/O.

use daemon::metrics::Sample;

use super::hub::Counters;
use super::{Status, subscriber};

/// Returns the metrics of the hub.
pub fn hub(status: &Status, counters: &Counters) -> Vec<Sample> {
    let Counters { delivered, failed, given_up, coalesced, .. } = *counters;
    let Counters { verified, unverified, refused, expired, .. } = *counters;
    let subscriptions = status.subscriptions as f64;
    vec![
        Sample::gauge("harvest_push_subscriptions", "Subscriptions to this hub.", subscriptions),
        total("harvest_push_refused_total", "Requests to this hub that were refused.", refused),
        total("harvest_push_verified_total", "Requests that callbacks said yes to.", verified),
        total(
            "harvest_push_unverified_total",
            "Requests that callbacks said no to, or that were not answered or may not be asked.",
            unverified,
        ),
        total("harvest_push_expired_total", "Subscriptions that ended by themselves.", expired),
        total("harvest_push_delivered_total", "Notifications acknowledged.", delivered),
        total("harvest_push_failed_total", "Attempts at notifications that failed.", failed),
        total("harvest_push_given_up_total", "Notifications given up.", given_up),
        total(
            "harvest_push_coalesced_total",
            "Notifications that went out with a later one.",
            coalesced,
        ),
    ]
}

/// Returns the metrics of the subscriber.
pub fn subscriber(counters: &subscriber::Counters) -> Vec<Sample> {
    let subscriber::Counters { notices, unsigned, forged } = *counters;
    let help = "Notifications of sources' hubs, by what became of them.";
    let one =
        |outcome, count| total("harvest_push_notices_total", help, count).with("outcome", outcome);
    vec![one("believed", notices), one("unsigned", unsigned), one("forged", forged)]
}

fn total(name: &'static str, help: &'static str, value: u64) -> Sample {
    Sample::counter(name, help, value as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_show_the_counters() {
        let counters = Counters { delivered: 7, given_up: 2, unverified: 6, ..Counters::default() };
        let status = Status { subscriptions: 3, ..Status::default() };
        let mut samples = hub(&status, &counters);
        let notices = subscriber::Counters { notices: 5, unsigned: 1, forged: 4 };
        samples.extend(subscriber(&notices));
        let text = daemon::metrics::render(&samples);
        for line in [
            "harvest_push_subscriptions 3",
            "harvest_push_delivered_total 7",
            "harvest_push_given_up_total 2",
            "harvest_push_unverified_total 6",
            "harvest_push_notices_total{outcome=\"believed\"} 5",
            "harvest_push_notices_total{outcome=\"forged\"} 4",
        ] {
            assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
        }
    }
}
