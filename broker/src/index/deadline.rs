//! The deadline of a search: it limits the time of every query, and the processor time that it uses.
//!
//! Both are checked before every segment, before and after every pattern and phrase in a field of a
//! segment, on the way of a regular expression through the words of a field, and after every
//! [`DOCS_BETWEEN`] matching documents. A search may therefore exceed the limits by no more than what
//! one prefix or one fuzzy word takes for the words of one field in one segment.

use std::fmt;
use std::time::{Duration, Instant};

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::Schema;
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocId, Score, SegmentOrdinal, SegmentReader, TERMINATED,
    TantivyError, Term,
};

use crate::answer::SEARCH_TIME_MAX;

/// Number of matching documents between two checks of the time.
const DOCS_BETWEEN: usize = 4_096;

/// Message of the engine's error when the time is up.
const OVER: &str = "time is up";

/// The time at which a search must end, and the processor time of its thread at which it must end.
/// A search runs on the thread that made its deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Instant,
    cpu: Duration,
}

impl Deadline {
    /// Returns the deadline of a search that begins now and may use the processor for `cpu`.
    pub(super) fn after(cpu: Duration) -> Self {
        let at = net::clock::monotonic() + SEARCH_TIME_MAX;
        Self { at, cpu: net::clock::thread_cpu() + cpu }
    }

    /// Returns an earlier deadline for a part of the search, which may use the processor for `cpu`
    /// and half of what is left.
    pub(super) fn within(self, cpu: Duration) -> Self {
        let now = net::clock::thread_cpu();
        Self { cpu: now + cpu.min(self.cpu.saturating_sub(now) / 2), ..self }
    }

    /// Returns an error once the time is up.
    pub(super) fn check(&self) -> tantivy::Result<()> {
        if net::clock::monotonic() < self.at && net::clock::thread_cpu() < self.cpu {
            return Ok(());
        }
        Err(TantivyError::InvalidArgument(OVER.to_owned()))
    }

    /// Returns whether the error comes from a [`check`](Self::check) after the deadline.
    pub(super) fn is_cause_of(error: &TantivyError) -> bool {
        matches!(error, TantivyError::InvalidArgument(text) if text == OVER)
    }

    /// Makes `query` check the time before each segment.
    pub(super) fn hold(self, query: Box<dyn Query>) -> Box<dyn Query> {
        Box::new(Timed { query, deadline: self })
    }
}

struct Timed {
    query: Box<dyn Query>,
    deadline: Deadline,
}

impl Clone for Timed {
    fn clone(&self) -> Self {
        Self { query: self.query.box_clone(), deadline: self.deadline }
    }
}

impl fmt::Debug for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.query.fmt(f)
    }
}

impl Query for Timed {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        self.deadline.check()?;
        let weight = self.query.weight(scoring)?;
        Ok(Box::new(TimedWeight { weight, deadline: self.deadline }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}

struct TimedWeight {
    weight: Box<dyn Weight>,
    deadline: Deadline,
}

impl Weight for TimedWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.deadline.check()?;
        let scorer = self.weight.scorer(reader, boost)?;
        self.deadline.check()?;
        Ok(scorer)
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.weight.explain(reader, doc)
    }
}

pub(super) struct Timely<C> {
    pub(super) collector: C,
    pub(super) deadline: Deadline,
}

impl<C: Collector> Collector for Timely<C> {
    type Fruit = C::Fruit;
    type Child = C::Child;

    fn check_schema(&self, schema: &Schema) -> tantivy::Result<()> {
        self.collector.check_schema(schema)
    }

    fn for_segment(
        &self,
        ord: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<C::Child> {
        self.collector.for_segment(ord, reader)
    }

    fn requires_scoring(&self) -> bool {
        self.collector.requires_scoring()
    }

    fn merge_fruits(
        &self,
        fruits: Vec<<C::Child as SegmentCollector>::Fruit>,
    ) -> tantivy::Result<C::Fruit> {
        self.collector.merge_fruits(fruits)
    }

    fn collect_segment(
        &self,
        weight: &dyn Weight,
        ord: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<<C::Child as SegmentCollector>::Fruit> {
        self.deadline.check()?;
        let mut child = self.collector.for_segment(ord, reader)?;
        let mut scorer = weight.scorer(reader, 1.0)?;
        if self.requires_scoring() {
            self.collect_scored(&mut child, scorer.as_mut(), reader)?;
        } else {
            self.collect_unscored(&mut child, scorer.as_mut(), reader)?;
        }
        Ok(child.harvest())
    }
}

impl<C: Collector> Timely<C> {
    fn collect_scored(
        &self,
        child: &mut C::Child,
        scorer: &mut dyn Scorer,
        reader: &SegmentReader,
    ) -> tantivy::Result<()> {
        let alive = reader.alive_bitset();
        let mut doc = scorer.doc();
        while doc != TERMINATED {
            for _ in 0..DOCS_BETWEEN {
                if alive.is_none_or(|it| it.is_alive(doc)) {
                    child.collect(doc, scorer.score());
                }
                doc = scorer.advance();
                if doc == TERMINATED {
                    return Ok(());
                }
            }
            self.deadline.check()?;
        }
        Ok(())
    }

    fn collect_unscored(
        &self,
        child: &mut C::Child,
        scorer: &mut dyn Scorer,
        reader: &SegmentReader,
    ) -> tantivy::Result<()> {
        let alive = reader.alive_bitset();
        let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
        let mut seen = 0;
        loop {
            let count = scorer.fill_buffer(&mut buffer);
            let docs = buffer.get(..count).unwrap_or_default();
            match alive {
                None => child.collect_block(docs),
                Some(alive) => {
                    for doc in docs.iter().filter(|doc| alive.is_alive(**doc)) {
                        child.collect(*doc, 0.0);
                    }
                }
            }
            if count < buffer.len() {
                return Ok(());
            }
            seen += count;
            if DOCS_BETWEEN <= seen {
                seen = 0;
                self.deadline.check()?;
            }
        }
    }
}
