//! Picture formats with simple headers: text (PNM, XPM, XBM), and GIMP's own (XCF).
//!
//! Source: pnm(5), the XPM manual (Le Hors 1996) §2, the X11 bitmap format, GIMP's `xcf.txt`.

use crate::metadata::{Field, Metadata};
use crate::numbers::be32;

/// The header must lie in this many bytes at the picture's front.
const HEADER_BYTES: usize = 4 * 1024;

fn header(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..bytes.len().min(HEADER_BYTES)).unwrap_or_default())
        .into_owned()
}

/// Reads PNM: `P6` or the like, comments, width and height.
pub(super) fn pnm(bytes: &[u8], about: &mut Metadata) -> Option<()> {
    let header = header(bytes);
    let mut sides = Vec::new();
    for line in header.get(2..)?.lines() {
        let (numbers, comment) = line.split_once('#').unwrap_or((line, ""));
        if comment.contains("CREATOR") {
            about.add(Field::Generator, comment);
        } else {
            about.add(Field::Description, comment);
        }
        sides.extend(numbers.split_whitespace().map_while(|it| it.parse::<u64>().ok()));
        if let [width, height, ..] = sides.as_slice() {
            about.dimensions(*width, *height);
            return Some(());
        }
    }
    None
}

/// Reads XCF: a version of four bytes, width, height.
pub(super) fn xcf(bytes: &[u8], about: &mut Metadata) -> Option<()> {
    about.dimensions(u64::from(be32(bytes, 14)?), u64::from(be32(bytes, 18)?));
    Some(())
}

/// Reads XPM (`"16 16 4 1",` is its first string) or XBM (`#define x_width 16`).
pub(super) fn xpm_or_xbm(bytes: &[u8], about: &mut Metadata) -> Option<()> {
    if !bytes.starts_with(b"/*") && !bytes.starts_with(b"#define") && !bytes.starts_with(b"static")
    {
        return None;
    }
    let header = header(bytes);
    let defined = |suffix: &str| {
        let rest = header.lines().find_map(|line| line.strip_prefix("#define")?.split_once(suffix));
        rest.and_then(|it| it.1.trim().parse::<u64>().ok())
    };
    if let (Some(width), Some(height)) = (defined("_width"), defined("_height")) {
        about.dimensions(width, height);
        return Some(());
    }
    let values = header.split('"').nth(1)?;
    let mut numbers = values.split_whitespace().map_while(|it| it.parse::<u64>().ok());
    about.dimensions(numbers.next()?, numbers.next()?);
    Some(())
}
