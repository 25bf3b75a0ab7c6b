//! The gatherer: walks trees beside the data, summarizes what changed, and serves it as one stream.
//!
//! Source: TR §3. [`Server`] is the daemon; [`Config`] is what it is told; `pipeline` names all
//! stages of an object's route on one screen.

mod annotating;
mod commit;
pub mod config;
pub mod debounce;
mod error;
pub mod fetch;
pub mod filter;
pub mod gathered;
mod harvests;
mod heal;
pub mod known;
pub mod metrics;
pub mod note;
mod pass;
mod pipeline;
mod prepare;
pub mod problems;
pub mod progress;
mod repositories;
mod room;
mod rounds;
mod serve;
mod server;
mod site;
pub mod spec;
pub mod walk;
mod watch;

pub use config::Config;
pub use error::Error;
pub use fetch::oai::HARVEST_PROBLEM;
pub use progress::{Phase, Progress, Status};
pub use server::{Handle, Server};
