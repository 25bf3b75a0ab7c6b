//! soif.
