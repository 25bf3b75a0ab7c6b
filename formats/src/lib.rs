//! The formats of objects: each summarizer reads the bytes of one format into a draft of its record.
//!
//! Source: TR §4 and Figure 3; the attributes and their meaning follow the user's manual. Each format has one
//! module, which turns an [`Input`] into a [`Draft`]. [`draft()`] chooses the module by the object's type.
//! [`summary()`] makes the record, with the same attributes in the same order for all types. [`unnest`] opens
//! packed objects; [`explode`] makes one record of each entry of a list.
//!
//! # Differences from the paper
//!
//! * Every record has a `Title`; without one in the content, it is the file's name.
//! * `Keywords` holds the words of much more text than `Partial-Text` does. So a search finds words
//!   deep in a document whose text is not sent.
//! * Essence ran a program for each object; these are functions, bounded in time and memory.
//!
//! Sans-I/O. This holds for every module here: `tests/tidy.rs` looks at all files of the crate.

mod cancellable;
pub mod catalog;
pub mod code;
mod data;
mod detail;
mod draft;
pub mod explode;
mod html;
mod json;
mod kinds;
pub mod limit;
pub mod markup;
mod media;
mod metadata;
mod names;
mod numbers;
pub mod object;
pub mod office;
pub mod path;
pub mod pdf;
mod print;
pub mod prose;
mod summary;
pub mod text;
pub mod unnest;

#[cfg(test)]
mod testing;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use data::{mark_of, marks_of};
pub use detail::Detail;
pub use draft::{DateSource, Draft};
pub use kinds::{Language, Type};
use limit::Limit;
use object::Object;
pub use office::COMPOUND;
pub use summary::summary;
use text::{Places, decode};
use url::Url;

/// Length of the front of an object by which its type is recognized, in bytes; more does no harm.
pub const HEAD_BYTES: usize = 4 * 1024;

/// Types published with their full text, beside the usual attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FullText {
    /// None.
    #[default]
    None,
    /// Every type that has text.
    All,
    /// These types.
    Types(BTreeSet<Type>),
}

/// Settings of the summarizers: bounds on the record of one object, and tables of rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Types whose records carry `Full-Text` in place of `Partial-Text`.
    pub full_text: FullText,
    /// The attributes of a record and their lengths.
    pub detail: Detail,
    /// Longest `Full-Text`, in bytes.
    pub full_text_bytes_max: usize,
    /// Maximum number of bytes of a text that are read for `Keywords`.
    pub keywords_text_bytes_max: usize,
    /// Longest `Keywords`, in bytes.
    pub keywords_bytes_max: usize,
    /// Longest `URL-References`, in bytes.
    pub references_bytes_max: usize,
    /// Maximum number of `URL-References`.
    pub references_max: usize,
    /// Maximum number of links of a page that a crawl follows; 0 if none does.
    pub leads_max: usize,
    /// Rules of markup: attributes by element, head field and key.
    pub markup: markup::Tables,
    /// Classes of PDF documents, with the evidence and the rules for each.
    pub templates: pdf::Templates,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            full_text: FullText::None,
            detail: Detail::default(),
            full_text_bytes_max: 16 * 1024 * 1024,
            keywords_text_bytes_max: 1024 * 1024,
            keywords_bytes_max: 128 * 1024,
            references_bytes_max: 64 * 1024,
            references_max: 1_000,
            leads_max: 0,
            markup: markup::Tables::default(),
            templates: pdf::Templates::default(),
        }
    }
}

impl Settings {
    fn is_full(&self, r#type: Type) -> bool {
        match &self.full_text {
            FullText::None => false,
            FullText::All => true,
            FullText::Types(types) => types.contains(&r#type),
        }
    }

    /// Returns how much text of an object of this type is used, in bytes.
    pub fn text_bytes_max(&self, r#type: Type) -> usize {
        let stored = if self.is_full(r#type) {
            self.full_text_bytes_max
        } else {
            self.detail.partial_text_bytes_max
        };
        stored.max(self.keywords_text_bytes_max)
    }
}

/// The input of a summarizer: one object with its type and the settings.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The object.
    pub object: &'a Object,
    /// Its recognized type.
    pub r#type: Type,
    /// Bounds on the record, and rules.
    pub settings: &'a Settings,
    /// Whether to stop; polled inside every long loop.
    pub cancelled: &'a dyn Fn() -> bool,
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("type", &self.r#type).finish_non_exhaustive()
    }
}

impl<'a> Input<'a> {
    /// Returns how much text is used, in bytes.
    pub fn text_bytes_max(&self) -> usize {
        self.settings.text_bytes_max(self.r#type)
    }

    /// Returns the URL that relative links are resolved against; `None` for an archive's member.
    pub(crate) fn base(&self) -> Option<Url> {
        Url::parse(&self.object.url).ok().filter(|it| it.fragment().is_none())
    }

    /// Returns the front of the object, at most `bytes_max` bytes.
    pub fn head(&self, bytes_max: usize) -> &'a [u8] {
        let bytes = &self.object.bytes;
        bytes.get(..bytes.len().min(bytes_max)).unwrap_or_default()
    }

    /// Returns the front of the object that a limit allows, and says if that is not all.
    pub(crate) fn front(&self, limit: Limit, draft: &mut Draft<'_>) -> &'a [u8] {
        self.report(limit, draft);
        self.head(limit.bound())
    }

    /// Says if the front of the object that a limit allows is not all.
    pub(crate) fn report(&self, limit: Limit, draft: &mut Draft<'_>) {
        self.report_at(limit, limit.bound(), draft);
    }

    fn report_at(&self, limit: Limit, bytes_max: usize, draft: &mut Draft<'_>) {
        let front = self.object.bytes.len();
        if bytes_max < front || bytes_max == front && self.object.truncated {
            draft.cut(limit.cut_at(bytes_max));
        } else {
            self.report_front(draft);
        }
    }

    /// Says if only the front of the object was read.
    pub(crate) fn report_front(&self, draft: &mut Draft<'_>) {
        if self.object.truncated {
            let (kind, message) = self.object.cut("the rest");
            draft.problem(kind, message);
        }
    }

    /// Returns the text of the object, decoded, as far as it is used.
    pub fn text(&self) -> Cow<'a, str> {
        decode(self.head(self.text_bytes_max()), None)
    }

    /// Says if [`Self::text`] is not all.
    pub fn report_text(&self, draft: &mut Draft<'_>) {
        self.report_at(Limit::Text, self.text_bytes_max(), draft);
    }

    /// Makes what [`Self::text`] returned the text of the record, line by line.
    pub(crate) fn set_text(&self, text: Cow<'a, str>, draft: &mut Draft<'a>) {
        self.report_text(draft);
        draft.body = text;
        draft.places = Places::Lines;
    }
}

/// Returns whether an object of this type is read as text to its end, regardless of its length.
pub fn is_read_whole(r#type: Type) -> bool {
    explode::is_list(r#type)
        || matches!(r#type, Type::Json | Type::Notebook | Type::Rcs | Type::Sccs)
}

/// Summarizes an object by its type. A type without a summarizer gives an empty draft.
pub fn draft<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = by_type(input);
    if input.object.truncated && is_read_whole(input.r#type) {
        let (kind, message) = input.object.cut("the rest");
        draft.problem(kind, message);
    }
    draft
}

fn by_type<'a>(input: &Input<'a>) -> Draft<'a> {
    match input.r#type {
        catalog if catalog::is_catalog(catalog) => catalog::summarize(input),
        Type::Text | Type::Readme => prose::plain::prose(input),
        Type::Faq => prose::faq::summarize(input),
        Type::Rfc | Type::InternetDraft | Type::Fyi => prose::rfc::summarize(input),
        Type::ChangeLog => prose::changes::summarize(input),
        Type::FormattedText => prose::formatted::summarize(input),
        Type::WaisSource => prose::wais::summarize(input),
        // A type of the site's own may be text or not.
        Type::Site(_) if text::is_text(input.head(HEAD_BYTES)) => prose::plain::prose(input),
        Type::Site(_) => Draft::default(),
        Type::Html => html::summarize(input),
        Type::Xml | Type::Sgml => html::markup(input),
        Type::Markdown => prose::markdown::summarize(input),
        Type::Rst => prose::rst::summarize(input),
        Type::AsciiDoc => prose::asciidoc::summarize(input),
        Type::Pdf => pdf::summarize(input),
        Type::Rtf => office::rtf::summarize(input),
        Type::Word | Type::Excel | Type::PowerPoint | Type::OpenDocument => {
            office::summarize(input)
        }
        Type::Epub => office::epub::summarize(input),
        Type::Csv => office::table::summarize(input),
        Type::Json => json::summarize(input),
        Type::Notebook => json::notebook::summarize(input),
        Type::Source(language) => code::source::summarize(input, language),
        Type::Makefile => code::source::makefile(input),
        Type::ManPage => print::man::summarize(input),
        Type::Troff => print::troff::summarize(input),
        Type::Mail | Type::Mailbox => prose::mail::summarize(input),
        Type::News => prose::news::summarize(input),
        Type::Tex => print::tex::summarize(input),
        Type::Texinfo => print::texinfo::summarize(input),
        Type::Patch => code::patch::summarize(input),
        Type::Rcs => code::revision::rcs(input),
        Type::Sccs => code::revision::sccs(input),
        Type::Svg => media::svg::summarize(input),
        Type::Image => media::image::summarize(input),
        Type::Audio => media::audio::summarize(input),
        Type::Video => media::video::summarize(input),
        Type::Font => media::font::summarize(input),
        Type::Object | Type::Command => code::object::summarize(input),
        stored if stored.is_stored() => data::summarize(input),
        Type::Binary => data::binary(input),
        Type::Dvi => print::dvi::summarize(input),
        Type::PostScript => print::postscript::summarize(input),
        Type::SymbolicLink => code::link::summarize(input),
        Type::Uuencoded => Draft::default(),
        other if other.is_text() => prose::plain::lines(input),
        _ => Draft::default(),
    }
}
