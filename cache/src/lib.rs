//! The object cache: a hierarchical HTTP proxy. It carries bytes, and knows nothing of SOIF.
//!
//! Source: TR §9; RFC 9111.

pub mod policy;
