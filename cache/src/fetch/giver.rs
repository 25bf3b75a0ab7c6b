//! Givers of answers: an object's home, a neighbor, or a mirror.
//!
use std::fmt;
use std::sync::Arc;

use super::Fetcher;
use crate::resolution::Code;

/// The code of mirrors, in the status.
pub(crate) const MIRROR: &str = "MIRROR";

/// Who gave an answer, and why it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Giver {
    /// `None`: a mirror, in place of the home.
    code: Option<Code>,
    host: Arc<str>,
}

impl Giver {
    /// Returns the home of an object, or a neighbor.
    pub(crate) fn new(code: Code, host: &str) -> Self {
        Self { code: Some(code), host: host.into() }
    }

    /// Returns a mirror.
    pub(crate) fn mirror(host: &str) -> Self {
        Self { code: None, host: host.into() }
    }

    /// Returns Squid's words for it, in its access log.
    pub(crate) fn in_log(&self) -> String {
        let code = match self.code {
            Some(Code::NeighborHit) => "SIBLING_HIT",
            Some(Code::ParentHit) => "PARENT_HIT",
            Some(Code::FirstParentMiss) => "FIRST_PARENT_MISS",
            Some(Code::DefaultParent) => "DEFAULT_PARENT",
            Some(Code::SourceFastest) => "SOURCE_FASTEST",
            Some(Code::TimeoutDirect) => "TIMEOUT_HIER_DIRECT",
            Some(Code::Direct) | None => "HIER_DIRECT",
        };
        format!("{code}/{}", self.host)
    }
}

impl fmt::Display for Giver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.host, self.code.map_or(MIRROR, Code::name))
    }
}

impl Fetcher {
    /// Returns who gave the last answer of a URL, if it came lately.
    pub(crate) fn giver(&self, url: &str) -> Option<Giver> {
        self.0.givers.get(url)
    }

    /// Notes who gave an answer of a URL.
    pub(super) fn given(&self, url: &str, giver: Option<&Giver>) {
        giver.into_iter().for_each(|it| self.0.givers.insert(url.to_owned(), it.clone()));
    }
}
