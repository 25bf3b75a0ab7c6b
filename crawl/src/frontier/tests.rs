//! Tests of the frontier: order, politeness, caps, pauses, and what is explained.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::robots::Answer;
use crate::walls::{Kind, Vendor, Wall};

mod worlds;

const SECOND: u64 = 1_000;
const MISSING: Answer<'_> = Answer::Status(404);
const FAST: Outcome = Outcome::Done { took_ms: 10 };

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// A frontier with its clock.
struct Crawl {
    frontier: Frontier,
    now_ms: u64,
}

impl Crawl {
    fn new(settings: Settings) -> Self {
        let filter = |url: &Url| url.path().contains("private").then_some(4);
        Self { frontier: Frontier::new(settings, Box::new(filter)), now_ms: 1_000_000 }
    }

    fn push(&mut self, text: &str) -> Pushed {
        self.push_at(text, 0, false)
    }

    fn push_at(&mut self, text: &str, depth: u16, known: bool) -> Pushed {
        self.frontier.push(Candidate { url: &url(text), depth, known })
    }

    /// Returns the next URL that may be fetched now, or what there is instead.
    fn next(&mut self) -> Result<String, Next> {
        match self.frontier.next(self.now_ms) {
            Next::Fetch { url, .. } => Ok(url.into()),
            other => Err(other),
        }
    }

    fn answered(&mut self, text: &str, outcome: Outcome) {
        self.frontier.answered(&url(text), outcome, self.now_ms);
    }

    fn robots_answered(&mut self, text: &str, answer: Answer<'_>) {
        let expected = Next::Robots { url: url(text) };
        assert_eq!(self.next(), Err(expected), "robots.txt is asked for first");
        self.frontier.robots_answered(&url(text), answer, self.now_ms);
    }

    /// Returns the waiting time from now to the next request.
    fn wait_ms(&mut self) -> u64 {
        match self.next() {
            Err(Next::Wait { until_ms: Some(until_ms) }) => until_ms - self.now_ms,
            other => panic!("{other:?}"),
        }
    }

    /// Fetches all that is there, answered at once, and returns the order.
    fn run(&mut self) -> Vec<String> {
        let mut order = Vec::new();
        loop {
            match self.frontier.next(self.now_ms) {
                Next::Fetch { url, .. } => {
                    self.frontier.answered(&url, FAST, self.now_ms);
                    order.push(url.into());
                }
                Next::Robots { url } => self.frontier.robots_answered(&url, MISSING, self.now_ms),
                Next::Wait { until_ms } => self.now_ms = until_ms.unwrap(),
                Next::Done => return order,
            }
        }
    }

    #[track_caller]
    fn explained(&self, text: &str, expected: State) {
        assert_eq!(self.frontier.explain(&url(text), self.now_ms), expected, "{text}");
    }
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed { failure, retry_at_ms: None }
}

#[test]
fn a_url_goes_through_its_states() {
    let mut crawl = Crawl::new(Settings::default());
    let a = "http://h.example/a";
    crawl.explained(a, State::Unknown);
    assert_eq!(crawl.push("http://H.example:80/%61#x"), Pushed::In);
    assert_eq!(crawl.push(a), Pushed::Seen);
    crawl.explained(a, State::Waiting { until_ms: None, why: Wait::Robots });
    crawl.robots_answered("http://h.example/robots.txt", MISSING);
    let until_ms = Some(crawl.now_ms + SECOND);
    crawl.explained(a, State::Waiting { until_ms, why: Wait::Delay });
    assert_eq!(crawl.wait_ms(), SECOND);
    crawl.now_ms += SECOND;
    crawl.explained(a, State::In);
    assert_eq!(crawl.next(), Ok("http://h.example/%61".to_owned()), "as it was found");
    crawl.explained(a, State::Fetching);
    assert_eq!(crawl.next(), Err(Next::Wait { until_ms: None }));
    crawl.answered(a, FAST);
    crawl.answered(a, FAST);
    crawl.explained(a, State::Done);
    assert_eq!(crawl.next(), Err(Next::Done));
    assert_eq!(crawl.frontier.counts(), Counts { done: 1, ..Counts::default() });
}

#[test]
fn robots_lines_keep_urls_out_and_slow_the_host() {
    let mut crawl = Crawl::new(Settings::default());
    for path in ["a", "b", "c"] {
        crawl.push(&format!("http://h.example/{path}"));
    }
    let file = b"user-agent: *\ndisallow: /a\ncrawl-delay: 7";
    crawl.robots_answered("http://h.example/robots.txt", Answer::Body(file));
    crawl.now_ms += 7 * SECOND;
    assert_eq!(crawl.next(), Ok("http://h.example/b".to_owned()));
    crawl.explained("http://h.example/a", State::Out(Out::Robots(2)));
    crawl.answered("http://h.example/b", FAST);
    assert_eq!(crawl.wait_ms(), 7 * SECOND);
    let rule = crawl.frontier.robots(&url("http://h.example/")).unwrap();
    assert!(!rule.decide(&url("http://h.example/a"), crawl.now_ms).is_allowed());
    assert_eq!(crawl.frontier.counts().out, 1);
}

#[test]
fn many_urls_are_kept_out_in_short_steps() {
    let mut crawl = Crawl::new(Settings::default());
    let count = 5 * STEPS_MAX / 2;
    for n in 0..count {
        crawl.push(&format!("http://h.example/{n}"));
    }
    let file = b"user-agent: *\ndisallow: /";
    crawl.robots_answered("http://h.example/robots.txt", Answer::Body(file));
    crawl.now_ms += SECOND;
    for steps in 1..3 {
        assert_eq!(crawl.wait_ms(), 0);
        assert_eq!(crawl.frontier.counts().out, steps * STEPS_MAX);
    }
    assert_eq!(crawl.next(), Err(Next::Done));
    assert_eq!(crawl.frontier.counts().out, count);
}

#[test]
fn a_host_without_reachable_robots_waits_and_the_pass_ends() {
    let mut crawl = Crawl::new(Settings::default());
    crawl.push("http://h.example/a");
    crawl.robots_answered("http://h.example/robots.txt", Answer::Status(503));
    crawl.now_ms += SECOND;
    assert_eq!(crawl.next(), Err(Next::Done));
    let why = Wait::Paused(Pause::Robots);
    crawl.explained("http://h.example/a", State::Waiting { until_ms: None, why });
    // Later it can be had.
    crawl.now_ms += crate::robots::RETRY_MS;
    crawl.frontier.resume("h.example");
    crawl.robots_answered("http://h.example/robots.txt", MISSING);
    assert_eq!(crawl.run(), ["http://h.example/a"]);
}

#[test]
fn robots_txt_is_asked_for_again_after_a_day() {
    let mut crawl = Crawl::new(Settings::default());
    crawl.push("http://h.example/a");
    crawl.push("http://h.example/b");
    crawl.robots_answered("http://h.example/robots.txt", MISSING);
    crawl.now_ms += SECOND;
    crawl.next().unwrap();
    crawl.answered("http://h.example/a", FAST);
    crawl.now_ms += crate::robots::FETCH_MS;
    crawl.robots_answered("http://h.example/robots.txt", MISSING);
    assert_eq!(crawl.run(), ["http://h.example/b"]);
    // What an earlier pass knew is taken over.
    let mut next = Crawl::new(Settings::default());
    next.now_ms = crawl.now_ms;
    let known = crawl.frontier.robots(&url("http://h.example/")).unwrap().clone();
    next.push("http://h.example/a");
    let asked = url("http://h.example/robots.txt");
    assert_eq!(next.frontier.next(next.now_ms), Next::Robots { url: asked.clone() });
    next.frontier.recall_robots(&asked, known, true, next.now_ms);
    assert_eq!(next.run(), ["http://h.example/a"]);
}

#[test]
fn thirty_days_without_robots_txt_may_be_of_many_passes() {
    let (asked, mut known) = (url("http://h.example/robots.txt"), None);
    for day in 0..=30 {
        let mut crawl = Crawl::new(Settings::default());
        crawl.now_ms += day * crate::robots::FETCH_MS;
        crawl.push("http://h.example/a");
        assert_eq!(crawl.frontier.next(crawl.now_ms), Next::Robots { url: asked.clone() });
        let recall = |it| crawl.frontier.recall_robots(&asked, it, false, crawl.now_ms);
        known.into_iter().for_each(recall);
        crawl.frontier.robots_answered(&asked, Answer::Unreachable, crawl.now_ms);
        // Each pass may be after a restart.
        let stored = crawl.frontier.robots(&asked).map(|it| serde_json::to_string(it).unwrap());
        known = stored.map(|it| serde_json::from_str(&it).unwrap());
        assert_eq!(crawl.run().is_empty(), day < 30, "day {day}");
    }
}

#[test]
fn order_is_by_breadth_or_depth() {
    for (order, expected) in [(Order::Breadth, "a c b e d"), (Order::Depth, "d e b c a")] {
        let mut crawl = Crawl::new(Settings { order, ..Settings::default() });
        for (path, depth) in [("a", 0), ("b", 1), ("c", 0), ("d", 2), ("e", 1)] {
            crawl.push_at(&format!("http://h.example/{path}"), depth, false);
        }
        let found = crawl.run();
        let found: Vec<&str> = found.iter().map(|it| it.rsplit('/').next().unwrap()).collect();
        assert_eq!(found.join(" "), expected, "{order:?}");
    }
}

#[test]
fn caps_refuse_new_urls_and_no_known_ones() {
    let settings = Settings { urls_max: 3, hosts_max: 2, depth_max: 1, ..Settings::default() };
    let mut crawl = Crawl::new(settings);
    assert_eq!(crawl.push_at("http://a.example/1", 9, true), Pushed::In);
    assert_eq!(crawl.push_at("http://a.example/2", 1, false), Pushed::In);
    assert_eq!(crawl.push_at("http://a.example/3", 2, false), Pushed::Out(Out::Depth));
    assert_eq!(crawl.push("https://b.example/"), Pushed::In);
    assert_eq!(crawl.push("http://a.example/4"), Pushed::Out(Out::UrlsMax));
    crawl.explained("http://a.example/4", State::Out(Out::UrlsMax));
    for n in 5..9 {
        assert_eq!(crawl.push_at(&format!("http://c{n}.example/"), 0, true), Pushed::In);
    }
    let mut crawl = Crawl::new(Settings { hosts_max: 1, ..Settings::default() });
    assert_eq!(crawl.push("http://a.example/"), Pushed::In);
    assert_eq!(crawl.push("https://a.example/"), Pushed::In, "the same name");
    assert_eq!(crawl.push("http://b.example/"), Pushed::Out(Out::HostsMax));
}

#[test]
fn what_a_list_has_told_is_not_asked_for() {
    let schemes = vec!["ftp".to_owned()];
    let mut crawl = Crawl::new(Settings { schemes, ..Settings::default() });
    for text in ["ftp://h.example/a", "ftp://h.example/b", "ftp://h.example/c"] {
        assert_eq!(crawl.push(text), Pushed::In);
    }
    assert_eq!(crawl.push("http://h.example/"), Pushed::Out(Out::Scheme));
    crawl.frontier.skip(&url("ftp://h.example/a"));
    crawl.frontier.skip(&url("ftp://h.example/none"));
    crawl.explained("ftp://h.example/a", State::Done);
    assert_eq!((crawl.frontier.counts().queued, crawl.frontier.counts().done), (2, 1));
    crawl.frontier.skip(&url("ftp://h.example/c"));
    assert_eq!(crawl.run(), ["ftp://h.example/b"]);
    assert_eq!((crawl.frontier.counts().queued, crawl.frontier.counts().done), (0, 3));
    // It waits once more like any other.
    crawl.frontier.again(&url("ftp://h.example/a"));
    assert_eq!(crawl.run(), ["ftp://h.example/a"]);
}

#[test]
fn what_is_kept_out_has_its_reason() {
    let mut crawl = Crawl::new(Settings::default());
    let long = format!("http://h.example/{}", "a".repeat(URL_BYTES_MAX));
    for (text, out) in [
        ("mailto:a@b.example", Out::Scheme),
        ("ftp://h.example/a", Out::Scheme),
        (&long, Out::TooLong),
        ("http://h.example/private/a", Out::Rule(4)),
        ("http://h.example/a/b/a/b/a/b/a/b", Out::Trap(TrapKind::Endless)),
    ] {
        assert_eq!(crawl.push(text), Pushed::Out(out), "{text}");
        crawl.explained(text, State::Out(out));
    }
    // A rule keeps known ones out, too; a trap does not.
    assert_eq!(crawl.push_at("http://h.example/private/a", 0, true), Pushed::Out(Out::Rule(4)));
    assert_eq!(crawl.push_at("http://h.example/a/a/a/a/a", 0, true), Pushed::In);
    assert_eq!(crawl.frontier.traps().len(), 1);
}

#[test]
fn failures_are_tried_again_or_not() {
    let mut crawl = Crawl::new(Settings { tries_max: 2, ..Settings::default() });
    crawl.push("http://h.example/a");
    crawl.push("http://h.example/b");
    crawl.robots_answered("http://h.example/robots.txt", MISSING);
    let (a, b) = ("http://h.example/a", "http://h.example/b");
    crawl.now_ms += SECOND;
    crawl.next().unwrap();
    crawl.answered(a, failed(Failure::Status(500)));
    assert_eq!(crawl.wait_ms(), SECOND, "an object's error does not slow its host");
    crawl.now_ms += SECOND;
    assert_eq!(crawl.next(), Ok(b.to_owned()), "others first");
    crawl.answered(b, failed(Failure::Status(404)));
    crawl.explained(b, State::Failed(Failure::Status(404)));
    crawl.now_ms += SECOND;
    assert_eq!(crawl.next(), Ok(a.to_owned()));
    crawl.answered(a, failed(Failure::Unreachable));
    crawl.explained(a, State::Failed(Failure::Unreachable));
    assert_eq!(crawl.next(), Err(Next::Done));
    assert_eq!(crawl.frontier.counts().failed, 2);
}

#[test]
fn a_host_that_asks_for_a_pause_gets_it() {
    let mut crawl = Crawl::new(Settings::default());
    let (a, b) = ("http://h.example/a", "http://other.example/b");
    crawl.push(a);
    crawl.robots_answered("http://h.example/robots.txt", MISSING);
    crawl.now_ms += SECOND;
    crawl.next().unwrap();
    let at_ms = Some(crawl.now_ms + 120 * SECOND);
    let failure = Failure::Status(503);
    crawl.answered(a, Outcome::Failed { failure, retry_at_ms: at_ms });
    assert_eq!(crawl.wait_ms(), 120 * SECOND);
    crawl.explained(a, State::Waiting { until_ms: at_ms, why: Wait::RetryAfter });
    crawl.push(b);
    crawl.robots_answered("http://other.example/robots.txt", MISSING);
    crawl.now_ms += 120 * SECOND;
    let both: HashSet<String> = [crawl.next().unwrap(), crawl.next().unwrap()].into();
    assert_eq!(both, HashSet::from([a.to_owned(), b.to_owned()]));
    // Without a time, the pause doubles.
    crawl.answered(a, failed(Failure::Status(429)));
    let until_ms = Some(crawl.now_ms + 4 * SECOND);
    crawl.explained(a, State::Waiting { until_ms, why: Wait::BackOff });
}

#[test]
fn a_host_that_always_fails_is_paused_and_others_go_on() {
    let mut crawl = Crawl::new(Settings::default());
    for n in 0..20 {
        crawl.push(&format!("http://down.example/{n}"));
    }
    crawl.push("http://up.example/");
    let (mut tries, mut done) = (0, 0);
    loop {
        match crawl.frontier.next(crawl.now_ms) {
            Next::Robots { url } => crawl.frontier.robots_answered(&url, MISSING, crawl.now_ms),
            Next::Fetch { url, .. } if url.host_str() == Some("up.example") => {
                done += 1;
                crawl.frontier.answered(&url, FAST, crawl.now_ms);
            }
            Next::Fetch { url, .. } => {
                tries += 1;
                crawl.frontier.answered(&url, failed(Failure::Unreachable), crawl.now_ms);
            }
            Next::Wait { until_ms } => crawl.now_ms = until_ms.unwrap(),
            Next::Done => break,
        }
    }
    assert_eq!((tries, done), (FAILURES_MAX, 1));
    let why = Wait::Paused(Pause::Failing);
    crawl.explained("http://down.example/19", State::Waiting { until_ms: None, why });
}

#[test]
fn a_wall_pauses_its_host_and_loses_nothing() {
    let mut crawl = Crawl::new(Settings::default());
    let a = "http://h.example/a";
    crawl.push(a);
    crawl.robots_answered("http://h.example/robots.txt", MISSING);
    crawl.now_ms += SECOND;
    crawl.next().unwrap();
    let wall = Wall { vendor: Vendor::Anubis, kind: Kind::Challenge, mark: "m" };
    crawl.answered(a, Outcome::Wall(wall));
    assert_eq!(crawl.next(), Err(Next::Done));
    let why = Wait::Paused(Pause::Wall(wall));
    crawl.explained(a, State::Waiting { until_ms: None, why });
    let said = crawl.frontier.explain(&url(a), crawl.now_ms).to_string();
    assert!(said.starts_with("waiting: Anubis challenges this robot (m); its"), "{said}");
    crawl.frontier.resume("h.example");
    assert_eq!(crawl.run(), [a]);
}

#[test]
fn a_paused_host_comes_back_by_itself_at_its_time() {
    let mut crawl = Crawl::new(Settings::default());
    crawl.push("http://h.example/a");
    crawl.push("https://h.example/b");
    let end_ms = crawl.now_ms + 60 * SECOND;
    crawl.frontier.pause("h.example", Pause::Asked, Some(end_ms));
    assert_eq!(crawl.next(), Err(Next::Wait { until_ms: Some(end_ms) }));
    crawl.frontier.pause("h.example", Pause::Asked, None);
    assert_eq!(crawl.next(), Err(Next::Done));
    crawl.frontier.pause("h.example", Pause::Asked, Some(end_ms));
    assert_eq!(crawl.run().len(), 2);
    assert!(end_ms <= crawl.now_ms);
}

#[test]
fn hosts_are_fetched_in_turn_and_loopback_at_once() {
    let settings = Settings { requests_max: 2, ..Settings::default() };
    let mut crawl = Crawl::new(settings);
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        crawl.push(&format!("http://{host}/a"));
        crawl.push(&format!("http://{host}/b"));
    }
    let start_ms = crawl.now_ms;
    let order: Vec<String> = crawl.run().iter().map(|it| it[7..].to_owned()).collect();
    assert_eq!(crawl.now_ms, start_ms, "no delay");
    let last = |it: &str| it.chars().last().unwrap();
    assert_eq!(order.iter().map(|it| last(it)).collect::<String>(), "aaabbb");
    // All together are bounded.
    let mut crawl = Crawl::new(Settings { requests_max: 2, ..Settings::default() });
    for n in 0..3 {
        crawl.push(&format!("http://h{n}.example/"));
    }
    assert!(matches!(crawl.next(), Err(Next::Robots { .. })));
    assert!(matches!(crawl.next(), Err(Next::Robots { .. })));
    assert_eq!(crawl.next(), Err(Next::Wait { until_ms: None }));
}

#[test]
fn names_at_one_address_are_left_alone_together() {
    let mut crawl = Crawl::new(Settings::default());
    for name in ["a", "b", "c"] {
        let name = format!("{name}.example");
        crawl.push(&format!("http://{name}/"));
        crawl.frontier.resolved(&name, "192.0.2.1".parse().unwrap());
    }
    let start_ms = crawl.now_ms;
    assert_eq!(crawl.run().len(), 3);
    assert_eq!(crawl.now_ms - start_ms, 5 * SECOND, "six requests, with five delays between");
}

#[test]
fn a_million_urls_take_less_than_150_mb() {
    // A tenth of them here; `cargo bench -p crawl --bench memory` has all.
    let count = 100_000;
    let limits = TrapLimits { crowd_urls_max: 0, ..TrapLimits::default() };
    let mut crawl = Crawl::new(Settings { traps: limits, ..Settings::default() });
    let mut texts = 0;
    for n in 0..count {
        let text = format!(
            "https://www.host{}.example/departments/history/{}/annual-report-{n}.html",
            n % 100,
            n / 1_000
        );
        texts += text.len();
        assert_eq!(crawl.push(&text), Pushed::In);
    }
    assert!(65 * count < texts, "URLs are as long as usual");
    let each = crawl.frontier.bytes() / count;
    assert!(each <= 150, "{each} bytes a URL");
}

#[test]
fn what_was_answered_before_a_stop_is_not_fetched_again() {
    let mut crawl = Crawl::new(Settings::default());
    let done = url("http://h.example/done");
    crawl.frontier.push_done(Candidate { url: &done, depth: 3, known: true });
    crawl.explained("http://h.example/done", State::Done);
    assert_eq!(crawl.frontier.next(crawl.now_ms), Next::Done);
    let again = Candidate { url: &done, depth: 1, known: false };
    assert_eq!(crawl.frontier.push(again), Pushed::Seen);
    assert_eq!((crawl.frontier.counts().done, crawl.frontier.counts().queued), (1, 0));
    // Unless the caller wants it, which is then asked for first.
    assert_eq!(crawl.push_at("http://h.example/a", 3, true), Pushed::In);
    crawl.frontier.again(&done);
    crawl.frontier.again(&url("http://h.example/never"));
    assert_eq!(crawl.run(), ["http://h.example/done", "http://h.example/a"]);
}

#[test]
fn what_is_no_object_comes_first_beyond_rules_and_caps() {
    for order in [Order::Breadth, Order::Depth] {
        let mut crawl = Crawl::new(Settings { urls_max: 2, order, ..Settings::default() });
        crawl.push("http://h.example/a");
        crawl.frontier.push_aside(&url("http://h.example/private/list"));
        crawl.frontier.push_aside(&url("http://h.example/a"));
        crawl.frontier.push_aside(&url("ftp://h.example/list"));
        assert_eq!(crawl.push("http://h.example/b"), Pushed::In, "one of two");
        assert_eq!(crawl.push("http://h.example/c"), Pushed::Out(Out::UrlsMax));
        let found = crawl.run();
        assert_eq!((found.len(), found[0].as_str()), (3, "http://h.example/private/list"));
    }
}

#[test]
fn names_and_passwords_in_links_are_not_sent() {
    let mut crawl = Crawl::new(Settings::default());
    crawl.push("http://ann:secret@h.example:81/a?b#c");
    assert_eq!(crawl.push("http://h.example:81/a?b"), Pushed::Seen);
    assert_eq!(crawl.run(), ["http://h.example:81/a?b"]);
}

#[test]
fn requests_that_fail_together_count_as_one_failure() {
    let settings = Settings { delay_ms: 0, host_requests_max: 8, ..Settings::default() };
    let mut crawl = Crawl::new(settings);
    for it in 0..8 {
        assert_eq!(crawl.push(&format!("http://h.example/{it}")), Pushed::In);
    }
    crawl.robots_answered("http://h.example/robots.txt", MISSING);
    let asked: Vec<String> = std::iter::from_fn(|| crawl.next().ok()).collect();
    assert_eq!(asked.len(), 8);
    asked.iter().for_each(|it| crawl.answered(it, failed(Failure::Status(503))));
    assert_eq!(crawl.wait_ms(), 2 * SECOND);
}
