//! Tests of a gatherer as an OAI-PMH repository: it lists gathered objects and deleted ones.

use std::fs;
use std::time::Duration;

use crate::support::{Bench, PATIENCE, Tree};
use gatherer::Config;
use gatherer::config::Watch;

/// Queries `/oai` until the answer is not 503, and returns its body.
async fn query_oai(bench: &Bench, query: &str) -> String {
    let end = net::clock::monotonic() + PATIENCE;
    loop {
        let (status, body) = bench.get(&format!("oai?{query}")).await;
        if status != 503 {
            assert_eq!(status, 200, "{body}");
            return body;
        }
        assert!(net::clock::monotonic() < end, "{body}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gathered_objects_can_be_harvested() {
    let tree = Tree::with(&["a.txt", "b.txt"]);
    let config = Config { name: "Docs".into(), watch: Watch::Off, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    let identify = query_oai(&bench, "verb=Identify").await;
    let base = format!("<baseURL>{}oai</baseURL>", bench.public);
    let id = format!("<repositoryIdentifier>harvest-{}.invalid<", bench.handle.id());
    for part in [
        "<repositoryName>Docs</repositoryName>",
        base.as_str(),
        id.as_str(),
        "<totalElements>2</totalElements>",
        // Every hour, by `rewalk`.
        "<updatePeriod>hourly</updatePeriod><updateFrequency>1</updateFrequency><updateBase>20",
    ] {
        assert!(identify.contains(part), "{part} is not in {identify}");
    }
    let list = query_oai(&bench, "verb=ListRecords&metadataPrefix=oai_dc").await;
    assert_eq!(list.matches("<record>").count(), 2);
    assert!(list.contains("a.txt</"), "{list}");
    let sets = query_oai(&bench, "verb=ListSets").await;
    assert!(sets.contains(&format!("<setSpec>gatherer:{}</setSpec>", bench.handle.id())));

    fs::remove_file(bench.tree.path("a.txt")).unwrap();
    bench.gather().await;
    let list = query_oai(&bench, "verb=ListIdentifiers&metadataPrefix=soif").await;
    assert_eq!((list.matches("<header>").count(), list.matches("<header status").count()), (1, 1));
    let (_, page) = bench.get("").await;
    assert!(page.contains("<a href=\"/oai?verb=Identify\">OAI-PMH</a>"), "{page}");
    let (_, metrics) = bench.get_admin("metrics").await;
    assert!(metrics.contains("harvest_oai_records_total 4\n"), "{metrics}");
    let (tree, took) = bench.stop().await;
    assert!(took.as_millis() < 2_000, "{took:?}");
    assert!(tree.data().join("oai/sets").exists());

    let off = exchange::repository::Settings { enabled: false, ..Default::default() };
    let config = Config { oai: off, ..tree.config() };
    let bench = Bench::start_with(tree, config).await;
    assert_eq!(bench.get("oai?verb=Identify").await.0, 404);
    assert!(!bench.get("").await.1.contains("OAI-PMH"));
    let mut on = bench.tree.config();
    on.oai.repository_name = Some("Other".to_owned());
    bench.handle.reload(on).unwrap();
    let list = query_oai(&bench, "verb=ListRecords&metadataPrefix=oai_dc").await;
    assert_eq!(list.matches("<record>").count(), 2);
    let identify = query_oai(&bench, "verb=Identify").await;
    assert!(identify.contains("<repositoryName>Other</repositoryName>"), "{identify}");
    bench.stop().await;
}
