//! The registries of the settings, and when to announce to them.
//!
//! Sans-I/O.

use std::time::Duration;

use settings::Table;
use url::Url;

use super::{Reply, State};

/// Maximum number of registries.
const REGISTRIES_MAX: usize = 16;
/// Shortest and longest time between two announcements, whatever a registry asks for.
const EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3_600));
/// Pause after the first failure; it doubles up to the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(300));

/// The `[registry]` of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registries {
    /// Their addresses.
    pub urls: Vec<Url>,
    /// Whether they may be in private networks, and be told of addresses there; `None`: if their own addresses are
    /// in one.
    pub allow_private: Option<bool>,
}

impl Registries {
    /// Reads `[registry]`, and reports mistakes.
    pub(crate) fn read(root: &Table<'_>) -> Self {
        let table = root.table("registry");
        let urls = addresses(&table, "url", "registry");
        if REGISTRIES_MAX < urls.len() {
            let message = format!("more than {REGISTRIES_MAX} registries");
            table.mistake("url", message, "one, which others follow");
        }
        let allow_private =
            table.has("allow_private").then(|| table.boolean("allow_private", false));
        Self { urls, allow_private }
    }
}

/// Returns the addresses of registries or other daemons (`what`) in the settings, one or more of them, and reports
/// mistakes.
pub fn addresses(table: &Table<'_>, key: &str, what: &str) -> Vec<Url> {
    let mut urls: Vec<Url> = Vec::new();
    for text in table.one_or_more(key) {
        match address(&text) {
            Some(url) if urls.contains(&url) => {
                table.mistake(key, format!("{url} is there twice"), format!("each {what} once"));
            }
            Some(url) => urls.push(url),
            None => {
                let message = format!("{text:?} is no address of a {what}");
                table.mistake(key, message, format!("such as \"https://{what}.example/\""));
            }
        }
    }
    urls
}

/// Returns the address of a registry or another daemon, with a slash at its end; `None`: it is none.
pub fn address(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !is_plain {
        return None;
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Some(url)
}

/// Returns the time until the next announcement after an answer, or after so many failures in a row. `spread`, from 0
/// to 1, takes up to a tenth of it away: daemons that began together do not announce together for ever. Who is to come
/// later does not come earlier: for them it adds as much.
pub(super) fn pause(reply: Result<&Reply, u32>, spread: f64) -> Duration {
    let pause = match reply {
        Ok(Reply { state: State::Refused, .. }) => RETRY.1,
        Ok(reply) => Duration::from_secs(reply.every_secs).clamp(EVERY.0, EVERY.1),
        Err(failures) => (RETRY.0 * 2_u32.saturating_pow(failures.saturating_sub(1))).min(RETRY.1),
    };
    let sign = if reply.is_ok_and(|it| it.state == State::Later) { 1.0 } else { -1.0 };
    pause.mul_f64(1.0 + sign * spread.clamp(0.0, 1.0) / 10.0)
}

#[cfg(test)]
mod tests {
    use settings::Document;

    use super::*;

    fn read(text: &str) -> Result<Registries, String> {
        let document = Document::parse(text).unwrap();
        let read = Registries::read(&document.root());
        document.finish().map(|()| read).map_err(|them| them[0].to_string())
    }

    #[test]
    fn registries_are_read() {
        let none = read("").unwrap();
        assert_eq!(none, Registries::default());
        let one = read("[registry]\nurl = \"http://r:8502\"\nallow_private = false").unwrap();
        assert_eq!((one.urls[0].as_str(), one.allow_private), ("http://r:8502/", Some(false)));
        let two = read("[registry]\nurl = [\"https://a/x\", \"http://b/\"]").unwrap();
        assert_eq!(
            two.urls.iter().map(Url::as_str).collect::<Vec<_>>(),
            ["https://a/x/", "http://b/"]
        );
        for (wrong, part) in [
            ("url = \"ftp://r/\"", "no address of a registry"),
            ("url = \"http://r/?q\"", "no address of a registry"),
            ("url = [\"http://r\", \"http://r/\"]", "twice"),
            ("url = \"http://r\"\nallow = true", "allow"),
        ] {
            let said = read(&format!("[registry]\n{wrong}")).unwrap_err();
            assert!(said.contains(part), "{wrong}: {said}");
        }
    }

    #[test]
    fn pauses_are_bounded() {
        let listed = |every_secs| Reply { state: State::Listed, every_secs, ..Reply::default() };
        let later = |every_secs| Reply { state: State::Later, every_secs, ..Reply::default() };
        for (reply, spread, secs) in [
            (Ok(&listed(300)), 0.0, 300),
            (Ok(&listed(300)), 1.0, 270),
            (Ok(&listed(0)), 0.0, 1),
            (Ok(&listed(u64::MAX)), 0.0, 3_600),
            (Ok(&Reply { every_secs: 1, ..Reply::default() }), 0.0, 300),
            (Ok(&later(10)), 0.0, 10),
            (Ok(&later(10)), 1.0, 11),
            (Ok(&later(u64::MAX)), 0.0, 3_600),
            (Err(1), 0.0, 2),
            (Err(3), 0.0, 8),
            (Err(u32::MAX), 0.0, 300),
        ] {
            assert_eq!(pause(reply, spread), Duration::from_secs(secs), "{reply:?}");
        }
    }
}
