//! Helpers for the tests of all formats.

use std::io;
use std::sync::Arc;

use crate::object::{Object, ReadAt, Rest, Summary};
use crate::{Input, Settings, Type, draft, summary};

pub(crate) fn summarize(
    object: &Object,
    r#type: Type,
    settings: &Settings,
    cancelled: &dyn Fn() -> bool,
) -> Summary {
    let input = Input { object, r#type, settings, cancelled };
    summary(&input, draft(&input), r#type.name(), &|_| false)
}

/// The bytes of an object, like a file that is open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) bytes: Vec<u8>,
    /// Position from which reads fail.
    pub(crate) bad_from: u64,
}

impl ReadAt for Opened {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        if self.bad_from < offset + into.len() as u64 {
            return Err(io::Error::other("bad disk"));
        }
        let from = usize::try_from(offset).unwrap().min(self.bytes.len());
        io::Read::read(&mut &self.bytes[from..], into)
    }
}

/// Returns the object of which only the first `front` bytes are in memory; the rest can be read.
pub(crate) fn cut(whole: &Object, front: usize) -> Object {
    let opened = Opened { bytes: whole.bytes.to_vec(), bad_from: u64::MAX };
    let rest = Some(Rest::new(Arc::new(opened)));
    let front = front.min(whole.bytes.len());
    Object { bytes: whole.bytes.slice(..front), truncated: true, rest, ..whole.clone() }
}

/// Summarizes `bytes` under `name` and renders the record and its problems. Size, MD5, type, keywords and print
/// are left out.
pub(crate) fn render(name: &str, r#type: Type, bytes: &[u8]) -> String {
    render_object(&Object::whole(format!("http://h.example/d/{name}"), bytes.to_vec()), r#type)
}

/// Does the same as [`render`] with an object.
pub(crate) fn render_object(object: &Object, r#type: Type) -> String {
    let summary = summarize(object, r#type, &Settings::default(), &|| false);
    let mut lines = Vec::new();
    for attribute in summary.record.attributes() {
        let left_out = ["File-Size", "MD5", "Keywords", "Type", "Text-Print"];
        if !left_out.contains(&attribute.name.as_str()) {
            let value = String::from_utf8_lossy(&attribute.value).replace('\n', " | ");
            lines.push(format!("{}: {value}", attribute.name));
        }
    }
    lines.extend(summary.problems.iter().map(|it| format!("! {}: {}", it.kind, it.message)));
    lines.join("\n")
}
