//! The version resource of Windows programs: product, description, publisher and version.
//!
//! Source: Microsoft, "VS_VERSIONINFO structure" and "String structure".
//!
//! The resource is searched by its name, not through the tree of resources: the tree can be forged, and the
//! name stands in the file once.

use memchr::memmem;

use super::super::strings::Marks;
use crate::Draft;
use crate::numbers::slice_up_to;

/// Longest version resource, in bytes.
const RESOURCE_BYTES_MAX: usize = 16 * 1024;
/// Longest value, in bytes.
const VALUE_BYTES_MAX: usize = 1024;

pub(super) fn read(bytes: &[u8], draft: &mut Draft<'_>, marks: &mut Marks) {
    let name = wide("VS_VERSION_INFO");
    let Some(at) = memmem::find(bytes, &name) else { return };
    let resource = slice_up_to(bytes, at, RESOURCE_BYTES_MAX);
    let value = |name: &str| {
        let name = wide(&format!("{name}\0"));
        let start = memmem::find(resource, &name)? + name.len();
        let rest = slice_up_to(resource, start, VALUE_BYTES_MAX);
        let units = || rest.as_chunks().0.iter().map(|it| u16::from_le_bytes(*it));
        // Zeros pad to four bytes before the value, and end it.
        let value: Vec<u16> = units().skip_while(|it| *it == 0).take_while(|it| *it != 0).collect();
        Some(String::from_utf16_lossy(&value).trim().to_owned())
    };
    draft.title = value("ProductName").unwrap_or_default();
    draft.description = value("FileDescription").unwrap_or_default();
    draft.other("Publisher", value("CompanyName").unwrap_or_default());
    if let Some(version) = value("FileVersion").filter(|it| !it.is_empty()) {
        marks.version = version;
    }
    if let Some(copyright) = value("LegalCopyright").filter(|it| !it.is_empty()) {
        marks.copyrights = vec![copyright];
    }
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}
