//! Media: summarizers of pictures, sound, films and fonts, by their metadata.

pub(crate) mod audio;
pub(crate) mod font;
pub(crate) mod image;
pub(crate) mod svg;
pub(crate) mod video;
pub(crate) mod xmp;
