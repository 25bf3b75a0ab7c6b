//! Test of a broker that reads a replica from its directory: it answers as the primary does.

use std::time::Duration;

use broker::source::{Kind, Source};
use collection::Version;
use collection::pull::FeedClient;
use collection::replica::Follower;
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use crate::common::{Origin, Running, STEP_MAX, client, config, url_of};

async fn hits(broker: &Running, query: &str) -> Vec<String> {
    let found = broker.search(query).await;
    let url = |it: &Value| it["url"].as_str().unwrap().to_owned();
    found["hits"].as_array().unwrap().iter().map(url).collect()
}

/// Follows until the folder reaches a version.
async fn follow(follower: &mut Follower, version: Version) {
    let followed = async {
        while follower.version() != Some(version) {
            follower.follow(Duration::from_secs(1)).await.unwrap();
        }
    };
    timeout(STEP_MAX, followed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_at_a_replica_equals_the_primary_s() {
    let gatherer = Origin::start("00000000000000aa").await;
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("papers");
    let primary = config(&dir.path().join("primary"), vec![gatherer.source("gatherer")]);
    let primary = Running::start(primary).await;
    let url = Url::from_file_path(&link).unwrap();
    let replica = Source { kind: Kind::Replica, follow: true, ..Source::gatherer("papers", url) };
    let secondary = Running::start(config(&dir.path().join("secondary"), vec![replica])).await;
    // A missing replica is an error, and is tried again.
    let status = secondary.until("named", |it| it.sources[0].errors.last.is_some()).await;
    let error = status.sources[0].errors.last.as_ref().unwrap();
    assert!(error.contains("the replica has not come yet"), "{error}");

    let log = dir.path().join("log");
    let base = url_of(primary.address);
    let ask = FeedClient::new(client(), base, "primary").allow_private(true);
    let mut follower = Follower::open(ask, log.clone()).await.unwrap();
    let (mut kept, mut rounds) = (Vec::new(), Vec::new());
    for round in 0..4_u64 {
        let text = format!("round{round} word{}", round % 2);
        let mut version = gatherer.update(round * 10..40, &text).await;
        if round == 2 {
            version = gatherer.delete([25, 35]).await;
        }
        primary.caught_up("gatherer", version).await;
        let reached = primary.handle.version();
        follow(&mut follower, reached).await;
        if round == 0 {
            std::os::unix::fs::symlink(&log, &link).unwrap();
        }
        secondary.caught_up("papers", reached).await;
        for query in ["round0", "round3", "word1", "number25 OR number26", "object"] {
            let expected = hits(&primary, query).await;
            assert_eq!(hits(&secondary, query).await, expected, "{query} in round {round}");
            kept.push(expected.len());
        }
        rounds.push(reached);
    }
    assert!(kept.contains(&40) || kept.contains(&38), "{kept:?}");
    assert!(rounds.windows(2).all(|it| it[0] < it[1]), "{rounds:?}");
    secondary.stop().await;
    primary.stop().await;
}
