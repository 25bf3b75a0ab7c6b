//! Pages for people, shared by all daemons.
//!
//! - [`chart`] draws charts as SVG text.
//! - [`foreign`] makes text of others harmless.
//! - [`layout`] renders pages from [`templates`], with the style and icon of `/assets/`, and adds
//!   the common answers of all daemons: [`failure`] and [`headers`].

mod assets;
pub mod chart;
pub mod error;
pub mod failure;
pub mod foreign;
pub mod headers;
pub mod layout;
pub mod templates;

pub use error::Error;
pub use layout::{Pages, Site};
