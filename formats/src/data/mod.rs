//! The data of programs that are none of the common ones: books, databases, drawings, results of
//! computing and others, each read as far as its format is simple.
//!
//! Source: the modules say theirs; [`marks`] has the beginnings by which programs are told apart.
//!
//! Every record says what its object is (`Kind`). An object of a format without a reader here gives
//! the sentences and names that stand in it as they are.

mod access;
mod cards;
mod chm;
mod dbf;
mod dxf;
mod fictionbook;
mod grib;
mod lotus;
mod marks;
mod mif;
mod netcdf;
mod palm;
mod sqlite;
pub(crate) mod wordperfect;

pub use marks::{mark_of, marks_of};

use crate::code::strings;
use crate::limit::Limit;
use crate::object::ProblemKind;
use crate::text::{Body, is_text};
use crate::{Draft, HEAD_BYTES, Input, Type, html, office};

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let head = input.head(HEAD_BYTES);
    let mut draft = match input.r#type {
        // Zip and compound files are told apart by their parts.
        _ if head.starts_with(b"PK") || head.starts_with(office::COMPOUND) => {
            office::summarize(input)
        }
        Type::Ebook if palm::is_book(head) => palm::summarize(input),
        Type::Ebook if fictionbook::is_book(head) => fictionbook::summarize(input),
        Type::Database if head.starts_with(sqlite::MARK) => sqlite::summarize(input),
        Type::Database if dbf::kind(head).is_some() => dbf::summarize(input),
        Type::Database if access::is_database(head) => access::summarize(input),
        Type::ScientificData if head.starts_with(b"CDF") => netcdf::summarize(input),
        Type::ScientificData if head.starts_with(b"GRIB") => grib::summarize(input),
        Type::ScientificData if head.starts_with(cards::MARK) => cards::summarize(input),
        Type::WordProcessor if head.starts_with(wordperfect::MARK) => wordperfect::summarize(input),
        Type::Spreadsheet if lotus::is_sheet(head) => lotus::summarize(input),
        Type::PageLayout if head.starts_with(mif::MARK) => mif::summarize(input),
        Type::Drawing if dxf::is_drawing(head) => dxf::summarize(input),
        Type::Help if head.starts_with(chm::MARK) => chm::summarize(input),
        _ if head.trim_ascii_start().starts_with(b"<") && is_text(head) => html::markup(input),
        _ => rest(input),
    };
    draft.other("Kind", kind(head));
    draft
}

/// Summarizes binary data of no type of their own.
pub(crate) fn binary<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = strings::summarize(input);
    draft.other("Kind", kind(input.head(HEAD_BYTES)));
    draft
}

/// Returns what the object is called by its mark; empty if it has none.
fn kind(head: &[u8]) -> &'static str {
    mark_of(head).map_or("", |(_, kind)| kind)
}

/// Returns the sentences and names in an object of any format, in UTF-16 and ASCII.
fn rest<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let bytes = input.front(Limit::Scan, &mut draft);
    let mut body = Body::new(input.text_bytes_max());
    strings::wide(bytes, &mut body, input.cancelled);
    strings::named(bytes, &mut body, input.cancelled);
    draft.set_body(body);
    draft
}

/// Says that an object breaks off before the end that its format says; of one that was not read to its end,
/// only that.
fn breaks_off(input: &Input<'_>, message: impl Into<String>, draft: &mut Draft<'_>) {
    if input.object.truncated {
        input.report_front(draft);
    } else {
        draft.problem(ProblemKind::Broken, message);
    }
}

#[cfg(test)]
pub(crate) use palm::tests::palm;
#[cfg(test)]
mod tests;
