//! Helpers for the tests of all formats.

use crate::object::{Object, Summary};
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

/// Summarizes `bytes` under `name` and renders the record and its problems. Size, MD5, type and keywords are
/// left out.
pub(crate) fn render(name: &str, r#type: Type, bytes: &[u8]) -> String {
    let object = Object::whole(format!("http://h.example/d/{name}"), bytes.to_vec());
    let summary = summarize(&object, r#type, &Settings::default(), &|| false);
    let mut lines = Vec::new();
    for attribute in summary.record.attributes() {
        if !matches!(attribute.name.as_str(), "File-Size" | "MD5" | "Keywords" | "Type") {
            let value = String::from_utf8_lossy(&attribute.value).replace('\n', " | ");
            lines.push(format!("{}: {value}", attribute.name));
        }
    }
    lines.extend(summary.problems.iter().map(|it| format!("! {}: {}", it.kind, it.message)));
    lines.join("\n")
}
