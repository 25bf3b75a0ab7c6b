//! Settings of a crawl.
//!
//! Sans-I/O.

use super::traps::TrapLimits;

/// The order in which a host's URLs are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those with the fewest links from the start first, in the order in which they were found.
    #[default]
    Breadth,
    /// Those with the most links from the start first, the one found last before others.
    Depth,
}

/// What a crawl may do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Schemes of the URLs that are taken. Default: those of the web.
    pub schemes: Vec<String>,
    /// The order within a host.
    pub order: Order,
    /// Maximum number of URLs. Known ones are taken beyond it, so it deletes nothing.
    pub urls_max: usize,
    /// Maximum number of names of hosts.
    pub hosts_max: usize,
    /// Maximum number of links from the start.
    pub depth_max: u16,
    /// Shortest delay between two requests to a server, in milliseconds. Loopback has none.
    pub delay_ms: u64,
    /// Number of times that a server is left alone as long as it takes for an answer.
    pub delay_factor: u32,
    /// Longest delay for a slow server, in milliseconds.
    pub delay_ms_max: u64,
    /// Maximum number of requests to a server at the same time; at least 1.
    pub host_requests_max: usize,
    /// Maximum number of requests at the same time; at least 1.
    pub requests_max: usize,
    /// Maximum number of requests for one URL, if it fails in a way that may pass.
    pub tries_max: u8,
    /// Caps on what one prefix may have.
    pub traps: TrapLimits,
    /// Product token for robots.txt.
    pub product: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            schemes: ["http", "https"].map(str::to_owned).to_vec(),
            order: Order::default(),
            urls_max: 1_000_000,
            hosts_max: 10_000,
            depth_max: u16::MAX,
            delay_ms: 1_000,
            delay_factor: 5,
            delay_ms_max: 30_000,
            host_requests_max: 1,
            requests_max: 32,
            tries_max: 3,
            traps: TrapLimits::default(),
            product: crate::robots::PRODUCT.to_owned(),
        }
    }
}
