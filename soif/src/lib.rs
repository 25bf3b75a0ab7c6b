//! SOIF, the summary object interchange format: records, an incremental reader, a writer, update
//! streams.
//!
//! Source: TR §3, §4 and Figure 3. A *record* summarizes one object: a template type, a URL and
//! attributes, each a name and a value of any bytes. A *stream* is a sequence of records. Sections
//! `@DELETE`, `@REFRESH` and `@UPDATE` may wrap them.
//!
//! ```text
//! @FILE { http://example.org/a
//! Title{5}:<TAB>Hello
//! }
//! ```
//!
//! # Differences from the original
//!
//! * Empty values are written and read; the original drops them.
//! * White space in a URL is percent-encoded when written, and an error when read strictly; in the
//!   original it runs into the next attribute's name.
//! * Attributes keep their order; the original reverses all but the first on every rewrite.
//!
//! Sans-I/O.

pub mod digest;
pub mod error;
pub mod json;
mod machine;
pub mod reader;
pub mod record;
mod scan;
pub mod stream;
pub mod writer;

pub use error::{ErrorKind, JsonError, ParseError};
pub use reader::{Reader, parse};
pub use record::{Attribute, Record, RecordRef};
pub use stream::{Event, Limits, Mode, Section};
pub use writer::{close_section, open_section, plain_url, write_attribute, write_record};

/// URL of a record without a URL.
pub const NO_URL: &str = "-";
