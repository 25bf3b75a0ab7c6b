//! Push: notifications of changes to subscribers, and subscriptions to other daemons.
//!
//! Source: Liu et al. §3 (subscribe/notify and push, the two models in which the data provider
//! makes the first contact); WebSub (W3C Recommendation, 23 January 2018) for the protocol. A
//! **topic** is the URL of a feed or of a ListRecords. A **hub** keeps the subscriptions to it, and
//! notifies the subscribers. A **subscriber** is a broker that gets notifications. ResourceSync
//! (Z39.99-2017) offers the resources and their changes on request.
//!
//! # Differences from the paper
//!
//! * The paper adds a verb to OAI-PMH (notify). WebSub already has everything that such a verb
//!   would need: leases, the proof that a subscriber wants its notifications, and signatures.
//! * The paper leaves open what happens to a lost notification. Here nothing depends on a single
//!   notification: it moves a source to the head of the queue, and the source is still pulled at
//!   its own interval.
//! * A notification says that there is a new version, and does not carry the changes.

pub mod feed;
pub mod hub;
pub mod keys;
pub mod link;
pub mod listener;
pub mod metrics;
pub mod notice;
pub mod notifier;
pub mod request;
pub mod resourcesync;
pub mod settings;
pub mod signature;
pub mod store;
pub mod subscriber;
pub mod topic;

pub use keys::Keys;
pub use listener::{Address, FindSource, Hooks, Listener, OnNotice};
pub use notifier::{Notifier, Status};
pub use settings::Settings;
