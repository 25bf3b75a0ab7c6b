//! The surroundings of a front: what the process around it tells on its pages.

use std::fmt;

/// What the process around a front tells on its pages.
pub trait Surroundings: fmt::Debug + Send + Sync {
    /// Returns what goes on until everything is found, such as `still gathering, 43 %`; `None` when
    /// it is.
    fn activity(&self) -> Option<String>;
}
