//! Tests of the switch on the search page for searches everywhere: a field of its form, which needs no script.

use broker::config::Config;
use daemon::announce::Registries;
use net::client::Request;
use net::clock;

use crate::cascade::finds;
use crate::common::{Origin, Running, STEP_MAX, client, config, url_of};

/// The switch, without its state.
const SWITCH: &str = "<input type=\"checkbox\" name=\"scope\" value=\"everywhere\"";

async fn page(broker: &Running, path: &str) -> String {
    let url = url_of(broker.address).join(path).unwrap();
    let response = client().send(Request::get(url)).await.unwrap();
    assert_eq!(response.status, 200, "{path}");
    String::from_utf8(response.bytes(1 << 20).await.unwrap().to_vec()).unwrap()
}

/// Returns the form of a search page.
fn form(page: &str) -> &str {
    let form = page.split_once("<form class=\"search\"").unwrap().1;
    form.split_once("</form>").unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_is_there_when_there_are_others_to_ask() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |name: &str| config(&dir.path().join(name), Vec::new());
    let source = gatherer.source("gatherer");
    let other = Running::start(Config { sources: vec![source], ..settings("other") }).await;
    finds(&other, "object", 3).await;
    for path in ["", "?q=object"] {
        assert!(!form(&page(&other, path).await).contains("scope"), "{path}: it knows nobody");
    }

    let url = url_of(other.address);
    let lines = format!("name = \"n\"\ndata = \"d\"\n[[peer]]\nurl = \"{url}\"\n");
    let everywhere = Config::parse(&lines).unwrap().everywhere;
    let peered = Running::start(Config { everywhere, ..settings("peered") }).await;
    let mut registered = settings("registered");
    registered.daemon.registry = Registries { urls: vec![url], allow_private: None };
    let registered = Running::start(registered).await;
    for broker in [&peered, &registered] {
        let everywhere = "?q=object&scope=everywhere";
        for (path, state) in [("", ">"), ("?q=object", ">"), (everywhere, " checked>")] {
            let page = page(broker, path).await;
            let form = form(&page);
            assert!(form.contains(" method=\"get\">"), "{path}: {form}");
            assert!(form.contains(&format!("{SWITCH}{state}")), "{path}: {form}");
            assert_eq!(form.matches("name=\"scope\"").count(), 1, "{path}: {form}");
        }
    }

    // What the form sends with the switch and without it, as a browser does.
    let end = clock::monotonic() + STEP_MAX;
    loop {
        let found = page(&peered, "?q=object&scope=everywhere").await;
        assert!(form(&found).contains(" checked>"), "{found}");
        // It is asked once its summary says what it has.
        if found.contains("Object 1") {
            break;
        }
        assert!(clock::monotonic() < end, "{found}");
    }
    let found = page(&peered, "?q=object").await;
    assert!(!found.contains("Object 1"), "{found}");
    for broker in [peered, registered, other] {
        broker.stop().await;
    }
}
