//! HTTP client and server parts shared by all daemons: limits, the guard against requests to
//! internal addresses, TLS, keys and signatures, shutdown, and the clock.
//!
//! All traffic over sockets passes through this crate, so limits, time-outs and the guard are in
//! one place. The crate knows nothing of SOIF, collections or daemons.

pub mod address;
mod admission;
pub mod body;
pub mod client;
pub mod clock;
pub mod connect;
pub mod error;
pub mod fetch;
mod framing;
pub mod ftp;
pub mod gopher;
pub mod guard;
pub mod host;
pub mod identity;
pub mod nntp;
pub mod pace;
pub mod peer;
mod pool;
mod refusal;
mod response;
pub mod sendfile;
pub mod server;
mod session;
pub mod shutdown;
mod stream;
pub mod tally;
pub mod tls;
mod wire;

pub use error::Error;
pub use response::{coding, digest};
