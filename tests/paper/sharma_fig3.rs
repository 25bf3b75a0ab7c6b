//! Test of Sharma et al., figure 3: the OAI-PMH search service, from its metadata repository on.
//!
//! The figure's second phase, module by module:
//!
//! | in the paper | here |
//! |---|---|
//! | metadata repository, updated in batches | a collection, and a commit for each batch |
//! | OAI-PMH layer | `/oai` over it |
//! | automatic request generator (table II) | requests of the six verbs, selective by timestamps and set |
//! | XML response pages in the search engine's database | files, as they came |
//! | indexing, and the answer to a query | the broker's index |
//!
//! # Differences from the paper
//!
//! * The gatherer does the first phase, the extraction of metadata from PDF files by agents; here the
//!   metadata are given.
//! * The paper does not say how the generator chooses its requests; here it uses Identify, ListSets,
//!   ListMetadataFormats and the tokens.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use broker::answer::SearchRequest;
use broker::index::{Index, IndexOptions};
use collection::{Batch, Change, Collection, Oid, Options, Stamp};
use exchange::repository::{Daemon, Repository, Settings};
use net::client::{Client, Request as Get};
use net::server::{self, Limits};
use net::shutdown::Shutdown;
use oai::crosswalk::{SourceIdentity, object_name, to_soif};
use oai::response::{Body, Page, Record, read};
use oai::{Datestamp, Listed, Request, Scope, Selection, Verb};
use query::parse;
use soif::Record as Soif;
use tokio::task::JoinSet;
use url::Url;

const GATHERER: &str = "0123456789abcdef";

/// The papers, by number: the metadata that the paper's agents found in them.
const PAPERS: [(&str, &str, &str); 6] = [
    ("PDF", "Crawling the hidden web", "Raghavan"),
    ("PDF", "A gateway service for web crawlers", "Liu"),
    ("HTML", "The deep web: surfacing hidden value", "Bergman"),
    ("PDF", "Metadata extraction from theses", "Giles"),
    ("HTML", "A service for cross-archive searching", "Liu"),
    ("PDF", "An Apache module for harvesting", "Nelson"),
];

/// The day of each commit of two papers, and its milliseconds since 1970, at the time of day of
/// table I: `date -u -d 2009-06-21T06:30:42Z +%s`.
const BATCHES: [(&str, u64); 3] = [
    ("2009-06-21", 1_245_565_842_000),
    ("2009-06-22", 1_245_652_242_000),
    ("2009-06-23", 1_245_738_642_000),
];

fn url(number: usize) -> String {
    format!("http://www.example.org/papers/{number}")
}

/// Builds the metadata repository: three batches, then one paper withdrawn.
fn metadata_repository(dir: &Path) -> Collection {
    let collection = Collection::open(dir, Options::default(), Stamp(1)).unwrap().0;
    let commit = |changes, at| {
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(at)).unwrap();
    };
    for (batch, (_, at)) in BATCHES.iter().enumerate() {
        let items = PAPERS.iter().enumerate().skip(batch * 2).take(2);
        let update = |(number, (kind, title, author)): (usize, &(&str, &str, &str))| {
            let mut record = Soif::new("FILE", url(number));
            for (name, value) in
                [("Gatherer-Id", GATHERER), ("Title", *title), ("Author", *author), ("Type", *kind)]
            {
                record.push(name, value);
            }
            Change::Update(record)
        };
        commit(items.map(update).collect(), *at);
    }
    commit(vec![Change::Delete(Oid::new(GATHERER, &url(0)))], BATCHES[2].1 + 60_000);
    collection
}

/// The request generator, and the database of the pages that it stores.
struct Generator {
    client: Client,
    base: Url,
    database: PathBuf,
    pages: usize,
    verbs: BTreeSet<&'static str>,
}

impl Generator {
    /// Makes a request, stores its page, and returns the response.
    async fn make(&mut self, request: &Request) -> Body {
        let mut url = self.base.clone();
        url.set_query(Some(&request.to_query()));
        let response = self.client.send(Get::get(url).allow_private(true)).await.unwrap();
        let bytes = response.require_success().await.unwrap().bytes(1 << 20).await.unwrap();
        let verb = request.verb();
        let page = self.database.join(format!("{:03}-{}.xml", self.pages, verb.name()));
        fs::write(page, &bytes).unwrap();
        self.pages += 1;
        self.verbs.insert(verb.name());
        read(&bytes, verb).unwrap().response.body
    }

    /// Requests all pages of a list; returns its identifiers.
    async fn list(&mut self, listed: Listed, selection: Selection) -> BTreeSet<String> {
        fn ids<T>(page: &Page<T>, id: impl Fn(&T) -> &str) -> Vec<String> {
            page.items.iter().map(|it| id(it).to_owned()).collect()
        }
        let mut all = BTreeSet::new();
        let mut scope = Scope::Selection(selection);
        loop {
            let (items, token) = match self.make(&Request::List { listed, scope }).await {
                Body::Records(page) => (ids(&page, |it| &it.header.identifier), page.token),
                Body::Headers(page) => (ids(&page, |it| &it.identifier), page.token),
                Body::Faults(_) => return all,
                other => panic!("{other:?}"),
            };
            all.extend(items);
            match token.map(|it| it.value).filter(|it| !it.is_empty()) {
                Some(token) => scope = Scope::Token(token),
                None => return all,
            }
        }
    }
}

fn selection(from: Option<&str>, until: Option<&str>, set: Option<&str>) -> Selection {
    let day = |text: Option<&str>| text.map(|it| Datestamp::parse(it).unwrap());
    let (from, until, set) = (day(from), day(until), set.map(str::to_owned));
    Selection { prefix: "oai_dc".to_owned(), from, until, set }
}

/// Reads the records of the stored pages, in their order.
fn stored(database: &Path) -> Vec<Record> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(database).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let mut records = Vec::new();
    for file in files {
        let name =
            file.file_stem().unwrap().to_str().unwrap().split_once('-').unwrap().1.to_owned();
        let verb = Verb::by_name(&name).unwrap();
        match read(&fs::read(&file).unwrap(), verb).unwrap().response.body {
            Body::Records(page) => records.extend(page.items),
            Body::Record(record) => records.push(*record),
            _ => {}
        }
    }
    records
}

#[tokio::test]
async fn metadata_are_found_through_the_oai_pmh_layer() {
    let dir = tempfile::tempdir().unwrap();
    let mut tasks = JoinSet::new();
    let shutdown = Shutdown::new();

    // Metadata repository and OAI-PMH layer.
    let repository = Repository::new(
        metadata_repository(&dir.path().join("metadata")),
        Settings { page_records: 2, ..Settings::default() },
        Daemon { name: "Papers".to_owned(), id: GATHERER.to_owned(), ..Daemon::default() },
        dir.path().join("sets"),
    );
    let (keeper, until) = (repository.clone(), shutdown.clone());
    tasks.spawn(async move { keeper.keep(until).await });
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let base = Url::parse(&format!("http://{}/oai", listener.local_addr().unwrap())).unwrap();
    let (routes, until) = (repository.routes(), shutdown.clone());
    tasks.spawn(
        async move { server::serve(listener, routes, Limits::default(), until).await.unwrap() },
    );
    while repository.counters().ready == 0 {
        tokio::task::yield_now().await;
    }

    // Automatic request generator.
    let database = dir.path().join("database");
    fs::create_dir(&database).unwrap();
    let client = Client::new(net::client::Settings::default());
    let (pages, verbs) = (0, BTreeSet::new());
    let mut generator = Generator { client, base: base.clone(), database, pages, verbs };
    let Body::Identify(identify) = generator.make(&Request::Identify).await else { panic!() };
    assert_eq!(identify.repository_name, "Papers");
    assert!(
        identify.earliest_datestamp.unwrap() <= Datestamp::parse("2009-06-21T06:30:42Z").unwrap()
    );
    let formats = generator.make(&Request::Formats { identifier: None }).await;
    let Body::Formats(formats) = formats else { panic!("{formats:?}") };
    assert!(formats.iter().any(|it| it.prefix == "oai_dc"));
    let Body::Sets(sets) = generator.make(&Request::Sets { token: None }).await else { panic!() };
    let sets: BTreeSet<String> = sets.items.into_iter().map(|it| it.spec).collect();
    assert!(sets.contains("type:PDF") && sets.contains("type:HTML"), "{sets:?}");
    check_selections(&mut generator).await;
    let all = generator.list(Listed::Records, selection(None, None, None)).await;
    assert_eq!(all.len(), PAPERS.len());
    for identifier in &all {
        let (identifier, prefix) = (identifier.clone(), "oai_dc".to_owned());
        let got = generator.make(&Request::Get { identifier, prefix }).await;
        assert!(matches!(got, Body::Record(_)), "{got:?}");
    }
    assert_eq!(generator.verbs.len(), Verb::ALL.len());

    // The search engine's index is built from the stored pages alone.
    let records = stored(&generator.database);
    let source = SourceIdentity::new(base.as_str());
    let engine = dir.path().join("engine");
    let engine = Collection::open(&engine, Options::default(), Stamp(1)).unwrap().0;
    let mut changes = BTreeMap::new();
    for record in &records {
        let name = object_name(&record.header, "oai_dc", &source).unwrap();
        let change = match record.header.deleted {
            true => Change::Delete(Oid::new(&name.gatherer_id, &name.url)),
            false => Change::Update(to_soif(record, "oai_dc", &source, false).0),
        };
        changes.insert(name, change);
    }
    let changes = changes.into_values().collect();
    engine.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
    let index = Index::open(&dir.path().join("index"), IndexOptions::default()).unwrap();
    index.apply(&engine, &|| false).unwrap();
    check_queries(&index);
    shutdown.start();
    while tasks.join_next().await.is_some() {}
}

/// Checks selective harvesting by timestamps, by set, and by both (the paper's two examples).
async fn check_selections(generator: &mut Generator) {
    let [first, second, third] = BATCHES.map(|(day, _)| day);
    let cases = [
        // The withdrawn paper has the datestamp of its withdrawal.
        (selection(None, Some(first), None), &[1][..]),
        (selection(Some(second), Some(second), None), &[2, 3]),
        (selection(Some(third), None, None), &[0, 4, 5]),
        (selection(Some(second), None, Some("type:HTML")), &[2, 4]),
        (selection(None, Some(second), Some("type:PDF")), &[1, 3]),
        (selection(Some("2009-06-24"), None, None), &[]),
    ];
    for (selection, expected) in cases {
        let headers = generator.list(Listed::Identifiers, selection.clone()).await;
        let records = generator.list(Listed::Records, selection.clone()).await;
        assert_eq!(headers, records, "{selection:?}");
        let has = |number: &usize| {
            let wanted = url(*number);
            let is = |it: &&String| oai::Identifier::read(it).is_some_and(|it| it.url == wanted);
            headers.iter().any(|it| is(&it))
        };
        // Deletions are on the list of every type, as a deleted record has no type.
        let found: Vec<usize> = (0..PAPERS.len())
            .filter(|it| has(it) && (*it != 0 || selection.set.is_none()))
            .collect();
        assert_eq!(found, expected, "{selection:?}");
    }
}

fn check_queries(index: &Index) {
    let titles = |query: &str| -> BTreeSet<String> {
        let request = SearchRequest::new(parse(query).unwrap(), query);
        let answer = index.search(&request).unwrap();
        answer.hits.into_iter().map(|it| it.title).collect()
    };
    for (query, expected) in [
        ("author:liu", vec![1, 4]),
        ("title:\"hidden value\"", vec![2]),
        ("harvesting AND author:nelson", vec![5]),
        ("metadata OR gateway", vec![1, 3]),
        // Withdrawn.
        ("author:raghavan", vec![]),
    ] {
        let expected: BTreeSet<String> =
            expected.into_iter().map(|it: usize| PAPERS[it].1.to_owned()).collect();
        assert_eq!(titles(query), expected, "{query}");
    }
}
