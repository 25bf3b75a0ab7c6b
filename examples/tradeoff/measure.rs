//! The measurement of one point: gathering, feed, index and answers.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use broker::answer::SearchRequest;
use broker::index::{Index, IndexOptions};
use collection::feed::{FeedOptions, FeedServer};
use collection::{Collection, Options, Stamp};
use gatherer::config::Watch;
use gatherer::spec::Root;
use gatherer::{Config, Phase, Server};
use http::{Request, header};
use net::clock;
use net::shutdown::Shutdown;
use query::parse;

use crate::Point;
use crate::questions::{Question, Questions};

/// Clock ticks a second in `/proc`.
const TICKS: f64 = 100.0;
/// Number of hits in an answer.
const HITS: usize = 10;
/// Number of threads that send questions.
const THREADS: usize = 2;

/// The cost of indexing.
pub(crate) struct Indexing {
    /// CPU-seconds.
    pub(crate) cpu: f64,
    /// Size of the index on disk.
    pub(crate) bytes: u64,
}

/// Quality of the answers, as means over all questions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Score {
    pub(crate) recall: f64,
    pub(crate) precision: f64,
    /// Mean reciprocal rank.
    pub(crate) mrr: f64,
}

/// Gathers `tree` into an empty `data`, and returns its CPU time in seconds.
pub(crate) fn gather(tree: &Path, data: &Path, point: &Point) -> f64 {
    let paths = [tree.to_path_buf()];
    let mut config = Config {
        watch: Watch::Off,
        full_text: point.full_text.clone(),
        ..Config::for_paths(&paths, data)
    };
    config.essence.detail = point.detail;
    for root in &mut config.roots {
        if let Root::Tree(tree) = root {
            // Every file counts.
            tree.gitignore = false;
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let start = cpu_s();
        let server = Server::bind(config).await.unwrap();
        let (handle, shutdown) = (server.handle(), Shutdown::new());
        let task = tokio::spawn(server.run(shutdown.clone()));
        let mut progress = handle.progress();
        progress.wait_for(|it| it.phase == Phase::Idle && 1 <= it.passes_done).await.unwrap();
        let cpu = cpu_s() - start;
        shutdown.start();
        task.await.unwrap().unwrap();
        cpu
    })
}

/// Opens the collection of a gatherer that has ended.
pub(crate) fn open(data: &Path) -> Collection {
    let now = Stamp(clock::now_ms());
    Collection::open(&data.join("collection"), Options::default(), now).unwrap().0
}

/// Returns the number of bytes that the feed sends to a new consumer.
pub(crate) fn wire(collection: &Collection) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let feed = FeedServer::new(collection.clone(), FeedOptions::default());
        let get = |path: String| feed.respond(Request::get(path).body(()).unwrap());
        let redirect = get("/feed".to_owned()).await;
        let location =
            redirect.headers().get(header::LOCATION).unwrap().to_str().unwrap().to_owned();
        let snapshot = get(format!("/{location}")).await;
        let length = snapshot.headers().get(header::CONTENT_LENGTH).unwrap();
        length.to_str().unwrap().parse().unwrap()
    })
}

/// Compacts the collection, and returns the bytes as [`wire`] does.
pub(crate) fn compact(collection: &Collection) -> u64 {
    collection.compact(Stamp(clock::now_ms())).unwrap();
    wire(collection)
}

/// Builds the broker's index of the collection.
pub(crate) fn index(collection: &Collection, dir: &Path) -> (Indexing, Index) {
    let start = cpu_s();
    let index = Index::open(dir, IndexOptions::default()).unwrap();
    index.apply(collection, &|| false).unwrap();
    let cpu = cpu_s() - start;
    // Opening the index removes segments that merges have replaced.
    index.close();
    drop(index);
    let index = Index::open(dir, IndexOptions::default()).unwrap();
    (Indexing { cpu, bytes: index.stats().bytes }, index)
}

/// Scores of the three ways to ask.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scores {
    /// Any of the words, by rank.
    pub(crate) any: Score,
    /// All of the words.
    pub(crate) all: Score,
    /// All of the words; if no document has them all, any of them.
    pub(crate) either: Score,
}

/// Asks every question in every way.
pub(crate) fn ask(index: &Index, questions: &Questions) -> Scores {
    let per_thread = questions.list.len().div_ceil(THREADS).max(1);
    let mut mean = Scores::default();
    std::thread::scope(|scope| {
        let sum = move |part: &[Question]| {
            let mut sum = Scores::default();
            for question in part {
                let answer = |separator| answer(index, question, separator, &questions.contents);
                let (any, all) = (answer(" OR ").unwrap_or_default(), answer(" "));
                sum.any.add(any);
                sum.all.add(all.unwrap_or_default());
                sum.either.add(all.unwrap_or(any));
            }
            sum
        };
        let parts = questions.list.chunks(per_thread);
        let tasks: Vec<_> = parts.map(|part| scope.spawn(move || sum(part))).collect();
        for sum in tasks.into_iter().map(|it| it.join().unwrap()) {
            mean.any.add(sum.any);
            mean.all.add(sum.all);
            mean.either.add(sum.either);
        }
    });
    let count = questions.list.len() as f64;
    for score in [&mut mean.any, &mut mean.all, &mut mean.either] {
        score.recall /= count;
        score.precision /= count;
        score.mrr /= count;
    }
    mean
}

impl Score {
    fn add(&mut self, other: Self) {
        self.recall += other.recall;
        self.precision += other.precision;
        self.mrr += other.mrr;
    }
}

/// Asks a question, and returns its score; `None` if there is no hit.
fn answer(
    index: &Index,
    question: &Question,
    separator: &str,
    contents: &HashMap<String, u64>,
) -> Option<Score> {
    let text = question.words.join(separator);
    let mut request = SearchRequest::new(parse(&text).unwrap(), text);
    (request.facets, request.snippets, request.limit) = (false, false, HITS);
    let hits = index.search(&request).unwrap().hits;
    let is_right = |url: &String| contents.get(url) == Some(&question.content);
    let right = hits.iter().filter(|hit| is_right(&hit.url)).count();
    let rank = hits.iter().position(|hit| is_right(&hit.url));
    (!hits.is_empty()).then(|| Score {
        recall: if rank.is_some() { 1.0 } else { 0.0 },
        precision: right as f64 / hits.len() as f64,
        mrr: rank.map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
    })
}

/// Returns the CPU time of this process so far, user and system, all threads.
fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let after = stat.rsplit(')').next().unwrap();
    let ticks = after.split_whitespace().skip(11).take(2).map(|it| it.parse::<f64>().unwrap());
    ticks.sum::<f64>() / TICKS
}
