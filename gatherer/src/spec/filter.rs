//! The rules of a root elsewhere about URLs: what belongs to it.
//!
//! Sans-I/O.

use std::collections::HashSet;
use std::sync::Arc;

use essence::glob::globs;
use globset::GlobSet;
use url::Url;

use super::protocol::Protocol;
use super::web::Web;
use crate::error::Error;

/// Number of the rule that leaves out what lies outside the folder of the root's URL.
const OUTSIDE: u16 = 0;

/// Number of the rule that leaves out what `allow` does not name.
pub(super) const NOT_ALLOWED: u16 = 1;

/// Number of the rule that leaves out what a `[[leaf]]` does not list.
pub(super) const NOT_LISTED: u16 = 2;

/// Number of the first pattern of `deny`.
pub(super) const DENIED: u16 = 3;

/// Returns whether two URLs are of one site: the same host at the same port, or at the usual ports of
/// both schemes. At other ports of the host are other services.
pub(crate) fn is_same_site(one: &Url, other: &Url) -> bool {
    let is_usual = |it: &Url| it.port().is_none();
    one.host_str() == other.host_str()
        && (one.port_or_known_default() == other.port_or_known_default()
            || is_usual(one) && is_usual(other))
}

/// Returns whether a URL is in the folder of the root's `start`, at the same site. What a newsgroup leads to is
/// at its server, and a Gopher selector begins behind the type of its object.
pub(super) fn is_within(start: &Url, url: &Url) -> bool {
    let selector = |it: &'_ Url| it.path().chars().skip(2).collect::<String>();
    is_same_site(start, url)
        && match Protocol::of(start) {
            Some(Protocol::News) => true,
            Some(Protocol::Gopher) => selector(url).starts_with(&selector(start)),
            // A folder without its last slash is listed, too.
            Some(Protocol::Ftp) if !start.path().ends_with('/') => {
                let below = url.path().strip_prefix(start.path());
                below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
            }
            _ => url.path().starts_with(folder(start)),
        }
}

/// Returns the path of the folder of a URL.
fn folder(url: &Url) -> &str {
    let path = url.path();
    path.rfind('/').and_then(|it| path.get(..=it)).unwrap_or("/")
}

/// The compiled rules of a web root about URLs.
#[derive(Clone, Debug)]
pub(crate) struct UrlFilter {
    start: Url,
    /// Of a `[[leaf]]`, what it lists.
    listed: Option<Arc<HashSet<String>>>,
    allow: GlobSet,
    deny: GlobSet,
}

impl UrlFilter {
    /// Returns the rules of a root.
    ///
    /// # Errors
    ///
    /// The first pattern that is not a glob: the settings have to be corrected.
    pub(crate) fn new(web: &Web) -> Result<Self, Error> {
        let set = |patterns: &[String]| {
            globs(patterns).map_err(|(pattern, message)| Error::Pattern {
                root: web.url().to_owned(),
                pattern,
                message,
            })
        };
        let listed = (!web.leaves.is_empty())
            .then(|| Arc::new(web.leaves.iter().map(Url::to_string).collect()));
        Ok(Self { start: web.url.clone(), listed, allow: set(&web.allow)?, deny: set(&web.deny)? })
    }

    /// Returns the number of the rule that leaves `url` out; `None` if none does.
    pub(crate) fn refuses(&self, url: &Url) -> Option<u16> {
        if *url == self.start {
            return None;
        }
        if let Some(listed) = &self.listed {
            return (!listed.contains(url.as_str())).then_some(NOT_LISTED);
        }
        let whole = url.as_str();
        let path = whole.get(url[..url::Position::BeforePath].len()..).unwrap_or_default();
        let path = path.trim_start_matches('/');
        let matched = |set: &GlobSet| {
            let mut all = set.matches(whole);
            all.extend(set.matches(path));
            // Each pattern makes two globs.
            all.into_iter().min().map(|it| it / 2)
        };
        if let Some(first) = matched(&self.deny) {
            return Some(u16::try_from(first).unwrap_or(u16::MAX).saturating_add(DENIED));
        }
        if !self.allow.is_empty() {
            return matched(&self.allow).is_none().then_some(NOT_ALLOWED);
        }
        let is_own = url.host_str() == self.start.host_str();
        (is_own && !is_within(&self.start, url)).then_some(OUTSIDE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::protocol;

    #[test]
    fn rules_are_about_the_folder_the_path_and_the_address() {
        let start = Url::parse("https://h.example/docs/index.html").unwrap();
        let with = |allow: &[&str], deny: &[&str]| {
            let own = |it: &[&str]| it.iter().map(|it| (*it).to_owned()).collect();
            let web = Web { allow: own(allow), deny: own(deny), ..Web::new(start.clone()) };
            UrlFilter::new(&web).unwrap()
        };
        let check = |filter: &UrlFilter, url: &str, expected: Option<u16>| {
            assert_eq!(filter.refuses(&Url::parse(url).unwrap()), expected, "{url}");
        };
        let folder = with(&[], &[]);
        check(&folder, "https://h.example/docs/a/b?c", None);
        check(&folder, "http://h.example/docs/a", None);
        check(&folder, "https://h.example/other", Some(OUTSIDE));
        check(&folder, "https://h.example:8443/docs/a", Some(OUTSIDE));
        check(&folder, "https://other.example/x", None);
        let deny = with(&[], &["/docs/old/", "*.iso", "https://other.example/private"]);
        check(&deny, "https://h.example/docs/old/a", Some(DENIED));
        check(&deny, "https://h.example/docs/deep/x.iso", Some(DENIED + 1));
        check(&deny, "https://other.example/private/a", Some(DENIED + 2));
        check(&deny, "https://other.example/public", None);
        let allow = with(&["/docs/a", "/more"], &[]);
        check(&allow, "https://h.example/more/x", None);
        check(&allow, "https://h.example/docs/b", Some(NOT_ALLOWED));
        check(&allow, start.as_str(), None);
        let others =
            |start: &str| UrlFilter::new(&Web::new(protocol::start(start, None).unwrap())).unwrap();
        let folder = others("ftp://h.example/pub");
        check(&folder, "ftp://h.example/pub/a", None);
        check(&folder, "ftp://h.example/public", Some(OUTSIDE));
        let menu = others("gopher://h.example/1/docs");
        check(&menu, "gopher://h.example/0/docs/a", None);
        check(&menu, "gopher://h.example/0/other", Some(OUTSIDE));
        check(&others("news://h.example/a.b"), "news://h.example/1@x", None);
    }
}
