//! The encoder of manifests.
//!
//! Sans-I/O.

use super::super::chunk::Extent;
use super::super::mode::Mode;
use super::{
    DIRECTORY, END, EXECUTABLE, Entry, EntryKind, Fault, Format, LINK, PLAIN, Rules, Totals,
};

/// Writes a manifest, appending to `out` in each call. A refused item changes nothing.
#[derive(Debug, Default)]
pub struct Encoder {
    rules: Rules,
    has_begun: bool,
}

impl Encoder {
    /// Begins a manifest of this format.
    pub fn new(format: Format) -> Self {
        let rules = Rules { format, ..Rules::default() };
        Self { rules, has_begun: false }
    }

    /// Returns the format.
    pub fn format(&self) -> Format {
        self.rules.format
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        match self.rules.format {
            Format::One => out.push(1),
            Format::Two(mode) => {
                out.push(2);
                out.extend(mode.bits().to_le_bytes());
            }
        }
    }

    fn mode(&self, mode: Mode, out: &mut Vec<u8>) {
        if self.rules.format != Format::One {
            out.extend(mode.bits().to_le_bytes());
        }
    }

    /// Writes an entry. After a file, its chunks must be written.
    ///
    /// # Errors
    ///
    /// The entry cannot follow here: leave it out, or give up the manifest.
    pub fn entry(&mut self, entry: &Entry, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.rules.entry(entry)?;
        self.begin(out);
        let is_one = self.rules.format == Format::One;
        let tag = match &entry.kind {
            EntryKind::File { mode: Mode::EXECUTABLE, .. } if is_one => EXECUTABLE,
            EntryKind::File { .. } => PLAIN,
            EntryKind::Directory { .. } => DIRECTORY,
            EntryKind::Link { .. } => LINK,
        };
        out.push(tag);
        put_text(entry.path.as_str(), out);
        match &entry.kind {
            EntryKind::File { mode, bytes, modified } => {
                self.mode(*mode, out);
                out.extend(bytes.to_le_bytes());
                out.extend(modified.to_le_bytes());
            }
            EntryKind::Directory { mode } => self.mode(*mode, out),
            EntryKind::Link { target } => put_text(target, out),
        }
        Ok(())
    }

    /// Writes the next chunk of the last file.
    pub fn extent(&mut self, extent: Extent, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.rules.extent(extent)?;
        out.extend(extent.bytes.to_le_bytes());
        out.extend(extent.hash.0);
        Ok(())
    }

    /// Ends the manifest.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Totals, Fault> {
        let totals = self.rules.end()?;
        self.begin(out);
        out.push(END);
        out.extend(totals.entries.to_le_bytes());
        out.extend(totals.bytes.to_le_bytes());
        Ok(totals)
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    // Paths and targets are shorter: the rules have checked them.
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend(text.as_bytes());
}
