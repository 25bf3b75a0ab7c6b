//! GRIB: the center, subject and date of weather data, and the number of messages.
//!
//! Source: WMO's Manual on Codes (WMO-No. 306), FM 92 GRIB editions 1 and 2, with common code table C-11
//! for the centers and code table 0.0 for the disciplines.

use crate::cancellable::TimeLimit;
use crate::numbers::{be16, be32, be64, slice, u8_at};
use crate::object::ProblemKind;
use crate::{DateSource, Draft, Input};

/// Numbers of centers, with their names.
const CENTERS: &[(u16, &str)] = &[
    (1, "Melbourne"),
    (4, "Moscow"),
    (7, "US National Weather Service, NCEP"),
    (8, "US National Weather Service, NWSTG"),
    (9, "US National Weather Service"),
    (34, "Tokyo, Japan Meteorological Agency"),
    (38, "Beijing"),
    (40, "Seoul"),
    (46, "Brazilian Space Agency, INPE"),
    (54, "Montreal"),
    (58, "US Navy, FNMOC"),
    (59, "NOAA Forecast Systems Laboratory"),
    (60, "NCAR"),
    (74, "UK Meteorological Office, Exeter"),
    (78, "Offenbach, Deutscher Wetterdienst"),
    (80, "Rome"),
    (82, "Norrköping"),
    (84, "Toulouse, Météo-France"),
    (85, "Toulouse, Météo-France"),
    (86, "Helsinki"),
    (88, "Oslo"),
    (94, "Copenhagen"),
    (98, "ECMWF"),
    (99, "De Bilt"),
    (161, "NOAA Office of Oceanic and Atmospheric Research"),
    (215, "Zürich, MeteoSwiss"),
];
/// Subjects by their number.
const DISCIPLINES: &[(u8, &str)] = &[
    (0, "Meteorology"),
    (1, "Hydrology"),
    (2, "Land surface"),
    (3, "Satellite remote sensing"),
    (4, "Space weather"),
    (10, "Oceanography"),
];
/// Bytes before section 1, by edition.
const SECTION_0_BYTES: [usize; 2] = [8, 16];

/// The first sections of a message.
struct Message {
    edition: u8,
    center: u16,
    discipline: u8,
    date: String,
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let mut draft = Draft::default();
    if let Some(first) = message(bytes) {
        let center = CENTERS.iter().find(|(number, _)| *number == first.center);
        draft.date(&first.date, DateSource::Header);
        draft.other("Publisher", center.map_or("", |(_, name)| name));
        let subject = DISCIPLINES.iter().find(|(number, _)| *number == first.discipline);
        draft.other("Subject", subject.map_or("", |(_, name)| name));
        draft.other("Version", first.edition.to_string());
    } else {
        draft.problem(ProblemKind::Broken, "has a first message that cannot be read");
    }
    let mut time = TimeLimit::new(input.cancelled);
    let (mut at, mut messages) = (0, 0_usize);
    while let Some(size) = size(bytes, at) {
        if !time.goes_on() {
            break;
        }
        messages += 1;
        // Some programs put bytes between messages.
        let rest = bytes.get(at.saturating_add(size)..).unwrap_or_default();
        let Some(next) = memchr::memmem::find(rest, b"GRIB") else { break };
        at = bytes.len() - rest.len() + next;
    }
    time.report("the messages", &mut draft);
    if !time.is_over() && !input.object.truncated {
        draft.other("Messages", messages.to_string());
    }
    draft
}

/// Returns the size of the message at `at`, in bytes.
fn size(bytes: &[u8], at: usize) -> Option<usize> {
    if slice(bytes, at, 4)? != b"GRIB" {
        return None;
    }
    let size = match u8_at(bytes, at + 7)? {
        2 => usize::try_from(be64(bytes, at + 8)?).ok()?,
        _ => (be32(bytes, at + 4)? >> 8) as usize,
    };
    Some(size.max(8))
}

fn message(bytes: &[u8]) -> Option<Message> {
    let edition = u8_at(bytes, 7)?;
    if edition == 2 {
        let [_, at] = SECTION_0_BYTES;
        let part = |offset: usize| u8_at(bytes, at + offset);
        let (year, month, day) = (be16(bytes, at + 12)?, part(14)?, part(15)?);
        let (hour, minute, second) = (part(16)?, part(17)?, part(18)?);
        let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
        let center = be16(bytes, at + 5)?;
        return Some(Message { edition, center, discipline: u8_at(bytes, 6)?, date });
    }
    let [at, _] = SECTION_0_BYTES;
    let part = |offset: usize| u8_at(bytes, at + offset);
    // The last year of a century is its 100th.
    let year = (u16::from(part(24)?).checked_sub(1)?) * 100 + u16::from(part(12)?);
    let (month, day, hour, minute) = (part(13)?, part(14)?, part(15)?, part(16)?);
    let date = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}Z");
    Some(Message { edition, center: u16::from(part(4)?), discipline: 0, date })
}
