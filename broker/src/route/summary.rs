//! A content summary: what a broker's collection is like, as one record, by which others decide whether to ask it.
//!
//! It has the number of objects and of their words, the most telling words with how many objects have them and how often
//! they occur, a filter of all other words, types, and some titles. Words stand for all their forms: they are stems.
//! The record is in no search, list or count; a broker serves it as the part `type:Summary` of its feed.
//!
//! Source: L. Gravano et al., "STARTS", 1997 (content summaries); TR §11 (the index of rare words).
//!
//! Sans-I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use collection::feed::{FeedServer, Selection};
use collection::member::{Decoder, MEMBER_BYTES_MAX};
use collection::{Change, GATHERER_ID, ORIGIN_PATH};
use exchange::push::feed::Apart;
use soif::Record;
use url::Url;

use super::bloom::Bloom;
use super::excess;
use crate::answer::OBJECTS_MAX;

/// Template of the record.
pub const TEMPLATE: &str = "SUMMARY";
/// The value of its `Type`.
pub const TYPE: &str = "Summary";
/// Maximum number of words with their counts.
pub(crate) const TERMS_MAX: usize = 1_000;
/// Maximum number of titles, and of types.
pub(crate) const SAMPLE_MAX: usize = 20;
/// Highest score that a word can have by the usual ranking and the statistics that are the same for all brokers, in
/// thousandths; a test in `index/content.rs` derives it.
pub(crate) const BEST_MAX: u64 = 57_441;
/// Longest word, in bytes.
const TERM_BYTES_MAX: usize = 64;
/// Longest title and name, in characters.
const TITLE_CHARS_MAX: usize = 150;

/// How many objects have a word, how often it occurs in them all, and the score of the object that is best for it by
/// statistics which are the same for all brokers, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) objects: u64,
    pub(crate) occurrences: u64,
    pub(crate) best: u64,
}

/// What a collection is like.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    /// Number of objects.
    pub(crate) objects: u64,
    /// Number of their words.
    pub(crate) words: u64,
    /// The most telling stems.
    pub(crate) terms: HashMap<String, Counts>,
    /// All other stems.
    pub(crate) rare: Bloom,
    /// Numbers of objects by type.
    pub(crate) types: BTreeMap<String, u64>,
    /// Some titles.
    pub(crate) sample: Vec<String>,
}

/// The content summary of a broker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Summary {
    /// The broker's id.
    pub(crate) id: String,
    /// Its name for people.
    pub(crate) name: String,
    /// The address at which it is asked; `None`: it does not know its own.
    pub(crate) url: Option<Url>,
    pub(crate) content: Content,
    /// What it claims beyond what can be, which is not in the content.
    pub(crate) excess: BTreeSet<&'static str>,
}

/// Returns the object's URL of the summary of a broker.
pub(crate) fn url_of(id: &str) -> String {
    format!("urn:harvest:summary:{id}")
}

/// The query by which a feed is asked for content summaries.
pub const QUERY: &str = "type:Summary";

/// Returns the part of a feed that has the content summaries, which are all that `feed` serves.
pub(crate) fn apart(feed: FeedServer) -> Apart {
    let takes = Arc::new(|_: &Record| true);
    let selection = Selection { name: "summaries-1".to_owned(), takes, among: None };
    Apart { query: QUERY, feed, selection }
}

/// Returns the content summary of the broker with this id itself among the changes of its feed, the latest if there are
/// several; `None`: there is none. What it passes on of others is not looked at.
///
/// # Errors
///
/// The feed is damaged, as the text says; ask for it again.
pub fn own_summary(id: &str, bytes: &[u8]) -> Result<Option<Record>, String> {
    let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
    decoder.feed(bytes);
    let mut found = None;
    while let Some(member) = decoder.next_member().map_err(|it| it.to_string())? {
        for scanned in member.changes().map_err(|it| it.to_string())? {
            if let Change::Update(record) = scanned.change
                && is_summary_of(&record, id)
            {
                found = Some(record);
            }
        }
    }
    decoder.finish().map_err(|it| it.to_string())?;
    Ok(found)
}

/// Returns whether a record is the content summary of the broker with this id, from that broker itself.
fn is_summary_of(record: &Record, id: &str) -> bool {
    let is_own = record.text(GATHERER_ID).is_some_and(|it| it == id);
    is_summary(record) && is_own && record.url == url_of(id) && record.text(ORIGIN_PATH).is_none()
}

/// Returns whether a record is a content summary.
pub(crate) fn is_summary(record: &Record) -> bool {
    record.template == TEMPLATE
}

impl Summary {
    /// Returns the record, made at this time in Unix seconds.
    pub(crate) fn to_record(&self, now: u64) -> Record {
        let Content { objects, words, terms, rare, types, sample } = &self.content;
        let mut record = Record::new(TEMPLATE, url_of(&self.id));
        record.push(GATHERER_ID, &*self.id);
        record.push("Type", TYPE);
        record.push("Title", format!("What {} has", self.name));
        record.push("Gatherer-Name", &*self.name);
        if let Some(url) = &self.url {
            record.push("Broker-URL", url.as_str());
        }
        record.push("Objects", objects.to_string());
        record.push("Words", words.to_string());
        let mut listed: Vec<(&String, &Counts)> = terms.iter().collect();
        listed.sort_by(|a, b| b.1.objects.cmp(&a.1.objects).then_with(|| a.0.cmp(b.0)));
        let mut lines = String::new();
        for (term, counts) in listed.into_iter().take(TERMS_MAX) {
            // Writing to a string never fails.
            let Counts { objects, occurrences, best } = counts;
            let _ = writeln!(lines, "{term} {objects} {occurrences} {best}");
        }
        record.push("Terms", lines.trim_end());
        record.push("Rare-Terms", rare.bytes());
        let types: Vec<String> =
            types.iter().map(|(name, count)| format!("{name} {count}")).collect();
        record.push("Object-Types", types.join("\n"));
        record.push("Sample", sample.join("\n"));
        record.push("Update-Time", now.to_string());
        record
    }

    /// Reads a record; `None`: it is none of a summary. What a broker says of itself is bounded, and made to fit: no word
    /// is in more objects than there are. How often words occur is made to fit in silence, since the number of all words
    /// of an index is an estimate.
    pub(crate) fn read(record: &Record) -> Option<Self> {
        if !is_summary(record) {
            return None;
        }
        let text = |name| record.text(name).unwrap_or_default().into_owned();
        let number = |name| record.number(name).unwrap_or_default();
        let mut claims = BTreeSet::new();
        let mut capped = |claimed: u64, most: u64, claim: &'static str| {
            claims.extend((most < claimed).then_some(claim));
            claimed.min(most)
        };
        let objects = capped(number("Objects"), OBJECTS_MAX, excess::OBJECTS);
        let words = number("Words");
        let short = |it: &str| it.chars().take(TITLE_CHARS_MAX).collect::<String>();
        let (mut terms, listed) = (HashMap::new(), text("Terms"));
        capped(listed.lines().count() as u64, TERMS_MAX as u64, excess::TERMS);
        for line in listed.lines().take(TERMS_MAX) {
            let Some((term, counts)) = line.split_once(' ') else { continue };
            let counts: Vec<u64> = counts.split(' ').map_while(|it| it.parse().ok()).collect();
            if let [having, often, best] = counts[..]
                && term.len() <= TERM_BYTES_MAX
            {
                let having = capped(having, objects, excess::WORD);
                let occurrences = often.clamp(having, words.max(having));
                let best = capped(best, BEST_MAX, excess::SCORE);
                terms.insert(term.to_owned(), Counts { objects: having, occurrences, best });
            }
        }
        let counted = |line: &str| {
            let (name, count) = line.rsplit_once(' ')?;
            Some((short(name), count.parse().ok()?))
        };
        let types = text("Object-Types").lines().take(SAMPLE_MAX).filter_map(counted).collect();
        let sample = text("Sample").lines().take(SAMPLE_MAX).map(short).collect();
        let url = Url::parse(&text("Broker-URL")).ok().filter(|it| it.as_str().len() <= 2_000);
        let filter = record.get("Rare-Terms").unwrap_or_default();
        let rare = Bloom::of_bytes(filter);
        let is_refused = !filter.is_empty() && rare.bytes().is_empty();
        claims.extend(is_refused.then_some(excess::FILTER));
        Some(Self {
            id: text(GATHERER_ID),
            name: short(&text("Gatherer-Name")),
            url: url.filter(|it| matches!(it.scheme(), "http" | "https")),
            content: Content { objects, words, terms, rare, types, sample },
            excess: claims,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let mut rare = Bloom::for_words(2);
        rare.insert("glacier");
        let counts = |objects, occurrences, best| Counts { objects, occurrences, best };
        Summary {
            id: "00000000000000aa".to_owned(),
            name: "Geology".to_owned(),
            url: Url::parse("http://h:8501/").ok(),
            content: Content {
                objects: 100,
                words: 5_000,
                terms: HashMap::from([
                    ("rock".to_owned(), counts(60, 200, 10)),
                    ("ice".to_owned(), counts(30, 40, 0)),
                ]),
                rare,
                types: BTreeMap::from([("HTML".to_owned(), 90), ("PDF".to_owned(), 10)]),
                sample: vec!["On rocks".to_owned(), "On ice".to_owned()],
            },
            excess: BTreeSet::new(),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let made = summary();
        let record = made.to_record(1_700_000_000);
        assert_eq!(Summary::read(&record), Some(made));
        // It goes over the wire unchanged, filter and all.
        let mut bytes = Vec::new();
        soif::write_record(&mut bytes, &record);
        let mut reader = soif::Reader::new(soif::Mode::Strict, soif::Limits::default());
        reader.feed(&bytes);
        let Some(soif::Event::Record(read)) = reader.next_event().unwrap() else {
            panic!("no record")
        };
        assert_eq!(read.to_record(), record);
        assert!(Summary::read(&Record::new("FILE", "http://h/")).is_none());
    }

    #[test]
    fn who_boasts_is_cut_down_and_shown() {
        let mut record = summary().to_record(1);
        let excess = |record: &Record| Summary::read(record).unwrap().excess;
        assert_eq!(excess(&record), BTreeSet::new());
        record.set("Terms", "rock 999999 1 1\nice 5 99999999 9999999\nx\ny a b c\nz 1 1");
        record.set("Broker-URL", "javascript:alert(1)");
        record.set("Gatherer-Name", "n".repeat(1_000_000));
        record.set("Rare-Terms", vec![0xff; 64]);
        let read = Summary::read(&record).unwrap();
        assert_eq!(read.url, None);
        assert_eq!(read.content.terms["rock"], Counts { objects: 100, occurrences: 100, best: 1 });
        let most = Counts { objects: 5, occurrences: 5_000, best: BEST_MAX };
        assert_eq!(read.content.terms["ice"], most);
        assert_eq!((read.content.terms.len(), read.name.len()), (2, TITLE_CHARS_MAX));
        assert!(!read.content.rare.may_have("anything"), "a filter of all words tells nothing");
        assert_eq!(read.excess, BTreeSet::from([excess::WORD, excess::SCORE, excess::FILTER]));
        let mut record = summary().to_record(1);
        record.set("Objects", u64::MAX.to_string());
        assert_eq!(Summary::read(&record).unwrap().content.objects, OBJECTS_MAX);
        assert_eq!(excess(&record), BTreeSet::from([excess::OBJECTS]));
        let mut record = summary().to_record(1);
        let many: String = (0..5_000).map(|n| format!("w{n} 1 1 0\n")).collect();
        record.set("Terms", many);
        assert_eq!(Summary::read(&record).unwrap().content.terms.len(), TERMS_MAX);
        assert_eq!(excess(&record), BTreeSet::from([excess::TERMS]));
    }

    #[test]
    fn a_word_scores_what_a_word_can_and_no_more() {
        for (claimed, is_excess) in [(BEST_MAX, false), (BEST_MAX + 1, true)] {
            let mut record = summary().to_record(1);
            record.set("Terms", format!("rock 60 200 {claimed}"));
            let read = Summary::read(&record).unwrap();
            assert_eq!(read.content.terms["rock"].best, BEST_MAX);
            assert_eq!(read.excess.contains(excess::SCORE), is_excess, "{claimed}");
        }
    }

    #[test]
    fn only_the_own_summary_of_a_broker_is_taken_of_it() {
        let (own, id) = (summary().to_record(1), "00000000000000aa");
        assert!(is_summary_of(&own, id));
        assert!(!is_summary_of(&own, "00000000000000bb"), "that of somebody else");
        let changed = |change: fn(&mut Record)| {
            let mut record = own.clone();
            change(&mut record);
            record
        };
        assert!(!is_summary_of(&changed(|it| it.set(ORIGIN_PATH, "00000000000000bb")), id));
        assert!(!is_summary_of(&changed(|it| it.url = url_of("00000000000000bb")), id));
        assert!(!is_summary_of(&changed(|it| it.template = "BROKER".to_owned()), id));
        assert_eq!(own_summary(id, b""), Ok(None));
        assert!(own_summary(id, &[0; 64]).is_err());
    }
}
