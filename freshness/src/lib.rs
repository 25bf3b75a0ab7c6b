//! freshness.
