//! Prose: summarizers of texts that people write and read directly, with light markup.

pub(crate) mod asciidoc;
pub(crate) mod changes;
pub(crate) mod faq;
pub(crate) mod formatted;
pub mod mail;
pub(crate) mod markdown;
pub(crate) mod news;
pub(crate) mod plain;
pub(crate) mod references;
pub(crate) mod rfc;
pub(crate) mod rst;
pub(crate) mod wais;
