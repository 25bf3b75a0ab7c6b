//! The object cache: a hierarchical HTTP proxy. It carries bytes, and knows nothing of SOIF.
//!
//! A request comes in at [`server`], and `proxy` answers it: [`target`] says where it leads, the
//! [`policy`] whether what is stored of it can be used. If not, `fetch` asks the origin, once for all
//! who ask at that time, and a [`transfer`] carries the body to each of them, to the [`memory`] and
//! to the [`store`] on disk.
//!
//! Source: TR §9; RFC 9110, 9111, 9112.

pub mod access_log;
mod answer;
pub mod config;
pub mod content;
mod counts;
pub mod error;
mod fetch;
pub mod icp;
pub mod memory;
pub mod neighbors;
mod objects;
mod origin;
mod packed;
mod parts;
pub mod policy;
mod proxy;
mod request;
pub mod resolution;
mod serve;
pub mod server;
pub mod store;
pub mod target;
pub mod transfer;

pub use config::Config;
pub use counts::{Span, Totals};
pub use error::Error;
pub use serve::explain::{Explanation, StoredObject};
pub use serve::statistics::{
    AnswersFrom, Class, Fetch, Lately, Named, NeighborStatus, OriginStatus, Requested, Sizes,
    Statistics,
};
pub use serve::stored::{Listed, Listing};
pub use serve::{Purged, Status};
pub use server::{Handle, Server};
