//! The model of an index: it computes the expected answers from the log alone.

use std::collections::{BTreeMap, BTreeSet};

use super::disk::Random;
use super::*;
use query::Query;

/// All objects that an index finds, with URL, description and duplicates, in the order of URLs: first the
/// objects that represent their content, then all objects.
pub(crate) type Contents = Vec<(String, String, Vec<String>)>;

/// Adds `count` changes: objects appear, change their content, share it, and disappear.
pub(crate) fn grow(log: &mut Vec<Change>, count: usize, random: &mut Random) {
    for _ in 0..count {
        let url = format!("http://x/{}", random.below(40));
        if random.below(6) == 0 {
            log.push(Change::Delete(Oid { gatherer: GATHERER.to_owned(), url }));
            continue;
        }
        let md5 = format!("content{}", random.below(12));
        let text = format!("version{} of it", log.len());
        log.push(Change::Update(record(
            GATHERER,
            &url,
            &[("MD5", md5.as_str()), ("File-Size", "9"), ("Description", text.as_str())],
        )));
    }
}

/// Returns the expected answers of an index of this log.
pub(crate) fn expected(log: &[Change]) -> Contents {
    let mut live = BTreeMap::new();
    for change in log {
        match change {
            Change::Update(record) => {
                let text = record.text("Description").unwrap().into_owned();
                let md5 = record.text("MD5").unwrap().into_owned();
                live.insert(record.url.clone(), (text, md5));
            }
            Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                drop(live.remove(&oid.url));
            }
            Change::Refresh(..) | Change::Confirm { .. } => {}
        }
    }
    let mut groups: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for (url, (_, md5)) in &live {
        groups.entry(md5).or_default().insert(url);
    }
    let entry = |(url, (text, md5)): (&String, &(String, String))| {
        let others = groups[md5].iter().filter(|it| **it != url);
        let others = others.take(crate::answer::DUPLICATES_MAX).map(|it| (*it).clone());
        (url.clone(), text.clone(), others.collect())
    };
    let first = live.iter().filter(|(url, (_, md5))| groups[md5].first() == Some(url));
    first.map(entry).chain(live.iter().map(entry)).collect()
}

pub(crate) fn contents(index: &Index) -> Contents {
    let mut all = Vec::new();
    for duplicates in [false, true] {
        let mut request = SearchRequest::new(Query::all(), "*");
        (request.limit, request.sort, request.duplicates) = (1_000, Sort::Url, duplicates);
        for hit in index.search(&request).unwrap().hits {
            let others = hit.duplicates.into_iter().map(|it| it.url).collect();
            all.push((hit.url, hit.description, others));
        }
    }
    all
}

/// Checks the index against the whole log.
pub(crate) fn check_whole(index: &Index, log: &[Change], point: &str) {
    let (seen, there) = (contents(index), expected(log));
    let only = |these: &Contents, those: &Contents| -> Contents {
        these.iter().filter(|it| !those.contains(it)).cloned().collect()
    };
    let (more, less) = (only(&seen, &there), only(&there, &seen));
    assert!(seen == there, "{point}: {more:?} instead of {less:?}");
}

/// Checks the index against the part of the log that it covers. In the middle of the log, the
/// present collection decides which object represents a content: such an object may be indexed in
/// its latest version already.
pub(crate) fn check(index: &Index, log: &[Change], point: &str) {
    let Some(covered) = index.covered() else { return };
    let reached = usize::try_from(covered.serial).unwrap();
    assert!(reached <= log.len(), "{point}: covers {covered}, which never was");
    let seen = contents(index);
    if reached == log.len() {
        check_whole(index, log, point);
    }
    let texts = |all: Contents| all.into_iter().map(|(url, text, _)| (url, text));
    let seen: BTreeMap<_, _> = texts(seen).collect();
    let mut there: BTreeMap<_, _> = texts(expected(&log[..reached])).collect();
    for (url, latest) in texts(expected(log)) {
        if let (Some(seen), Some(there)) = (seen.get(&url), there.get_mut(&url))
            && *seen == latest
        {
            *there = latest;
        }
    }
    assert_eq!(seen, there, "{point}: covers {covered}");
}

pub(crate) fn try_apply(index: &Index, log: &[Change]) -> Result<Version, Error> {
    let target = Version { epoch: Epoch(1), serial: log.len() as u64 };
    try_apply_to(index, target, log, &|| false)
}
