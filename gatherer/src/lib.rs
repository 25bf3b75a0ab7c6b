//! The gatherer: walks trees where the data is, summarizes what has changed, and serves it as one
//! stream.
//!
//! Source: TR §3. [`Server`] is the daemon; [`Config`] has its settings; `pipeline` shows all
//! stages of an object's route on one screen.

mod annotating;
pub mod config;
pub mod crawls;
mod error;
mod harvests;
mod heal;
pub mod known;
mod lock;
pub mod metrics;
pub mod note;
mod opener;
mod pipeline;
pub mod problems;
pub mod progress;
mod requests;
mod rounds;
mod serve;
mod server;
mod shared;
mod site;
pub mod spec;
pub mod tree;
mod turns;
pub mod validator;

pub use config::Config;
pub use error::Error;
pub use opener::Opener;
pub use problems::HARVEST_PROBLEM;
pub use progress::{Phase, Progress, Status};
pub use server::{Handle, Server};
