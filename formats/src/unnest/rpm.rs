//! RPM packages: metadata from the header, and the files in the payload.
//!
//! Source: "RPM Package File Structure" (Maximum RPM, appendix A) and the Linux Standard Base.

use super::budget::Fault;
use super::stream::Packing;
use super::{Walk, cpio};
use crate::limit::Limit;
use crate::numbers::{be32, len32, slice_up_to, up_to_zero};
use crate::object::ProblemKind;
use crate::{DateSource, Draft};

/// Length of the lead, in bytes; the header has all its data, too.
const LEAD_BYTES: usize = 96;
/// First bytes of both headers.
const MAGIC: &[u8] = &[0x8e, 0xad, 0xe8, 1];
/// Length of an entry of a header's index, in bytes.
const ENTRY_BYTES: usize = 16;

/// A header: values by tag.
struct Header<'a> {
    index: &'a [u8],
    values: &'a [u8],
}

impl<'a> Header<'a> {
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let rest = bytes.strip_prefix(MAGIC)?.get(4..)?;
        let (entries, size) = (len32(rest, 0)?, len32(rest, 4)?);
        let rest = rest.get(8..)?;
        let (index, rest) = rest.split_at_checked(entries.checked_mul(ENTRY_BYTES)?)?;
        let (values, rest) = rest.split_at_checked(size)?;
        Some((Self { index, values }, rest))
    }

    fn entry(&self, tag: u32) -> Option<&'a [u8]> {
        self.index.chunks_exact(ENTRY_BYTES).find(|it| be32(it, 0) == Some(tag))
    }

    /// Returns the 32-bit number of `tag`.
    fn number(&self, tag: u32) -> Option<u32> {
        let entry = self.entry(tag).filter(|it| be32(it, 4) == Some(4))?;
        be32(self.values, len32(entry, 8)?)
    }

    /// Returns the text of `tag`, or the first of several texts; sets `is_cut` if it is longer than a limit allows.
    fn text(&self, tag: u32, is_cut: &mut bool) -> String {
        let entry = self.entry(tag);
        // One text, a list of texts, or a text in several languages (English first).
        let text = entry.filter(|it| matches!(be32(it, 4), Some(6 | 8 | 9)));
        let Some(at) = text.and_then(|it| len32(it, 8)) else { return String::new() };
        let bound = Limit::Metadata.bound();
        let text = up_to_zero(slice_up_to(self.values, at, bound + 1));
        *is_cut |= bound < text.len();
        let text = text.get(..bound).unwrap_or(text);
        String::from_utf8_lossy(text).trim().to_owned()
    }
}

pub(super) fn package(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    let bytes = object.bytes.get(LEAD_BYTES..).unwrap_or_default();
    let broken = || (ProblemKind::Broken, "rpm header cannot be read".to_owned());
    let (_, rest) = Header::split(bytes).ok_or_else(broken)?;
    // The signatures are padded to eight bytes from the end of the lead, itself a multiple of eight.
    let taken = bytes.len() - rest.len();
    let rest = rest.get(taken.next_multiple_of(8) - taken..).unwrap_or_default();
    let (header, payload) = Header::split(rest).ok_or_else(broken)?;
    walk.about = Some(metadata(&header));
    let Some(packing) = Packing::of(payload) else {
        return cpio::members(walk, &mut walk.meter(payload));
    };
    let mut reader = walk.unpacked(packing, payload)?;
    cpio::members(walk, &mut reader)
}

fn metadata(header: &Header<'_>) -> Draft<'static> {
    let mut is_cut = false;
    let mut text = |tag| header.text(tag, &mut is_cut);
    let (version, release) = (text(1001), text(1002));
    let version = [version, release].into_iter().filter(|it| !it.is_empty());
    let mut draft = Draft {
        title: text(1000),
        description: text(1004),
        r#abstract: text(1005),
        keywords: text(1016),
        authors: vec![text(1015)],
        ..Draft::default()
    };
    let built = header.number(1006).and_then(|it| jiff::Timestamp::from_second(it.into()).ok());
    draft.date(&built.map(|it| it.to_string()).unwrap_or_default(), DateSource::Package);
    draft.other("Package", text(1000));
    draft.other("Version", version.collect::<Vec<_>>().join("-"));
    draft.other("Architecture", text(1022));
    draft.other("License", text(1014));
    draft.other("Publisher", text(1011));
    draft.references.extend(Some(text(1020)).filter(|it| !it.is_empty()));
    if is_cut {
        draft.cut(Limit::Metadata.cut());
    }
    draft
}
