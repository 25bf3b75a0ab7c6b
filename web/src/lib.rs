//! What all daemons share towards people: pages.
//!
//! - [`chart`] draws charts as SVG text.
//! - [`layout`] renders pages from [`templates`], with the style and icon of `/assets/`, and frames a
//!   daemon's routes with what all answer alike: [`failure`] and [`headers`].

mod assets;
pub mod chart;
pub mod error;
pub mod failure;
pub mod headers;
pub mod layout;
pub mod templates;

pub use error::Error;
pub use layout::{Pages, Site};
