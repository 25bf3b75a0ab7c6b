//! Java classes: their names, superclasses, interfaces and methods.
//!
//! Source: Java Virtual Machine Specification (SE 21) §4.1, §4.4, §4.7.10.

use super::Names;
use crate::media::report_end;
use crate::numbers::{be16, len16, len32, slice, u8_at};
use crate::{Draft, Input};

/// Maximum number of attributes of a class and its members.
const MEMBERS_MAX: usize = 100_000;
/// Access flags of members that others can use.
const PUBLIC_OR_PROTECTED: u16 = 0x0001 | 0x0004;
/// Flag of members and classes that the compiler added.
const SYNTHETIC: u16 = 0x1000;

/// The state of reading one class.
struct Class<'a> {
    bytes: &'a [u8],
    /// Start of each constant; zero for unused numbers.
    constants: Vec<usize>,
    at: usize,
    members: usize,
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let bytes = input.object.bytes.as_ref();
    let mut class = Class { bytes, constants: Vec::new(), at: 8, members: 0 };
    if class.read(input, &mut draft).is_none() {
        report_end(input, "is cut off or damaged: the class is incomplete", &mut draft);
    }
    draft
}

impl<'a> Class<'a> {
    fn short(&mut self) -> Option<usize> {
        let number = len16(self.bytes, self.at)?;
        self.at += 2;
        Some(number)
    }

    fn read(&mut self, input: &Input<'_>, draft: &mut Draft<'_>) -> Option<()> {
        draft.other("Architecture", "java");
        self.constants()?;
        self.at += 2;
        let (this, parent) = (self.short()?, self.short()?);
        draft.title = self.class(this)?;
        if let Some(parent) = self.class(parent).filter(|it| it != "java.lang.Object") {
            draft.other("Superclass", parent);
        }
        let mut interfaces = Vec::new();
        for _ in 0..self.short()? {
            let number = self.short()?;
            interfaces.extend(self.class(number));
        }
        draft.other("Interfaces", interfaces.join("\n"));
        let mut names = Names::new(input.cancelled);
        self.member_names(&mut names, false)?;
        self.member_names(&mut names, true)?;
        names.write_to(draft);
        for _ in 0..self.short()? {
            let (name, start, _) = self.attribute()?;
            if name == b"SourceFile" {
                let file = self.text(len16(self.bytes, start)?)?;
                draft.other("Source-File", String::from_utf8_lossy(file));
            }
        }
        Some(())
    }

    /// Stores the positions of the constants.
    fn constants(&mut self) -> Option<()> {
        let count = self.short()?;
        self.constants.push(0);
        while self.constants.len() < count {
            let at = self.at;
            self.constants.push(at);
            self.at += match u8_at(self.bytes, at)? {
                1 => 3 + len16(self.bytes, at + 1)?,
                3 | 4 | 9..=12 | 17 | 18 => 5,
                // These take two numbers.
                5 | 6 => {
                    self.constants.push(0);
                    9
                }
                7 | 8 | 16 | 19 | 20 => 3,
                15 => 4,
                _ => return None,
            };
        }
        Some(())
    }

    fn text(&self, number: usize) -> Option<&'a [u8]> {
        let at = *self.constants.get(number).filter(|it| **it != 0)?;
        (u8_at(self.bytes, at)? == 1).then_some(())?;
        slice(self.bytes, at + 3, len16(self.bytes, at + 1)?)
    }

    fn class(&self, number: usize) -> Option<String> {
        let at = *self.constants.get(number).filter(|it| **it != 0)?;
        (u8_at(self.bytes, at)? == 7).then_some(())?;
        let name = self.text(len16(self.bytes, at + 1)?)?;
        Some(String::from_utf8_lossy(name).replace('/', "."))
    }

    /// Reads fields or methods; if `wanted`, adds the names that others can use.
    fn member_names(&mut self, names: &mut Names<'_>, wanted: bool) -> Option<()> {
        for _ in 0..self.short()? {
            let flags = be16(self.bytes, self.at)?;
            let name = self.text(len16(self.bytes, self.at + 2)?)?;
            self.at += 6;
            for _ in 0..self.short()? {
                self.attribute()?;
            }
            let usable = flags & PUBLIC_OR_PROTECTED != 0 && flags & SYNTHETIC == 0;
            if wanted && usable && names.step() && !name.starts_with(b"<") {
                names.add(name);
            }
        }
        Some(())
    }

    /// Skips an attribute; returns its name, and the start and length of its content.
    fn attribute(&mut self) -> Option<(&'a [u8], usize, usize)> {
        self.members += 1;
        if MEMBERS_MAX < self.members {
            return None;
        }
        let name = self.text(len16(self.bytes, self.at)?)?;
        let (start, len) = (self.at + 6, len32(self.bytes, self.at + 2)?);
        self.at = start.checked_add(len)?;
        Some((name, start, len))
    }
}
