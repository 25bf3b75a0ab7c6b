//! Simulated webs: whatever servers answer, each URL ends in one state, no server is asked too
//! soon, and nothing is fetched twice at the same time.

use super::*;

/// What servers answer, by number.
#[derive(Clone, Debug)]
struct World {
    /// Hosts, with the address that each has.
    addresses: Vec<u8>,
    /// Paths and outcomes, by host.
    pages: Vec<(usize, u16, u8)>,
    host_requests_max: usize,
    requests_max: usize,
    order: Order,
}

fn worlds() -> impl Strategy<Value = World> {
    let addresses = prop::collection::vec(0..3_u8, 1..5);
    let pages = prop::collection::vec((0..5_usize, 0..60_u16, 0..10_u8), 1..60);
    let order = prop_oneof![Just(Order::Breadth), Just(Order::Depth)];
    (addresses, pages, 1..3_usize, 1..5_usize, order).prop_map(
        |(addresses, pages, host_requests_max, requests_max, order)| World {
            addresses,
            pages,
            host_requests_max,
            requests_max,
            order,
        },
    )
}

fn outcome(number: u8) -> Outcome {
    let wall = Wall { vendor: Vendor::Anubis, kind: Kind::Challenge, mark: "m" };
    match number {
        0 => failed(Failure::Status(404)),
        1 => failed(Failure::Status(500)),
        2 => failed(Failure::Status(503)),
        3 => failed(Failure::Unreachable),
        4 => Outcome::Wall(wall),
        _ => Outcome::Done { took_ms: u64::from(number) * 100 },
    }
}

/// Runs a world to its end. Requests are answered in the order in which they were begun.
fn check(world: &World) -> Result<(), TestCaseError> {
    let settings = Settings {
        order: world.order,
        host_requests_max: world.host_requests_max,
        requests_max: world.requests_max,
        ..Settings::default()
    };
    let mut crawl = Crawl::new(settings);
    let (mut outcomes, mut servers) = (HashMap::new(), HashMap::new());
    for (host, path, number) in &world.pages {
        let host = host % world.addresses.len();
        let text = format!("http://h{host}.example/{path}");
        if crawl.push_at(&text, path % 3, false) == Pushed::In {
            outcomes.insert(text, outcome(*number));
        }
        let address = world.addresses[host];
        crawl.frontier.resolved(&format!("h{host}.example"), [192, 0, 2, address].into());
        servers.insert(format!("h{host}.example"), address);
    }
    let mut under_way: Vec<Result<Url, Url>> = Vec::new();
    let mut asked_ms: HashMap<u8, u64> = HashMap::new();
    for _ in 0..10_000 {
        let next = crawl.frontier.next(crawl.now_ms);
        let request = match next {
            Next::Fetch { url, .. } => Ok(url),
            Next::Robots { url } => Err(url),
            Next::Wait { .. } | Next::Done if !under_way.is_empty() => {
                prop_assert_ne!(next, Next::Done);
                crawl.now_ms += 100;
                match under_way.remove(0) {
                    Ok(url) => {
                        let outcome = outcomes[url.as_str()];
                        crawl.frontier.answered(&url, outcome, crawl.now_ms);
                    }
                    Err(url) => crawl.frontier.robots_answered(&url, MISSING, crawl.now_ms),
                }
                continue;
            }
            Next::Wait { until_ms } => {
                let until_ms = until_ms.expect("nothing is under way");
                prop_assert!(crawl.now_ms < until_ms);
                crawl.now_ms = until_ms;
                continue;
            }
            Next::Done => return check_end(&crawl, &outcomes),
        };
        prop_assert!(!under_way.contains(&request));
        let url = request.as_ref().unwrap_or_else(|url| url);
        let server = servers[url.host_str().unwrap()];
        if let Some(before_ms) = asked_ms.insert(server, crawl.now_ms) {
            prop_assert!(before_ms + SECOND <= crawl.now_ms, "{} is asked too soon", url);
        }
        under_way.push(request);
        let same = under_way.iter().map(|it| it.as_ref().unwrap_or_else(|url| url));
        let same = same.filter(|it| servers[it.host_str().unwrap()] == server).count();
        prop_assert!(same <= world.host_requests_max);
        prop_assert!(under_way.len() <= world.requests_max);
    }
    Err(TestCaseError::fail("the crawl does not end"))
}

fn check_end(crawl: &Crawl, outcomes: &HashMap<String, Outcome>) -> Result<(), TestCaseError> {
    let counts = crawl.frontier.counts();
    prop_assert_eq!(counts.fetching, 0);
    let all = counts.queued + counts.done + counts.failed + counts.out;
    prop_assert_eq!(all, outcomes.len());
    for (text, outcome) in outcomes {
        match (crawl.frontier.explain(&url(text), crawl.now_ms), outcome) {
            (State::Done, Outcome::Done { .. })
            | (State::Failed(_), Outcome::Failed { .. })
            | (State::Waiting { why: Wait::Paused(_), .. }, _) => {}
            other => return Err(TestCaseError::fail(format!("{text}: {other:?}"))),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_crawl_ends_politely_with_reasons(world in worlds()) {
        check(&world)?;
    }
}
