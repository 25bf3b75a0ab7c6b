//! Push: subscribers that are told of changes, and subscriptions to others.
//!
//! Source: Liu et al. §3 (subscribe/notify and push, the two models in which a data provider speaks first);
//! WebSub (W3C Recommendation, 23 January 2018), which is how. A **topic** is the URL of a feed or of a
//! ListRecords; a **hub** keeps who has subscribed to it, and tells them; a **subscriber** is a broker that
//! is told. ResourceSync (Z39.99-2017) says the same to whoever asks: what there is, and what has changed.
//!
//! # Differences from the paper
//!
//! * The paper adds a verb to OAI-PMH (notify). WebSub has all that such a verb would need: leases, the
//!   proof that a subscriber wants what it gets, and a signature on what is said.
//! * The paper leaves open what happens to a notification that is lost. Here nothing depends on one: it
//!   moves a source to the head of the queue, and the source's own interval goes on.
//! * A notification is *thin* (there is a new version) or *fat* (and this is what is in it), as the
//!   subscriber has asked.

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
pub use listener::{Address, Find, Hooks, Listener, Tell};
pub use notice::Notice;
pub use notifier::{Notifier, Status};
pub use settings::Settings;
