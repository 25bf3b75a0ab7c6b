//! Merging: one answer of those of several brokers.
//!
//! Scores are comparable, since all brokers have scored by the same statistics: hits with all words of the query come
//! first, and among them those with the highest scores. Of hits that are the same object, or the same content, the first
//! stays, and names the others.
//!
//! Source: ours; J. Callan et al., 1995, for the need of common statistics.
//!
//! Sans-I/O.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::answer::{
    Answer, AskedBroker, DUPLICATES_MAX, Duplicate, FACET_VALUES_MAX, Facet, FromBroker, Hit,
    Matching, Sort,
};

/// Longest text of a hit of another broker, in bytes: addresses and names, and descriptions and excerpts.
const TEXT_BYTES_MAX: [usize; 2] = [4_000, 8_000];
/// Maximum number of warnings of a broker that another one has asked.
const WARNINGS_MAX: usize = 10;

/// What a broker answered.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) broker: FromBroker,
    pub(crate) answer: Answer,
    /// Most objects that it is believed to have.
    pub(crate) objects_max: u64,
}

/// What part of which order is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) sort: Sort,
    /// Whether the same content at two places is two hits.
    pub(crate) duplicates: bool,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

/// A hit, and whether it has all words of the query.
type Ranked = (bool, Hit);

/// Returns the answer with `limit` hits after the first `offset`, of parts with as many hits as both together.
pub(crate) fn merged(mut parts: Vec<Part>, wanted: Wanted) -> Answer {
    let mut merged = Answer { respelled: keep_one_spelling(&mut parts), ..Answer::default() };
    let mut ranked: Vec<Ranked> = Vec::new();
    let mut counts: BTreeMap<&'static str, HashMap<String, u64>> = BTreeMap::new();
    // Hits with all words that a first page has, each once.
    let (mut whole, mut seen) = (0, HashSet::new());
    for Part { broker, answer, objects_max } in parts {
        // Who claims more hits than it shows is believed in numbers alone, and not beyond what it has.
        let total = answer.total.min(objects_max);
        merged.total = merged.total.saturating_add(total);
        merged.total_all = merged.total_all.saturating_add(answer.total_all.min(total));
        merged.parts = merged.parts.saturating_add(answer.parts.min(objects_max));
        merged.matching = answer.matching;
        merged.took_us = merged.took_us.max(answer.took_us);
        merged.suggestion = merged.suggestion.take().or(answer.suggestion);
        merged.notice = merged.notice.take().or(answer.notice);
        // By `any`, those with all words stand among the others.
        let has_all = |at: u64| answer.matching != Matching::Any && at < answer.total_all;
        let depth = wanted.offset.saturating_add(wanted.limit);
        let hits_max = depth.min(usize::try_from(objects_max).unwrap_or(usize::MAX));
        let hits = (0..).zip(answer.hits).take(hits_max);
        let has_asked = answer.everywhere.is_some();
        for (at, hit) in hits {
            let hit = of_broker(hit, (&broker, has_asked));
            if has_all(at) && at < wanted.limit as u64 {
                let keys = keys(&hit, wanted.duplicates);
                whole += usize::from(!keys.iter().any(|it| seen.contains(it)));
                seen.extend(keys);
            }
            ranked.push((has_all(at), hit));
        }
        for (facet, values) in answer.facets {
            let Some(facet) = Facet::by_name(&facet) else { continue };
            let known = counts.entry(facet.name()).or_default();
            for (value, count) in values.into_iter().take(FACET_VALUES_MAX) {
                let sum = known.entry(value).or_default();
                *sum = sum.saturating_add(count.min(objects_max));
            }
        }
    }
    // As in one index, hits with some of the words follow only if the others are too few. Those that are claimed and not
    // sent do not count, nor does the same twice.
    if merged.matching == Matching::Best && wanted.limit <= whole {
        merged.total = merged.total_all;
        ranked.retain(|it| it.0);
    }
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| order(wanted.sort, &a.1, &b.1)));
    let hits = without_repeats(ranked, wanted.duplicates, (&mut merged, &mut counts));
    merged.hits = hits.into_iter().skip(wanted.offset).take(wanted.limit).collect();
    let most = |(facet, values)| (str::to_owned(facet), most(facet, values));
    merged.facets = counts.into_iter().map(most).collect();
    merged
}

fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

/// Returns a broker that this one says that it has asked, made to fit.
pub(super) fn asked_by(asked: &AskedBroker, by: &FromBroker) -> AskedBroker {
    let mut asked = AskedBroker { broker: named(asked.broker.clone()), ..asked.clone() };
    asked.warnings.truncate(WARNINGS_MAX);
    let texts = asked.problem.iter_mut().chain(&mut asked.warnings);
    texts.for_each(|it| cut(it, TEXT_BYTES_MAX[0]));
    // Further away it is one of theirs.
    asked.via = Some(by.name.clone());
    asked
}

fn named(mut broker: FromBroker) -> FromBroker {
    for text in [&mut broker.id, &mut broker.name, &mut broker.url] {
        cut(text, TEXT_BYTES_MAX[0]);
    }
    broker
}

/// Returns a hit as that of this broker, made to fit; if that has asked others in turn, as of the one that it names.
fn of_broker(mut hit: Hit, (broker, has_asked): (&FromBroker, bool)) -> Hit {
    let [short, long] = TEXT_BYTES_MAX;
    let whose = |told: Option<FromBroker>| match told.filter(|_| has_asked) {
        Some(told) => named(told),
        None => broker.clone(),
    };
    for text in [&mut hit.url, &mut hit.title, &mut hit.r#type, &mut hit.gatherer] {
        cut(text, short);
    }
    for text in [&mut hit.gatherer_id, &mut hit.host, &mut hit.md5, &mut hit.oid] {
        cut(text, short);
    }
    cut(&mut hit.description, long);
    hit.snippet = hit.snippet.of_another(long);
    hit.score = if hit.score.is_finite() { hit.score } else { 0.0 };
    hit.duplicates.truncate(2 * DUPLICATES_MAX);
    for duplicate in &mut hit.duplicates {
        duplicate.broker = Some(whose(duplicate.broker.take()));
        cut(&mut duplicate.url, short);
    }
    hit.broker = Some(whose(hit.broker.take()));
    hit
}

/// Returns how two hits stand to each other. What an order needs and a hit lacks comes last.
fn order(sort: Sort, a: &Hit, b: &Hit) -> Ordering {
    let by_time = |it: &Hit, sign: i64| it.modified.map_or(i64::MAX, |it| it.saturating_mul(sign));
    let by_size = |it: &Hit| it.size.map_or(1, |it| -i128::from(it));
    match sort {
        // When a record came to a broker, only that broker knows.
        Sort::Relevance | Sort::Updated => b.score.total_cmp(&a.score),
        Sort::Newest => by_time(a, -1).cmp(&by_time(b, -1)),
        Sort::Oldest => by_time(a, 1).cmp(&by_time(b, 1)),
        Sort::Title => a.title.to_lowercase().cmp(&b.title.to_lowercase()),
        Sort::Size => by_size(a).cmp(&by_size(b)),
        Sort::Url => a.url.cmp(&b.url),
    }
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

/// Returns hits, each after whether it has all words, of which none is another one's duplicate; those that are left out
/// are named by it, and not counted.
fn without_repeats(
    all: Vec<(bool, Hit)>,
    duplicates: bool,
    (answer, counts): (&mut Answer, &mut BTreeMap<&'static str, HashMap<String, u64>>),
) -> Vec<Hit> {
    let mut kept: Vec<Hit> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (has_all, hit) in all {
        let keys = keys(&hit, duplicates);
        match keys.iter().find_map(|it| places.get(it)).copied() {
            Some(at) => {
                answer.total = answer.total.saturating_sub(1);
                answer.total_all = answer.total_all.saturating_sub(u64::from(has_all));
                for (facet, value) in [
                    (Facet::Type, &hit.r#type),
                    (Facet::Host, &hit.host),
                    (Facet::Gatherer, &hit.gatherer),
                ] {
                    let count = counts.get_mut(facet.name()).and_then(|it| it.get_mut(value));
                    count.into_iter().for_each(|it| *it = it.saturating_sub(1));
                }
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

/// Returns by what a hit is known again: its object, and unless duplicates are wanted, its address and its content. Files
/// have the same addresses on all machines.
fn keys(hit: &Hit, duplicates: bool) -> Vec<String> {
    let mut keys = vec![format!("o{}", hit.oid)];
    if duplicates {
        return keys;
    }
    if !hit.url.starts_with("file:") {
        keys.push(format!("u{}", hit.url));
    }
    if !hit.md5.is_empty() {
        keys.push(format!("m{}", hit.md5));
    }
    keys
}

/// Names a hit as a duplicate of an earlier one, unless it is the same object, and those that it names itself.
fn name(first: &mut Hit, other: Hit) {
    let itself = Duplicate {
        url: other.url,
        gatherer: other.gatherer,
        oid: other.oid,
        r#type: other.r#type,
        modified: other.modified,
        similar: other.md5.is_empty() || other.md5 != first.md5,
        broker: other.broker,
    };
    for it in std::iter::once(itself).chain(other.duplicates) {
        let is_known =
            first.oid == it.oid || first.duplicates.iter().any(|known| known.oid == it.oid);
        if !is_known && first.duplicates.len() < DUPLICATES_MAX {
            first.duplicates.push(it);
        }
    }
}

/// Returns the most frequent values of a facet, in its order.
fn most(facet: &str, values: HashMap<String, u64>) -> Vec<(String, u64)> {
    let mut values: Vec<(String, u64)> = values.into_iter().filter(|it| it.1 != 0).collect();
    values.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
    values.truncate(FACET_VALUES_MAX);
    if facet == Facet::Year.name() {
        values.sort_by(|(a, _), (b, _)| b.cmp(a));
    }
    values
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
            objects_max: 10,
        }
    }

    fn at(offset: usize, limit: usize) -> Wanted {
        Wanted { offset, limit, ..Wanted::default() }
    }

    fn oids(answer: &Answer) -> Vec<&str> {
        answer.hits.iter().map(|it| &*it.oid).collect()
    }

    #[test]
    fn the_best_come_first_and_those_with_all_words_before_them() {
        let a = part("a", 1, vec![hit("1:http://a/1", 2.0), hit("1:http://a/2", 9.0)]);
        let b = part("b", 2, vec![hit("2:http://b/1", 3.0), hit("2:http://b/2", f32::NAN)]);
        let all = merged(vec![a.clone(), b.clone()], at(0, 10));
        let order = ["2:http://b/1", "1:http://a/1", "2:http://b/2", "1:http://a/2"];
        assert_eq!(oids(&all), order);
        assert_eq!((all.total, all.total_all), (4, 3));
        assert_eq!(all.facets["type"], [("HTML".to_owned(), 4)]);
        assert_eq!(all.hits[0].broker.as_ref().unwrap().name, "b");
        assert_eq!(oids(&merged(vec![a, b], at(1, 2))), order[1..3]);
    }

    #[test]
    fn the_order_that_is_asked_for_holds() {
        let dated = |oid: &str, modified, size| Hit { modified, size, ..hit(oid, 0.0) };
        let a = part(
            "a",
            2,
            vec![dated("1:http://b/", Some(5), Some(1)), dated("1:http://c/", None, None)],
        );
        let b = part(
            "b",
            2,
            vec![dated("2:http://a/", Some(9), Some(7)), dated("2:http://d/", Some(1), Some(0))],
        );
        for (sort, expected) in [
            (Sort::Newest, ["a", "b", "d", "c"]),
            (Sort::Oldest, ["d", "b", "a", "c"]),
            (Sort::Size, ["a", "b", "d", "c"]),
            (Sort::Url, ["a", "b", "c", "d"]),
        ] {
            let all = merged(vec![a.clone(), b.clone()], Wanted { sort, ..at(0, 10) });
            let hosts: Vec<_> = all.hits.iter().map(|it| &it.url[7..8]).collect();
            assert_eq!(hosts, expected, "{sort:?}");
        }
    }

    #[test]
    fn some_of_the_words_follow_only_where_all_are_too_few() {
        let some = |n: u64| (0..n).map(move |it| hit(&format!("1:http://a/{it}"), 9.0));
        let a = part("a", 2, some(4).collect());
        let b = part("b", 0, vec![hit("2:http://b/", 10.0)]);
        let few = merged(vec![a.clone(), b.clone()], at(0, 3));
        assert_eq!((few.total, few.total_all), (5, 2));
        assert_eq!(oids(&few), ["1:http://a/0", "1:http://a/1", "2:http://b/"]);
        let enough = merged(vec![a.clone(), b.clone()], at(0, 2));
        assert_eq!((enough.total, enough.hits.len()), (2, 2));
        // The next page is of the same answer.
        let next = merged(vec![a.clone(), b.clone()], at(2, 2));
        assert_eq!((next.total, next.hits.len()), (2, 0));
        // By `any`, the score alone decides.
        let any = |part: &Part| {
            let mut part = part.clone();
            part.answer.matching = Matching::Any;
            part
        };
        assert_eq!(oids(&merged(vec![any(&a), any(&b)], at(0, 1))), ["2:http://b/"]);
    }

    #[test]
    fn hits_that_are_claimed_or_twice_put_no_others_out() {
        let hits =
            |of: u64| (0..8).map(move |it| hit(&format!("{of}:http://a/{it}"), 9.0)).collect();
        let (a, b) = (part("a", 6, hits(1)), part("b", 6, hits(2)));
        // The same six objects with all words are at both, and the same two with some.
        let both = merged(vec![a.clone(), b], at(0, 10));
        assert_eq!((both.hits.len(), both.total), (8, 8));
        let mut liar = part("liar", 10, Vec::new());
        liar.answer.total = 10;
        assert_eq!(merged(vec![a, liar], at(0, 10)).hits.len(), 8);
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
        let all = merged(vec![a.clone(), b, c, none], at(0, 10));
        assert_eq!(oids(&all), ["3:http://c/1", "3:http://c/2", "1:http://a/1"]);
        assert!(all.respelled && all.total == 3, "{all:?}");
        assert_eq!(all.suggestion.as_deref(), Some("glacier"));
        // Somebody has what was written; the other spelling is suggested still.
        let all = merged(vec![a, part("d", 1, vec![hit("4:http://d/1", 0.1)])], at(0, 10));
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
        let each = Wanted { duplicates: true, ..at(0, 10) };
        assert_eq!(merged(vec![a.clone(), b.clone()], each).hits.len(), 6);
        let all = merged(vec![a, b], at(0, 10));
        assert_eq!(oids(&all), ["1:http://a/1", "1:file:///x", "3:http://c/", "2:file:///x"]);
        // All have all words.
        assert_eq!((all.total, all.total_all), (4, 4));
        assert_eq!(all.hits[0].duplicates[0].url, "http://b/1");
        assert!(!all.hits[0].duplicates[0].similar);
        // Another gatherer's record of one address.
        assert_eq!(all.hits[2].duplicates.len(), 1);
        assert_eq!(all.hits[2].duplicates[0].broker.as_ref().unwrap().name, "b");
    }

    #[test]
    fn a_broker_that_boasts_floods_nobody() {
        let flood = (0..10_000).map(|n| hit(&format!("1:http://a/{n}"), f32::MAX)).collect();
        let mut boast = part("a", u64::MAX, flood);
        boast.answer.total = u64::MAX;
        let honest = part("b", 1, vec![hit("2:http://b/", 1.0)]);
        let all = merged(vec![boast, honest], at(0, 100));
        assert_eq!((all.hits.len(), all.total), (11, 11));
        assert_eq!(all.hits[10].url, "http://b/");
    }
}
