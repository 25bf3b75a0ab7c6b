//! Office documents from before 2007: compound files, whose streams show the program.

use super::compound::programs::{Inside, program};
use super::compound::{Compound, properties};
use super::{OfficeDraft, doc, others, ppt, xls};
use crate::code::strings;
use crate::object::ProblemKind;
use crate::{Draft, Input};

type Fault = (ProblemKind, String);

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    let Some(file) = Compound::open(&input.object.bytes) else {
        return Draft::with_problem(ProblemKind::Broken, "has no directory that can be read");
    };
    for name in ["\u{5}SummaryInformation", "\u{5}DocumentSummaryInformation"] {
        let is_first = name.starts_with("\u{5}S");
        file.stream(name).and_then(|it| properties(&it, is_first, &mut document));
    }
    let mut kind = "";
    let mut faults = Vec::new();
    let storage = ppt::storage(&file);
    let end = if let Some(end) = read(&file, storage, input, &mut document) {
        faults = embedded(&file, storage, input, &mut document);
        end
    } else if file.stream("EncryptedPackage").is_some() {
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
    draft.add_problems(faults);
    draft.add_problems(std::iter::from_fn(|| file.cut()));
    input.report_front(&mut draft);
    draft
}

/// Reads the document in a storage; returns `None` if there is none.
fn read(
    file: &Compound<'_>,
    storage: usize,
    input: &Input<'_>,
    document: &mut OfficeDraft,
) -> Option<Result<(), Fault>> {
    let stream = |name: &str| file.stream_in(storage, name);
    Some(if let Some(main) = stream("WordDocument") {
        doc::read(&main, file, storage, input, document)
    } else if let Some(book) = stream("Workbook").or_else(|| stream("Book")) {
        xls::read(&book, input, document)
    } else {
        let slides = stream(ppt::STREAM)?;
        ppt::read(&slides, stream("Current User").as_deref(), input, document)
    })
}

/// Reads the documents in the storages inside `storage`, by their names; returns what went wrong.
fn embedded(
    file: &Compound<'_>,
    storage: usize,
    input: &Input<'_>,
    document: &mut OfficeDraft,
) -> Vec<Fault> {
    let (mut faults, mut count) = (Vec::new(), 0);
    let slides = document.slides;
    // Streams that overlap could make a long text of a short file.
    let mut bytes_left = input.object.bytes.len();
    let inside = |storage: usize| {
        let mut inside: Vec<_> = file.children(storage).filter(|it| it.is_storage).collect();
        inside.sort_by(|one, other| other.name.cmp(&one.name));
        inside.into_iter().map(|it| it.number)
    };
    let mut open: Vec<usize> = inside(storage).collect();
    while let Some(storage) = open.pop() {
        if document.body.is_full() {
            break;
        }
        let Some(left) = bytes_left.checked_sub(file.bytes_in(storage)) else {
            faults.push((ProblemKind::Broken, "has streams that overlap".to_owned()));
            break;
        };
        bytes_left = left;
        let names = ["WordDocument", "Workbook", "Book", ppt::STREAM];
        if names.iter().any(|it| file.child(storage, it).is_some()) {
            count += 1;
            document.body.place(&format!("embedded {count}"));
        }
        if let Some(Err((kind, message))) = read(file, storage, input, document) {
            faults.push((kind, format!("has an embedded document that {message}")));
        }
        open.extend(inside(storage));
    }
    document.slides = slides;
    faults
}
