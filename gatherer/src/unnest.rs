//! Presentation unnesting: opens gzip, tar and zip, and hands their members on.
//!
//! Source: TR §4 ("Essence can also extract files with arbitrarily deep presentation-layer nesting,
//! e.g. compressed tar files").
//!
//! Sans-I/O.

/// How much of one fetched object is opened, over all depths together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that may come out of one fetched object.
    pub bytes_max: u64,
    /// Bytes kept of one member.
    pub member_bytes_max: u64,
    /// Bytes that may come out for each byte that goes in, once more than
    /// [`Limits::ratio_from_bytes`] have come out.
    pub ratio_max: u64,
    /// Where the ratio starts to count, in bytes out.
    pub ratio_from_bytes: u64,
    /// Containers within containers.
    pub depth_max: u32,
    /// Members of all containers together.
    pub members_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 256 * 1024 * 1024,
            member_bytes_max: 64 * 1024 * 1024,
            ratio_max: 1000,
            ratio_from_bytes: 1024 * 1024,
            depth_max: 8,
            members_max: 10_000,
        }
    }
}
