//! gatherer.
