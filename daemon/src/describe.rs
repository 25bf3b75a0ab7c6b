//! What a daemon is, told to whoever asks: `/.well-known/harvest`.
//!
//! A description is plain data, as JSON, and signed: `Harvest-Signature` is the Ed25519 signature of the body, by
//! the key that the body names and the id is made of. Whoever keeps descriptions keeps the one with the highest
//! sequence, which never falls, whatever becomes of the clock.
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

use crate::{Error, Settings};

/// Where it is told.
pub const PATH: &str = "/.well-known/harvest";
/// The header with the signature: 128 lower-case hex digits.
pub const SIGNATURE: HeaderName = HeaderName::from_static("harvest-signature");

/// Most public URLs that are named of what is gathered, and most types and languages.
pub const NAMED_MAX: usize = 1_000;
/// So long all who ask get the same.
const KEPT: Duration = Duration::from_secs(10);
/// The file with the sequence, in the data folder.
const FILE_NAME: &str = "description.sequence";
/// So many numbers are set apart at once.
const RESERVE: u64 = 1_000;

/// What a daemon is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Its id: 16 hex digits, made of the key.
    pub id: String,
    /// Its public key: 64 hex digits.
    pub key: String,
    /// What it is: `gatherer`, `broker` …
    pub kind: String,
    /// The version of the program.
    pub software: String,
    /// What it says of itself.
    #[serde(flatten)]
    pub facts: Facts,
    /// The load of its machine: that of the last minute, for each processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// When this was said, in Unix milliseconds.
    pub time_ms: u64,
    /// Which description this is: each has a higher number than those before.
    pub sequence: u64,
}

/// What a daemon says of itself. It names no file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// What people call it.
    pub name: String,
    /// The URL that others reach it by, where the settings say one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Url>,
    /// How its administrator is reached: a URL or a mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub administrator: Option<String>,
    /// Where it is, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The public URLs that its objects begin with, or those of its sources.
    #[serde(default)]
    pub gathers: Vec<String>,
    /// How many objects it has.
    pub objects: u64,
    /// Of each type, as far as that is known.
    #[serde(default)]
    pub types: BTreeMap<String, u64>,
    /// In each language, as far as that is known.
    #[serde(default)]
    pub languages: BTreeMap<String, u64>,
    /// How fresh it is as measured, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freshness: Option<f64>,
}

impl Facts {
    /// What the settings say, of a daemon of that name; `email` is how its administrator is reached if nothing else
    /// is said.
    pub fn new(name: &str, settings: &Settings, email: Option<&String>) -> Self {
        Self {
            name: name.to_owned(),
            base_url: settings.base_url.clone(),
            administrator: settings.administrator.as_ref().or(email).cloned(),
            location: settings.location.clone(),
            ..Self::default()
        }
    }

    /// What an administrator sees of it besides.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let lines = [
            ("Address", self.base_url.as_ref().map(ToString::to_string)),
            ("Administrator", self.administrator.clone()),
            ("Location", self.location.clone()),
        ];
        lines.into_iter().filter_map(|(name, said)| Some((name, said?))).collect()
    }
}

/// Describes a daemon. Clones are the same.
#[derive(Clone, Debug)]
pub struct Describer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    kind: &'static str,
    id: String,
    key: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The last number given, and up to where they may be given before more are set apart.
    sequence: u64,
    reserved: u64,
    said: Option<(Instant, Said)>,
}

/// A description as it is sent.
#[derive(Clone, Debug)]
struct Said {
    body: String,
    signature: String,
}

impl Describer {
    /// Describes the daemon of that kind, id and public key which keeps what it has in `data`. Blocks.
    ///
    /// # Errors
    ///
    /// The file of the sequence cannot be read.
    pub fn open(data: &Path, kind: &'static str, id: &str, key: &str) -> Result<Self, Error> {
        let path = data.join(FILE_NAME);
        let failed = |source| Error::Data { path: path.clone(), source };
        let stored = match fs::read_to_string(&path) {
            // What is torn is made good by the clock.
            Ok(text) => text.trim().parse().unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(failed(error)),
        };
        // Where the file is lost, the clock goes on from where it was.
        let sequence = u64::max(stored, clock::now_ms() / 1_000);
        let state = Mutex::new(State { sequence, reserved: sequence, said: None });
        let (id, key) = (id.to_owned(), key.to_owned());
        Ok(Self(Arc::new(Shared { path, kind, id, key, state })))
    }

    /// Returns the route that tells it. `look` finds what there is to say, and may block for a moment; `sign` signs
    /// with the key.
    pub fn route(
        &self,
        look: impl Fn() -> Facts + Clone + Send + Sync + 'static,
        sign: impl Fn(&[u8]) -> String + Clone + Send + Sync + 'static,
    ) -> Router {
        let this = self.clone();
        let handler = move || {
            let (this, look, sign) = (this.clone(), look.clone(), sign.clone());
            async move {
                let said = tokio::task::spawn_blocking(move || this.say(&look, &sign)).await;
                respond(said.map_err(io::Error::other).flatten())
            }
        };
        Router::new().route(PATH, get(handler))
    }

    fn say(&self, look: &impl Fn() -> Facts, sign: &impl Fn(&[u8]) -> String) -> io::Result<Said> {
        let mut state = self.state();
        let now = clock::monotonic();
        if let Some((_, said)) = state.said.as_ref().filter(|it| now.duration_since(it.0) < KEPT) {
            return Ok(said.clone());
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
        let said = Said { signature: sign(body.as_bytes()), body };
        state.said = Some((now, said.clone()));
        Ok(said)
    }

    /// Returns the next number: one that was not given before, nor will be after a crash.
    fn next(&self, state: &mut State) -> io::Result<u64> {
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The largest of what is counted by name.
pub fn largest(counted: impl IntoIterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    let mut all: Vec<_> = counted.into_iter().filter(|(_, count)| 0 < *count).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.truncate(NAMED_MAX);
    all.into_iter().collect()
}

fn respond(said: io::Result<Said>) -> Response {
    let Said { body, signature } = match said {
        Ok(said) => said,
        Err(error) => {
            tracing::error!(%error, "what this daemon is cannot be said");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    // Hex digits are always fit for a header.
    let signature = HeaderValue::try_from(signature).unwrap_or(HeaderValue::from_static(""));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (SIGNATURE, signature),
    ];
    (headers, body).into_response()
}

/// The load of the last minute for each processor, where the system tells it.
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
        let router = describer.route(look, move |text| signer.sign(text));
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
        assert_eq!(ask(&describer, &identity).await, first, "for a while it is the same");
        // As if it had crashed.
        let mut last = first.sequence;
        for _ in 0..3 {
            let said = ask(&open(), &identity).await;
            assert!(last < said.sequence, "{} after {last}", said.sequence);
            last = said.sequence;
        }
        {
            let mut state = describer.state();
            for _ in 0..2 * RESERVE {
                let sequence = describer.next(&mut state).unwrap();
                assert!(sequence <= state.reserved);
            }
        }
        // As after a time ahead, and a file that is gone.
        fs::write(folder.path().join(FILE_NAME), "99000000000\n").unwrap();
        assert!(99_000_000_000 < ask(&open(), &identity).await.sequence);
        fs::write(folder.path().join(FILE_NAME), "").unwrap();
        assert!(first.sequence <= ask(&open(), &identity).await.sequence);
    }

    #[test]
    fn only_the_largest_are_named() {
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
