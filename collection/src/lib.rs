//! collection.
