//! Requests: the six verbs and their arguments, written by a harvester and read by a repository.
//!
//! Source: OAI-PMH §3.1.1 (HTTP requests: keyword arguments by GET or POST), §4 (the verbs).

use url::form_urlencoded;

use crate::datestamp::Datestamp;
use crate::error::{Code, Fault};

/// Longest query that is read, in bytes.
pub const QUERY_BYTES_MAX: usize = 64 * 1024;

/// A verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// The description of the repository.
    Identify,
    /// The metadata formats of the repository, or of one item.
    ListMetadataFormats,
    /// The sets.
    ListSets,
    /// The headers of records.
    ListIdentifiers,
    /// Records.
    ListRecords,
    /// One record.
    GetRecord,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 6] = [
        Self::Identify,
        Self::ListMetadataFormats,
        Self::ListSets,
        Self::ListIdentifiers,
        Self::ListRecords,
        Self::GetRecord,
    ];

    /// Returns its name on the wire, in the argument and in the response.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identify => "Identify",
            Self::ListMetadataFormats => "ListMetadataFormats",
            Self::ListSets => "ListSets",
            Self::ListIdentifiers => "ListIdentifiers",
            Self::ListRecords => "ListRecords",
            Self::GetRecord => "GetRecord",
        }
    }

    /// Returns the verb with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the names of its possible arguments.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Identify => &[],
            Self::ListMetadataFormats => &["identifier"],
            Self::ListSets => &["resumptionToken"],
            Self::ListIdentifiers | Self::ListRecords => {
                &["from", "until", "metadataPrefix", "set", "resumptionToken"]
            }
            Self::GetRecord => &["identifier", "metadataPrefix"],
        }
    }
}

/// The kind of items in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Headers alone.
    Identifiers,
    /// Records.
    Records,
}

/// The selection of a list's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Metadata format.
    pub prefix: String,
    /// Earliest change, inclusive.
    pub from: Option<Datestamp>,
    /// Latest change, inclusive.
    pub until: Option<Datestamp>,
    /// The set, with those below it.
    pub set: Option<String>,
}

/// The beginning or the continuation of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The beginning.
    Selection(Selection),
    /// The token of the last response.
    Token(String),
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The description of the repository.
    Identify,
    /// The metadata formats of the repository, or of one item.
    Formats {
        /// The item.
        identifier: Option<String>,
    },
    /// The sets.
    Sets {
        /// The token of the last response.
        token: Option<String>,
    },
    /// Headers or records.
    List {
        /// The kind of items.
        listed: Listed,
        /// The selection, or the token.
        scope: Scope,
    },
    /// One record.
    Get {
        /// The item.
        identifier: String,
        /// The metadata format.
        prefix: String,
    },
}

impl Request {
    /// Returns its verb.
    pub fn verb(&self) -> Verb {
        match self {
            Self::Identify => Verb::Identify,
            Self::Formats { .. } => Verb::ListMetadataFormats,
            Self::Sets { .. } => Verb::ListSets,
            Self::List { listed: Listed::Identifiers, .. } => Verb::ListIdentifiers,
            Self::List { listed: Listed::Records, .. } => Verb::ListRecords,
            Self::Get { .. } => Verb::GetRecord,
        }
    }

    /// Returns its arguments with their names, the verb first. Empty arguments are left out,
    /// because repositories would count them as present.
    pub fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("verb", self.verb().name().to_owned())];
        let mut add = |name, value: Option<String>| {
            all.extend(value.filter(|it| !it.is_empty()).map(|it| (name, it)));
        };
        match self {
            Self::Identify => {}
            Self::Formats { identifier } => add("identifier", identifier.clone()),
            Self::Sets { token } => add("resumptionToken", token.clone()),
            Self::List { scope: Scope::Token(token), .. } => {
                add("resumptionToken", Some(token.clone()));
            }
            Self::List { scope: Scope::Selection(selection), .. } => {
                add("metadataPrefix", Some(selection.prefix.clone()));
                add("from", selection.from.map(|it| it.to_string()));
                add("until", selection.until.map(|it| it.to_string()));
                add("set", selection.set.clone());
            }
            Self::Get { identifier, prefix } => {
                add("identifier", Some(identifier.clone()));
                add("metadataPrefix", Some(prefix.clone()));
            }
        }
        all
    }

    /// Returns the arguments as the query of a URL, or the body of a POST.
    pub fn to_query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.arguments()).finish()
    }

    /// Reads the query of a URL, or the body of a POST. The repository must check prefix, set,
    /// token and the granularity of datestamps.
    ///
    /// # Errors
    ///
    /// [`Code::BadVerb`] or [`Code::BadArgument`] (§3.6), to be sent as the answer.
    pub fn parse(query: &str) -> Result<Self, Fault> {
        let bad = |message: String| Fault::new(Code::BadArgument, message);
        if QUERY_BYTES_MAX < query.len() {
            return Err(bad(format!("the request is longer than {QUERY_BYTES_MAX} bytes")));
        }
        let pairs: Vec<(String, String)> =
            form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let verb = verb(&pairs)?;
        let mut arguments = Arguments::new(verb, &pairs)?;
        let request = match verb {
            Verb::Identify => Self::Identify,
            Verb::ListMetadataFormats => Self::Formats { identifier: arguments.get("identifier") },
            Verb::ListSets => Self::Sets { token: arguments.get("resumptionToken") },
            Verb::ListIdentifiers => {
                Self::List { listed: Listed::Identifiers, scope: arguments.scope()? }
            }
            Verb::ListRecords => Self::List { listed: Listed::Records, scope: arguments.scope()? },
            Verb::GetRecord => Self::Get {
                identifier: arguments.required("identifier")?,
                prefix: arguments.required("metadataPrefix")?,
            },
        };
        Ok(request)
    }
}

fn verb(pairs: &[(String, String)]) -> Result<Verb, Fault> {
    let mut verbs = pairs.iter().filter(|(name, _)| name == "verb").map(|(_, value)| value);
    match (verbs.next(), verbs.next()) {
        (None, _) => Err(Fault::new(Code::BadVerb, "there is no argument \"verb\"")),
        (Some(_), Some(_)) => Err(Fault::new(Code::BadVerb, "there is more than one verb")),
        (Some(name), None) => Verb::by_name(name).ok_or_else(|| {
            let names = Verb::ALL.map(Verb::name).join(", ");
            Fault::new(Code::BadVerb, format!("the verb is one of {names}"))
        }),
    }
}

/// The arguments of a request with a valid verb.
struct Arguments<'a> {
    verb: Verb,
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    fn new(verb: Verb, pairs: &'a [(String, String)]) -> Result<Self, Fault> {
        let bad = |message: String| Fault::new(Code::BadArgument, message);
        let mut values: Vec<(&str, &str)> = Vec::new();
        for (name, value) in pairs.iter().filter(|(name, _)| name != "verb") {
            let Some(known) = verb.arguments().iter().find(|it| *it == name) else {
                return Err(bad(format!("{} has no argument {name:?}", verb.name())));
            };
            if values.iter().any(|(name, _)| name == known) {
                return Err(bad(format!("the argument {known:?} is there more than once")));
            }
            if value.is_empty() {
                return Err(bad(format!("the argument {known:?} is empty")));
            }
            values.push((known, value));
        }
        Ok(Self { verb, values })
    }

    fn get(&mut self, name: &str) -> Option<String> {
        let at = self.values.iter().position(|(it, _)| *it == name)?;
        Some(self.values.swap_remove(at).1.to_owned())
    }

    fn required(&mut self, name: &str) -> Result<String, Fault> {
        self.get(name).ok_or_else(|| {
            let message = format!("{} needs the argument {name:?}", self.verb.name());
            Fault::new(Code::BadArgument, message)
        })
    }

    fn scope(&mut self) -> Result<Scope, Fault> {
        let bad = |message: String| Fault::new(Code::BadArgument, message);
        if let Some(token) = self.get("resumptionToken") {
            return match self.values.first() {
                Some((name, _)) => {
                    Err(bad(format!("\"resumptionToken\" excludes every other argument: {name:?}")))
                }
                None => Ok(Scope::Token(token)),
            };
        }
        let from = self.datestamp("from")?;
        let until = self.datestamp("until")?;
        if let (Some(from), Some(until)) = (from, until) {
            if from.granularity() != until.granularity() {
                return Err(bad("\"from\" and \"until\" are of different granularity".to_owned()));
            }
            if until < from {
                return Err(bad(format!("\"from\" {from} is after \"until\" {until}")));
            }
        }
        let prefix = self.required("metadataPrefix")?;
        Ok(Scope::Selection(Selection { prefix, from, until, set: self.get("set") }))
    }

    fn datestamp(&mut self, name: &str) -> Result<Option<Datestamp>, Fault> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let read = Datestamp::parse(&text).map(Some);
        read.ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            let message = format!(
                "{name:?} is {shown:?}, and not a date as 2026-01-31 or 2026-01-31T12:00:00Z"
            );
            Fault::new(Code::BadArgument, message)
        })
    }
}

/// Returns whether a set is `set`, or below it.
pub fn is_within(it: &str, set: &str) -> bool {
    it.strip_prefix(set).is_some_and(|it| it.is_empty() || it.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::datestamp::Granularity;

    #[track_caller]
    fn check(query: &str, expected: Result<&str, Code>) {
        let found = Request::parse(query);
        let found = found.as_ref().map(Request::to_query).map_err(|it| it.code);
        assert_eq!(found, expected.map(str::to_owned), "{query}");
    }

    #[test]
    fn valid_arguments_are_read() {
        check("verb=Identify", Ok("verb=Identify"));
        check(
            "metadataPrefix=oai_dc&verb=ListRecords&set=a%3Ab&from=2026-01-31",
            Ok("verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-31&set=a%3Ab"),
        );
        check(
            "verb=ListIdentifiers&resumptionToken=a+b",
            Ok("verb=ListIdentifiers&resumptionToken=a+b"),
        );
        check(
            "verb=GetRecord&identifier=oai%3Ax%2F1&metadataPrefix=soif",
            Ok("verb=GetRecord&identifier=oai%3Ax%2F1&metadataPrefix=soif"),
        );
        check("verb=ListSets", Ok("verb=ListSets"));
        check("verb=ListMetadataFormats&identifier=x", Ok("verb=ListMetadataFormats&identifier=x"));
    }

    #[test]
    fn every_mistake_has_its_code() {
        for query in ["", "verb=", "verb=identify", "verb=Identify&verb=Identify", "Verb=Identify"]
        {
            check(query, Err(Code::BadVerb));
        }
        for query in [
            "verb=Identify&x=1",
            "verb=Identify&metadataPrefix=oai_dc",
            "verb=ListRecords",
            "verb=ListRecords&metadataPrefix=",
            "verb=ListRecords&metadataPrefix=a&metadataPrefix=a",
            "verb=ListRecords&metadataPrefix=a&resumptionToken=t",
            "verb=ListRecords&metadataPrefix=a&from=junk",
            "verb=ListRecords&metadataPrefix=a&from=2026-02-30",
            "verb=ListRecords&metadataPrefix=a&from=2026-01-31T12:00Z",
            "verb=ListRecords&metadataPrefix=a&from=2026-01-31&until=2026-01-31T12:00:00Z",
            "verb=ListRecords&metadataPrefix=a&from=2026-01-31&until=2026-01-30",
            "verb=ListRecords&metadataPrefix=a&set=",
            "verb=GetRecord&identifier=x",
            "verb=GetRecord&metadataPrefix=x",
        ] {
            check(query, Err(Code::BadArgument));
        }
        check(&format!("verb=Identify&{}", "a".repeat(QUERY_BYTES_MAX)), Err(Code::BadArgument));
    }

    fn stamps() -> impl Strategy<Value = (Option<Datestamp>, Option<Datestamp>)> {
        let stamp = (0..4_000_000_000_i64, any::<bool>());
        (prop::option::of(stamp.clone()), any::<bool>(), 0..1_000_000_i64).prop_map(
            |(first, both, later)| {
                let Some((secs, fine)) = first else { return (None, None) };
                let granularity = if fine { Granularity::Second } else { Granularity::Day };
                let until = both.then(|| Datestamp::at(secs + later, granularity));
                (Some(Datestamp::at(secs, granularity)), until)
            },
        )
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(prefix in "[a-z_]{1,9}", set in prop::option::of("\\PC{1,20}"),
                                   (from, until) in stamps(), token in prop::option::of("\\PC{1,40}"),
                                   records in any::<bool>()) {
            let selection = Selection { prefix, from, until, set };
            let scope = token.map_or(Scope::Selection(selection), Scope::Token);
            let listed = if records { Listed::Records } else { Listed::Identifiers };
            let request = Request::List { listed, scope };
            prop_assert_eq!(Request::parse(&request.to_query()), Ok(request));
        }

        #[test]
        fn any_query_is_a_request_or_a_fault(query in "\\PC{0,200}") {
            let _ = Request::parse(&query);
        }
    }
}
