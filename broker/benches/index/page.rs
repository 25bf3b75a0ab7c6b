//! Benchmarks of a request, to the last byte of its answer: a page of ten hits with snippets, and an
//! answer of the API without them.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use broker::answer::SearchRequest;
use broker::engine::Engine;
use broker::index::Index;
use broker::page::{PageState, TEMPLATES, routes};
use net::clock;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use crate::corpus::Corpus;
use crate::engine::Hand;
use crate::{cpu_secs, median_and_p95};

const ROUNDS: usize = 20;

/// Requests over an index and its collection.
struct Requests {
    router: Router,
    runtime: Runtime,
}

impl Requests {
    fn new(index: &Index, corpus: &Corpus) -> Self {
        let pages = web::Pages::new(web::Site::new("Bench"), TEMPLATES, None).unwrap();
        let engine = Engine::Index(index.clone());
        let router = routes(PageState::new(engine, corpus.collection.clone(), pages));
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        Self { router, runtime }
    }

    /// Returns the length of the answer in bytes.
    fn get(&self, uri: &str) -> usize {
        self.runtime.block_on(async {
            let request = Request::get(uri).body(Body::empty()).unwrap();
            let response = self.router.clone().oneshot(request).await.unwrap();
            assert!(response.status().is_success(), "{uri}");
            axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap().len()
        })
    }
}

fn query(text: &str) -> String {
    let mut uri = url::Url::parse("http://localhost/").unwrap();
    uri.query_pairs_mut().append_pair("q", text);
    uri.query().unwrap().to_owned()
}

/// Compares an answer of the API without snippets and facets with the engine's time.
pub(crate) fn plain(index: &Index, corpus: &Corpus) {
    const TIMES: u32 = 200;
    let requests = Requests::new(index, corpus);
    let searcher = index.engine().reader().unwrap().searcher();
    let hand = Hand::new(index, &searcher);
    println!("\nwithout snippets and facets, CPU µs     API   engine    ratio   (at most 2)");
    let (mut api_sum, mut engine_sum) = (0.0, 0.0);
    for (text, _) in hand.standing() {
        let uri = format!("/api/search?{}&snippets=false&facets=false", query(&text));
        let mut request = SearchRequest::new(query::parse(&text).unwrap(), text.clone());
        (request.facets, request.snippets) = (false, false);
        let (start, mut bytes) = (cpu_secs(), 0);
        for _ in 0..TIMES {
            bytes += requests.get(&uri);
        }
        let api = (cpu_secs() - start) * 1e6 / f64::from(TIMES);
        let start = cpu_secs();
        for _ in 0..TIMES {
            bytes += index.rank(&request).unwrap().oids.len();
        }
        let engine = (cpu_secs() - start) * 1e6 / f64::from(TIMES);
        assert!(100 < bytes);
        println!("  {text:28} {api:14.0} {engine:8.0} {:8.2}", api / engine);
        api_sum += api;
        engine_sum += engine;
    }
    println!("  all {api_sum:38.0} {engine_sum:8.0} {:8.2}", api_sum / engine_sum);
}

pub(crate) fn pages(index: &Index, corpus: &Corpus) {
    let requests = Requests::new(index, corpus);
    let searcher = index.engine().reader().unwrap().searcher();
    let hand = Hand::new(index, &searcher);
    println!("\npage of 10 hits with snippets    wall ms      p95   CPU ms   (at most 20 ms)");
    let mut worst: f64 = 0.0;
    for (text, _) in hand.standing() {
        let uri = format!("/?{}", query(&text));
        let mut took = Vec::new();
        let start = cpu_secs();
        for _ in 0..ROUNDS {
            let began = clock::monotonic();
            let bytes = requests.get(&uri);
            assert!(1_000 < bytes);
            took.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let cpu = (cpu_secs() - start) * 1e3 / ROUNDS as f64;
        let (median, p95) = median_and_p95(took);
        worst = worst.max(median);
        println!("  {text:28} {median:9.2} {p95:8.2} {cpu:8.2}");
    }
    println!("  slowest median {worst:.2} ms");
}
