//! The surroundings of a front: what the process around it tells on its pages.

use std::fmt;

use http::HeaderMap;

/// What the process around a front tells on its pages.
pub trait Surroundings: fmt::Debug + Send + Sync {
    /// Returns what goes on until everything is found, such as `still gathering, 43 %`; `None` when
    /// it is.
    fn activity(&self) -> Option<String>;

    /// Returns the URL to which a page posts the `url` of a local file that is to be opened; `None`
    /// unless the browser with these headers may open files.
    fn open_address(&self, headers: &HeaderMap) -> Option<String>;
}
