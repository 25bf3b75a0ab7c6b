//! Print: formats of typeset pages, and the languages that they are written in.

pub(crate) mod dvi;
pub(crate) mod man;
pub(crate) mod postscript;
pub(crate) mod tex;
pub(crate) mod tex_fonts;
pub(crate) mod texinfo;
pub(crate) mod troff;
pub(crate) mod typeset;
