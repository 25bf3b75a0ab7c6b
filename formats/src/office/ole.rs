//! Office documents from before 2007: compound files, whose streams show the program.

use super::compound::programs::{Inside, program};
use super::compound::{Compound, properties};
use super::{OfficeDraft, doc, others, ppt, xls};
use crate::code::strings;
use crate::object::ProblemKind;
use crate::{Draft, Input};

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    let Some(file) = Compound::open(&input.object.bytes) else {
        return Draft::with_problem(ProblemKind::Broken, "has no directory that can be read");
    };
    for name in ["\u{5}SummaryInformation", "\u{5}DocumentSummaryInformation"] {
        let is_first = name.starts_with("\u{5}S");
        file.stream(name).and_then(|it| properties(&it, is_first, &mut document));
    }
    let stream = |names: &[&str]| names.iter().find_map(|name| file.stream(name));
    let mut kind = "";
    let end = if let Some(main) = stream(&["WordDocument"]) {
        doc::read(&main, &file, input, &mut document)
    } else if let Some(book) = stream(&["Workbook", "Book"]) {
        xls::read(&book, input, &mut document)
    } else if let Some((slides, storage)) = ppt::stream(&file) {
        let user = file.stream_in(storage, "Current User");
        ppt::read(&slides, user.as_deref(), input, &mut document)
    } else if stream(&["EncryptedPackage"]).is_some() {
        Err((ProblemKind::Locked, "is locked by a password".to_owned()))
    } else if let Inside::Known(_, known) = program(&file) {
        kind = known;
        others::read(&file, input, &mut document)
    } else if input.r#type.is_stored() {
        Ok(())
    } else {
        Err((ProblemKind::Broken, "has no stream that is an office document".to_owned()))
    };
    if end.is_ok() && input.r#type.is_stored() && document.body.as_str().is_empty() {
        // Of Project and others the text stands in a row.
        strings::wide(&input.object.bytes, &mut document.body, input.cancelled);
    }
    let mut draft = document.draft();
    draft.other("Kind", kind);
    draft.add_problems(end.err());
    draft.add_problems(std::iter::from_fn(|| file.cut()));
    input.report_front(&mut draft);
    draft
}
