//! Access: the rights of clients to a daemon's public resources, by address and by token or
//! certificate.
//!
//! Unless the settings say otherwise, every client may have every public resource. `[access]` lists
//! the allowed and denied addresses, as in TR §8 and the original's gatherer. A `[[consumer]]` is a
//! known client, by a token or by the name in its certificate. Once a consumer is listed for a
//! resource, only listed consumers may have it, unless `anyone` is listed.
//!
//! Sans-I/O.

use std::collections::BTreeSet;
use std::net::IpAddr;

use net::address::{self, Network};
use net::tls::{self, ClientCertificate};
use settings::Table;

use crate::Token;

/// Minimum number of characters of a consumer's token.
pub const TOKEN_CHARS_MIN: usize = 16;
/// Maximum number of consumers.
pub const CONSUMERS_MAX: usize = 1_000;
/// Maximum length of a consumer's name, in bytes.
const NAME_BYTES_MAX: usize = 100;

/// Name of the consumer that stands for every client. The resources in its `may` are open to all.
const ANYONE: &str = "anyone";
/// Name of the consumer that stands for no client. The resources in its `may` are closed to unknown
/// clients, even if no other consumer may have them.
const NOBODY: &str = "nobody";
/// Names under which the gate counts unknown clients and refused addresses; no consumer may have
/// them.
const TAKEN: [&str; 2] = ["unknown", "address"];

/// A resource that a daemon offers to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Changes: feed and snapshots, and ResourceSync.
    Feed,
    /// The OAI-PMH repository.
    Oai,
    /// Pages and the search API.
    Search,
    /// Single objects.
    Objects,
    /// Requests to other hosts, through a cache.
    Proxy,
    /// The hub that notifies of changes. No consumer can be listed for it: a subscriber needs the
    /// right to its topic, and a publisher shows the hub's own token, if the settings name one.
    Hub,
}

impl Resource {
    /// The resources for which consumers may be listed.
    const ALL: [Self; 5] = [Self::Feed, Self::Oai, Self::Search, Self::Objects, Self::Proxy];

    /// Returns the name in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Oai => "oai",
            Self::Search => "search",
            Self::Objects => "objects",
            Self::Proxy => "proxy",
            Self::Hub => "hub",
        }
    }

    /// Returns the resource at `path` of a public listener. `None` if the path is open to
    /// everybody: health, readiness, the description of the daemon, the assets of its pages, and
    /// the secret address at which a hub notifies it. Any unknown path is a page.
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

/// The proof by which a consumer is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A token that it sends.
    Token(Token),
    /// The name in a certificate that it shows.
    Certificate(String),
    /// No proof: the consumer stands for every client.
    Anyone,
    /// No proof: the consumer stands for no client.
    Nobody,
}

/// A known client with rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// Its name, for status and metrics.
    pub name: String,
    /// The proof by which it is known.
    pub proof: Proof,
    /// The resources that it may have.
    pub may: BTreeSet<Resource>,
    /// The view to which it is limited, in a daemon that has views.
    pub view: Option<String>,
}

impl Consumer {
    fn is(&self, client: &Requester<'_>) -> bool {
        match &self.proof {
            Proof::Token(token) => client.token.is_some_and(|it| token.is(it)),
            Proof::Certificate(name) => client.shown.is_some_and(|it| it.is_for(name)),
            Proof::Anyone | Proof::Nobody => false,
        }
    }
}

/// The rights of all clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The allowed addresses; all, if the list is empty.
    pub allow: Vec<Network>,
    /// The denied addresses, even if they are in `allow`.
    pub deny: Vec<Network>,
    /// The known consumers.
    pub consumers: Vec<Consumer>,
}

/// The client of a request.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'a> {
    /// Its address.
    pub address: IpAddr,
    /// A token that it sends.
    pub token: Option<&'a [u8]>,
    /// A certificate that it shows.
    pub shown: Option<&'a ClientCertificate>,
}

/// The decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Allowed, as for everybody.
    Free,
    /// Allowed, as the consumer with this index.
    Known(usize),
    /// Refused: the client's address is not allowed.
    Address,
    /// Refused: only known consumers may have the resource, and this client is unknown.
    Unknown,
    /// Refused: the consumer with this index lacks the right.
    Lacking(usize),
}

impl Access {
    /// Reads `[access]` and every `[[consumer]]`. `asks_certificates` says whether clients are
    /// asked for certificates, so that a consumer can be known by one.
    pub fn read(root: &Table<'_>, asks_certificates: bool) -> Self {
        let table = root.table("access");
        let [allow, deny] = ["allow", "deny"].map(|key| networks(&table, key));
        let tables = root.tables("consumer");
        if CONSUMERS_MAX < tables.len() {
            root.mistake("consumer", format!("more than {CONSUMERS_MAX} consumers"), "fewer");
        }
        settings::refuse_repeats(&tables, "name");
        settings::refuse_repeated_secrets(&tables, "token");
        let read = |it| read_consumer(it, asks_certificates);
        Self { allow, deny, consumers: tables.iter().filter_map(read).collect() }
    }

    /// Decides whether the client may have `resource`.
    pub fn judge(&self, resource: Resource, client: &Requester<'_>) -> Verdict {
        let is_let_in = self.allow.is_empty() || address::contains(&self.allow, client.address);
        if !is_let_in || address::contains(&self.deny, client.address) {
            return Verdict::Address;
        }
        let known = || self.known(client);
        let mut may = known().filter(|(_, it)| it.may.contains(&resource));
        match (may.next(), known().next()) {
            (Some((at, _)), _) => Verdict::Known(at),
            (None, _) if self.is_free(resource) => Verdict::Free,
            (None, Some((at, _))) => Verdict::Lacking(at),
            (None, None) => Verdict::Unknown,
        }
    }

    /// Returns the consumers to which the client's proof belongs, with their indexes; usually none
    /// or one.
    pub fn known<'a>(
        &'a self,
        client: &'a Requester<'_>,
    ) -> impl Iterator<Item = (usize, &'a Consumer)> + 'a {
        self.consumers.iter().enumerate().filter(|(_, it)| it.is(client))
    }

    /// Returns the view to which a client is limited on whom there was a verdict about `resource`. The right that
    /// everybody has is limited as that of the consumer `anyone` is.
    pub fn view<'a>(
        &'a self,
        verdict: Verdict,
        resource: Resource,
        client: &'a Requester<'_>,
    ) -> Option<&'a str> {
        let consumer = match verdict {
            // Of several with one certificate, the one that is limited counts.
            Verdict::Known(_) => {
                let may = self.known(client).filter(|it| it.1.may.contains(&resource));
                may.map(|it| it.1).find(|it| it.view.is_some())
            }
            _ => {
                let known = self.known(client).map(|it| it.1);
                let anyone = self
                    .consumers
                    .iter()
                    .filter(|it| it.proof == Proof::Anyone && it.may.contains(&resource));
                known.chain(anyone).find(|it| it.view.is_some())
            }
        };
        consumer?.view.as_deref()
    }

    /// Returns whether `resource` is restricted to some clients, by address or to listed consumers.
    pub fn is_for_some(&self, resource: Resource) -> bool {
        let is_limited = |it: &Consumer| it.view.is_some() && it.may.contains(&resource);
        !self.is_free(resource)
            || !self.allow.is_empty()
            || !self.deny.is_empty()
            || self.consumers.iter().any(is_limited)
    }

    /// Returns the resources that unknown clients may have now, but not under `before`.
    pub fn opened_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = Resource> + 'a {
        let opened = move |it: &Resource| self.is_free(*it) && !before.is_free(*it);
        Resource::ALL.into_iter().filter(opened)
    }

    /// Returns whether unknown clients may have `resource`, too. Addresses are not considered.
    pub fn is_free(&self, resource: Resource) -> bool {
        let mut may = self.consumers.iter().filter(|it| it.may.contains(&resource)).peekable();
        may.peek().is_none() || may.any(|it| it.proof == Proof::Anyone)
    }
}

/// Reads the addresses and networks of the setting `key`.
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
        let message = format!("{name:?} is reserved for clients that are not known");
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
            let message = format!("{name:?} stands for no particular client");
            table.mistake("name", message, "no token and no certificate");
            return None;
        }
        (_, _, false) => {
            let message = format!("{name:?} has no token and no certificate, or both");
            table.mistake("name", message, "one of the two");
            return None;
        }
    };
    Some(Consumer { name, proof, may, view: None })
}

fn read_may(table: &Table<'_>) -> BTreeSet<Resource> {
    let expected =
        "a list of \"feed\", \"oai\", \"search\" and \"objects\"; of a cache [\"proxy\"]";
    let mut may = BTreeSet::new();
    let texts = table.strings("may");
    for (i, text) in texts.iter().enumerate() {
        match Resource::ALL.into_iter().find(|it| it.name() == text) {
            Some(resource) => drop(may.insert(resource)),
            None => table.mistake_in("may", i, format!("{text:?} is no right"), expected),
        }
    }
    if texts.is_empty() {
        table.mistake("may", "nothing says what the consumer may have", expected);
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
        let texts = |it: Vec<settings::Mistake>| it.iter().map(ToString::to_string).collect();
        document.finish().map(|()| access).map_err(texts)
    }

    fn judge(access: &Access, resource: Resource, address: &str, token: Option<&str>) -> Verdict {
        let (address, token) = (address.parse().unwrap(), token.map(str::as_bytes));
        access.judge(resource, &Requester { address, token, shown: None })
    }

    #[test]
    fn everything_is_free_until_a_consumer_is_listed() {
        let token = Some("a-token-of-16-or-more");
        let check = |text: &str, resource, token, expected| {
            let verdict = judge(&read(text).unwrap(), resource, "192.0.2.1", token);
            assert_eq!(verdict, expected, "{text}");
        };
        for resource in Resource::ALL {
            check("", resource, None, Verdict::Free);
        }
        check(KNOWN, Resource::Feed, None, Verdict::Unknown);
        check(KNOWN, Resource::Feed, Some("a-token-of-16-or-morf"), Verdict::Unknown);
        check(KNOWN, Resource::Feed, token, Verdict::Known(0));
        check(KNOWN, Resource::Oai, None, Verdict::Free);
        check(KNOWN, Resource::Oai, token, Verdict::Free);
        let other =
            "[[consumer]]\nname = 'o'\ntoken = 'another-token-of-16'\nmay = ['oai', 'search']\n";
        let both = format!("{KNOWN}{other}");
        check(&both, Resource::Oai, token, Verdict::Lacking(0));
        check(&both, Resource::Oai, Some("another-token-of-16"), Verdict::Known(1));
        let anyone = format!("{both}[[consumer]]\nname = 'anyone'\nmay = ['search']\n");
        check(&anyone, Resource::Search, None, Verdict::Free);
        check(&anyone, Resource::Search, token, Verdict::Free);
        check(&anyone, Resource::Search, Some("another-token-of-16"), Verdict::Known(1));
        check(&anyone, Resource::Oai, None, Verdict::Unknown);
        let nobody = "[[consumer]]\nname = 'nobody'\nmay = ['feed']\n";
        check(nobody, Resource::Feed, None, Verdict::Unknown);
        check(nobody, Resource::Oai, None, Verdict::Free);
        check(&format!("{nobody}{KNOWN}"), Resource::Feed, token, Verdict::Known(1));
    }

    #[test]
    fn addresses_are_denied_or_not_allowed() {
        let text = "[access]\nallow = ['192.0.2.0/24', '2001:db8::1']\ndeny = ['192.0.2.7']\n";
        let check = |text: &str, address, expected| {
            let access = read(text).unwrap();
            let token = Some("a-token-of-16-or-more");
            assert_eq!(
                judge(&access, Resource::Feed, address, token),
                expected,
                "{text} {address}"
            );
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
    fn every_mistake_is_reported() {
        let check = |text: &str, expected: &[&str]| {
            let mistakes = read(text).unwrap_err();
            assert_eq!(mistakes.len(), expected.len(), "{mistakes:?}");
            let pairs = mistakes.iter().zip(expected);
            pairs.for_each(|(it, part)| assert!(it.contains(part), "{it} lacks {part}"));
        };
        let one = |more: &str| format!("[[consumer]]\nname = 'a'\nmay = ['feed']\n{more}");
        check("[access]\nallow = ['x', '10.0.0.0/8']\n", &["\"x\" is no address"]);
        check(&one(""), &["\"a\" has no token"]);
        check(&one("token = 'short'\n"), &["fewer than 16"]);
        check(&one("certificate = 'a.example'\n"), &["asked for no certificate"]);
        check(&one("certificate = 'a b'\n#ca\n"), &["no name of a certificate"]);
        let token = "token = 'a-token-of-16-or-more'\n";
        check(&one(&format!("certificate = 'a.example'\n#ca\n{token}")), &["or both"]);
        check(
            &format!("[[consumer]]\nname = 'anyone'\nmay = ['feed']\n{token}"),
            &["no particular"],
        );
        check(&one(token).replace("'a'", "'unknown'"), &["not known"]);
        check("[[consumer]]\nname = 'anyone'\nmay = ['fed']\n", &["\"fed\" is no right"]);
        check("[[consumer]]\nname = 'anyone'\n", &["what the consumer may have"]);
        let mistakes = read(&format!("{KNOWN}{}", one(token))).unwrap_err();
        assert!(
            mistakes[0].contains("already") && !mistakes[0].contains("a-token"),
            "{mistakes:?}"
        );
        let same = KNOWN.replace("a-token", "b-token");
        check(&format!("{KNOWN}{same}"), &["already"]);
    }

    #[test]
    fn the_resource_is_read_from_the_path() {
        for (path, expected) in [
            ("/healthz", None),
            ("/readyz", None),
            ("/.well-known/harvest", None),
            ("/assets/a.css", None),
            ("/push/0123", None),
            ("/feed", Some(Resource::Feed)),
            ("/snapshot/7", Some(Resource::Feed)),
            ("/hub", Some(Resource::Hub)),
            ("/.well-known/resourcesync", Some(Resource::Feed)),
            ("/resourcesync/changelist/3.xml", Some(Resource::Feed)),
            ("/collections/a@b/feed", Some(Resource::Feed)),
            ("/oai", Some(Resource::Oai)),
            ("/oai/", Some(Resource::Oai)),
            ("/oai/schemas/x.xsd", Some(Resource::Oai)),
            ("/object", Some(Resource::Objects)),
            ("/", Some(Resource::Search)),
            ("/api/search", Some(Resource::Search)),
            ("/anything/else", Some(Resource::Search)),
            ("*", Some(Resource::Search)),
            ("", Some(Resource::Search)),
            ("/healthz/x", Some(Resource::Search)),
        ] {
            assert_eq!(Resource::at(path), expected, "{path}");
        }
    }
}
