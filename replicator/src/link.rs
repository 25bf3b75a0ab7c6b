//! Links between members: what goes over one, in which order, and how fast.

pub mod frame;
pub mod queue;
