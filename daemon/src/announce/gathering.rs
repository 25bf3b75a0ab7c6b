//! The question to a registry who gathers a site already.

use std::time::Duration;

use net::client::{Client, Request};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use url::Url;

/// Path of the question, below a registry's address.
pub const GATHERS_PATH: &str = "api/gathers";
/// Time that a registry has to answer: nobody waits longer for it.
const ANSWER: Duration = Duration::from_secs(5);
/// Longest answer, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// A gatherer of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gathering {
    /// Its name for people.
    pub name: String,
    /// Its id.
    pub id: String,
    /// Its address, below which its feed is.
    pub url: String,
}

/// Asks a registry who gathers a site.
///
/// # Errors
///
/// There is no answer, as the text says; nobody need wait for one.
pub async fn gatherers_of(
    client: &Client,
    registry: &Url,
    site: &Url,
) -> Result<Vec<Gathering>, String> {
    let mut url = registry.join(GATHERS_PATH).map_err(|it| it.to_string())?;
    url.query_pairs_mut().append_pair("url", site.as_str());
    let asked = async {
        let request = Request::get(url).allow_private(true);
        let response = client.send(request).await.map_err(|it| it.to_string())?;
        let status = response.status;
        let bytes = response.bytes(BYTES_MAX).await.map_err(|it| it.to_string())?;
        serde_json::from_slice(&bytes)
            .map_err(|_not_json| format!("{registry} answers {status}, not as a registry does"))
    };
    let answered = timeout(ANSWER, asked).await;
    answered.unwrap_or_else(|_late| Err(format!("{registry} does not answer")))
}
