//! Tests of lists that continue across restarts, compaction, commits and damage.

use std::collections::BTreeMap;
use std::fs;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use collection::{Batch, Options, Stamp};
use exchange::repository::{Daemon, Settings};
use net::clock;

use crate::support::*;

const DC: &str = "metadataPrefix=oai_dc";

fn token(found: &ResponseText) -> String {
    format!("verb=ListRecords&resumptionToken={}", found.one("resumptionToken"))
}

#[tokio::test]
async fn a_token_holds_across_a_restart_and_a_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, (0..60).map(text).collect());
    commit(&collection, 1, (0..20).map(text).collect());
    let running = Running::start(dir.path(), collection, settings(15)).await;
    let first = running.ask(&format!("verb=ListRecords&{DC}&set=type:Text")).await;
    let expected = |numbers: std::ops::Range<usize>| -> Vec<String> {
        numbers.map(|it| it.to_string()).collect()
    };
    assert_eq!(first.items(), expected(20..35));
    // Changes between the parts are listed at the end.
    commit(&running.collection, 2, vec![text(40), delete(G, "http://h/41")]);
    running.stop().await;
    assert!(dir.path().join("oai/sets").exists());

    let collection = open(dir.path());
    let before = collection.stats().changes;
    collection.compact(Stamp(NOON + 3_000)).unwrap();
    assert!(collection.stats().changes < before);
    let running = Running::start(dir.path(), collection, settings(100)).await;
    let second = running.ask(&token(&first)).await;
    let mut rest = expected(35..40);
    rest.extend(expected(42..60));
    rest.extend(expected(0..20));
    rest.extend(["40".to_owned(), "-41".to_owned()]);
    assert_eq!(second.items(), rest);
    assert_eq!(second.attributes("resumptionToken"), " completeListSize=\"60\" cursor=\"15\"");

    // In a new epoch serials mean other changes.
    running.collection.new_epoch(Stamp(NOON + 4_000)).unwrap();
    while running.send(get(&format!("verb=ListRecords&{DC}"))).await.status != StatusCode::OK {
        tokio::task::yield_now().await;
    }
    assert_eq!(running.ask(&token(&first)).await.codes(), ["badResumptionToken"]);
    assert_eq!(running.items("ListRecords", DC).await.len(), 60);
    running.stop().await;
}

fn get(query: &str) -> Request<Body> {
    Request::get(format!("/oai?{query}")).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn identifiers_stay_when_the_address_changes() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, vec![text(0)]);
    let running = Running::start(dir.path(), collection, settings(5)).await;
    let moved = |host: &str| Daemon {
        name: "Library".to_owned(),
        id: G.to_owned(),
        base_url: Some(url::Url::parse(&format!("https://{host}/")).unwrap()),
        syndication: None,
    };
    let repository_id = async |running: &Running| {
        let identify = running.ask("verb=Identify").await;
        identify.one("repositoryIdentifier").to_owned()
    };
    // The identifiers are fixed only once one of them was served.
    running.repository.set(settings(5), moved("b.example"));
    assert_eq!(repository_id(&running).await, "b.example");
    let headers = running.ask(&format!("verb=ListIdentifiers&{DC}")).await;
    assert!(headers.one("identifier").starts_with("oai:b.example:"), "{headers:?}");
    running.repository.set(settings(5), moved("c.example"));
    assert_eq!(repository_id(&running).await, "b.example");
    running.stop().await;
    let running = Running::start(dir.path(), open(dir.path()), settings(5)).await;
    assert_eq!(repository_id(&running).await, "b.example");
    let said = oai::RepositoryId::parse("d.example");
    let settings = Settings { repository_identifier: said, ..settings(5) };
    running.repository.set(settings, moved("c.example"));
    assert_eq!(repository_id(&running).await, "d.example");
    running.stop().await;
}

#[tokio::test]
async fn a_token_expires_when_deletions_are_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, (0..9).map(text).collect());
    let running = Running::start(dir.path(), collection, settings(3)).await;
    let old = running.ask(&format!("verb=ListRecords&{DC}")).await;
    commit(&running.collection, 1, vec![delete(G, "http://h/0")]);
    let since = running.ask(&format!("verb=ListRecords&{DC}")).await;
    let forgotten = clock::now_ms() + 61 * 86_400_000;
    running.collection.compact(Stamp(forgotten)).unwrap();
    assert!(0 < running.collection.horizon());
    assert_eq!(running.ask(&token(&old)).await.codes(), ["badResumptionToken"]);
    assert_eq!(running.ask(&token(&since)).await.items(), ["4", "5", "6"]);
    let rest = running.items("ListIdentifiers", DC).await;
    assert_eq!(rest, ["1", "2", "3", "4", "5", "6", "7", "8"]);
    let gone = running.ask(&format!("verb=GetRecord&{DC}&identifier={OURS}0")).await;
    assert_eq!(gone.codes(), ["idDoesNotExist"]);
    running.stop().await;
}

#[tokio::test]
async fn sets_are_rebuilt_if_their_file_is_damaged_or_old() {
    let dir = tempfile::tempdir().unwrap();
    let sets = dir.path().join("oai/sets");
    let collection = open(dir.path());
    commit(&collection, 0, (0..9).map(text).collect());
    Running::start(dir.path(), collection, settings(100)).await.stop().await;
    let old = fs::read(&sets).unwrap();
    let mut damaged = old.clone();
    damaged[20] ^= 1;
    for (file, round) in [(Some(damaged), 1_usize), (Some(old), 2), (None, 3)] {
        match file {
            Some(bytes) => fs::write(&sets, bytes).unwrap(),
            None => fs::remove_file(&sets).unwrap(),
        }
        let collection = open(dir.path());
        commit(&collection, round as u64, vec![update(G, &format!("http://h/x{round}"), "PDF")]);
        let running = Running::start(dir.path(), collection, settings(100)).await;
        assert_eq!(running.items("ListRecords", &format!("{DC}&set=type:PDF")).await.len(), round);
        assert_eq!(running.items("ListRecords", DC).await.len(), 9 + round);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_list_with_damaged_records_is_refused_for_now() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    for n in 0..40_u32 {
        commit(&collection, n.into(), vec![update(G, &format!("http://h/{n}"), "Text")]);
    }
    let running = Running::start(dir.path(), collection, settings(3)).await;
    let first = running.ask(&format!("verb=ListRecords&{DC}")).await;
    let files = fs::read_dir(dir.path().join("collection")).unwrap().map(|it| it.unwrap().path());
    let segments: Vec<_> = files.filter(|it| it.extension().is_some_and(|it| it == "gz")).collect();
    assert!(1 < segments.len());
    // Damage the end of the first segment: the beginning of the list stays intact.
    let path = segments.iter().min().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.len() - 10;
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
    let (mut query, mut refused) = (token(&first), 0);
    for _ in 0..14 {
        let found = running.send(get(&query)).await;
        if found.status == StatusCode::SERVICE_UNAVAILABLE {
            assert_eq!(found.header("retry-after"), "60");
            assert!(found.text.contains("damaged"), "{found:?}");
            refused += 1;
            break;
        }
        query = token(&found);
    }
    assert_eq!(refused, 1);
    // Other parts are unchanged.
    let from = "from=2026-01-31T12:00:39Z";
    assert_eq!(running.items("ListRecords", &format!("{DC}&{from}")).await, ["39"]);
    running.stop().await;
}

/// This is the purpose of `responseDate`: a harvester that continues from it misses no commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_later_change_has_an_earlier_datestamp_than_a_response() {
    // All commits of the test fit into one response.
    const LONG_LIST: u64 = 1_000_000;
    let dir = tempfile::tempdir().unwrap();
    let (collection, _) =
        collection::Collection::open(dir.path(), Options::default(), Stamp(NOON)).unwrap();
    let running = Running::start(dir.path(), collection, settings(LONG_LIST)).await;
    let writer = running.collection.clone();
    let end = clock::now_ms() + 1_500;
    let writing = std::thread::spawn(move || {
        let mut n = 0;
        while clock::now_ms() < end {
            // The clock is read some milliseconds before the commit.
            let now = Stamp(clock::now_ms());
            let changes = (0..5)
                .map(|_| {
                    n += 1;
                    text(n)
                })
                .collect();
            writer.commit(Batch { changes, notes: Vec::new() }, now).unwrap();
        }
    });
    let mut told = Vec::new();
    while clock::now_ms() < end {
        let request = get(&format!("verb=ListIdentifiers&{DC}"));
        let found = running.send(request).await;
        told.push((found.one("responseDate").to_owned(), found.items().len()));
    }
    writing.join().unwrap();
    let all = running.send(get(&format!("verb=ListIdentifiers&{DC}"))).await;
    let mut dates: BTreeMap<&str, usize> = BTreeMap::new();
    for date in all.all("datestamp") {
        *dates.entry(date).or_default() += 1;
    }
    assert!(1 < dates.len() && 1 < told.len(), "{dates:?}");
    for (date, seen) in told {
        let until: usize = dates.range(..=date.as_str()).map(|(_, count)| count).sum();
        assert!(until <= seen, "{until} have datestamps up to {date}, and {seen} were told");
    }
    running.stop().await;
}
