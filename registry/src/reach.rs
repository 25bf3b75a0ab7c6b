//! Reach: whether servers in private networks, and on this machine, are asked.
//!
//! A registry in a private network lists what is there. One on the public internet asks nobody inside: strangers could
//! have it look into a network that they do not reach. If the settings do not say which one it is, its own address does, as
//! the registry's address does for the daemons that announce themselves there.

use std::net::SocketAddr;
use std::time::Duration;

use net::client::Client;
use tokio::time::timeout;
use url::Url;

/// Time for looking up the registry's own name.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Whether servers in private networks are asked.
#[derive(Clone, Debug)]
pub struct Reach {
    setting: Option<bool>,
    /// The registry's own address; `None`: nothing says which.
    own: Option<Url>,
}

impl Reach {
    /// Returns what the settings say: `allow_private`, or else `base_url` or the address of the public listener.
    pub fn new(allow_private: Option<bool>, base_url: Option<&Url>, listen: SocketAddr) -> Self {
        let concrete = || Url::parse(&format!("http://{listen}/")).ok();
        let concrete = (!listen.ip().is_unspecified()).then(concrete).flatten();
        Self { setting: allow_private, own: base_url.cloned().or(concrete) }
    }

    /// Returns whether they are asked. The client looks up a name, and remembers its addresses for a minute: so a name
    /// server that does not answer yet delays no start, and decides nothing for long.
    pub async fn allows_private(&self, client: &Client) -> bool {
        match (self.setting, &self.own) {
            (Some(setting), _) => setting,
            (None, Some(own)) => timeout(LOOK_UP, client.is_private(own)).await.unwrap_or(false),
            (None, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use net::client::Settings;

    use super::*;

    /// Returns a name of this machine that is none by its letters, if its hosts(5) has one.
    fn name() -> String {
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
        let of_line = |line: &str| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let is_own = words.next()?.starts_with("127.");
            words.find(|it| is_own && !it.contains("localhost"))
        };
        hosts.lines().find_map(of_line).unwrap_or_else(|| "localhost".to_owned())
    }

    #[tokio::test]
    async fn the_registrys_own_address_decides_if_the_settings_do_not() {
        let client = Client::new(Settings::default());
        let named = format!("https://{}/registry/", name());
        for (setting, base_url, listen, expected) in [
            (None, &*named, "0.0.0.0:8502", true),
            (None, "http://10.1.2.3/", "0.0.0.0:8502", true),
            (None, "https://192.0.43.7/", "10.0.0.1:8502", false),
            (None, "https://no-such-name.invalid/", "10.0.0.1:8502", false),
            (None, "", "10.0.0.1:8502", true),
            (None, "", "0.0.0.0:8502", false),
            (Some(false), "http://10.1.2.3/", "0.0.0.0:8502", false),
            (Some(true), "https://192.0.43.7/", "0.0.0.0:8502", true),
        ] {
            let own = Url::parse(base_url).ok();
            let reach = Reach::new(setting, own.as_ref(), listen.parse().unwrap());
            let found = reach.allows_private(&client).await;
            assert_eq!(found, expected, "{setting:?} {base_url} {listen}");
        }
    }
}
