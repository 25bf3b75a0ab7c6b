//! Merging: one answer of those of several brokers.
//!
//! Scores are comparable, since all brokers have scored by the same statistics: hits with all words of the query come
//! first, and among them those with the highest scores. Of hits that are the same object, or the same content, the first
//! stays, and names the others.
//!
//! Source: ours; J. Callan et al., 1995, for the need of common statistics.
//!
//! Sans-I/O.

use std::collections::{BTreeMap, HashMap};

use crate::answer::{Answer, DUPLICATES_MAX, Duplicate, FACET_VALUES_MAX, Facet, FromBroker, Hit};

/// What a broker answered.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) broker: FromBroker,
    pub(crate) answer: Answer,
    /// Maximum number of its hits that count.
    pub(crate) hits_max: usize,
}

/// Returns the answer with `limit` hits after the first `offset`, of parts with as many hits as both together.
pub(crate) fn merged(mut parts: Vec<Part>, (offset, limit): (usize, usize)) -> Answer {
    let mut merged = Answer { respelled: keep_one_spelling(&mut parts), ..Answer::default() };
    let mut ranked: Vec<(bool, Hit)> = Vec::new();
    let mut counts: BTreeMap<String, HashMap<String, u64>> = BTreeMap::new();
    for Part { broker, answer, hits_max } in parts {
        // Who claims more hits than it shows is believed in numbers alone.
        merged.total = merged.total.saturating_add(answer.total);
        merged.total_all = merged.total_all.saturating_add(answer.total_all.min(answer.total));
        merged.parts = merged.parts.saturating_add(answer.parts);
        merged.matching = answer.matching;
        merged.took_us = merged.took_us.max(answer.took_us);
        merged.suggestion = merged.suggestion.take().or(answer.suggestion);
        merged.notice = merged.notice.take().or(answer.notice);
        for (at, mut hit) in (0..).zip(answer.hits).take(hits_max) {
            hit.broker = Some(broker.clone());
            hit.score = if hit.score.is_finite() { hit.score } else { 0.0 };
            ranked.push((at < answer.total_all, hit));
        }
        for (facet, values) in answer.facets {
            let known = counts.entry(facet).or_default();
            for (value, count) in values {
                let sum = known.entry(value).or_default();
                *sum = sum.saturating_add(count);
            }
        }
    }
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| b.1.score.total_cmp(&a.1.score)));
    let hits = without_repeats(ranked.into_iter().map(|it| it.1), &mut merged);
    merged.hits = hits.into_iter().skip(offset).take(limit).collect();
    merged.facets = counts.into_iter().map(|(facet, values)| most(facet, values)).collect();
    merged
}

/// Empties the answers to other spellings, if some broker has what was written, and else those to others than the one
/// that finds most. Returns whether the answers that are left are to another spelling.
fn keep_one_spelling(parts: &mut [Part]) -> bool {
    let is_found = parts.iter().any(|it| !it.answer.respelled && it.answer.total != 0);
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    for Part { answer, .. } in parts.iter().filter(|it| it.answer.respelled) {
        let total = totals.entry(answer.suggestion.clone().unwrap_or_default()).or_default();
        *total = total.saturating_add(answer.total);
    }
    let best = totals.into_iter().max_by_key(|it| it.1).map(|it| it.0).filter(|_| !is_found);
    for Part { answer, .. } in parts.iter_mut().filter(|it| it.answer.respelled) {
        if best != answer.suggestion {
            let suggestion = answer.suggestion.take().filter(|_| is_found);
            *answer = Answer { suggestion, took_us: answer.took_us, ..Answer::default() };
        }
    }
    best.is_some()
}

/// Returns hits of which none is another one's duplicate; those that are left out are named by it.
fn without_repeats(all: impl Iterator<Item = Hit>, answer: &mut Answer) -> Vec<Hit> {
    let mut kept: Vec<Hit> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for hit in all {
        let keys = keys(&hit);
        match keys.iter().find_map(|it| places.get(it)).copied() {
            Some(at) => {
                answer.total = answer.total.saturating_sub(1);
                if let Some(first) = kept.get_mut(at) {
                    name(first, hit);
                }
                places.extend(keys.into_iter().map(|it| (it, at)));
            }
            None => {
                places.extend(keys.into_iter().map(|it| (it, kept.len())));
                kept.push(hit);
            }
        }
    }
    answer.total_all = answer.total_all.min(answer.total);
    kept
}

/// Returns by what a hit is known again: its object, its address, its content. Files have the same addresses on all
/// machines.
fn keys(hit: &Hit) -> Vec<String> {
    let mut keys = vec![format!("o{}", hit.oid)];
    if !hit.url.starts_with("file:") {
        keys.push(format!("u{}", hit.url));
    }
    if !hit.md5.is_empty() {
        keys.push(format!("m{}", hit.md5));
    }
    keys
}

/// Names a hit as a duplicate of an earlier one, unless it is the same object.
fn name(first: &mut Hit, other: Hit) {
    let is_known = first.oid == other.oid || first.duplicates.iter().any(|it| it.oid == other.oid);
    if !is_known && first.duplicates.len() < DUPLICATES_MAX {
        first.duplicates.push(Duplicate {
            url: other.url,
            gatherer: other.gatherer,
            oid: other.oid,
            r#type: other.r#type,
            modified: other.modified,
            similar: other.md5.is_empty() || other.md5 != first.md5,
        });
    }
}

fn most(facet: String, values: HashMap<String, u64>) -> (String, Vec<(String, u64)>) {
    let mut values: Vec<(String, u64)> = values.into_iter().collect();
    values.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
    values.truncate(FACET_VALUES_MAX);
    if facet == Facet::Year.name() {
        values.sort_by(|(a, _), (b, _)| b.cmp(a));
    }
    (facet, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(oid: &str, score: f32) -> Hit {
        let url = oid.split_once(':').unwrap().1.to_owned();
        Hit { oid: oid.to_owned(), url, score, ..Hit::default() }
    }

    fn part(name: &str, total_all: u64, hits: Vec<Hit>) -> Part {
        let broker = FromBroker { name: name.to_owned(), ..FromBroker::default() };
        let facets = BTreeMap::from([("type".to_owned(), vec![("HTML".to_owned(), 2)])]);
        let total = hits.len() as u64;
        Part {
            broker,
            answer: Answer { total, total_all, hits, facets, ..Answer::default() },
            hits_max: 10,
        }
    }

    fn oids(answer: &Answer) -> Vec<&str> {
        answer.hits.iter().map(|it| &*it.oid).collect()
    }

    #[test]
    fn the_best_come_first_and_those_with_all_words_before_them() {
        let a = part("a", 1, vec![hit("1:http://a/1", 2.0), hit("1:http://a/2", 9.0)]);
        let b = part("b", 2, vec![hit("2:http://b/1", 3.0), hit("2:http://b/2", f32::NAN)]);
        let all = merged(vec![a.clone(), b.clone()], (0, 10));
        let order = ["2:http://b/1", "1:http://a/1", "2:http://b/2", "1:http://a/2"];
        assert_eq!(oids(&all), order);
        assert_eq!((all.total, all.total_all), (4, 3));
        assert_eq!(all.facets["type"], [("HTML".to_owned(), 4)]);
        assert_eq!(all.hits[0].broker.as_ref().unwrap().name, "b");
        assert_eq!(oids(&merged(vec![a, b], (1, 2))), order[1..3]);
    }

    #[test]
    fn one_spelling_is_answered() {
        let respelled = |name: &str, suggestion: &str, hits: Vec<Hit>| {
            let mut part = part(name, 0, hits);
            part.answer.respelled = true;
            part.answer.suggestion = Some(suggestion.to_owned());
            part
        };
        let a = respelled("a", "glacier", vec![hit("1:http://a/1", 1.0)]);
        let b = respelled("b", "glazier", vec![hit("2:http://b/1", 9.0), hit("2:http://b/2", 8.0)]);
        let c = respelled("c", "glacier", vec![hit("3:http://c/1", 2.0), hit("3:http://c/2", 1.5)]);
        let none = part("d", 0, vec![]);
        let all = merged(vec![a.clone(), b, c, none], (0, 10));
        assert_eq!(oids(&all), ["3:http://c/1", "3:http://c/2", "1:http://a/1"]);
        assert!(all.respelled && all.total == 3, "{all:?}");
        assert_eq!(all.suggestion.as_deref(), Some("glacier"));
        // Somebody has what was written; the other spelling is suggested still.
        let all = merged(vec![a, part("d", 1, vec![hit("4:http://d/1", 0.1)])], (0, 10));
        assert_eq!((oids(&all), all.respelled), (vec!["4:http://d/1"], false));
        assert_eq!((all.total, all.suggestion.as_deref()), (1, Some("glacier")));
    }

    #[test]
    fn the_same_is_there_once() {
        let same = |oid: &str, md5: &str| Hit { md5: md5.to_owned(), ..hit(oid, 1.0) };
        let a = part(
            "a",
            9,
            vec![same("1:http://a/1", "m"), same("1:file:///x", ""), hit("3:http://c/", 1.0)],
        );
        let b = part(
            "b",
            9,
            vec![
                same("2:http://b/1", "m"),
                same("2:file:///x", ""),
                hit("3:http://c/", 0.5),
                hit("4:http://c/", 0.1),
            ],
        );
        let all = merged(vec![a, b], (0, 10));
        assert_eq!(oids(&all), ["1:http://a/1", "1:file:///x", "3:http://c/", "2:file:///x"]);
        assert_eq!(all.total, 4);
        assert_eq!(all.hits[0].duplicates[0].url, "http://b/1");
        assert!(!all.hits[0].duplicates[0].similar);
        // Another gatherer's record of one address.
        assert_eq!(all.hits[2].duplicates.len(), 1);
    }

    #[test]
    fn a_broker_that_boasts_floods_nobody() {
        let flood = (0..10_000).map(|n| hit(&format!("1:http://a/{n}"), f32::MAX)).collect();
        let mut boast = part("a", u64::MAX, flood);
        boast.answer.total = u64::MAX;
        let honest = part("b", 1, vec![hit("2:http://b/", 1.0)]);
        let all = merged(vec![boast, honest], (0, 100));
        assert_eq!(all.hits.len(), 11);
        assert_eq!(all.hits[10].url, "http://b/");
    }
}
