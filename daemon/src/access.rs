//! Access: who may have what of a daemon, by address and by what is shown.
//!
//! Unless the settings say otherwise everybody may have everything that is public. Addresses are let in by
//! `[access]`, as TR §8 and the original's gatherer have it. A `[[consumer]]` is somebody known, by a token or by
//! the name in a certificate; once one may do a thing, nobody else may, unless one of the name `anyone` is listed.
//!
//! Sans-I/O.

use std::collections::BTreeSet;
use std::net::IpAddr;

use net::address::{self, Network};
use net::tls::{self, Shown};
use settings::Table;

use crate::Token;

/// Fewest characters of a consumer's token.
pub const TOKEN_CHARS_MIN: usize = 16;
/// Most consumers.
pub const CONSUMERS_MAX: usize = 1_000;
/// Most bytes of a consumer's name.
const NAME_BYTES_MAX: usize = 100;

/// The name that stands for whoever comes.
const ANYONE: &str = "anyone";
/// The name that stands for nobody: what it may have, those alone have who are listed besides.
const NOBODY: &str = "nobody";
/// Names under which others are counted.
const TAKEN: [&str; 2] = ["unknown", "address"];

/// What a daemon has for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// Changes: feed and snapshots, and ResourceSync.
    Feed,
    /// The OAI-PMH repository.
    Oai,
    /// Pages and the search API.
    Search,
    /// Single objects.
    Objects,
    /// The hub that tells of changes. Nobody is listed for it: whoever may come asks for a topic, and may have it or
    /// not; publishers show a token of its own.
    Hub,
}

impl Thing {
    /// Those that consumers may be listed for.
    const ALL: [Self; 4] = [Self::Feed, Self::Oai, Self::Search, Self::Objects];

    /// Its name in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Oai => "oai",
            Self::Search => "search",
            Self::Objects => "objects",
            Self::Hub => "hub",
        }
    }

    /// Returns what is asked for at `path` of a public listener; `None` for what is open to everybody: whether all
    /// is well, what the daemon is, how its pages look, and where a hub that knows the secret address tells it of
    /// changes. What is not known is a page.
    pub fn at(path: &str) -> Option<Self> {
        let mut parts = path.split('/').skip(1);
        match (parts.next().unwrap_or_default(), parts.next()) {
            ("healthz" | "readyz" | "metrics", None)
            | (".well-known", Some("harvest"))
            | ("assets" | "push", Some(_)) => None,
            ("hub", None) => Some(Self::Hub),
            ("feed", None)
            | (".well-known", Some("resourcesync"))
            | ("snapshot" | "resourcesync" | "collections", Some(_)) => Some(Self::Feed),
            ("oai", _) => Some(Self::Oai),
            ("object", None) => Some(Self::Objects),
            _ => Some(Self::Search),
        }
    }
}

/// How a consumer is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// By a token that it sends.
    Token(Token),
    /// By the name in a certificate that it shows.
    Certificate(String),
    /// It is whoever comes.
    Anyone,
    /// It is nobody.
    Nobody,
}

/// Somebody who may have something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name, for status and metrics.
    pub name: String,
    /// How it is known.
    pub proof: Proof,
    /// What it may have.
    pub may: BTreeSet<Thing>,
}

impl Consumer {
    fn is(&self, asker: &Asker<'_>) -> bool {
        match &self.proof {
            Proof::Token(token) => asker.token.is_some_and(|it| token.is(it)),
            Proof::Certificate(name) => asker.shown.is_some_and(|it| it.is_for(name)),
            Proof::Anyone | Proof::Nobody => false,
        }
    }
}

/// Who may have what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The addresses that are let in; all, if there are none.
    pub allow: Vec<Network>,
    /// The addresses that are not, although they may be among those.
    pub deny: Vec<Network>,
    /// Who is known.
    pub consumers: Vec<Consumer>,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// Its address.
    pub address: IpAddr,
    /// A token that it sends.
    pub token: Option<&'a [u8]>,
    /// A certificate that it shows.
    pub shown: Option<&'a Shown>,
}

/// What is said to who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may, as everybody may.
    Free,
    /// It may, as this consumer.
    Known(usize),
    /// Its address is not let in.
    Address,
    /// Only who is known may, and it is not.
    Unknown,
    /// It is this consumer, which may not.
    Lacking(usize),
}

impl Access {
    /// Reads `[access]` and every `[[consumer]]`. Whether clients are asked for certificates decides whether one
    /// can be known by it.
    pub fn read(root: &Table<'_>, asks_certificates: bool) -> Self {
        let table = root.table("access");
        let [allow, deny] = ["allow", "deny"].map(|key| networks(&table, key));
        let tables = root.tables("consumer");
        if CONSUMERS_MAX < tables.len() {
            root.mistake("consumer", format!("more than {CONSUMERS_MAX} of them"), "fewer");
        }
        settings::refuse_repeats(&tables, "name");
        settings::refuse_repeated_secrets(&tables, "token");
        let read = |it| read_consumer(it, asks_certificates);
        Self { allow, deny, consumers: tables.iter().filter_map(read).collect() }
    }

    /// Decides whether who asks may have `thing`.
    pub fn judge(&self, thing: Thing, asker: &Asker<'_>) -> Verdict {
        let is_let_in = self.allow.is_empty() || address::contains(&self.allow, asker.address);
        if !is_let_in || address::contains(&self.deny, asker.address) {
            return Verdict::Address;
        }
        let known = || self.known(asker);
        let mut may = known().filter(|(_, it)| it.may.contains(&thing));
        match (may.next(), known().next()) {
            (Some((at, _)), _) => Verdict::Known(at),
            (None, _) if self.is_free(thing) => Verdict::Free,
            (None, Some((at, _))) => Verdict::Lacking(at),
            (None, None) => Verdict::Unknown,
        }
    }

    /// Who asks, of those that are known: nobody, mostly one.
    pub fn known<'a>(
        &'a self,
        asker: &'a Asker<'_>,
    ) -> impl Iterator<Item = (usize, &'a Consumer)> + 'a {
        self.consumers.iter().enumerate().filter(|(_, it)| it.is(asker))
    }

    /// Whether what is asked for is for some alone, by their address or as consumers.
    pub fn is_for_some(&self, thing: Thing) -> bool {
        !self.is_free(thing) || !self.allow.is_empty() || !self.deny.is_empty()
    }

    /// What everybody may have by now and could not by the settings `before`.
    pub fn opened_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = Thing> + 'a {
        let opened = move |it: &Thing| self.is_free(*it) && !before.is_free(*it);
        Thing::ALL.into_iter().filter(opened)
    }

    /// Whether everybody may have `thing`.
    pub fn is_free(&self, thing: Thing) -> bool {
        let mut may = self.consumers.iter().filter(|it| it.may.contains(&thing)).peekable();
        may.peek().is_none() || may.any(|it| it.proof == Proof::Anyone)
    }
}

/// Reads the addresses and networks `key`.
pub(crate) fn networks(table: &Table<'_>, key: &str) -> Vec<Network> {
    const EXPECTED: &str = "an address or a network, such as \"192.0.2.7\" or \"192.0.2.0/24\"";
    let mut found = Vec::new();
    for (i, text) in table.strings(key).iter().enumerate() {
        match text.parse() {
            Ok(network) => found.push(network),
            Err(message) => table.mistake_in(key, i, message, EXPECTED),
        }
    }
    found
}

fn read_consumer(table: &Table<'_>, asks_certificates: bool) -> Option<Consumer> {
    let name = table.required_string("name");
    if name.trim().is_empty() || NAME_BYTES_MAX < name.len() || name.contains(char::is_control) {
        let expected = format!("1 to {NAME_BYTES_MAX} bytes without control characters");
        table.mistake("name", format!("{name:?} is no name for a consumer"), expected);
    }
    let (token, certificate) = (Token::read(table), table.string("certificate"));
    let is_short = |it: &Token| it.secret().len() < TOKEN_CHARS_MIN;
    if token.as_ref().is_some_and(is_short) {
        let message = format!("the token has fewer than {TOKEN_CHARS_MIN} characters");
        table.mistake("token", message, "one that nobody guesses: `openssl rand -hex 32`");
    }
    if let Some(certificate) = &certificate {
        if !tls::is_name(certificate) {
            let message = format!("{certificate:?} is no name of a certificate");
            table.mistake("certificate", message, "a host's name, or an address");
        }
        if !asks_certificates {
            let message = "clients are asked for no certificate";
            table.mistake("certificate", message, "client_ca in [tls], or a token instead");
        }
    }
    if TAKEN.contains(&name.as_str()) {
        let message = format!("{name:?} is who is not known");
        table.mistake("name", message, "another name");
    }
    let may = read_may(table);
    let is_none = name == ANYONE || name == NOBODY;
    let proof = match (token, certificate, is_none) {
        (None, None, true) if name == ANYONE => Proof::Anyone,
        (None, None, true) => Proof::Nobody,
        (Some(token), None, false) => Proof::Token(token),
        (None, Some(certificate), false) => Proof::Certificate(certificate),
        (_, _, true) => {
            let message = format!("{name:?} is no one in particular");
            table.mistake("name", message, "no token and no certificate");
            return None;
        }
        (_, _, false) => {
            let message = format!("it is not said how {name:?} is known");
            table.mistake("name", message, "one of token and certificate");
            return None;
        }
    };
    Some(Consumer { name, proof, may })
}

fn read_may(table: &Table<'_>) -> BTreeSet<Thing> {
    let expected = "a list of \"feed\", \"oai\", \"search\" and \"objects\"";
    let mut may = BTreeSet::new();
    let texts = table.strings("may");
    for (i, text) in texts.iter().enumerate() {
        match Thing::ALL.into_iter().find(|it| it.name() == text) {
            Some(thing) => drop(may.insert(thing)),
            None => table.mistake_in("may", i, format!("{text:?} is none"), expected),
        }
    }
    if texts.is_empty() {
        table.mistake("may", "it is not said what the consumer may have", expected);
    }
    may
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    const KNOWN: &str =
        "[[consumer]]\nname = 'union'\ntoken = 'a-token-of-16-or-more'\nmay = ['feed']\n";

    fn read(text: &str) -> Result<Access, Vec<String>> {
        let document = Document::parse(text).unwrap();
        let access = Access::read(&document.root(), text.contains("#ca"));
        let said = |it: Vec<settings::Mistake>| it.iter().map(ToString::to_string).collect();
        document.finish().map(|()| access).map_err(said)
    }

    fn judge(access: &Access, thing: Thing, address: &str, token: Option<&str>) -> Verdict {
        let (address, token) = (address.parse().unwrap(), token.map(str::as_bytes));
        access.judge(thing, &Asker { address, token, shown: None })
    }

    #[test]
    fn everything_is_free_until_it_is_somebodys() {
        let token = Some("a-token-of-16-or-more");
        let check = |text: &str, thing, token, expected| {
            assert_eq!(judge(&read(text).unwrap(), thing, "192.0.2.1", token), expected, "{text}");
        };
        for thing in Thing::ALL {
            check("", thing, None, Verdict::Free);
        }
        check(KNOWN, Thing::Feed, None, Verdict::Unknown);
        check(KNOWN, Thing::Feed, Some("a-token-of-16-or-morf"), Verdict::Unknown);
        check(KNOWN, Thing::Feed, token, Verdict::Known(0));
        check(KNOWN, Thing::Oai, None, Verdict::Free);
        check(KNOWN, Thing::Oai, token, Verdict::Free);
        let other =
            "[[consumer]]\nname = 'o'\ntoken = 'another-token-of-16'\nmay = ['oai', 'search']\n";
        let both = format!("{KNOWN}{other}");
        check(&both, Thing::Oai, token, Verdict::Lacking(0));
        check(&both, Thing::Oai, Some("another-token-of-16"), Verdict::Known(1));
        let anyone = format!("{both}[[consumer]]\nname = 'anyone'\nmay = ['search']\n");
        check(&anyone, Thing::Search, None, Verdict::Free);
        check(&anyone, Thing::Search, token, Verdict::Free);
        check(&anyone, Thing::Search, Some("another-token-of-16"), Verdict::Known(1));
        check(&anyone, Thing::Oai, None, Verdict::Unknown);
        let nobody = "[[consumer]]\nname = 'nobody'\nmay = ['feed']\n";
        check(nobody, Thing::Feed, None, Verdict::Unknown);
        check(nobody, Thing::Oai, None, Verdict::Free);
        check(&format!("{nobody}{KNOWN}"), Thing::Feed, token, Verdict::Known(1));
    }

    #[test]
    fn addresses_are_denied_or_not_allowed() {
        let text = "[access]\nallow = ['192.0.2.0/24', '2001:db8::1']\ndeny = ['192.0.2.7']\n";
        let check = |text: &str, address, expected| {
            let access = read(text).unwrap();
            let token = Some("a-token-of-16-or-more");
            assert_eq!(judge(&access, Thing::Feed, address, token), expected, "{text} {address}");
        };
        for (address, expected) in [
            ("192.0.2.1", Verdict::Free),
            ("::ffff:192.0.2.1", Verdict::Free),
            ("2001:db8::1", Verdict::Free),
            ("192.0.2.7", Verdict::Address),
            ("2001:db8::2", Verdict::Address),
            ("127.0.0.1", Verdict::Address),
        ] {
            check(text, address, expected);
        }
        check("[access]\ndeny = ['192.0.2.7']\n", "198.51.100.1", Verdict::Free);
        check(&format!("{text}{KNOWN}"), "192.0.2.7", Verdict::Address);
        check(&format!("{text}{KNOWN}"), "192.0.2.8", Verdict::Known(0));
    }

    #[test]
    fn every_mistake_is_named() {
        let check = |text: &str, expected: &[&str]| {
            let said = read(text).unwrap_err();
            assert_eq!(said.len(), expected.len(), "{said:?}");
            let pairs = said.iter().zip(expected);
            pairs.for_each(|(said, part)| assert!(said.contains(part), "{said} has no {part}"));
        };
        let one = |more: &str| format!("[[consumer]]\nname = 'a'\nmay = ['feed']\n{more}");
        check("[access]\nallow = ['x', '10.0.0.0/8']\n", &["\"x\" is no address"]);
        check(&one(""), &["how \"a\" is known"]);
        check(&one("token = 'short'\n"), &["fewer than 16"]);
        check(&one("certificate = 'a.example'\n"), &["asked for no certificate"]);
        check(&one("certificate = 'a b'\n#ca\n"), &["no name of a certificate"]);
        let token = "token = 'a-token-of-16-or-more'\n";
        check(&one(&format!("certificate = 'a.example'\n#ca\n{token}")), &["is known"]);
        check(&format!("[[consumer]]\nname = 'anyone'\nmay = ['feed']\n{token}"), &["no one in"]);
        check(&one(token).replace("'a'", "'unknown'"), &["not known"]);
        check("[[consumer]]\nname = 'anyone'\nmay = ['fed']\n", &["\"fed\" is none"]);
        check("[[consumer]]\nname = 'anyone'\n", &["what the consumer may have"]);
        let said = read(&format!("{KNOWN}{}", one(token))).unwrap_err();
        assert!(said[0].contains("already") && !said[0].contains("a-token"), "{said:?}");
        let same = KNOWN.replace("a-token", "b-token");
        check(&format!("{KNOWN}{same}"), &["already"]);
    }

    #[test]
    fn what_is_asked_for_is_read_off_the_path() {
        for (path, expected) in [
            ("/healthz", None),
            ("/readyz", None),
            ("/.well-known/harvest", None),
            ("/assets/a.css", None),
            ("/push/0123", None),
            ("/feed", Some(Thing::Feed)),
            ("/snapshot/7", Some(Thing::Feed)),
            ("/hub", Some(Thing::Hub)),
            ("/.well-known/resourcesync", Some(Thing::Feed)),
            ("/resourcesync/changelist/3.xml", Some(Thing::Feed)),
            ("/collections/a@b/feed", Some(Thing::Feed)),
            ("/oai", Some(Thing::Oai)),
            ("/oai/", Some(Thing::Oai)),
            ("/oai/schemas/x.xsd", Some(Thing::Oai)),
            ("/object", Some(Thing::Objects)),
            ("/", Some(Thing::Search)),
            ("/api/search", Some(Thing::Search)),
            ("/anything/else", Some(Thing::Search)),
            ("*", Some(Thing::Search)),
            ("", Some(Thing::Search)),
            ("/healthz/x", Some(Thing::Search)),
        ] {
            assert_eq!(Thing::at(path), expected, "{path}");
        }
    }
}
