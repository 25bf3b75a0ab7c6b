//! WebAssembly modules: their exports, and the libraries that they need.
//!
//! Source: WebAssembly core specification §5.5 (modules).

use super::{LIBRARIES_MAX, Names};
use crate::numbers::{le_len32, slice_up_to};
use crate::{Draft, Input};

/// Maximum number of sections of a module.
const SECTIONS_MAX: usize = 10_000;
/// Number of the section of imports.
const IMPORTS: u8 = 2;
/// Number of the section of exports.
const EXPORTS: u8 = 7;

/// A reader of a module or a section.
struct WasmReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> WasmReader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Reads a number with seven bits in each byte, the lowest first.
    fn number(&mut self) -> Option<usize> {
        let mut number = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return usize::try_from(number).ok();
            }
        }
        None
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = slice_up_to(self.bytes, self.at, len);
        self.at = self.at.checked_add(len)?;
        (taken.len() == len).then_some(taken)
    }

    fn name(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.take(len)
    }

    /// Skips the description of an import.
    fn import(&mut self) -> Option<()> {
        match self.byte()? {
            0 => {
                self.number()?;
            }
            1 => {
                self.byte()?;
                self.limits()?;
            }
            2 => self.limits()?,
            3 => {
                self.take(2)?;
            }
            4 => {
                self.byte()?;
                self.number()?;
            }
            _ => return None,
        }
        Some(())
    }

    fn limits(&mut self) -> Option<()> {
        let flags = self.byte()?;
        self.number()?;
        if flags & 1 == 1 {
            self.number()?;
        }
        Some(())
    }
}

pub(super) fn read(bytes: &[u8], input: &Input<'_>, draft: &mut Draft<'_>) -> Option<()> {
    draft.other("Architecture", "wasm32");
    // Components have a layer after their version, and other sections.
    if le_len32(bytes, 4)? != 1 {
        return Some(());
    }
    let mut module = WasmReader { bytes, at: 8 };
    let mut names = Names::new(input.cancelled);
    let mut libraries: Vec<String> = Vec::new();
    for _ in 0..SECTIONS_MAX {
        let Some(id) = module.byte() else { break };
        let len = module.number()?;
        let mut section = WasmReader { bytes: module.take(len)?, at: 0 };
        if id == IMPORTS {
            imports(&mut section, &mut names, &mut libraries)?;
        } else if id == EXPORTS {
            for _ in 0..section.number()? {
                let name = section.name()?;
                section.byte()?;
                section.number()?;
                if !names.step() {
                    break;
                }
                names.add(name);
            }
        }
    }
    draft.other("Needed-Libraries", libraries.join("\n"));
    names.write_to(draft);
    Some(())
}

fn imports(
    section: &mut WasmReader<'_>,
    names: &mut Names<'_>,
    libraries: &mut Vec<String>,
) -> Option<()> {
    for _ in 0..section.number()? {
        let library = String::from_utf8_lossy(section.name()?).into_owned();
        section.name()?;
        section.import()?;
        if !names.step() || LIBRARIES_MAX <= libraries.len() {
            break;
        }
        if !libraries.contains(&library) {
            libraries.push(library);
        }
    }
    Some(())
}
