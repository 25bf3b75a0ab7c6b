//! Media: summarizers of pictures, sound, films and fonts, by their metadata.

pub(crate) mod audio;
pub(crate) mod font;
pub(crate) mod image;
pub(crate) mod svg;
pub(crate) mod video;
pub(crate) mod xmp;

use crate::object::ProblemKind;
use crate::{Draft, Input};

/// Says that the bytes end before what is read of them does: because only the front of the object is there, or
/// because it is `broken`.
pub(crate) fn report_end(input: &Input<'_>, broken: &str, draft: &mut Draft<'_>) {
    if input.object.truncated {
        let (kind, message) = input.object.cut("the rest");
        draft.problem(kind, message);
    } else {
        draft.problem(ProblemKind::Broken, broken);
    }
}
