//! Typefaces: their names, designers and scripts.
//!
//! Source: OpenType 1.9 (`name`, `OS/2`), WOFF 1.0; Adobe Type 1 Font Format §2.2 and AFM 4.1;
//! BDF 2.1, and the PCF files that X compiles from it.
//!
//! # Differences from the paper
//!
//! * Essence used only a font's file name. Here its own names are read, but never its outlines.
//! * Of WOFF2 and the metrics of TeX, only the file names are used.

mod bitmap;
mod sfnt;
mod type1;

use super::report_end;
use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::{Draft, Input};

/// The faces of one file.
#[derive(Default)]
struct Faces {
    about: Metadata,
    /// The different family names.
    families: Vec<String>,
    version: String,
    scripts: Vec<&'static str>,
    references: Vec<String>,
    count: usize,
    /// Bytes of names read so far.
    names_bytes: usize,
}

impl Faces {
    fn family(&mut self, name: &str) {
        let name = name.trim();
        if name.is_empty() || self.families.iter().any(|it| it == name) {
            return;
        }
        if self.families.len() < Limit::Faces.bound() {
            self.families.push(name.to_owned());
        } else {
            self.about.cut(Limit::Faces);
        }
    }

    fn version(&mut self, version: &str) {
        if self.version.is_empty() {
            // The name of the program that made the font follows.
            let version = version.split(';').next().unwrap_or_default();
            version.trim().clone_into(&mut self.version);
        }
    }

    fn script(&mut self, script: &'static str) {
        if !self.scripts.contains(&script) {
            self.scripts.push(script);
        }
    }
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = input.object.bytes.as_ref();
    let mut faces = Faces::default();
    let whole = match bytes {
        [0, 1, 0, 0, ..] | [b'O', b'T', b'T', b'O', ..] | [b't', b'r' | b't', b'u' | b'c', ..] => {
            sfnt::read(bytes, &mut faces)
        }
        [b'w', b'O', b'F', b'F', ..] => sfnt::woff(bytes, &mut faces),
        [1, b'f', b'c', b'p', ..] => bitmap::pcf(bytes, &mut faces),
        [b'S', b'T', b'A', b'R', b'T', b'F', ..] => bitmap::bdf(bytes, &mut faces),
        [b'S', b't', b'a', b'r', b't', ..] => type1::metrics(bytes, &mut faces),
        [0x80, 1, ..] | [b'%', b'!', ..] => type1::program(bytes, &mut faces),
        _ => Some(()),
    };
    let (references, count) = (faces.references, faces.count);
    let mut draft = faces.about.draft(input.text_bytes_max());
    draft.other("Fonts", faces.families.join("\n"));
    draft.other("Version", faces.version);
    draft.other("Scripts", faces.scripts.join("\n"));
    if 1 < count {
        draft.other("Entries", count.to_string());
    }
    draft.references = references;
    // The tables with names may be anywhere.
    if whole.is_none() || input.object.truncated {
        report_end(input, "is cut off or damaged: its names cannot be read", &mut draft);
    }
    draft
}

/// Stores a property that several formats share.
fn set_property(faces: &mut Faces, name: &str, value: &str) {
    match name {
        "FullName" => faces.about.add(Field::Title, value),
        "FamilyName" | "FAMILY_NAME" => faces.family(value),
        "version" | "Version" | "FONT_VERSION" => faces.version(value),
        "Notice" | "Copyright" | "COPYRIGHT" | "NOTICE" => {
            faces.about.add(Field::Copyright, value);
        }
        "FOUNDRY" => faces.about.add(Field::Publisher, value),
        "Comment" => faces.about.add(Field::Text, value),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
