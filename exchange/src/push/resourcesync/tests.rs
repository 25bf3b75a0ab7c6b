//! Tests of ResourceSync, from the well-known address on.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use collection::{Batch, GATHERER_ID, Options};
use http::Request;
use oai::Datestamp;
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::*;

const GATHERER: &str = "00000000000000aa";

/// 2026-01-01T00:00:00Z
const START_MS: u64 = 1_767_225_600_000;

struct Site {
    collection: Collection,
    turns: Arc<Semaphore>,
    router: Router,
    _dir: TempDir,
}

impl Site {
    fn new(base_url: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _) =
            Collection::open(dir.path(), Options::default(), Stamp(START_MS)).unwrap();
        let base_url = base_url.map(|it| Url::parse(it).unwrap());
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let pages = Pages {
            collection: collection.clone(),
            base_url,
            turns: turns.clone(),
            part_serials: 100,
        };
        let router = router(pages);
        Self { collection, turns, router, _dir: dir }
    }

    fn commit(&self, changes: Vec<Change>, secs: u64) {
        let batch = Batch { changes, notes: Vec::new() };
        self.collection.commit(batch, Stamp(START_MS + secs * 1_000)).unwrap();
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).header(header::HOST, "h:8500");
        let response =
            self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn document(&self, url: &str) -> String {
        let url = Url::parse(url).unwrap();
        let (status, text) = self.get(url.path()).await;
        assert_eq!(status, StatusCode::OK, "{url}: {text}");
        text
    }

    /// Follows the well-known address to a list.
    async fn list(&self, capability: Capability) -> String {
        let mut url = "http://h:8500/.well-known/resourcesync".to_owned();
        for wanted in [Capability::CapabilityList, capability] {
            let document = self.document(&url).await;
            let name = format!("\"{}\"", wanted.name());
            let entry = entries(&document).into_iter().find(|it| it.contains(&name));
            locs(entry.unwrap())[0].clone_into(&mut url);
        }
        self.document(&url).await
    }
}

/// Returns the entries of a document: each has a line of its own.
fn entries(document: &str) -> Vec<&str> {
    let is_entry = |it: &&str| it.starts_with("<url>") || it.starts_with("<sitemap>");
    document.lines().filter(is_entry).collect()
}

fn locs(text: &str) -> Vec<&str> {
    text.split("<loc>").skip(1).map(|it| it.split_once("</loc>").unwrap().0).collect()
}

fn update(n: u64) -> Change {
    let mut record = Record::new("FILE", format!("http://h/{n}"));
    record.push("MD5", format!("{n:032x}"));
    record.push("File-Size", n.to_string());
    record.push(GATHERER_ID, GATHERER);
    Change::Update(record)
}

fn at(secs: u64) -> Datestamp {
    datestamp(Stamp(START_MS + secs * 1_000))
}

/// Returns the entry of an object that was changed at `secs`; `change` is its attributes in a list
/// of changes.
fn resource(n: u64, secs: u64, change: &str) -> String {
    format!(
        "<url><loc>http://h/{n}</loc><lastmod>{}</lastmod>\
         <rs:md{change} hash=\"md5:{n:032x}\" length=\"{n}\"/></url>",
        at(secs)
    )
}

#[tokio::test]
async fn objects_and_changes_are_listed() {
    let site = Site::new(None);
    site.commit(vec![update(1), update(2), update(3)], 0);
    site.commit(vec![update(2), Change::Refresh(Oid::new(GATHERER, "http://h/1"), None)], 10);
    site.commit(vec![Change::Delete(Oid::new(GATHERER, "http://h/3"))], 20);

    let list = site.list(Capability::ResourceList).await;
    assert_eq!(entries(&list), [resource(1, 0, ""), resource(2, 10, "")]);
    let head = "<rs:ln rel=\"up\" href=\"http://h:8500/resourcesync/capabilitylist.xml\"/>\
                <rs:md capability=\"resourcelist\" at=\"";
    assert!(list.contains(head) && list.contains("<urlset "), "{list}");

    let changes = site.list(Capability::ChangeList).await;
    let change = |name, secs| format!(" change=\"{name}\" datetime=\"{}\"", at(secs));
    let updated = |n, secs| resource(n, secs, &change("updated", secs));
    let gone = format!(
        "<url><loc>http://h/3</loc><lastmod>{}</lastmod><rs:md{}/></url>",
        at(20),
        change("deleted", 20)
    );
    let expected = [updated(1, 0), updated(2, 0), updated(3, 0), updated(2, 10), gone];
    assert_eq!(entries(&changes), expected);
    assert!(changes.contains(&changes_since(0)), "{changes}");
}

fn changes_since(secs: u64) -> String {
    format!("<rs:md capability=\"changelist\" from=\"{}\"/>", at(secs))
}

#[tokio::test]
async fn an_empty_collection_has_empty_lists_at_its_public_address() {
    let site = Site::new(Some("https://x.example/a/"));
    let (_, text) = site.get("/.well-known/resourcesync").await;
    assert_eq!(locs(&text), ["https://x.example/a/resourcesync/capabilitylist.xml"]);
    for list in ["resourcelist", "changelist"] {
        let (status, text) = site.get(&format!("/resourcesync/{list}.xml")).await;
        assert_eq!((status, entries(&text).len()), (StatusCode::OK, 0));
    }
    for path in
        ["list.xml", "resourcelist", "description.xml", "changelist/x.xml", "changelist/1.xml"]
    {
        assert_eq!(site.get(&format!("/resourcesync/{path}")).await.0, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_closed_daemon_has_no_lists_until_it_is_opened() {
    let site = Site::new(None);
    let is_open = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&is_open);
    let open = move || seen.load(Ordering::SeqCst);
    let router = routes(site.collection.clone(), None, open);
    let site = Site { router, ..site };
    for expected in [true, false, true] {
        is_open.store(expected, Ordering::SeqCst);
        for path in [WELL_KNOWN, "/resourcesync/resourcelist.xml", "/resourcesync/changelist/0.xml"]
        {
            let (status, said) = site.get(path).await;
            let wanted = if expected { StatusCode::OK } else { StatusCode::NOT_FOUND };
            assert!(status == wanted && (expected || said.contains("[oai]")), "{path}: {said}");
        }
    }
}

#[tokio::test]
async fn a_long_list_is_an_index_of_disjoint_parts() {
    let site = Site::new(None);
    let all = 100 + 30;
    let updates: Vec<Change> = (1..=all).map(update).collect();
    site.commit(updates, 0);
    // These move from the first part to the last.
    site.commit(vec![update(7), Change::Delete(Oid::new(GATHERER, "http://h/8"))], 10);
    for capability in [Capability::ResourceList, Capability::ChangeList] {
        let index = site.list(capability).await;
        assert!(index.contains("<sitemapindex ") && entries(&index).len() == 2, "{index}");
        let mut all_locs = Vec::new();
        let name = capability.name();
        for part in locs(&index) {
            let list = site.document(part).await;
            assert!(list.contains("<urlset ") && list.contains(&format!("\"{name}\"")), "{list}");
            let above = format!("rel=\"index\" href=\"http://h:8500/resourcesync/{name}.xml\"");
            assert!(list.contains(&above), "{list}");
            assert!(entries(&list).len() as u64 <= 100);
            all_locs.extend(locs(&list).into_iter().map(str::to_owned));
        }
        if capability == Capability::ChangeList {
            assert!(index.contains(&changes_since(0)), "who comes again sees that it reaches back");
            assert_eq!(all_locs.len() as u64, all + 2);
            continue;
        }
        assert_eq!(all_locs.last().map(String::as_str), Some("http://h/7"));
        all_locs.sort();
        all_locs.dedup();
        assert_eq!(all_locs.len() as u64, all - 1);
        assert!(!all_locs.contains(&"http://h/8".to_owned()));
    }
}

#[tokio::test]
async fn objects_without_a_web_address_are_left_out() {
    let site = Site::new(None);
    let named = |url: &str| {
        let mut record = Record::new("FILE", url);
        record.push(GATHERER_ID, GATHERER);
        Change::Update(record)
    };
    site.commit(vec![named("oai:a:1"), named("file:///b")], 0);
    site.commit(vec![named("https://c/"), Change::Delete(Oid::new(GATHERER, "oai:a:1"))], 10);
    let list = site.list(Capability::ResourceList).await;
    let expected = format!("<url><loc>https://c/</loc><lastmod>{}</lastmod></url>", at(10));
    assert_eq!(entries(&list), [expected]);
    let changes = site.list(Capability::ChangeList).await;
    assert!(entries(&changes).len() == 1 && changes.contains(&changes_since(0)), "{changes}");
}

/// Making a list takes long, so a client that hangs up and repeats its request must not start it
/// many times at once.
#[tokio::test]
async fn a_turn_lasts_until_the_list_is_made() {
    let site = Site::new(None);
    let pages = Pages {
        collection: site.collection.clone(),
        base_url: None,
        turns: site.turns.clone(),
        part_serials: 100,
    };
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let making = pages.respond_with(move |_| {
        let _ = begun.send(());
        let _ = wait.recv();
        Ok(Document::description("http://h/"))
    });
    let waiting = tokio::spawn(making);
    begins.await.unwrap();
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(site.turns.available_permits(), AT_ONCE - 1, "it is still being made");
    drop(go);
    let all = u32::try_from(AT_ONCE).unwrap();
    let _turns = site.turns.acquire_many(all).await.unwrap();
}
