//! Tests of the lanes.

use std::net::Ipv4Addr;
use std::sync::mpsc;

use tokio::task::JoinSet;

use super::*;

const QUICK: Option<Duration> = Some(QUICK_CPU_MAX);
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn request(text: &str) -> SearchRequest {
    SearchRequest::new(query::parse(text).unwrap(), text)
}

#[test]
fn dear_are_patterns_that_look_at_all_words_and_very_many_hits() {
    let cheap =
        ["gather stream", "\"a phrase\"", "gat*", "x~1 y~1", "git~2", "size:>1k", "title:*", "*"];
    assert!(cheap.iter().all(|it| !is_dear(&request(it))));
    let dear = ["ga*", "/x.*/", "a -/x.*/", "title:/x/", "a~2 OR b~2 OR c~2 OR d~1"];
    assert!(dear.iter().all(|it| is_dear(&request(it))));
    let many = SearchRequest { limit: 1_000, ..request("a") };
    assert!(is_dear(&many));
    assert!(!is_dear(&SearchRequest { snippets: false, ..many }));
}

#[test]
fn quick_searches_of_a_large_index_may_take_longer() {
    assert_eq!([quick_cpu(0), quick_cpu(300_000)], [QUICK_CPU_MAX; 2]);
    assert_eq!(quick_cpu(1_000_000), Duration::from_millis(300));
    assert!(quick_cpu(u64::MAX) <= SEARCH_CPU_MAX);
}

#[tokio::test]
async fn a_search_that_is_not_quick_begins_again_as_a_dear_one() {
    let lanes = Lanes::default();
    let slow = |cpu| if cpu == QUICK_CPU_MAX { Err(Error::Late) } else { Ok(cpu) };
    assert_eq!(lanes.run(CLIENT, QUICK, slow).await.unwrap(), SEARCH_CPU_MAX);
    assert_eq!(lanes.run(CLIENT, QUICK, Ok).await.unwrap(), QUICK_CPU_MAX);
    let outcome = lanes.run(CLIENT, QUICK, |_| Err::<(), _>(Error::Late)).await;
    assert!(matches!(outcome, Err(Error::Late)), "{outcome:?}");
}

#[tokio::test]
async fn a_search_that_only_looks_cheap_is_paid_for() {
    let lanes = Lanes::default();
    let dear = |cpu| if cpu < SEARCH_CPU_MAX { Err(Error::Late) } else { Ok(cpu) };
    let mut refused = 0;
    for _ in 0..100 {
        match lanes.run(CLIENT, QUICK, dear).await {
            Ok(_) => assert_eq!(refused, 0),
            Err(Error::Crowded(_)) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!((40..60).contains(&refused), "{refused}");
    // What is cheap is not refused, nor begins what is not with all of its time.
    assert_eq!(lanes.run(CLIENT, QUICK, Ok).await.unwrap(), QUICK_CPU_MAX / DEBTORS_PART);
    assert_eq!(lanes.run(IpAddr::from([192, 0, 2, 1]), QUICK, Ok).await.unwrap(), QUICK_CPU_MAX);
}

#[tokio::test]
async fn what_is_dear_keeps_nothing_quick_waiting() {
    let lanes = Lanes::default();
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let mut running = JoinSet::new();
    let wait = move |_| {
        // The sender is dropped at the end of the test.
        let _ = released.lock().unwrap().recv();
        Ok(())
    };
    for number in 1..=u32::try_from(budgets::PLACES).unwrap() {
        let (lanes, wait) = (lanes.clone(), wait.clone());
        running
            .spawn(async move { lanes.run(IpAddr::from(number.to_be_bytes()), None, wait).await });
    }
    while locked(&lanes.budgets).enter(CLIENT, clock::monotonic()).is_ok() {
        locked(&lanes.budgets).leave(CLIENT, Duration::ZERO, clock::monotonic());
        tokio::task::yield_now().await;
    }
    let refused = lanes.run(CLIENT, None, Ok).await;
    let Err(Error::Crowded(crowded)) = refused else { panic!("{refused:?}") };
    assert!(1 <= crowded.retry_after_secs);
    assert!(crowded.to_string().contains("ask again in 2 s"), "{crowded}");
    lanes.run(CLIENT, QUICK, Ok).await.unwrap();
    drop(release);
    while let Some(ended) = running.join_next().await {
        ended.unwrap().unwrap();
    }
    lanes.run(CLIENT, None, Ok).await.unwrap();
}

#[tokio::test]
async fn who_has_used_too_much_is_refused_what_is_dear_alone() {
    let lanes = Lanes::default();
    let (now, used) = (clock::monotonic(), budgets::DEBT_MAX * 2);
    locked(&lanes.budgets).enter(CLIENT, now).unwrap();
    locked(&lanes.budgets).leave(CLIENT, used, now);
    let refused = lanes.run(CLIENT, None, Ok).await;
    let Err(Error::Crowded(crowded)) = refused else { panic!("{refused:?}") };
    assert!((45..=60).contains(&crowded.retry_after_secs), "{crowded:?}");
    lanes.run(CLIENT, QUICK, Ok).await.unwrap();
    lanes.run(IpAddr::from([192, 0, 2, 1]), None, Ok).await.unwrap();
}
