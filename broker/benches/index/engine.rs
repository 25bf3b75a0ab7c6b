//! Benchmarks of indexing and searching against the bare engine.

use std::path::Path;

use broker::answer::{Matching, SearchRequest};
use broker::index::{Index, IndexOptions};
use net::clock;
use query::parse;
use tantivy::aggregation::agg_req::Aggregations;
use tantivy::aggregation::{AggContextParams, AggregationCollector};
use tantivy::collector::{Count, TopDocs};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::query::{
    BooleanQuery, BoostQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, RangeQuery, RegexQuery,
    TermQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{IndexWriter, Searcher, Term};

use crate::corpus::Corpus;
use crate::{cpu_secs, median_and, median_and_p95, thread_secs};

const ROUNDS: usize = 100;

/// Builds the index `rounds` times, each time beside the bare engine, and returns the last one.
pub(crate) fn indexing(corpus: &Corpus, dir: &Path, rounds: usize) -> Index {
    let records = corpus.collection.len() as f64;
    let options = IndexOptions::default();
    let mut last = None;
    let (mut ratios, mut rates, mut per_cpu) = (Vec::new(), Vec::new(), Vec::new());
    println!("\nindexing, CPU s                 apply     bare    ratio  (of it: scan, documents)");
    for round in 0..rounds {
        let place = dir.join(format!("index{round}"));
        let index = Index::open(&place, options).unwrap();
        let (began, start) = (clock::monotonic(), cpu_secs());
        index.apply(&corpus.collection, &|| false).unwrap();
        let (wall, ours) = (began.elapsed().as_secs_f64(), cpu_secs() - start);

        let start = cpu_secs();
        assert!(corpus.collection.scan(0).unwrap().all(|it| it.is_ok()));
        let scan = cpu_secs() - start;
        let start = cpu_secs();
        let documents = index.documents(&corpus.collection).unwrap();
        let making = cpu_secs() - start - scan;

        let bare_dir = dir.join(format!("bare{round}"));
        std::fs::create_dir(&bare_dir).unwrap();
        let engine = bare(&index, &bare_dir);
        let start = cpu_secs();
        let mut writer = writer(&engine, options);
        for (n, document) in (1..).zip(documents) {
            writer.add_document(document).unwrap();
            if n % options.commit_changes_max == 0 {
                writer.commit().unwrap();
            }
        }
        writer.commit().unwrap();
        let yardstick = cpu_secs() - start;
        drop(writer);
        println!(
            "  round {round}                     {ours:7.2}  {yardstick:7.2}  {:7.2}  ({scan:.2}, {making:.2})",
            ours / yardstick
        );
        ratios.push(ours / yardstick);
        rates.push(records / wall);
        per_cpu.push(records / ours);
        if let Some(before) = last.replace(index) {
            Index::close(&before);
        }
    }
    println!(
        "  median ratio {:.2} (at most 1.5); {:.0} records/s wall, {:.0} a CPU-second (at least 8,000 on 2 cores)",
        median_and_p95(ratios).0,
        median_and_p95(rates).0,
        median_and_p95(per_cpu).0
    );
    last.unwrap()
}

/// Returns an empty index of the same schema.
fn bare(index: &Index, dir: &Path) -> tantivy::Index {
    let engine = tantivy::Index::create_in_dir(dir, index.engine().schema()).unwrap();
    let name = "harvest_exact_1";
    engine.tokenizers().register(name, index.engine().tokenizers().get(name).unwrap());
    engine
}

fn writer(engine: &tantivy::Index, options: IndexOptions) -> IndexWriter {
    let writer = engine
        .writer_with_options(
            IndexWriterOptions::builder()
                .num_worker_threads(options.threads)
                .memory_budget_per_thread(options.heap_bytes / options.threads)
                .num_merge_threads(1)
                .build(),
        )
        .unwrap();
    writer.set_merge_policy(Box::new(LogMergePolicy::default()));
    writer
}

/// Runs the standing queries on the index and on the bare engine, in turn.
pub(crate) fn queries(index: &Index) {
    let searcher = index.engine().reader().unwrap().searcher();
    let hand = Hand::new(index, &searcher);
    for facets in [false, true] {
        let with = if facets { "with facets" } else { "without facets" };
        println!(
            "\nengine, {with}, CPU µs      hits     ours     bare    ratio   ours p99   bare p99    ratio"
        );
        let (mut sums, mut late_sums) = ([0.0; 2], [0.0; 2]);
        for (shape, (text, bare)) in hand.standing().into_iter().enumerate() {
            let mut request = SearchRequest::new(parse(&text).unwrap(), text.clone());
            (request.facets, request.snippets) = (facets, false);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            let mut hits = 0;
            for round in 0..ROUNDS {
                // Who asks first reads into memory what both need.
                let ours_first = round % 2 == shape % 2;
                let mut ranking = None;
                let mut ask_ours = || {
                    let start = thread_secs();
                    ranking = Some(index.rank(&request).unwrap());
                    ours.push((thread_secs() - start) * 1e6);
                };
                if ours_first {
                    ask_ours();
                }
                let start = thread_secs();
                let (oids, total) = hand.ask(&searcher, bare.as_ref(), facets);
                theirs.push((thread_secs() - start) * 1e6);
                if !ours_first {
                    ask_ours();
                }
                let ranking = ranking.unwrap();
                assert_eq!(ranking.total, total, "{text}: not the same question");
                assert_eq!(ranking.oids.len(), oids.len(), "{text}");
                hits = total;
            }
            let [(ours, ours_late), (theirs, theirs_late)] =
                [ours, theirs].map(|it| median_and(99, it));
            println!(
                "  {text:28} {hits:8} {ours:8.0} {theirs:8.0} {:8.2} {ours_late:10.0} {theirs_late:10.0} {:8.2}",
                ours / theirs,
                ours_late / theirs_late
            );
            sums = [sums[0] + ours, sums[1] + theirs];
            late_sums = [late_sums[0] + ours_late, late_sums[1] + theirs_late];
        }
        let ([ours, theirs], [ours_late, theirs_late]) = (sums, late_sums);
        println!(
            "  all                                   {ours:8.0} {theirs:8.0} {:8.2} {ours_late:10.0} {theirs_late:10.0} {:8.2}  (at most 1.25)",
            ours / theirs,
            ours_late / theirs_late
        );
    }
}

/// Compares what has all of the words with the best there is, for words of some and of few objects.
pub(crate) fn best(index: &Index) {
    let searcher = index.engine().reader().unwrap().searcher();
    let hand = Hand::new(index, &searcher);
    println!(
        "\nbest against all, CPU µs     all of the words    best     all    ratio   (at most 1.5)"
    );
    let (mut best_sum, mut all_sum) = (0.0, 0.0);
    for ranks in [&[5, 40][..], &[60, 150], &[200, 390], &[5, 40, 150], &[90, 210, 330, 399]] {
        let words: Vec<&str> = ranks.iter().map(|rank| hand.word(*rank)).collect();
        let text = words.join(" ");
        let mut request = SearchRequest::new(parse(&text).unwrap(), text.clone());
        (request.facets, request.snippets) = (false, false);
        let mut took = [Vec::new(), Vec::new()];
        let mut all = 0;
        for _ in 0..ROUNDS {
            for (matching, took) in [Matching::Best, Matching::All].into_iter().zip(&mut took) {
                request.matching = matching;
                let start = thread_secs();
                all = index.rank(&request).unwrap().total;
                took.push((thread_secs() - start) * 1e6);
            }
        }
        let [(best, _), (strict, _)] = took.map(median_and_p95);
        println!("  {text:40} {all:5} {best:8.0} {strict:8.0} {:8.2}", best / strict);
        best_sum += best;
        all_sum += strict;
    }
    println!(
        "  all                                            {best_sum:8.0} {all_sum:8.0} {:8.2}",
        best_sum / all_sum
    );
}

/// Queries written by hand for this schema.
pub(crate) struct Hand<'a> {
    index: &'a Index,
    /// The most frequent words of the bodies.
    words: Vec<String>,
}

impl<'a> Hand<'a> {
    /// Picks frequent words from the corpus itself.
    pub(crate) fn new(index: &'a Index, searcher: &Searcher) -> Self {
        let field = index.engine().schema().get_field("body").unwrap();
        let mut counts = std::collections::HashMap::new();
        for segment in searcher.segment_readers() {
            let inverted = segment.inverted_index(field).unwrap();
            let mut terms = inverted.terms().stream().unwrap();
            while terms.advance() {
                let word = String::from_utf8_lossy(terms.key()).into_owned();
                if 6 <= word.len() && word.bytes().all(|it| it.is_ascii_lowercase()) {
                    *counts.entry(word).or_insert(0) += u64::from(terms.value().doc_freq);
                }
            }
        }
        let mut words: Vec<(u64, String)> = counts.into_iter().map(|(a, b)| (b, a)).collect();
        words.sort_by(|a, b| b.cmp(a));
        let words = words.into_iter().map(|(_, word)| word).take(400).collect();
        Self { index, words }
    }

    /// Returns the word of a rank; 0 is the most frequent.
    pub(crate) fn word(&self, rank: usize) -> &str {
        &self.words[rank.min(self.words.len() - 1)]
    }

    fn field(&self, name: &str) -> tantivy::schema::Field {
        self.index.engine().schema().get_field(name).unwrap()
    }

    /// Returns a query over the default attributes, with the default weights.
    fn usual(&self, one: impl Fn(&str) -> Box<dyn Query>) -> Box<dyn Query> {
        let places = [
            ("title", 4.0),
            ("keywords", 2.5),
            ("description", 1.8),
            ("author", 2.0),
            ("path", 1.2),
            ("body", 1.0),
        ];
        let each = places
            .map(|(name, weight)| Box::new(BoostQuery::new(one(name), weight)) as Box<dyn Query>);
        Box::new(BooleanQuery::union(each.into()))
    }

    fn plain(&self, word: &str) -> Box<dyn Query> {
        self.usual(|name| match name {
            "author" | "path" => self.term(name, word),
            _ => self.forms(name, word),
        })
    }

    fn phrase(&self, words: &[&str]) -> Box<dyn Query> {
        self.usual(|name| {
            let field = self.field(name);
            let terms = words.iter().map(|word| Term::from_field_text(field, word)).collect();
            Box::new(PhraseQuery::new(terms))
        })
    }

    fn prefix(&self, word: &str) -> Box<dyn Query> {
        self.usual(|name| {
            let term = Term::from_field_text(self.field(name), word);
            Box::new(FuzzyTermQuery::new_prefix(term, 0, true))
        })
    }

    fn fuzzy(&self, word: &str, edits: u8) -> Box<dyn Query> {
        self.usual(|name| {
            let term = Term::from_field_text(self.field(name), word);
            let very = TermQuery::new(term.clone(), IndexRecordOption::WithFreqs);
            let near = FuzzyTermQuery::new(term, edits, true);
            Box::new(BooleanQuery::union(vec![
                Box::new(BoostQuery::new(Box::new(near), 0.3)),
                Box::new(very),
            ]))
        })
    }

    fn regex(&self, pattern: &str) -> Box<dyn Query> {
        self.usual(|name| Box::new(RegexQuery::from_pattern(pattern, self.field(name)).unwrap()))
    }

    fn more_than(&self, name: &str, number: i64) -> Box<dyn Query> {
        let term = Term::from_field_i64(self.field(name), number);
        Box::new(RangeQuery::new(std::ops::Bound::Excluded(term), std::ops::Bound::Unbounded))
    }

    fn term(&self, name: &str, word: &str) -> Box<dyn Query> {
        let term = Term::from_field_text(self.field(name), word);
        Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
    }

    /// Returns the query for all forms of a word in the index, as if the caller of the bare engine
    /// knew them beforehand.
    fn forms(&self, name: &str, word: &str) -> Box<dyn Query> {
        let forms = self.index.forms(self.field(name), word).unwrap();
        Box::new(BooleanQuery::union(forms.iter().map(|form| self.term(name, form)).collect()))
    }

    /// Returns the standing queries: in the query language, and by hand.
    pub(crate) fn standing(&self) -> Vec<(String, Box<dyn Query>)> {
        let word = |rank: usize| self.word(rank);
        let (a, b, c) = (word(5), word(40), word(150));
        let (beginning, letter) = (&c[..4], &c[1..2]);
        let must = |query| (Occur::Must, query);
        let not = |query| (Occur::MustNot, query);
        let all = |clauses: Vec<_>| -> Box<dyn Query> { Box::new(BooleanQuery::new(clauses)) };
        let any = |queries: Vec<_>| -> Box<dyn Query> { Box::new(BooleanQuery::union(queries)) };
        vec![
            (a.to_owned(), self.plain(a)),
            (c.to_owned(), self.plain(c)),
            (format!("{a} {b}"), all(vec![must(self.plain(a)), must(self.plain(b))])),
            (format!("{b} OR {c}"), any(vec![self.plain(b), self.plain(c)])),
            (format!("{a} AND NOT {b}"), all(vec![must(self.plain(a)), not(self.plain(b))])),
            (format!("+{a} {c}"), all(vec![must(self.plain(a)), (Occur::Should, self.plain(c))])),
            (format!("\"{a} {b}\""), self.phrase(&[a, b])),
            (format!("title:{b}"), self.forms("title", b)),
            (format!("{beginning}*"), self.prefix(beginning)),
            (format!("{c}~1"), self.fuzzy(c, 1)),
            (
                format!("/{}[a-{letter}]{}/", &c[..1], &c[2..]),
                self.regex(&format!("{}[a-{letter}]{}", &c[..1], &c[2..])),
            ),
            ("type:HTML".to_owned(), self.term("type", "html")),
            ("size:>5000".to_owned(), self.more_than("size", 5_000)),
            (
                format!("{b} type:HTML size:>5000"),
                all(vec![
                    must(self.plain(b)),
                    must(self.term("type", "html")),
                    must(self.more_than("size", 5_000)),
                ]),
            ),
        ]
    }

    /// Ranks and counts with the engine's own collectors.
    fn ask(&self, searcher: &Searcher, query: &dyn Query, facets: bool) -> (Vec<String>, u64) {
        let duplicate = Term::from_field_bool(self.field("duplicate"), true);
        let duplicate = TermQuery::new(duplicate, IndexRecordOption::Basic);
        let query = BooleanQuery::new(vec![
            (Occur::Must, query.box_clone()),
            (Occur::MustNot, Box::new(duplicate)),
        ]);
        let top = TopDocs::with_limit(10).order_by_score();
        let (found, total) = if facets {
            let text = r#"{"facet": {"terms": {"field": "facet", "size": 10000}}}"#;
            let wanted: Aggregations = serde_json::from_str(text).unwrap();
            let counting = AggregationCollector::from_aggs(wanted, AggContextParams::default());
            let (found, total, facets) = searcher.search(&query, &(top, Count, counting)).unwrap();
            assert!(total == 0 || !facets.0.is_empty());
            (found, total)
        } else {
            searcher.search(&query, &(top, Count)).unwrap()
        };
        let oids = found
            .into_iter()
            .map(|(_, address)| {
                let segment = searcher.segment_reader(address.segment_ord);
                let column = segment.fast_fields().str("oid").unwrap().unwrap();
                let mut oid = String::new();
                let ord = column.term_ords(address.doc_id).next().unwrap();
                column.ord_to_str(ord, &mut oid).unwrap();
                oid
            })
            .collect();
        (oids, total as u64)
    }
}
