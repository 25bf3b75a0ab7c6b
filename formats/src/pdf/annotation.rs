//! The annotation reader: values of fields, free text, stamps, and comments, as readers see them.
//!
//! Source: ISO 32000-1 §12.5.3 (flags), §12.5.5 (appearance streams), §12.5.6.2 (comments), §12.7 (forms).
//!
//! An appearance stream is drawn like a page, at any place: only where its characters stand to each other counts.
//! The value of a field is taken before its appearance, which spreads letters over boxes and need not exist.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_interpret::kurbo::{Affine, Rect};
use hayro_interpret::{Context, interpret};
use hayro_syntax::content::TypedIter;
use hayro_syntax::object::dict::keys::{
    ANNOTS, AP, CONTENTS, F, FF, FT, N, OPT, PARENT, RC, RECT, RESOURCES, SUBTYPE, V,
};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream, String as PdfString};
use hayro_syntax::page::{Page, Resources};
use quick_xml::escape::unescape;

use super::declared::text_lines;
use super::device::TextDevice;
use super::{Reader, stream_bytes};

/// Flags of annotations that are not shown: hidden, no view.
const UNSEEN: u32 = 1 << 1 | 1 << 5;
/// Flag of text fields that hide what is typed.
const PASSWORD: u32 = 1 << 13;
/// Flag of buttons that have no state.
const PUSH_BUTTON: u32 = 1 << 16;
/// Deepest field below others.
const FIELD_DEPTH_MAX: usize = 32;
/// Types of annotations whose contents are comments; those of others describe what is seen anyway.
const COMMENTED: [&[u8]; 15] = [
    b"Text",
    b"FreeText",
    b"Line",
    b"Square",
    b"Circle",
    b"Polygon",
    b"PolyLine",
    b"Highlight",
    b"Underline",
    b"Squiggly",
    b"StrikeOut",
    b"Stamp",
    b"Caret",
    b"Ink",
    b"FileAttachment",
];

impl<'p> Reader<'p> {
    /// Adds the text of a page's annotations. Returns whether all were read.
    pub(super) fn annotations(&mut self, page: &Page<'p>, device: &mut TextDevice<'_>) -> bool {
        let Some(annotations) = page.raw().get::<Array<'_>>(ANNOTS) else { return true };
        let mut whole = true;
        for annotation in annotations.iter::<Dict<'_>>() {
            if device.is_done() || !self.has_room() {
                break;
            }
            let at = device.body.as_str().len();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                device.tick();
                self.text(&annotation, page.resources(), device)
            }));
            whole &= outcome.is_ok();
            let text = outcome.unwrap_or_else(|_| device.take_from(at));
            device.body.push_lines(&text);
        }
        whole
    }

    fn text(
        &mut self,
        annotation: &Dict<'p>,
        resources: &Resources<'p>,
        device: &mut TextDevice<'_>,
    ) -> String {
        let r#type = annotation.get::<Name<'_>>(SUBTYPE);
        let r#type = r#type.as_ref().map_or(&b""[..], |it| it.as_ref());
        let flags = annotation.get::<u32>(F).unwrap_or_default();
        if flags & UNSEEN != 0 || r#type == b"Popup" {
            return String::new();
        }
        if r#type == b"Widget" {
            return match field(annotation) {
                Field::Unseen => String::new(),
                Field::Value(value) if !value.trim().is_empty() => value,
                Field::Value(_) | Field::Drawn => self.appearance(annotation, resources, device),
            };
        }
        let mut text = self.appearance(annotation, resources, device);
        // Free text is what its appearance shows.
        if COMMENTED.contains(&r#type) && (r#type != b"FreeText" || text.trim().is_empty()) {
            text.push('\n');
            text.push_str(&comment(annotation));
        }
        text
    }

    /// Returns the text of an annotation's appearance.
    fn appearance(
        &mut self,
        annotation: &Dict<'p>,
        resources: &Resources<'p>,
        device: &mut TextDevice<'_>,
    ) -> String {
        let stream = annotation.get::<Dict<'_>>(AP).and_then(|it| it.get::<Stream<'_>>(N));
        let Some(stream) = stream else { return String::new() };
        self.contents += stream_bytes(&stream, self.contents_max + 1);
        if !self.has_room() {
            return String::new();
        }
        let Ok(contents) = stream.decoded_data() else { return String::new() };
        let own = stream.dict().get::<Dict<'_>>(RESOURCES).map(Resources::new);
        let (xref, settings) = (self.bare.xref(), self.settings.clone());
        let mut context = Context::new(Affine::FLIP_Y, Rect::ZERO, &self.cache, xref, settings);
        let at = device.body.as_str().len();
        let operations = TypedIter::new(contents.as_ref());
        interpret(operations, own.as_ref().unwrap_or(resources), &mut context, device);
        device.take_from(at)
    }
}

/// What is seen of a form's field.
enum Field {
    Unseen,
    /// What its appearance shows.
    Drawn,
    Value(String),
}

fn field(widget: &Dict<'_>) -> Field {
    let [left, bottom, right, top] = widget.get::<[f32; 4]>(RECT).unwrap_or_default();
    if (right - left) * (top - bottom) == 0.0 {
        return Field::Unseen;
    }
    let flags = inherited(widget, FF, |it, key| it.get::<u32>(key)).unwrap_or_default();
    let r#type = inherited(widget, FT, |it, key| it.get::<Name<'_>>(key));
    match r#type.as_ref().map_or(&b""[..], |it| it.as_ref()) {
        b"Tx" if flags & PASSWORD != 0 => Field::Unseen,
        b"Tx" | b"Ch" => Field::Value(value(widget)),
        // A check box draws a mark alone.
        b"Btn" if flags & PUSH_BUTTON == 0 => Field::Unseen,
        _ => Field::Drawn,
    }
}

/// Returns the value of a field, one line for each choice, in the words that are shown for them.
fn value(widget: &Dict<'_>) -> String {
    let values = match inherited(widget, V, |it, key| it.get::<Object<'_>>(key)) {
        Some(Object::String(value)) => vec![value.as_bytes().to_vec()],
        Some(Object::Stream(value)) => Vec::from_iter(value.decoded().ok().map(Vec::from)),
        Some(Object::Array(values)) => {
            values.iter::<PdfString<'_>>().map(|it| it.as_bytes().to_vec()).collect()
        }
        _ => return String::new(),
    };
    let options = inherited(widget, OPT, |it, key| it.get::<Array<'_>>(key));
    let mut shown = HashMap::new();
    for option in options.iter().flat_map(|it| it.iter::<Array<'_>>()) {
        let mut pair = option.iter::<PdfString<'_>>();
        if let (Some(value), Some(words)) = (pair.next(), pair.next()) {
            shown.insert(value.as_bytes().to_vec(), words.as_bytes().to_vec());
        }
    }
    let lines = values.iter().map(|it| text_lines(shown.get(it).unwrap_or(it)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns an entry of a field, which it may have from the fields above it.
fn inherited<'p, T>(
    field: &Dict<'p>,
    key: &[u8],
    get: impl Fn(&Dict<'p>, &[u8]) -> Option<T>,
) -> Option<T> {
    let mut field = field.clone();
    for _ in 0..FIELD_DEPTH_MAX {
        if let Some(found) = get(&field, key) {
            return Some(found);
        }
        field = field.get::<Dict<'_>>(PARENT)?;
    }
    None
}

/// Returns what a commentator has written: as plain text, or else as rich text.
fn comment(annotation: &Dict<'_>) -> String {
    let text = |key: &[u8]| match annotation.get::<Object<'_>>(key) {
        Some(Object::String(text)) => text_lines(text.as_bytes()),
        Some(Object::Stream(text)) => text.decoded().map(|it| text_lines(&it)).unwrap_or_default(),
        _ => String::new(),
    };
    let plain = text(CONTENTS);
    if plain.is_empty() { without_tags(&text(RC)) } else { plain }
}

fn without_tags(rich: &str) -> String {
    let mut text = String::new();
    for piece in rich.split('<') {
        let (tag, rest) = piece.split_once('>').unwrap_or(("", piece));
        if tag.starts_with("br") || tag == "/p" {
            text.push('\n');
        }
        text.push_str(rest);
    }
    unescape(&text).map(|it| it.into_owned()).unwrap_or(text)
}
