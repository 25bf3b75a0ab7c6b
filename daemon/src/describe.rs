//! The public description of a daemon: `/.well-known/harvest`.
//!
//! A description is plain JSON, and signed: `Harvest-Signature` is the Ed25519 signature of the
//! body by the key that the body names. A reader that stores descriptions keeps the one with the
//! highest sequence. The sequence never decreases, even if the clock is set back.
//!
//! Source: RFC 8615 (well-known URIs), RFC 8032 (Ed25519); ours.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use disk::Disk;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use net::clock;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::announce::Sign;
use crate::{Error, Settings};

/// Path of the description.
pub const PATH: &str = "/.well-known/harvest";
/// The header with the signature: 128 lower-case hex digits.
pub const SIGNATURE: HeaderName = HeaderName::from_static("harvest-signature");

/// Maximum number of names in each list of a description: of URLs, of types, of languages.
pub const NAMED_MAX: usize = 1_000;
/// Time for which all requests get the same description.
const KEPT: Duration = Duration::from_secs(2);
/// The file with the sequence, in the data folder.
const FILE_NAME: &str = "description.sequence";
/// Number of sequence numbers that are reserved at once.
const RESERVE: u64 = 1_000;

/// The description of a daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Its id: 16 hex digits, derived from its first key.
    pub id: String,
    /// Its public key: 64 hex digits.
    pub key: String,
    /// Its kind: `gatherer`, `broker` …
    pub kind: String,
    /// The version of the program.
    pub software: String,
    /// The facts about it.
    #[serde(flatten)]
    pub facts: Facts,
    /// The load average of its machine over the last minute, divided by the number of processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// The time of the description, in Unix milliseconds.
    pub time_ms: u64,
    /// The number of the description, higher than all before.
    pub sequence: u64,
}

/// Facts about a daemon, for everybody. They name no file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its name for people.
    pub name: String,
    /// Contact of its administrator: a URL or a mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub administrator: Option<String>,
    /// The URL at which others reach it, if the settings give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Url>,
    /// Its location, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Of a gatherer: the public URLs that its objects begin with, and its repositories.
    #[serde(default)]
    pub gathers: Vec<String>,
    /// Number of its objects.
    pub objects: u64,
    /// Number of objects of each type, as far as known.
    #[serde(default)]
    pub types: BTreeMap<String, u64>,
    /// Number of objects in each language, as far as known.
    #[serde(default)]
    pub languages: BTreeMap<String, u64>,
    /// The version of its content summary, which is the part `type:Summary` of its feed; if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Its measured freshness, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freshness: Option<f64>,
}

impl Facts {
    /// Returns the facts in the settings of a daemon of that name. `email` is the administrator's
    /// contact if the settings give none.
    pub fn new(name: &str, settings: &Settings, email: Option<&String>) -> Self {
        Self {
            name: name.to_owned(),
            base_url: settings.base_url.clone(),
            administrator: settings.administrator.as_ref().or(email).cloned(),
            location: settings.location.clone(),
            ..Self::default()
        }
    }

    /// Returns labels and texts for the overview: the facts from the settings, without the name.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let lines = [
            ("Address", self.base_url.as_ref().map(ToString::to_string)),
            ("Administrator", self.administrator.clone()),
            ("Location", self.location.clone()),
        ];
        lines.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }
}

/// Describes a daemon. Clones share the sequence.
#[derive(Clone, Debug)]
pub struct Describer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    kind: &'static str,
    id: String,
    key: String,
    state: Mutex<Issued>,
}

#[derive(Debug)]
struct Issued {
    /// The last number given.
    sequence: u64,
    /// The last number reserved on the disk.
    reserved: u64,
    latest: Option<(Instant, Signed)>,
}

/// A description in the form that is sent.
#[derive(Clone, Debug)]
struct Signed {
    body: String,
    signature: String,
}

impl Describer {
    /// Returns the describer of the daemon with this kind, id, public key and data folder. Blocks.
    /// Fails if the file of the sequence cannot be read.
    pub fn open(data: &Path, kind: &'static str, id: &str, key: &str) -> Result<Self, Error> {
        let path = data.join(FILE_NAME);
        let failed = |source| Error::Data { path: path.clone(), source };
        let stored = match fs::read_to_string(&path) {
            // The clock, read below, replaces a number that cannot be read.
            Ok(text) => text.trim().parse().unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(failed(error)),
        };
        // If the file is lost, the clock is above every number that it held.
        let sequence = u64::max(stored, clock::now_ms() / 1_000);
        let state = Mutex::new(Issued { sequence, reserved: sequence, latest: None });
        let (id, key) = (id.to_owned(), key.to_owned());
        Ok(Self(Arc::new(Shared { path, kind, id, key, state })))
    }

    /// Returns the id of the daemon.
    pub(crate) fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns a number from 0 to 1 that depends on the id and on `salt` alone.
    pub(crate) fn spread(&self, salt: u32) -> f64 {
        // The id is a digest: its lower half is as good as random.
        let of_id = u64::from_str_radix(&self.0.id, 16).unwrap_or_default();
        let mixed = (of_id.wrapping_add(u64::from(salt))).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as f64 / (1_u64 << 24) as f64
    }

    /// Returns the next number of the sequence, for another message that is signed. Blocks.
    pub(crate) fn number(&self) -> io::Result<u64> {
        self.next(&mut self.state())
    }

    /// Returns the route of the description. `look` collects the facts, and may block for a moment;
    /// `sign` signs with the key.
    pub(crate) fn route(
        &self,
        look: impl Fn() -> Facts + Clone + Send + Sync + 'static,
        sign: Sign,
    ) -> Router {
        let this = self.clone();
        let handler = move || {
            let (this, look, sign) = (this.clone(), look.clone(), sign.clone());
            async move {
                let signed = tokio::task::spawn_blocking(move || this.describe(&look, &sign)).await;
                respond(signed.map_err(io::Error::other).flatten())
            }
        };
        Router::new().route(PATH, get(handler))
    }

    fn describe(&self, look: &impl Fn() -> Facts, sign: &Sign) -> io::Result<Signed> {
        let mut state = self.state();
        let now = clock::monotonic();
        if let Some((_, it)) = state.latest.as_ref().filter(|it| now.duration_since(it.0) < KEPT) {
            return Ok(it.clone());
        }
        let Shared { kind, id, key, .. } = &*self.0;
        let description = Description {
            id: id.clone(),
            key: key.clone(),
            kind: (*kind).to_owned(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            facts: look(),
            load: load(),
            time_ms: clock::now_ms(),
            sequence: self.next(&mut state)?,
        };
        let body = serde_json::to_string(&description).map_err(io::Error::other)?;
        let signed = Signed { signature: sign(body.as_bytes()), body };
        state.latest = Some((now, signed.clone()));
        Ok(signed)
    }

    /// Returns the next number: one that was never given before, even after a crash.
    fn next(&self, state: &mut Issued) -> io::Result<u64> {
        if state.sequence == state.reserved {
            let (path, reserved) = (&self.0.path, state.reserved + RESERVE);
            let text = format!("{reserved}\n");
            let new = path.with_extension("new");
            Disk::System.replace(path, &new, disk::MODE, text.as_bytes())?;
            state.reserved = reserved;
        }
        state.sequence += 1;
        Ok(state.sequence)
    }

    fn state(&self) -> MutexGuard<'_, Issued> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the [`NAMED_MAX`] names with the highest counts; those without a count are left out.
pub fn largest(counted: impl IntoIterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    let mut all: Vec<_> = counted.into_iter().filter(|(_, count)| 0 < *count).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.truncate(NAMED_MAX);
    all.into_iter().collect()
}

fn respond(signed: io::Result<Signed>) -> Response {
    let Signed { body, signature } = match signed {
        Ok(signed) => signed,
        Err(error) => {
            tracing::error!(%error, "cannot describe this daemon");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    // Hex digits are always valid in a header.
    let signature = HeaderValue::try_from(signature).unwrap_or(HeaderValue::from_static(""));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (SIGNATURE, signature),
    ];
    (headers, body).into_response()
}

/// Returns the load of the last minute, divided by the number of processors; `None` if the system
/// does not report it.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let load: f64 = text.split(' ').next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some((load / processors as f64 * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use net::identity::{self, Identity};
    use tower::ServiceExt as _;

    use super::*;

    async fn ask(describer: &Describer, identity: &Arc<Identity>) -> Description {
        let look = || Facts { name: "Docs".to_owned(), objects: 3, ..Facts::default() };
        let signer = Arc::clone(identity);
        let router = describer.route(look, Arc::new(move |text| signer.sign(text)));
        let request = http::Request::get(PATH).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let signature = response.headers()[SIGNATURE].to_str().unwrap().to_owned();
        let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.unwrap();
        assert!(identity::verify(identity.key(), &body, &signature));
        serde_json::from_slice(&body).unwrap()
    }

    #[tokio::test]
    async fn a_description_is_signed_and_its_sequence_never_falls() {
        let folder = tempfile::tempdir().unwrap();
        let identity = Arc::new(Identity::of(&[7; 32]).unwrap());
        let open = || {
            let (id, key) = (identity.id(), identity.key());
            Describer::open(folder.path(), "broker", &id, key).unwrap()
        };
        let describer = open();
        let first = ask(&describer, &identity).await;
        assert_eq!((first.kind.as_str(), first.facts.objects), ("broker", 3));
        assert_eq!(first.id, identity::id_of(&first.key));
        assert_eq!(ask(&describer, &identity).await, first, "the description is kept for a while");
        // A new describer, as after a crash.
        let mut last = first.sequence;
        for _ in 0..3 {
            let next = ask(&open(), &identity).await;
            assert!(last < next.sequence, "{} after {last}", next.sequence);
            last = next.sequence;
        }
        {
            let mut state = describer.state();
            for _ in 0..2 * RESERVE {
                let sequence = describer.next(&mut state).unwrap();
                assert!(sequence <= state.reserved);
            }
        }
        // The clock was ahead, then the file is lost.
        fs::write(folder.path().join(FILE_NAME), "99000000000\n").unwrap();
        assert!(99_000_000_000 < ask(&open(), &identity).await.sequence);
        fs::write(folder.path().join(FILE_NAME), "").unwrap();
        assert!(first.sequence <= ask(&open(), &identity).await.sequence);
    }

    #[test]
    fn only_the_largest_counts_are_kept() {
        let many = (0..2_000_u64).map(|n| (format!("{n:04}"), n));
        let named = largest(many);
        assert_eq!(
            (named.len(), named.get("0999"), named.get("1000")),
            (1_000, None, Some(&1_000))
        );
    }

    #[test]
    fn a_load_is_of_one_processor() {
        assert!(load().is_none_or(|it| (0.0..10_000.0).contains(&it)));
    }
}
