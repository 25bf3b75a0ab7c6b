//! Measures of answers against judgments, as `trec_eval` defines them.
//!
//! Sans-I/O.

use serde::Serialize;

/// Number of hits that people look at, the first page.
pub(super) const PAGE_HITS: usize = 10;

/// An answer as it was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Judged {
    /// Relevance of each hit, the first hit first; 0 is not relevant.
    gains: Vec<u32>,
    /// Relevance of each relevant object, found or not, the highest first.
    ideal: Vec<u32>,
}

impl Judged {
    /// Judges an answer. Each hit is given as the places in `relevances` of the documents that it is;
    /// several documents of one hit have the same content and count as one, the most relevant.
    /// A document that an earlier hit was already counts no more.
    pub(super) fn new(hits: &[Vec<usize>], relevances: &[u32]) -> Self {
        let mut left: Vec<Option<u32>> =
            relevances.iter().map(|it| Some(*it).filter(|it| 0 < *it)).collect();
        let mut gain = |hit: &Vec<usize>| {
            let taken = hit.iter().filter_map(|at| left.get_mut(*at)?.take());
            taken.max().unwrap_or(0)
        };
        let gains: Vec<u32> = hits.iter().map(&mut gain).collect();
        let found = gains.iter().copied().filter(|it| 0 < *it);
        let mut ideal: Vec<u32> = found.chain(left.into_iter().flatten()).collect();
        ideal.sort_unstable_by(|a, b| b.cmp(a));
        Self { gains, ideal }
    }

    /// Returns the rank of the first relevant hit, from 1.
    pub(super) fn first_relevant(&self) -> Option<usize> {
        self.gains.iter().position(|it| 0 < *it).map(|at| at + 1)
    }

    /// Computes the measures; all are 0 if nothing is relevant.
    pub(super) fn measures(&self) -> Measures {
        let rank = self.first_relevant().filter(|it| *it <= PAGE_HITS);
        let relevant = self.ideal.len().max(1) as f64;
        let found = self.gains.iter().enumerate().filter(|(_, gain)| 0 < **gain);
        let precisions =
            found.clone().zip(1_u32..).map(|((at, _), count)| f64::from(count) / (at + 1) as f64);
        let ideal = discounted(&self.ideal);
        Measures {
            first: f64::from(u8::from(rank == Some(1))),
            in_ten: f64::from(u8::from(rank.is_some())),
            reciprocal_rank_10: rank.map_or(0.0, |it| 1.0 / it as f64),
            ndcg_10: if ideal == 0.0 { 0.0 } else { discounted(&self.gains) / ideal },
            average_precision: total(precisions) / relevant,
            recall_100: found.count() as f64 / relevant,
        }
    }
}

/// Returns the discounted cumulative gain of the first [`PAGE_HITS`]: relevance over the binary
/// logarithm of the rank and 1.
fn discounted(gains: &[u32]) -> f64 {
    let ranked = gains.iter().take(PAGE_HITS).zip(2_u32..);
    total(ranked.map(|(gain, next)| f64::from(*gain) / f64::from(next).log2()))
}

/// Returns the sum; that of nothing is 0, where `sum` has -0.
fn total(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}

/// Measures of one answer, or their means over many; each is 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Measures {
    /// Whether the first hit is relevant.
    pub(super) first: f64,
    /// Whether one of the first [`PAGE_HITS`] is.
    pub(super) in_ten: f64,
    /// 1 over the rank of the first relevant hit, if it is among the first [`PAGE_HITS`].
    pub(super) reciprocal_rank_10: f64,
    /// Discounted cumulative gain of the first [`PAGE_HITS`] over that of the best order.
    pub(super) ndcg_10: f64,
    /// Mean of the precisions at each relevant object; 0 for one that was not found.
    pub(super) average_precision: f64,
    /// Share of the relevant objects that were found.
    pub(super) recall_100: f64,
}

impl Measures {
    /// Returns the means; all are 0 for no answers.
    pub(super) fn mean(all: &[Self]) -> Self {
        let sum = all.iter().fold(Self::default(), |sum, it| sum.with(*it, |a, b| a + b));
        let count = all.len().max(1) as f64;
        sum.with(Self::default(), |sum, _| sum / count)
    }

    fn with(self, other: Self, combined: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            first: combined(self.first, other.first),
            in_ten: combined(self.in_ten, other.in_ten),
            reciprocal_rank_10: combined(self.reciprocal_rank_10, other.reciprocal_rank_10),
            ndcg_10: combined(self.ndcg_10, other.ndcg_10),
            average_precision: combined(self.average_precision, other.average_precision),
            recall_100: combined(self.recall_100, other.recall_100),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the measures of hits that are each a document or none.
    fn measures(hits: &[Option<usize>], relevances: &[u32]) -> Measures {
        let hits: Vec<Vec<usize>> = hits.iter().map(|it| it.iter().copied().collect()).collect();
        Judged::new(&hits, relevances).measures()
    }

    fn values(it: Measures) -> [f64; 6] {
        let Measures { first, in_ten, reciprocal_rank_10, ndcg_10, average_precision, recall_100 } =
            it;
        [first, in_ten, reciprocal_rank_10, ndcg_10, average_precision, recall_100]
    }

    #[track_caller]
    fn check(measures: Measures, expected: [f64; 6]) {
        let close = values(measures).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close, "{measures:?} for {expected:?}");
    }

    #[test]
    fn measures_are_those_computed_by_hand() {
        // DCG: 2/1 + 3/2 + 1/log2(5) = 3.930677; the best: 3/1 + 2/log2(3) + 1/2 = 4.761860.
        // Precisions: 1/1, 2/3, 3/4.
        let graded = measures(&[Some(1), None, Some(0), Some(2)], &[3, 2, 1]);
        check(graded, [1.0, 1.0, 1.0, 0.825_450, 0.805_556, 1.0]);
        // Two of four at ranks 2 and 5: 1/log2(3) + 1/log2(6) = 1.017782 of
        // 1 + 1/log2(3) + 1/2 + 1/log2(5) = 2.561606; precisions 1/2, 2/5.
        let hits = [None, Some(0), None, None, Some(3)];
        check(measures(&hits, &[1; 4]), [0.0, 1.0, 0.5, 0.397_322, 0.225, 0.5]);
        // The first page has nothing: only the measures of all hits see rank 11.
        let late: Vec<Option<usize>> = [None; 10].into_iter().chain([Some(0)]).collect();
        check(measures(&late, &[1]), [0.0, 0.0, 0.0, 0.0, 1.0 / 11.0, 1.0]);
        // The best order of 12 has 10 on the first page.
        let all: Vec<Option<usize>> = (0..12).map(Some).collect();
        check(measures(&all, &[1; 12]), [1.0; 6]);
        check(measures(&[], &[1]), [0.0; 6]);
        check(measures(&[Some(0), None], &[0]), [0.0; 6]);
    }

    #[test]
    fn an_object_counts_once() {
        let again = measures(&[Some(0), Some(0), Some(1)], &[1, 1]);
        check(
            again,
            [1.0, 1.0, 1.0, 1.5 / (1.0 + 1.0 / 3_f64.log2()), (1.0 + 2.0 / 3.0) / 2.0, 1.0],
        );
        // Documents 0 and 1 are one hit of relevance 2: nothing more can be found.
        let twins = Judged::new(&[vec![1, 0, 2]], &[1, 2, 0]);
        check(twins.measures(), [1.0; 6]);
        assert_eq!(twins.first_relevant(), Some(1));
        // A document of a place that does not exist is none.
        assert_eq!(Judged::new(&[vec![7]], &[1]).first_relevant(), None);
    }

    #[test]
    fn means_are_those_of_each_measure() {
        let one = Measures { first: 1.0, ndcg_10: 0.5, ..Measures::default() };
        let mean = Measures::mean(&[one, Measures::default()]);
        assert_eq!(mean, Measures { first: 0.5, ndcg_10: 0.25, ..Measures::default() });
        assert_eq!(Measures::mean(&[]), Measures::default());
    }

    proptest! {
        #[test]
        fn measures_are_shares_and_the_best_order_is_perfect(
            relevances in prop::collection::vec(0_u32..4, 1..30),
            hits in prop::collection::vec(prop::option::of(0_usize..30), 0..100),
        ) {
            for value in values(measures(&hits, &relevances)) {
                prop_assert!((0.0..=1.0 + 1e-9).contains(&value), "{value}");
                prop_assert!(value.is_sign_positive(), "{value}");
            }
            let mut best: Vec<usize> = (0..relevances.len()).collect();
            best.sort_by_key(|at| u32::MAX - relevances[*at]);
            let best: Vec<Option<usize>> = best.into_iter().map(Some).collect();
            let expected = f64::from(u8::from(relevances.iter().any(|it| 0 < *it)));
            check(measures(&best, &relevances), [expected; 6]);
        }

        #[test]
        fn a_more_relevant_hit_further_up_lowers_nothing(
            relevances in prop::collection::vec(0_u32..4, 20..=20),
            order in Just((0..20).map(Some).collect::<Vec<_>>()).prop_shuffle(),
            at in 0_usize..19,
        ) {
            let before = measures(&order, &relevances);
            let mut swapped = order.clone();
            swapped.swap(at, at + 1);
            let (up, down) = (order[at + 1].unwrap(), order[at].unwrap());
            prop_assume!(relevances[down] <= relevances[up]);
            let after = measures(&swapped, &relevances);
            for (before, after) in values(before).into_iter().zip(values(after)) {
                prop_assert!(before <= after + 1e-9, "{before} {after}");
            }
        }
    }
}
