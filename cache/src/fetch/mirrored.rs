//! Mirrored objects: fetched from the nearest of their home and its mirrors.
//!
//! Mirrors are asked for whole objects alone, and told nothing of who asks. Validation is the home's.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use net::body;
use net::client::{Request, Timeouts};
use net::clock;
use net::digest::Digest;
use net::guard::Policy;
use url::Url;

use super::Fetcher;
use crate::config::Config;
use crate::fetch::coming::{Coming, Proof};
use crate::fetch::giver::{Giver, MIRROR};
use crate::policy::control::RequestControl;
use crate::policy::mirrors::{Dropped, Mirror, copies, duplicates, nearer, order};
use crate::request::{Asked, CONDITIONS};
use crate::target::destination::{self, Destination};

/// Time for a mirror to be reached.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// Time for a mirror to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// Shortest body of which another place than the one that is sending it is asked, in bytes.
const SWITCH_BYTES_MIN: u64 = 256 << 10;

/// Headers of requests that mirrors are told: who asks and what led there is the home's to know.
const TOLD: [HeaderName; 5] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::USER_AGENT,
    header::VIA,
];

/// What is known of mirrors.
#[derive(Debug)]
pub(crate) struct Mirrors {
    list: Vec<Mirror>,
    /// Ports and hosts of mirrors that origins name; no hosts: all.
    ports: Vec<RangeInclusive<u16>>,
    destinations: Vec<Destination>,
    dropped: Dropped,
    /// Those that origins name: what one of them names wrongly says nothing of the settings' mirrors.
    dropped_named: Dropped,
}

impl Mirrors {
    pub(crate) fn new(config: &Config) -> Self {
        let (list, ports) = (config.mirrors.clone(), config.ports.clone());
        let destinations = config.destinations.clone();
        let [dropped, dropped_named] = [Dropped::default(), Dropped::default()];
        Self { list, ports, destinations, dropped, dropped_named }
    }

    /// Returns whether a mirror that an origin names may be asked.
    fn may_ask(&self, copy: &Url) -> bool {
        let port = copy.port_or_known_default();
        let is_port = port.is_some_and(|it| self.ports.iter().any(|all| all.contains(&it)));
        is_port && destination::allows(&self.destinations, copy.host_str().unwrap_or_default())
    }
}

impl Fetcher {
    /// Asks the nearest place that has an object, and the others if it does not give it.
    pub(super) async fn ask_nearest(
        &self,
        asked: &Asked,
        outgoing: HeaderMap,
    ) -> Result<Box<Coming>, net::Error> {
        let own = [header::AUTHORIZATION, header::COOKIE, header::RANGE];
        if asked.method != Method::GET
            || asked.object.is_before_origin()
            || own.iter().any(|it| outgoing.contains_key(it))
        {
            return self.pass(asked, outgoing, body::empty(), None).await;
        }
        let url = &asked.object.at();
        let is_new = !CONDITIONS.iter().any(|it| outgoing.contains_key(it))
            && !RequestControl::of(&asked.headers).no_cache;
        let mut copies = if is_new { copies(&self.0.mirrors.list, url) } else { Vec::new() };
        let dropped = &self.0.mirrors.dropped;
        copies.retain(|it| !dropped.has(it, clock::monotonic()));
        if copies.is_empty() {
            let home = self.pass(asked, outgoing, body::empty(), None).await?;
            return Ok(self.or_duplicate(asked, home).await);
        }
        self.measure(&copies, self.0.policy, dropped);
        let distance = |it: &Url| self.0.client.distances().of(it);
        let distances: Vec<Option<Duration>> =
            [url].into_iter().chain(&copies).map(distance).collect();
        let mut failed = None;
        for index in order(&distances) {
            let Some(copy) = index.checked_sub(1).and_then(|it| copies.get(it)) else {
                match self.pass(asked, outgoing.clone(), body::empty(), None).await {
                    Ok(home) if !home.status.is_server_error() => {
                        return Ok(self.or_duplicate(asked, home).await);
                    }
                    home => failed = Some(home),
                }
                continue;
            };
            if let Some(answer) =
                self.by_mirror(copy, outgoing.clone(), self.0.policy, dropped).await
            {
                self.count(MIRROR);
                let proof = Proof::new(
                    Digest::of(&answer.headers),
                    None,
                    Some((dropped.clone(), copy.clone())),
                );
                return Ok(Box::new(answer.proven(proof)));
            }
        }
        match failed {
            Some(failed) => failed,
            None => self.pass(asked, outgoing, body::empty(), None).await,
        }
    }

    /// Returns the answer of a home, with the body from a mirror that it names, if one is nearer.
    async fn or_duplicate(&self, asked: &Asked, home: Box<Coming>) -> Box<Coming> {
        if !home.headers.contains_key(header::LINK) {
            return home;
        }
        let length = home.length().filter(|it| SWITCH_BYTES_MIN <= *it);
        let is_plain = !home.headers.contains_key(header::CONTENT_ENCODING);
        let digest =
            Digest::of(&home.headers).filter(|_| is_plain && home.status == StatusCode::OK);
        let (Some(length), Some(digest)) = (length, digest) else { return home };
        let url = &asked.object.at();
        let mut copies = duplicates(&home.headers, url);
        let (mirrors, dropped) = (&self.0.mirrors, &self.0.mirrors.dropped_named);
        let now = clock::monotonic();
        copies.retain(|it| mirrors.may_ask(it) && !dropped.has(it, now));
        // What is public leads to nothing private.
        let policy = if home.is_private() { self.0.policy } else { Policy::Public };
        self.measure(&copies, policy, dropped);
        let distance = |it: &Url| self.0.client.distances().of(it);
        let distances: Vec<Option<Duration>> = copies.iter().map(distance).collect();
        let nearest = nearer(distance(url), &distances);
        let Some(copy) = nearest.and_then(|it| copies.get(it)) else { return home };
        let mut headers = asked.outgoing();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match self.by_mirror(copy, headers, policy, dropped).await {
            Some(answer)
                if answer.length() == Some(length)
                    && !answer.headers.contains_key(header::CONTENT_ENCODING) =>
            {
                self.count(MIRROR);
                let proof =
                    Proof::new(Some(digest), Some(length), Some((dropped.clone(), copy.clone())));
                Box::new(home.with_body_of(*answer).proven(proof))
            }
            Some(_) => {
                dropped.drop(copy, clock::monotonic());
                home
            }
            None => home,
        }
    }

    /// Asks a mirror; `None`: it does not have the object, or has been dropped.
    async fn by_mirror(
        &self,
        copy: &Url,
        mut headers: HeaderMap,
        policy: Policy,
        dropped: &Dropped,
    ) -> Option<Box<Coming>> {
        let unsent: Vec<HeaderName> =
            headers.keys().filter(|it| !TOLD.contains(it)).cloned().collect();
        unsent.iter().for_each(|it| drop(headers.remove(it)));
        let own = self.0.client.timeouts();
        let timeouts = Timeouts { connect: CONNECT_PATIENCE, header: ANSWER_PATIENCE, ..own };
        let request = Request {
            headers,
            response_bytes_max: Some(u64::MAX),
            timeouts: Some(timeouts),
            policy: Some(policy),
            ..Request::get(copy.clone())
        };
        match self.exchange(request, body::empty()).await {
            Ok(mut answer) if answer.status == StatusCode::OK => {
                answer.giver = Some(Giver::mirror(copy.host_str().unwrap_or_default()));
                Some(answer)
            }
            Ok(answer) if !answer.status.is_server_error() => None,
            Ok(_) | Err(_) => {
                dropped.drop(copy, clock::monotonic());
                None
            }
        }
    }

    /// Measures mirrors whose distance is not known, for later requests; each once at a time.
    fn measure(&self, copies: &[Url], policy: Policy, dropped: &Dropped) {
        let distances = self.0.client.distances();
        for copy in copies.iter().filter(|it| distances.of(it).is_none()) {
            let (this, copy, dropped) = (self.clone(), copy.clone(), dropped.clone());
            let patience = self.0.client.timeouts().connect;
            let until = clock::monotonic() + patience;
            dropped.begin(&copy, until);
            self.spawn(async move {
                tokio::select! {
                    () = this.0.stop.started() => {}
                    measured = this.0.client.measure(&copy, policy, patience) => match measured {
                        Ok(()) => dropped.end(&copy, until),
                        Err(_) => dropped.drop(&copy, clock::monotonic()),
                    },
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_name_mirrors_where_requests_may_go() {
        let may_ask = |access: &str, copy: &str| {
            let config = Config::parse(access, std::path::Path::new("/d")).unwrap();
            Mirrors::new(&config).may_ask(&Url::parse(copy).unwrap())
        };
        let listed = "[access]\ndestinations = ['example.org']";
        for (access, copy, expected) in [
            ("", "http://example.net/a", true),
            ("", "http://example.net:25/a", false),
            (listed, "http://www.example.org/a", true),
            (listed, "http://example.net/a", false),
        ] {
            assert_eq!(may_ask(access, copy), expected, "{access} {copy}");
        }
    }
}
