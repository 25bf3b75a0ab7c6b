//! Type 1 fonts, and their metrics files.
//!
//! Source: Adobe Type 1 Font Format §2.2 (the clear text); Adobe's Technical Note 5040 (PFB); Adobe Font
//! Metrics 4.1 §3.

use memchr::memmem;

use super::{Faces, set_property};
use crate::numbers::{le_len32, slice_up_to};
use crate::text::decode;

/// Reads a font program, as text (PFA) or in segments (PFB).
pub(super) fn program(bytes: &[u8], faces: &mut Faces) -> Option<()> {
    let clear = match bytes {
        [0x80, 1, ..] => slice_up_to(bytes, 6, le_len32(bytes, 2)?),
        _ => bytes,
    };
    let clear = up_to(clear, b"eexec");
    let text = encoding_rs::WINDOWS_1252.decode_without_bom_handling(clear).0;
    for name in ["FullName", "FamilyName", "version", "Notice", "Copyright"] {
        let key = format!("/{name}");
        let Some(at) = text.find(&key) else { continue };
        let value = text.get(at + key.len()..).unwrap_or_default().trim_start();
        if let Some(value) = value.strip_prefix('(') {
            set_property(faces, name, &string(value));
        }
    }
    // Comments that start with `%%` are for programs.
    for line in text.lines().take_while(|line| line.starts_with('%')) {
        let line = line.strip_prefix('%').unwrap_or_default();
        if line.starts_with(' ') {
            let notice = line.trim_start().starts_with("Copyright");
            set_property(faces, if notice { "Copyright" } else { "Comment" }, line);
        }
    }
    faces.count = 1;
    Some(())
}

/// Returns the bytes before `mark`; all bytes if it is not there.
pub(super) fn up_to<'a>(bytes: &'a [u8], mark: &[u8]) -> &'a [u8] {
    bytes.get(..memmem::find(bytes, mark).unwrap_or(bytes.len())).unwrap_or_default()
}

/// Returns the text up to the parenthesis that closes a string, unescaped.
fn string(text: &str) -> String {
    let (mut value, mut depth) = (String::new(), 1);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            '\\' => {
                let octal: String = chars.as_str().chars().take(3).collect();
                if let Ok(code @ 0o40..) = u8::from_str_radix(&octal, 8) {
                    chars.nth(2);
                    // Octal 251 is the copyright sign.
                    value.push(if code == 0o251 { '©' } else { char::from(code) });
                } else {
                    value.extend(chars.next());
                }
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        value.push(char);
    }
    value
}

pub(super) fn metrics(bytes: &[u8], faces: &mut Faces) -> Option<()> {
    let text = decode(up_to(bytes, b"\nStartCharMetrics"), Some("windows-1252"));
    for line in text.lines() {
        let Some((name, value)) = line.trim().split_once([' ', '\t']) else { continue };
        let is_by_program = name == "Comment" && value.starts_with("Creat");
        if !is_by_program {
            set_property(faces, name, value);
        }
    }
    faces.count = 1;
    Some(())
}
