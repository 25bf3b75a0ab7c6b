//! Object files, libraries and programs: their architecture, symbols and needed libraries.
//!
//! Source: Essence's Object summarizer (the symbol table). The crate `object` reads ELF, PE, COFF, Mach-O and
//! XCOFF; this module reads Java classes (JVM specification §4) and WebAssembly modules (core specification
//! §5.5). Members of `ar` libraries are objects of their own.
//!
//! # Differences from the paper
//!
//! * Only symbols that others can link to are listed.

mod class;
mod version;
mod wasm;

use ::object::read::{ExportTarget, File, FileKind};
use ::object::{BinaryFormat, Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};

use super::strings::{Marks, marks, set_sentences};
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::numbers::{be16, len32, slice_up_to, up_to_zero};
use crate::object::ProblemKind;
use crate::text::one_line;
use crate::{Draft, Input};

/// Maximum number of bytes of names that are read; one name may be as long as the file.
const READ_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum number of symbols that are read.
const SYMBOLS_MAX: usize = 1_000_000;
/// Longest name of a symbol, in bytes.
const NAME_BYTES_MAX: usize = 1024;
/// Maximum number of needed libraries: the names of more are longer than an attribute.
const LIBRARIES_MAX: usize = Limit::Value.standard();
/// Maximum number of entries of a dynamic section.
const DYNAMIC_MAX: usize = 10_000;
/// Tag of the library's own name in the dynamic section.
const DT_SONAME: u64 = 14;

/// Names, one on each line, up to a limit.
struct Names<'c> {
    text: String,
    read_bytes: usize,
    count: usize,
    /// Whether names were left out.
    is_cut: bool,
    time: TimeLimit<'c>,
}

impl<'c> Names<'c> {
    fn new(cancelled: &'c dyn Fn() -> bool) -> Self {
        let time = TimeLimit::new(cancelled);
        Self { text: String::new(), read_bytes: 0, count: 0, is_cut: false, time }
    }

    /// Counts a symbol; returns false when reading must stop.
    fn step(&mut self) -> bool {
        self.count += 1;
        self.is_cut |= SYMBOLS_MAX < self.count || READ_BYTES_MAX < self.read_bytes;
        self.time.goes_on() && !self.is_cut
    }

    fn add(&mut self, name: &[u8]) {
        self.read_bytes += name.len();
        if name.is_empty() {
            return;
        }
        let is_room = self.text.len() + name.len() < Limit::Symbols.bound();
        if NAME_BYTES_MAX < name.len() || !is_room {
            self.is_cut = true;
            return;
        }
        if name.iter().all(|it| matches!(it, 0x21..=0x7e | 0x80..)) {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(&String::from_utf8_lossy(name));
        }
    }

    /// Puts the names into a draft, and says if there are more.
    fn write_to(self, draft: &mut Draft<'_>) {
        if self.is_cut {
            draft.cut(Limit::Symbols.cut_at(self.text.len()));
        }
        draft.words.clone_from(&self.text);
        draft.other("Symbols", self.text);
    }
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = input.object.bytes.as_ref();
    let mut draft = Draft::default();
    input.report(Limit::ProgramScan, &mut draft);
    let whole = match bytes {
        [0xca, 0xfe, 0xba, 0xbe, ..] if be16(bytes, 6).is_some_and(|it| 45 <= it) => {
            return class::summarize(input);
        }
        [0xca, 0xfe, 0xba, 0xbe, ..] => {
            // The same program for several machines; the first is enough.
            let (at, len) = (len32(bytes, 16).unwrap_or(0), len32(bytes, 20).unwrap_or(0));
            native(slice_up_to(bytes, at, len), input, &mut draft)
        }
        [0, b'a', b's', b'm', ..] => wasm::read(bytes, input, &mut draft),
        // A program for DOS, or another file that only looks like an object file.
        _ if FileKind::parse(bytes).is_err() => Some(()),
        _ => native(bytes, input, &mut draft),
    };
    if whole.is_none() && !input.object.truncated {
        draft.problem(ProblemKind::Broken, "is cut off or damaged: its tables cannot be read");
    }
    let mut marks: Marks = marks(bytes, input.cancelled);
    if bytes.starts_with(b"MZ") {
        version::read(bytes, &mut draft, &mut marks);
    }
    marks.add_to(&mut draft);
    if (input.cancelled)() {
        draft.problem(ProblemKind::Time, "ran out of time on its symbols");
    } else {
        messages(bytes, input, &mut draft);
    }
    draft
}

fn native(bytes: &[u8], input: &Input<'_>, draft: &mut Draft<'_>) -> Option<()> {
    let file = File::parse(bytes).ok()?;
    draft.other("Architecture", architecture(&file));
    draft.other("Kind", kind(&file));
    if let Some(name) = soname(&file) {
        draft.other("Library-Name", name);
    }
    let mut libraries = Vec::new();
    for library in file.import_libraries().into_iter().flatten().flatten() {
        let name = String::from_utf8_lossy(slice_up_to(library.name(), 0, NAME_BYTES_MAX));
        if libraries.len() < LIBRARIES_MAX && !libraries.iter().any(|it| *it == name) {
            libraries.push(name.into_owned());
        }
    }
    draft.other("Needed-Libraries", libraries.join("\n"));
    if let Ok(Some(id)) = file.build_id() {
        let id: String = id.iter().take(64).map(|it| format!("{it:02x}")).collect();
        draft.other("Identifier", format!("build-id:{id}"));
    }
    module(&file, draft);
    let compiler = section(&file, ".comment");
    let compiler = compiler.split(|it| *it == 0).find(|it| !it.is_empty()).unwrap_or_default();
    draft.other("Generator", one_line(&String::from_utf8_lossy(compiler), NAME_BYTES_MAX));
    symbols(&file, input.cancelled).write_to(draft);
    Some(())
}

fn architecture(file: &File<'_>) -> String {
    use ::object::Architecture as It;
    match file.architecture() {
        It::X86_64 => "x86-64".to_owned(),
        It::Unknown => String::new(),
        other => format!("{other:?}").to_lowercase().replace('_', "-"),
    }
}

fn kind(file: &File<'_>) -> &'static str {
    let is_program = || !section(file, ".interp").is_empty();
    match file.kind() {
        ObjectKind::Relocatable => "relocatable object",
        ObjectKind::Executable => "executable",
        // In ELF, position-independent programs have the kind of libraries.
        ObjectKind::Dynamic if file.format() == BinaryFormat::Elf && is_program() => "executable",
        ObjectKind::Dynamic => "shared library",
        ObjectKind::Core => "core dump",
        _ => "",
    }
}

/// Returns a section; empty if there is no such section.
fn section<'d>(file: &File<'d>, name: &str) -> &'d [u8] {
    file.section_by_name(name).and_then(|it| it.data().ok()).unwrap_or_default()
}

/// Returns the name of an ELF library in its own dynamic section.
fn soname(file: &File<'_>) -> Option<String> {
    let dynamic = file.section_by_name(".dynamic")?.data().ok()?;
    let strings = file.section_by_name(".dynstr")?.data().ok()?;
    let unit = if file.is_64() { 8 } else { 4 };
    let number = |at: usize| -> Option<u64> {
        let bytes = dynamic.get(at..at + unit)?;
        let fold = |sum: u64, it: &u8| sum << 8 | u64::from(*it);
        Some(if file.is_little_endian() {
            bytes.iter().rev().fold(0, fold)
        } else {
            bytes.iter().fold(0, fold)
        })
    };
    let entries = (0..DYNAMIC_MAX)
        .map_while(|it| Some((number(2 * unit * it)?, number(2 * unit * it + unit)?)));
    let (_, at) = entries.take_while(|it| it.0 != 0).find(|it| it.0 == DT_SONAME)?;
    let name = slice_up_to(strings, usize::try_from(at).ok()?, NAME_BYTES_MAX);
    Some(String::from_utf8_lossy(up_to_zero(name)).into_owned())
}

/// Adds the metadata of a Linux kernel module.
fn module(file: &File<'_>, draft: &mut Draft<'_>) {
    for entry in section(file, ".modinfo").split(|it| *it == 0) {
        let entry = String::from_utf8_lossy(entry);
        let Some((name, value)) = entry.split_once('=') else { continue };
        match name {
            "description" if draft.description.is_empty() => {
                value.clone_into(&mut draft.description);
            }
            "author" => draft.authors.push(value.to_owned()),
            "license" => draft.other("License", value),
            _ => {}
        }
    }
}

/// Returns the names that others can link to.
fn symbols<'c>(file: &File<'_>, cancelled: &'c dyn Fn() -> bool) -> Names<'c> {
    let mut names = Names::new(cancelled);
    if matches!(file.format(), BinaryFormat::Pe) {
        for export in file.exports().into_iter().flatten() {
            let Ok(export) = export else { break };
            if !names.step() {
                break;
            }
            if !matches!(export.target(), ExportTarget::Reexport { .. })
                && let Some(name) = export.name().name()
            {
                names.add(name);
            }
        }
        return names;
    }
    for symbol in file.dynamic_symbols() {
        if !names.step() {
            return names;
        }
        add(&symbol, &mut names);
    }
    // A library has a separate table of public symbols; an object file has one table.
    if names.text.is_empty() {
        for symbol in file.symbols() {
            if !names.step() {
                break;
            }
            add(&symbol, &mut names);
        }
    }
    names
}

fn add<'d>(symbol: &impl ObjectSymbol<'d>, names: &mut Names<'_>) {
    let has_name = !matches!(symbol.kind(), SymbolKind::Section | SymbolKind::File);
    let defined = symbol.is_definition() || symbol.is_common();
    if has_name && symbol.is_global() && defined {
        match symbol.name_bytes() {
            Ok(name) => names.add(name),
            // The search for the end of an unterminated name reads to the end of the file, each time.
            Err(_) => names.read_bytes = READ_BYTES_MAX + 1,
        }
    }
}

/// Puts the messages of a program, from its read-only data, into a draft.
fn messages(bytes: &[u8], input: &Input<'_>, draft: &mut Draft<'_>) {
    let Ok(file) = File::parse(bytes) else { return set_sentences(bytes, input, draft) };
    let sections = [".rodata", "__cstring", ".rdata"];
    let data = sections.iter().find_map(|it| file.section_by_name(it)?.data().ok());
    set_sentences(data.unwrap_or_default(), input, draft);
}

#[cfg(test)]
mod tests;
