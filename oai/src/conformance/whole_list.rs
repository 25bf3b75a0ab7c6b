//! The checks on the list of all records, which is read part by part.
//!
//! Source: OAI-PMH §2.5 (a record that is not deleted has metadata), §3.5 (a list of several parts
//! ends with an empty resumptionToken).
//!
//! Sans-I/O.

use std::collections::{HashMap, HashSet};

use super::{Check, Reply, Verdict};
use crate::Datestamp;
use crate::response::{Body, Page, Record};

/// The list of all records so far.
#[derive(Debug, Default)]
pub struct WholeList {
    parts: u64,
    /// Datestamps of the records, by their identifiers.
    seen: HashMap<String, Option<Datestamp>>,
    tokens: HashSet<String>,
    unreadable: Mistakes,
    bare: Mistakes,
    repeated: Mistakes,
    /// How the list ended, once it has.
    end: Option<Result<(), String>>,
}

/// The number of mistakes of one kind, and the first of them.
#[derive(Debug, Default)]
struct Mistakes {
    count: u64,
    first: String,
}

impl Mistakes {
    fn add(&mut self, what: String) {
        self.count += 1;
        if self.first.is_empty() {
            self.first = what;
        }
    }

    fn check(self, name: &str, advice: &'static str) -> Check {
        let verdict = match self.count {
            0 => Verdict::Pass,
            1 => Verdict::Fail(self.first, advice),
            more => Verdict::Fail(format!("{} (and {} more)", self.first, more - 1), advice),
        };
        Check { name: format!("ListRecords: {name}"), verdict }
    }
}

impl WholeList {
    /// Takes the next part. Returns the token of the part after it; `None` if the list has ended.
    pub fn take(&mut self, reply: &Reply) -> Option<String> {
        let Some(Body::Records(page)) = reply.body() else {
            self.end = Some(Err(format!("part {}: {}", self.parts + 1, reply.why_not())));
            return None;
        };
        self.parts += 1;
        self.records(page);
        let Some(token) = &page.token else {
            let is_one = self.parts == 1;
            let missing = || Err(format!("part {}, the last, has no token", self.parts));
            self.end = Some(if is_one { Ok(()) } else { missing() });
            return None;
        };
        if token.value.is_empty() {
            self.end = Some(Ok(()));
            return None;
        }
        if !self.tokens.insert(token.value.clone()) {
            let why = format!("part {} has a token that was handed out before", self.parts);
            self.end = Some(Err(why));
            return None;
        }
        Some(token.value.clone())
    }

    fn records(&mut self, page: &Page<Record>) {
        for bad in &page.quarantined {
            let name = bad.identifier.as_deref().unwrap_or("a record without identifier");
            self.unreadable.add(format!("{name} in part {}: {}", self.parts, bad.problem));
        }
        for Record { header, metadata, .. } in &page.items {
            if metadata.is_none() && !header.deleted {
                self.bare.add(format!("{} in part {} has none", header.identifier, self.parts));
            }
            // A record that changes meanwhile may come again, with another datestamp.
            let before = self.seen.insert(header.identifier.clone(), header.datestamp);
            if before == Some(header.datestamp) {
                self.repeated.add(format!("{} in part {}", header.identifier, self.parts));
            }
        }
    }

    /// Returns the checks.
    pub fn finish(self) -> Vec<Check> {
        let end = match self.end {
            Some(Ok(())) => Verdict::Pass,
            Some(Err(why)) => {
                let advice = "end a list of several parts with an empty resumptionToken";
                Verdict::Fail(why, advice)
            }
            None => Verdict::Skip(format!("only the first {} parts were read", self.parts)),
        };
        let bare = "write the metadata, or mark the record as deleted";
        let unreadable = "write each record as the schema has it";
        let repeated = "name each record once, and let each token lead behind its part";
        vec![
            self.unreadable.check("every record can be read", unreadable),
            self.bare.check("every record that is not deleted has metadata", bare),
            self.repeated.check("no record comes twice", repeated),
            Check { name: "ListRecords: the list ends".to_owned(), verdict: end },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Verb;

    /// Returns the names of the failed checks on a list of these parts, and whether it has ended.
    fn failed(parts: &[&str]) -> (Vec<String>, bool) {
        let mut list = WholeList::default();
        let mut next = Some(String::new());
        for part in parts {
            assert!(next.is_some(), "it ended before {part}");
            let page = format!(
                "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
                 <responseDate>2026-01-31T12:00:00Z</responseDate><request>http://a/</request>\
                 {part}</OAI-PMH>"
            );
            next = list.take(&Reply::new("q", Verb::ListRecords, 200, "", page.into_bytes()));
        }
        let failed = list.finish().into_iter();
        let failed = failed.filter(|it| matches!(it.verdict, Verdict::Fail(..)));
        (failed.map(|it| it.name).collect(), next.is_none())
    }

    fn record(identifier: &str, rest: &str) -> String {
        format!(
            "<record><header><identifier>{identifier}</identifier>\
             <datestamp>2026-01-01</datestamp></header>{rest}</record>"
        )
    }

    fn part(records: &str, token: Option<&str>) -> String {
        let token = token.map(|it| format!("<resumptionToken>{it}</resumptionToken>"));
        format!("<ListRecords>{records}{}</ListRecords>", token.unwrap_or_default())
    }

    #[test]
    fn mistakes_in_any_part_are_found() {
        let full = |it: &str| record(it, "<metadata><m/></metadata>");
        let first = part(&full("a"), Some("t"));
        let check = |second: &str, expected: &[&str]| {
            let names: Vec<String> =
                expected.iter().map(|it| format!("ListRecords: {it}")).collect();
            assert_eq!(failed(&[&first, second]), (names, true), "{second}");
        };
        check(&part(&full("b"), Some("")), &[]);
        check(&part(&full("b"), None), &["the list ends"]);
        check(&part(&full("b"), Some("t")), &["the list ends"]);
        check("<error code=\"badResumptionToken\"/>", &["the list ends"]);
        check(&part(&full("a"), Some("")), &["no record comes twice"]);
        let later = full("a").replace("2026-01-01", "2026-01-02");
        check(&part(&later, Some("")), &[]);
        let bare = "every record that is not deleted has metadata";
        check(&part(&record("b", ""), Some("")), &[bare]);
        let gone = record("b", "").replace("<header>", "<header status=\"deleted\">");
        check(&part(&gone, Some("")), &[]);
        check(&part(&record("", ""), Some("")), &["every record can be read"]);
        assert_eq!(failed(&[&part(&full("a"), None)]), (vec![], true), "one part needs no token");
        assert_eq!(failed(&[&first]), (vec![], false));
    }
}
