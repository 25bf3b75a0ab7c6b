//! Benchmark of the whole page of ten hits with snippets, from the request to the last byte.

use axum::body::Body;
use axum::http::Request;
use broker::engine::Engine;
use broker::index::Index;
use broker::page::{PageState, TEMPLATES, routes};
use net::clock;
use tower::ServiceExt as _;

use crate::corpus::Corpus;
use crate::engine::Hand;
use crate::{cpu_secs, median_and_p95};

const ROUNDS: usize = 20;

pub(crate) fn pages(index: &Index, corpus: &Corpus) {
    let pages = web::Pages::new(web::Site::new("Bench"), TEMPLATES, None).unwrap();
    let router =
        routes(PageState::new(Engine::Index(index.clone()), corpus.collection.clone(), pages));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let searcher = index.engine().reader().unwrap().searcher();
    let hand = Hand::new(index, &searcher);
    println!("\npage of 10 hits with snippets    wall ms      p95   CPU ms   (at most 20 ms)");
    let mut worst: f64 = 0.0;
    for (text, _) in hand.standing() {
        let mut uri = url::Url::parse("http://localhost/").unwrap();
        uri.query_pairs_mut().append_pair("q", &text);
        let uri = format!("/?{}", uri.query().unwrap());
        let mut took = Vec::new();
        let start = cpu_secs();
        for _ in 0..ROUNDS {
            let began = clock::monotonic();
            let bytes = runtime.block_on(async {
                let request = Request::get(&uri).body(Body::empty()).unwrap();
                let response = router.clone().oneshot(request).await.unwrap();
                assert!(response.status().is_success(), "{text}");
                axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap().len()
            });
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
