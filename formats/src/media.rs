//! Media: pictures, sound, films and fonts, and what is written in them.
//!
//! Sans-I/O.

pub(crate) mod audio;
pub(crate) mod font;
pub(crate) mod image;
pub(crate) mod svg;
pub(crate) mod video;
pub(crate) mod xmp;
