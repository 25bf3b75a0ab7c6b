//! The Gopher client: one connection for each menu, text or file.
//!
//! Source: RFC 1436 (the protocol), RFC 4266 (its URLs). Gopher has no status: servers put errors
//! where the answer would be, as an item of type 3 or as plain text. Both are recognized.

mod codec;
mod menu;
mod selector;

pub use codec::{Codec, Fetched};
pub use menu::{Item, Menu};
pub use selector::{Kind, PORT, Selector, Transfer};

use url::Url;

use crate::fetch::{Bounds, Connection, Fault, FetchError, Server, Watch};

/// Fetches the object of a `gopher` URL. Searches (with a query after TAB) are refused.
///
/// # Errors
///
/// The URL cannot be sent, the host cannot be reached or is refused by the guard, the exchange took
/// too long or broke off, or the server answered with an error.
pub async fn fetch(url: &Url, bounds: &Bounds) -> Result<Fetched, FetchError> {
    exchange(url, bounds).await.map_err(|fault| FetchError::new(url, fault))
}

async fn exchange(url: &Url, bounds: &Bounds) -> Result<Fetched, Fault> {
    let selector = Selector::of(url).map_err(Fault::url)?;
    let mut connection = Connection::open(&Server::of(url, PORT)?, bounds).await?;
    connection.send(&selector.request()).await?;
    let mut codec = Codec::new(selector.kind, bounds.bytes_max);
    // The answer has no head, so its first byte may take as long as a reply.
    let (mut watch, mut bytes) = (Watch::reply(&bounds.timeouts), Vec::new());
    let mut data = Some(Watch::data(&bounds.timeouts));
    while connection.read(&mut watch, &mut bytes).await? > 0 && !codec.feed(&bytes) {
        bytes.clear();
        watch = data.take().unwrap_or(watch);
    }
    codec.finish().map_err(|reply| Fault::Refused { reply })
}
