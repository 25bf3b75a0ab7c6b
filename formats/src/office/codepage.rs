//! Charsets by the numbers of code pages, and code pages by the character sets of fonts.
//!
//! Source: Microsoft's "Code Page Identifiers"; the RTF specification 1.9.1, `\fcharset`.

use encoding_rs::{self as charset, Encoding};

/// Returns the charset of a code page; Windows-1252 for unknown ones, such as most of DOS.
pub(crate) fn of_number(number: i64) -> &'static Encoding {
    match number {
        65001 => charset::UTF_8,
        1200 => charset::UTF_16LE,
        1201 => charset::UTF_16BE,
        866 => charset::IBM866,
        932 => charset::SHIFT_JIS,
        936 | 54936 => charset::GB18030,
        949 | 1361 => charset::EUC_KR,
        950 => charset::BIG5,
        10000 => charset::MACINTOSH,
        10007 => charset::X_MAC_CYRILLIC,
        20866 => charset::KOI8_R,
        21866 => charset::KOI8_U,
        50220..=50222 => charset::ISO_2022_JP,
        51932 | 20932 => charset::EUC_JP,
        51936 | 52936 => charset::GB18030,
        51949 => charset::EUC_KR,
        874 | 1250..=1258 => labelled(&format!("windows-{number}")),
        28592..=28606 => labelled(&format!("iso-8859-{}", number - 28590)),
        _ => charset::WINDOWS_1252,
    }
}

fn labelled(label: &str) -> &'static Encoding {
    Encoding::for_label(label.as_bytes()).unwrap_or(charset::WINDOWS_1252)
}

/// Returns the code page of a font's character set; `None` for the document's own.
pub(crate) fn of_font(charset: i64) -> Option<i64> {
    Some(match charset {
        77 => 10000,
        128 => 932,
        129 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    })
}
