//! Test of a broker as an OAI-PMH repository of its collection.

use std::time::Duration;

use crate::common::{Origin, Running, client, config, object_url, url_of};
use net::client::Request;

const A: &str = "000000000000000a";
const B: &str = "000000000000000b";

#[tokio::test(flavor = "multi_thread")]
async fn the_collection_can_be_harvested_by_gatherer() {
    let (a, b) = (Origin::start(A).await, Origin::start(B).await);
    let (in_a, in_b) = (a.update(1..=5, "alpha").await, b.update(1..=3, "beta").await);
    let dir = tempfile::tempdir().unwrap();
    let mut settings = config(dir.path(), vec![a.source("a"), b.source("b")]);
    settings.oai.page_records = 4;
    let broker = Running::start(settings).await;
    broker.caught_up("a", in_a).await;
    broker.caught_up("b", in_b).await;
    let in_a = a.delete(1..3).await;
    broker.caught_up("a", in_a).await;
    let fetch = async |address, path: &str| {
        let url = url_of(address).join(path).unwrap();
        let response = client().send(Request::get(url)).await.unwrap();
        let status = response.status;
        (status, String::from_utf8(response.bytes(1 << 20).await.unwrap().to_vec()).unwrap())
    };
    let ask = async |query: &str| {
        let end = net::clock::monotonic() + Duration::from_secs(30);
        loop {
            let (status, body) = fetch(broker.address, &format!("oai?{query}")).await;
            if status.is_success() {
                return body;
            }
            assert!(net::clock::monotonic() < end, "{body}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let first = ask("verb=ListRecords&metadataPrefix=soif").await;
    assert!(first.contains("completeListSize=\"8\" cursor=\"0\""), "{first}");
    let token = first.split("cursor=\"0\">").nth(1).unwrap().split('<').next().unwrap();
    let second = ask(&format!("verb=ListRecords&resumptionToken={token}")).await;
    let all = first + &second;
    assert_eq!(
        (all.matches("<record>").count(), all.matches("status=\"deleted\"").count()),
        (8, 2)
    );
    assert!(all.contains(&format!("url=\"{}\"", object_url(5))), "{all}");
    let of_b = ask(&format!("verb=ListIdentifiers&metadataPrefix=oai_dc&set=gatherer:{B}")).await;
    assert_eq!(of_b.matches("<header>").count(), 3, "{of_b}");
    let (_, page) = fetch(broker.address, "").await;
    assert!(page.contains("<a href=\"/oai?verb=Identify\">OAI-PMH</a>"), "{page}");
    let (_, metrics) = fetch(broker.admin, "metrics").await;
    assert!(metrics.contains("harvest_oai_records_total 11\n"), "{metrics}");
    broker.stop().await;
}
