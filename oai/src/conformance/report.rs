//! The report on a repository: the results of all checks, collected reply by reply.
//!
//! The caller has the socket: it makes the requests and passes in the replies.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use super::{Check, Reply, Verdict, WholeList, WrongRequest, of_any, of_first_page, of_identify};
use crate::Code;
use crate::harvest::OAI_DC;
use crate::request::Verb;
use crate::response::{Body, Header, Identify, Token};

/// Advice for a record that GetRecord does not return.
const HAND_OUT: &str = "hand out every record that is listed";

/// Advice for a record that is missing from the list of its own date.
const WITHIN: &str = "a record is within the second that it changed in";

/// Name of the check that the bounds of a list are inclusive.
pub const BOUNDS: &str = "ListRecords: from and until are inclusive";

/// Name of the check on a list's second part.
pub const SECOND_PAGE: &str = "ListIdentifiers: a token leads on, and again to the same";

/// The results of the checks on a repository so far.
#[derive(Debug, Default)]
pub struct Report {
    checks: Vec<Check>,
    /// For each check on every response: number of failures, the first one, and the advice.
    any: BTreeMap<&'static str, (u64, String, &'static str)>,
}

impl Report {
    /// Makes the checks that apply to every reply.
    pub fn any(&mut self, reply: &Reply) {
        for (name, outcome, advice) in of_any(reply) {
            let entry = self.any.entry(name).or_insert_with(|| (0, String::new(), advice));
            if let Err(why) = outcome {
                entry.0 += 1;
                if entry.1.is_empty() {
                    entry.1 = format!("{}: {why}", reply.query);
                }
            }
        }
    }

    /// Records that the repository was too busy for `query`; `says_when`: the answer had a usable
    /// Retry-After.
    pub fn busy(&mut self, query: &str, says_when: bool) {
        let advice = "send Retry-After in seconds, at most 3600";
        let entry = self.any.entry("busy with a numeric Retry-After, or not at all");
        let entry = entry.or_insert_with(|| (0, String::new(), advice));
        if !says_when {
            entry.0 += 1;
            entry.1 = format!("{query}: status 503 without one");
        }
    }

    /// Checks the reply to Identify, sent to `base_url`. `None` means that no further check is
    /// possible.
    pub fn identify(&mut self, reply: &Reply, base_url: &str) -> Option<Identify> {
        let Some(Body::Identify(identify)) = reply.body() else {
            let advice = "nothing else is asked before this is answered";
            self.fail("Identify: it is answered", reply.why_not(), advice);
            return None;
        };
        self.pass("Identify: it is answered");
        self.checks.extend(of_identify(identify, reply, base_url));
        Some((**identify).clone())
    }

    /// Checks the formats of the repository, or those of an item.
    pub fn formats(&mut self, reply: &Reply, is_of_item: bool) {
        let of = if is_of_item { " of an item" } else { "" };
        let name = format!("ListMetadataFormats{of}: oai_dc is there");
        match reply.body() {
            Some(Body::Formats(all)) if all.iter().any(|it| it.prefix == OAI_DC) => self.pass(name),
            Some(Body::Formats(_)) => {
                self.fail(name, "it is not", "every repository has its records in oai_dc");
            }
            _ => self.fail(name, reply.why_not(), "list the formats, oai_dc among them"),
        }
    }

    /// Checks the list of sets, and returns the first set; `None` if there is none.
    pub fn sets(&mut self, reply: &Reply) -> Option<String> {
        let name = "ListSets: sets, or noSetHierarchy";
        match reply.body() {
            Some(Body::Sets(page)) if !page.items.is_empty() && page.quarantined.is_empty() => {
                self.pass(name);
                return page.items.first().map(|it| it.spec.clone());
            }
            _ if reply.codes() == [Code::NoSetHierarchy] => self.pass(name),
            Some(Body::Sets(_)) => {
                self.fail(name, "there is none, or one without a setSpec", "send noSetHierarchy");
            }
            _ => self.fail(name, reply.why_not(), "list the sets, or send noSetHierarchy"),
        }
        None
    }

    /// Checks the first part of a list of headers, of all records or of one set. Returns the first
    /// header that is not deleted, and the token of the next part, if any; `None` if there is no
    /// such header.
    pub fn list(&mut self, reply: &Reply, set: Option<&str>) -> Option<(Header, Option<Token>)> {
        let of = set.map(|it| format!(" of the set {it}")).unwrap_or_default();
        let name = format!("ListIdentifiers{of}: records");
        let Some(Body::Headers(page)) = reply.body() else {
            self.fail(name, reply.why_not(), "there must be records to list in oai_dc");
            return None;
        };
        let header = page.items.iter().find(|it| !it.deleted).cloned();
        match &header {
            Some(_) => self.pass(name),
            None => self.skip(name, "the first part has none that is not deleted"),
        }
        let name = format!("ListIdentifiers{of}: the token of the first part");
        match of_first_page(page.token.as_ref(), page.items.len()) {
            Ok(thoughts) => {
                self.pass(name.clone());
                for it in thoughts {
                    self.check(name.clone(), Verdict::Note(it));
                }
            }
            Err(why) => self.fail(name, why, "leave the token out where a list has one part"),
        }
        let name = format!("ListIdentifiers{of}: datestamps");
        if reply.are_stamps_sound() {
            self.pass(name);
        } else {
            self.fail(name, "some are no dates", "write them in UTC and the granularity");
        }
        let token = page.token.clone().filter(|it| !it.value.is_empty());
        header.map(|it| (it, token))
    }

    /// Checks the two replies to the same `token`.
    pub fn second_page(&mut self, token: &Token, first: &Reply, second: &Reply) {
        let name = SECOND_PAGE;
        match (first.body(), second.body()) {
            (Some(Body::Headers(one)), Some(Body::Headers(two))) => {
                let is_loop = one.token.as_ref().is_some_and(|it| it.value == token.value);
                if is_loop {
                    self.fail(name, "it leads to itself", "a list must come to its end");
                } else if one.items != two.items {
                    let advice = "a harvester that lost an answer asks with the same token again";
                    self.fail(name, "it leads to other records the second time", advice);
                } else {
                    self.pass(name);
                }
            }
            (Some(Body::Headers(_)), _) => self.fail(name, second.why_not(), "keep tokens good"),
            _ => self.fail(name, first.why_not(), "take the tokens that you hand out"),
        }
    }

    /// Adds the checks on the list of all records.
    pub fn whole_list(&mut self, list: WholeList) {
        self.checks.extend(list.finish());
    }

    /// Checks the record `identifier`, which a list of `set` named.
    pub fn record_of_set(&mut self, reply: &Reply, identifier: &str, set: &str) {
        let name = format!("GetRecord: a record of the set {set} names it");
        let below = format!("{set}:");
        match reply.body() {
            Some(Body::Record(it))
                if it.header.sets.iter().any(|it| it == set || it.starts_with(&below)) =>
            {
                self.pass(name);
            }
            Some(Body::Record(_)) => {
                let advice = "write a setSpec for every set that the item is in";
                self.fail(name, format!("{identifier} does not"), advice);
            }
            _ => self.fail(name, reply.why_not(), HAND_OUT),
        }
    }

    /// Checks the record `identifier`, which a list named.
    pub fn record(&mut self, reply: &Reply, identifier: &str, identify: &Identify) {
        let name = "GetRecord: the record that was listed";
        let Some(Body::Record(record)) = reply.body() else {
            self.fail(name, reply.why_not(), HAND_OUT);
            return;
        };
        if record.header.identifier == identifier {
            self.pass(name);
        } else {
            let why = format!("{} came", record.header.identifier);
            self.fail(name, why, "send the record that is asked for");
        }
        let name = "GetRecord: its datestamp is as fine as granularity";
        let stamp = record.header.datestamp;
        let is_fine = stamp.is_some_and(|it| it.granularity() == identify.granularity);
        if is_fine && reply.are_stamps_sound() {
            self.pass(name);
        } else {
            let why = stamp.map_or_else(|| "there is none".to_owned(), |it| format!("it is {it}"));
            self.fail(name, why, "write all datestamps in the granularity that Identify names");
        }
    }

    /// Checks a part of the list whose `from` and `until` are the header's date: this part or a
    /// later one must have the record. Returns the token of the next part if that must be searched.
    pub fn bounds(&mut self, reply: &Reply, header: &Header) -> Option<String> {
        let Some(Body::Records(page)) = reply.body() else {
            self.fail(BOUNDS, reply.why_not(), WITHIN);
            return None;
        };
        if page.items.iter().any(|it| it.header.identifier == header.identifier) {
            self.pass(BOUNDS);
            return None;
        }
        let next = page.token.as_ref().map(|it| it.value.clone()).filter(|it| !it.is_empty());
        if next.is_none() {
            let stamp = header.datestamp.map(|it| it.to_string()).unwrap_or_default();
            let why = format!("{} is not among those of {stamp}", header.identifier);
            self.fail(BOUNDS, why, WITHIN);
        }
        next
    }

    /// Checks the reply to a wrong request.
    pub fn wrong(&mut self, reply: &Reply, wrong: &WrongRequest) {
        let names: Vec<&str> = wrong.codes.iter().map(|it| it.name()).collect();
        let name = format!("errors: {} is {}", wrong.name, names.join(" or "));
        if reply.codes().iter().any(|it| wrong.codes.contains(it)) {
            self.pass(name);
            return;
        }
        let why = match reply.body() {
            Some(Body::Faults(_)) | None => reply.why_not(),
            Some(_) => "it is answered as if it were right".to_owned(),
        };
        let why = format!("{}: {why}", wrong.query);
        self.fail(name, why, "send that error, under status 200");
    }

    /// Checks the reply to Identify or GetRecord, sent with POST.
    pub fn post(&mut self, reply: &Reply) {
        let (name, is_answered) = match reply.asked {
            Verb::Identify => ("POST: Identify", matches!(reply.body(), Some(Body::Identify(_)))),
            _ => ("POST: GetRecord", matches!(reply.body(), Some(Body::Record(_)))),
        };
        if is_answered {
            self.pass(name);
        } else {
            self.fail(name, reply.why_not(), "take the same arguments from a form");
        }
    }

    /// Returns all checks; those on every response come last.
    pub fn finish(self) -> Vec<Check> {
        let mut all = self.checks;
        for (name, (count, first, advice)) in self.any {
            let verdict = match count {
                0 => Verdict::Pass,
                1 => Verdict::Fail(first, advice),
                more => Verdict::Fail(format!("{first} (and {} more)", more - 1), advice),
            };
            all.push(Check { name: format!("every response: {name}"), verdict });
        }
        all
    }

    fn check(&mut self, name: impl Into<String>, verdict: Verdict) {
        self.checks.push(Check { name: name.into(), verdict });
    }

    fn pass(&mut self, name: impl Into<String>) {
        self.check(name, Verdict::Pass);
    }

    fn fail(&mut self, name: impl Into<String>, why: impl Into<String>, advice: &'static str) {
        self.check(name, Verdict::Fail(why.into(), advice));
    }

    /// Records why a check cannot be made.
    pub fn skip(&mut self, name: impl Into<String>, why: &str) {
        self.check(name, Verdict::Skip(why.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a reply whose document has `inner` after the request element.
    fn reply(query: &str, asked: Verb, status: u16, inner: &str) -> Reply {
        let page = format!(
            "<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
             <responseDate>2026-01-31T12:00:00Z</responseDate><request>http://a/</request>\
             {inner}</OAI-PMH>"
        );
        Reply::new(query, asked, status, "text/xml", page.into_bytes())
    }

    fn failed(report: Report) -> Vec<String> {
        let all = report.finish().into_iter();
        all.filter(|it| matches!(it.verdict, Verdict::Fail(..))).map(|it| it.name).collect()
    }

    #[test]
    fn a_wrong_request_must_be_answered_with_one_of_its_errors() {
        let wrong = WrongRequest { name: "a", query: "b".to_owned(), codes: &[Code::BadVerb] };
        for (code, expected) in
            [("badVerb", vec![]), ("badArgument", vec!["errors: a is badVerb".to_owned()])]
        {
            let fault = format!("<error code=\"{code}\">no</error>");
            let mut report = Report::default();
            report.wrong(&reply("b", Verb::ListIdentifiers, 200, &fault), &wrong);
            assert_eq!(failed(report), expected, "{code}");
        }
    }

    #[test]
    fn only_malformed_xml_is_called_malformed() {
        let check = |asked, inner: &str, is_sound: bool| {
            let mut report = Report::default();
            report.any(&reply("q", asked, 200, inner));
            let is_failed = failed(report).iter().any(|it| it.contains("well-formed"));
            assert_eq!(is_failed, !is_sound, "{inner}");
        };
        let record = "<record><header><identifier>a</identifier></header>%</record>";
        let list = |rest| format!("<ListRecords>{}</ListRecords>", record.replace('%', rest));
        check(Verb::ListIdentifiers, &list(""), true);
        check(Verb::ListRecords, &list(""), true);
        check(Verb::GetRecord, "<GetRecord/>", true);
        check(Verb::ListRecords, &list("<metadata>&amp;<m/></metadata>"), true);
        check(Verb::ListRecords, &list("<metadata>&<m/></metadata>"), false);
        check(Verb::ListRecords, &list("<metadata><m></metadata>"), false);
        check(Verb::ListIdentifiers, &list("<metadata>&<m/></metadata>"), false);
    }

    #[test]
    fn a_failure_of_every_response_is_reported_once() {
        let mut report = Report::default();
        for query in ["one", "two"] {
            report.any(&reply(query, Verb::Identify, 404, "<error code=\"badVerb\">no</error>"));
        }
        report.busy("three", true);
        let all = report.finish();
        let status = all.iter().find(|it| it.name.ends_with("status 200")).unwrap();
        let Verdict::Fail(why, _) = &status.verdict else { panic!("{status:?}") };
        assert_eq!(why, "one: the status is 404 (and 1 more)");
        let busy = all.iter().find(|it| it.name.contains("busy")).unwrap();
        assert_eq!(busy.verdict, Verdict::Pass);
    }

    #[test]
    fn a_search_goes_on_until_the_list_ends() {
        let header = Header { identifier: "oai:a.b:1".to_owned(), ..Header::default() };
        let page = |token: &str| {
            let record = "<record><header><identifier>oai:a.b:2</identifier>\
                          <datestamp>2026-01-01</datestamp></header></record>";
            let inner = format!("<ListRecords>{record}{token}</ListRecords>");
            reply("q", Verb::ListRecords, 200, &inner)
        };
        let mut report = Report::default();
        let next = report.bounds(&page("<resumptionToken>t</resumptionToken>"), &header);
        assert_eq!(next.as_deref(), Some("t"));
        assert_eq!(report.bounds(&page(""), &header), None);
        assert_eq!(failed(report), [BOUNDS]);
    }
}
