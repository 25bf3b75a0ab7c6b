//! 7-Zip archives: their members.
//!
//! Source: 7zFormat.txt of the LZMA SDK.
//!
//! The directory itself may be packed, and every folder declares the memory to open it. Both are checked
//! before anything is opened. Members come in the order of the folders, empty ones last.

use std::io::{self, Read, Seek, SeekFrom};

use sevenz_rust2::{Archive, ArchiveEntry, Block, BlockDecoder, Error, Password};

use super::budget::{Fault, Metered, skip};
use super::stream::{dictionary_bytes_max, too_large_dictionary};
use super::{MemberInfo, Walk, clean_path};
use crate::limit::Limit;
use crate::numbers::{le32, le64};
use crate::object::{ProblemKind, SeekReader};

/// Length of the header at the start, in bytes; it has the directory's position.
const START_BYTES: u64 = 32;
/// First byte of a packed directory.
const ENCODED: u8 = 0x17;
/// Maximum number of coders of a folder.
const CODERS_MAX: u64 = 64;
/// Seconds from 1601, the epoch of Windows, to 1970.
const EPOCH_SECONDS: u64 = 11_644_473_600;
/// Ticks of a Windows clock per second.
const TICKS: u64 = 10_000_000;

pub(super) fn members(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    if object.is_cut() {
        return Err(object.cut("its directory, which stands at its end"));
    }
    let mut source = SeekReader::new(object, walk.budget.cancelled, &walk.source);
    let whole = usize::try_from(source.size()).unwrap_or(usize::MAX);
    check_directory(&mut source)?;
    let password = Password::empty();
    let archive = Archive::read(&mut source, &password).map_err(|error| fault(&error))?;
    let mut outcome = Ok(());
    for (index, block) in archive.blocks.iter().enumerate() {
        check_block(block)?;
        let decoder = BlockDecoder::new(1, index, &archive, &password, &mut source);
        let ended = decoder.for_each_entries(&mut |entry, reader| {
            if has_content(entry) {
                outcome = file(walk, entry, reader, whole);
            }
            Ok(outcome.is_ok())
        });
        if walk.stop.get().is_some() || outcome.is_err() {
            return outcome;
        }
        ended.map_err(|error| fault(&error))?;
    }
    for entry in archive.files.iter().filter(|it| !has_content(it) && !it.is_directory()) {
        file(walk, entry, &mut io::empty(), whole)?;
    }
    Ok(())
}

fn has_content(entry: &ArchiveEntry) -> bool {
    entry.has_stream() && 0 < entry.size()
}

fn file(
    walk: &mut Walk<'_, '_>,
    entry: &ArchiveEntry,
    reader: &mut dyn Read,
    whole: usize,
) -> Result<(), Fault> {
    // Names have slashes here; on Windows they had backslashes.
    let path = clean_path(entry.name().as_bytes()).to_vec();
    let ticks: u64 = entry.last_modified_date().into();
    let modified = (ticks / TICKS).checked_sub(EPOCH_SECONDS);
    let modified = modified.filter(|_| entry.has_last_modified_date);
    let info = MemberInfo { path, size: entry.size(), modified };
    let mut reader = Metered::new(reader, whole, std::rc::Rc::default(), walk.budget, walk.stop);
    let member = walk.read(&info, &mut reader)?;
    let kept = member.object.bytes.len() as u64;
    walk.visit(member);
    // The member's rest must be read within the budget, too: others follow in the same folder.
    let rest = info.size.saturating_sub(kept).saturating_sub(1);
    let cut = |error: io::Error| (ProblemKind::Broken, format!("7z data breaks off: {error}"));
    skip(&mut reader, rest).map_err(cut)
}

fn fault(error: &Error) -> Fault {
    match error {
        Error::PasswordRequired | Error::MaybeBadPassword(_) => {
            (ProblemKind::Locked, "is locked by a password".to_owned())
        }
        Error::UnsupportedCompressionMethod(method) if method.contains("AES") => {
            (ProblemKind::Locked, "is locked by a password".to_owned())
        }
        error => (ProblemKind::Broken, format!("7z data breaks off: {error}")),
    }
}

fn broken() -> Fault {
    (ProblemKind::Broken, "7z directory cannot be read".to_owned())
}

/// Refuses folders whose coders together ask for too much memory.
fn check_block(block: &Block) -> Result<(), Fault> {
    let coders = block.coders.iter();
    let memory = coders.map(|it| dictionary(it.encoder_method_id(), it.properties()));
    check_memory(memory.fold(0, u64::saturating_add))
}

fn check_memory(bytes: u64) -> Result<(), Fault> {
    if dictionary_bytes_max() < bytes { Err(too_large_dictionary()) } else { Ok(()) }
}

/// Returns the memory that a coder asks for, in bytes.
fn dictionary(method: &[u8], properties: &[u8]) -> u64 {
    match method {
        // LZMA and PPMd.
        [3, 1, 1] | [3, 4, 1] => u64::from(le32(properties, 1).unwrap_or_default()),
        // LZMA2: 2 or 3, times a power of two.
        [0x21] => {
            let coded = u32::from(properties.first().copied().unwrap_or_default());
            (2 | u64::from(coded & 1)) << (coded.min(40) / 2 + 11)
        }
        _ => 0,
    }
}

/// Refuses directories that are too large, or are packed and ask for too much memory.
fn check_directory(source: &mut (impl Read + Seek)) -> Result<(), Fault> {
    let mut bytes_at = |at: u64, count: u64| {
        let mut bytes = Vec::new();
        source.seek(SeekFrom::Start(at)).map_err(|_error| broken())?;
        Read::take(&mut *source, count).read_to_end(&mut bytes).map_err(|_error| broken())?;
        Ok::<_, Fault>(bytes)
    };
    let start = bytes_at(0, START_BYTES)?;
    let number = |at: usize| le64(&start, at).ok_or_else(broken);
    let (offset, size) = (number(12)?, number(20)?);
    // All zeros: the archive was not finished. A search for the directory from the end may take long.
    if start.get(8..).is_some_and(|it| it.iter().all(|byte| *byte == 0)) {
        return Err(broken());
    }
    check_size(size)?;
    let at = offset.checked_add(START_BYTES).ok_or_else(broken)?;
    match bytes_at(at, size)?.split_first() {
        Some((&ENCODED, rest)) => check_encoded(rest),
        _ => Ok(()),
    }
}

/// Refuses a directory of too many bytes, packed or not: it takes a hundred times as much memory once parsed.
fn check_size(bytes: u64) -> Result<(), Fault> {
    let bound = Limit::SevenZipDirectory.bound();
    if bytes <= bound as u64 {
        return Ok(());
    }
    let message = format!("has a directory of more than {bound} bytes; not opened");
    Err((Limit::SevenZipDirectory.kind(), message))
}

/// Checks the header of a packed directory: streams, one folder, and its sizes.
fn check_encoded(bytes: &[u8]) -> Result<(), Fault> {
    let mut rest = Numbers(bytes);
    // The packed streams: position, count, then sizes and checksums.
    if rest.byte()? == 0x06 {
        rest.number()?;
        let streams = rest.number()?;
        loop {
            match rest.byte()? {
                0x09 => rest.numbers(streams).map(|_| ())?,
                0x0a => rest.checksums(streams)?,
                0x00 => break,
                _ => return Err(broken()),
            }
        }
    }
    // The folder: coders and their order.
    if rest.byte()? != 0x07 {
        return Err(broken());
    }
    let (memory, outputs) = rest.folder()?;
    check_memory(memory)?;
    if rest.byte()? != 0x0c {
        return Err(broken());
    }
    check_size(rest.numbers(outputs)?)
}

/// A reader of a directory's numbers.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.0.split_first().ok_or_else(broken)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads a number of one to nine bytes: as many follow the first byte as it has leading ones.
    fn number(&mut self) -> Result<u64, Fault> {
        let first = self.byte()?;
        let follow = first.leading_ones();
        let mut value = 0;
        for at in 0..follow {
            value |= u64::from(self.byte()?) << (8 * at);
        }
        if follow < 7 {
            value |= u64::from(first & (0x7f >> follow)) << (8 * follow);
        }
        Ok(value)
    }

    /// Reads `count` numbers and returns the largest.
    fn numbers(&mut self, count: u64) -> Result<u64, Fault> {
        let mut largest = 0;
        for _ in 0..count {
            // Fails at the end of the bytes at the latest.
            largest = self.number()?.max(largest);
        }
        Ok(largest)
    }

    fn checksums(&mut self, count: u64) -> Result<(), Fault> {
        if self.byte()? == 0 {
            return Err(broken());
        }
        for _ in 0..count.saturating_mul(4) {
            self.byte()?;
        }
        Ok(())
    }

    /// Reads the one folder; returns the bytes of memory that its coders need, and their count of outputs.
    fn folder(&mut self) -> Result<(u64, u64), Fault> {
        let (id, count, external) = (self.byte()?, self.number()?, self.byte()?);
        let coders = self.number()?;
        if (id, count, external) != (0x0b, 1, 0) || CODERS_MAX < coders {
            return Err(broken());
        }
        let (mut memory, mut inputs, mut outputs) = (0_u64, 0_u64, 0_u64);
        for _ in 0..coders {
            let flags = self.byte()?;
            let method = self.bytes(u64::from(flags & 0x0f))?;
            let is_complex = flags & 0x10 != 0;
            inputs = inputs.saturating_add(if is_complex { self.number()? } else { 1 });
            outputs = outputs.saturating_add(if is_complex { self.number()? } else { 1 });
            let properties = match flags & 0x20 {
                0 => Vec::new(),
                _ => {
                    let count = self.number()?;
                    self.bytes(count)?
                }
            };
            memory = memory.saturating_add(dictionary(&method, &properties));
        }
        let pairs = outputs.saturating_sub(1);
        self.numbers(pairs.saturating_mul(2))?;
        let packed = inputs.saturating_sub(pairs);
        if 1 < packed {
            self.numbers(packed)?;
        }
        Ok((memory, outputs))
    }

    fn bytes(&mut self, count: u64) -> Result<Vec<u8>, Fault> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let (front, rest) = self.0.split_at_checked(count).ok_or_else(broken)?;
        self.0 = rest;
        Ok(front.to_vec())
    }
}
