//! The replicator: keeps trees and collections equal at all members of a group.
//!
//! Source: TR §8 (flood-d and mirror-d).
//!
//! Members of a group measure the links between them (`estimate`), and agree on a tree of low cost
//! and on links beside it (`topology`). They flood announcements over all of these links, and pull
//! announced versions along the tree. So an update crosses each slow link once.

pub mod config;
pub mod drawing;
pub mod error;
pub mod estimate;
pub mod fetch;
pub mod flood;
pub mod group;
pub mod id;
pub mod limit;
pub mod link;
pub mod message;
mod metrics;
pub mod node;
mod overview;
mod ready;
pub mod replica;
mod serve;
mod server;
pub mod status;
pub mod topology;
pub mod tree;
pub mod version;
mod watch;
mod wire;

pub use config::Config;
pub use error::Error;
pub use node::Handle;
pub use server::Server;
pub use status::Status;
