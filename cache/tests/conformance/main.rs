//! Conformance: cases for the clauses of RFC 9110, 9111, 9112, 5861, 9211 and 9213, tried with this cache,
//! Squid and Apache Traffic Server. In no section has another one more cases right.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod case;
mod exchange;
#[path = "../../../net/tests/peers/peer.rs"]
mod peer;
#[path = "../common/peers.rs"]
mod peers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use cache::config::Origin as Site;
use cache::{Config, Server};
use net::shutdown::Shutdown;
use tokio::sync::Semaphore;
use url::Url;

use case::{Case, cases};
use exchange::{Origin, Subject, run};
use peers::{Squid, TrafficServer};

const CASES: [&str; 7] = [
    include_str!("cases/framing.txt"),
    include_str!("cases/freshness.txt"),
    include_str!("cases/status.txt"),
    include_str!("cases/storing.txt"),
    include_str!("cases/using.txt"),
    include_str!("cases/validation.txt"),
    include_str!("cases/targeted.txt"),
];

/// Number of cases under way at once: most wait.
const AT_ONCE: usize = 40;

/// Starts our cache, as a proxy and before the origin.
async fn ours(origin: &Origin, stop: &Shutdown, data: &tempfile::TempDir) -> Subject {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = Config::new(any, any, data.path());
    config.allow_private = true;
    let url = Url::parse(&format!("http://{}/", origin.address)).unwrap();
    let host = "www.example.org".to_owned();
    config.origins.push(Site { host, url });
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run(stop.clone()));
    Subject { name: "Harvest", address, before_origin: Some(address) }
}

/// Runs all cases; returns for each whether it went right, or why not.
async fn tried(all: &[Case], origin: &Origin, subject: &Subject) -> Vec<Result<(), String>> {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = Vec::new();
    for (number, case) in all.iter().enumerate() {
        let (turns, case, origin) = (Arc::clone(&turns), case.clone(), origin.clone());
        let (key, subject) = (format!("{}{number}", subject.name), subject.clone());
        running.push(tokio::spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            run(&case, &key, &origin, &subject).await
        }));
    }
    let mut outcomes = Vec::new();
    for it in running {
        outcomes.push(it.await.unwrap());
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_cache_has_more_right() {
    let all: Vec<Case> = CASES.iter().flat_map(|it| cases(it)).collect();
    let (origin, stop, data) =
        (Origin::start().await, Shutdown::new(), tempfile::tempdir().unwrap());
    let squid = Squid::start((peer::free_port(), peer::free_port()), "");
    let traffic_server = TrafficServer::start(peer::free_port());
    let subjects = [
        ours(&origin, &stop, &data).await,
        Subject { name: "Squid", address: squid.address(), before_origin: None },
        Subject { name: "ATS", address: traffic_server.address(), before_origin: None },
    ];
    let [ours, one, other] = subjects.each_ref().map(|subject| tried(&all, &origin, subject));
    let (ours, one, other) = tokio::join!(ours, one, other);
    stop.start();
    let mut sections = BTreeMap::<(&str, bool), [usize; 4]>::new();
    for (index, case) in all.iter().enumerate() {
        let counts = sections.entry((&case.clause, case.is_must)).or_default();
        counts[0] += 1;
        for (count, outcomes) in counts[1..].iter_mut().zip([&ours, &one, &other]) {
            *count += usize::from(outcomes[index].is_ok());
        }
    }
    let mut report = String::new();
    for ((clause, is_must), [of, ours, one, other]) in &sections {
        let level = if *is_must { "must" } else { "may" };
        report += &format!(
            "{clause}, {level}: of {of} Harvest {ours}, Squid {one}, Traffic Server {other}\n"
        );
    }
    let wrong: Vec<String> = all
        .iter()
        .zip(&ours)
        .filter_map(|(case, outcome)| {
            outcome.as_ref().err().map(|why| format!("{} {}: {why}\n", case.clause, case.title))
        })
        .collect();
    println!("{report}");
    assert!(wrong.is_empty(), "{}", wrong.concat());
    let is_behind = |[_, ours, one, other]: &[usize; 4]| ours < one || ours < other;
    assert!(!sections.values().any(is_behind), "{report}");
}
