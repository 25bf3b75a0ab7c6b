//! A property of every limit: an object that goes beyond it says so, and one that does not says nothing.

mod common;
mod data;
mod media;
mod office;
mod settings;
mod text;
mod unnest;

use proptest::prelude::*;

use super::{Limit, lowered};
use crate::object::{Object, ProblemKind, Summary};
use crate::testing::summarize;
use crate::{Settings, Type};

/// An object that holds a known amount of what a limit counts.
struct Sample {
    r#type: Type,
    name: &'static str,
    bytes: Vec<u8>,
    /// The amount that it holds, in bytes or in things of the limit's unit.
    holds: usize,
    /// Bounds nearer to the amount than this are not tried: there a reader need not be exact.
    slack: usize,
}

/// Makes a sample for a limit, larger with `count`; `None` if the limit is another file's.
type Make = fn(Limit, usize) -> Option<Sample>;

/// The makers. Each limit has a sample of one of them, unless it is tested elsewhere.
const MAKERS: &[Make] =
    &[common::sample, data::sample, media::sample, office::sample, text::sample, unnest::sample];

/// Limits that settings, programs or other objects give, which no sample goes beyond: see `settings` for the first
/// ones, `essence/src/extract/limits.rs` for those of packed objects, and the tests of the readers for the last.
const ELSEWHERE: &[Limit] = &[
    Limit::Read,
    Limit::Text,
    Limit::Keywords,
    Limit::References,
    Limit::Opened,
    Limit::Ratio,
    Limit::Depth,
    Limit::Members,
    Limit::Names,
    Limit::Records,
    Limit::Member,
    Limit::Memory,
    Limit::Given,
    Limit::Output,
    Limit::Matches,
    Limit::Beside,
    Limit::PdfStreams,
];

fn sample(limit: Limit, count: usize) -> Option<Sample> {
    let mut made = MAKERS.iter().filter_map(|make| make(limit, count));
    let sample = made.next();
    assert!(made.next().is_none(), "{limit} has two samples");
    assert_ne!(sample.is_some(), ELSEWHERE.contains(&limit), "{limit} needs a sample");
    sample
}

fn read(limit: Limit, sample: &Sample, settings: &Settings) -> Summary {
    let object = Object::whole(format!("http://h.example/{}", sample.name), sample.bytes.clone());
    let object = unnest::as_read(limit, object);
    let mut summary = summarize(&object, sample.r#type, settings, &|| false);
    unnest::open(&object, sample.r#type, &mut summary);
    summary
}

/// Checks that a summary says that more than `bound` was there, or says nothing of this limit.
fn check(summary: &Summary, limit: Limit, is_cut: bool, case: &str) {
    let said = summary.record.text("Truncated").unwrap_or_default().into_owned();
    let lines: Vec<&str> =
        said.lines().filter(|it| it.split(' ').next() == Some(limit.name())).collect();
    let cuts: Vec<_> = summary
        .problems
        .iter()
        .filter_map(|it| if let ProblemKind::Limit(cut) = it.kind { Some(cut) } else { None })
        .filter(|it| it.limit == limit)
        .map(|it| it.to_string())
        .collect();
    assert_eq!(lines, cuts, "{case}");
    assert_eq!(cuts.len(), usize::from(is_cut), "{case}: {:?}", summary.problems);
}

#[test]
fn an_object_within_all_limits_says_nothing() {
    for limit in Limit::ALL {
        if let Some(sample) = sample(*limit, 1) {
            let said = read(*limit, &sample, &Settings::default())
                .record
                .text("Truncated")
                .map(|it| it.into_owned());
            assert_eq!(said, None, "{limit}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_limit_is_said(count in 2..9_usize, share in 0.0..1.0_f64) {
        for limit in Limit::ALL {
            let Some(sample) = sample(*limit, count) else { continue };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a rough share")]
            let below = (sample.holds as f64 * share) as usize;
            for bound in [below, sample.holds + sample.slack, 2 * sample.holds + sample.slack] {
                let is_cut = bound < sample.holds;
                if is_cut && sample.holds <= bound + sample.slack {
                    continue;
                }
                let summary = lowered::with(*limit, bound, || read(*limit, &sample, &Settings::default()));
                check(&summary, *limit, is_cut, &format!("{limit} {bound} of {}", sample.holds));
            }
        }
    }
}
