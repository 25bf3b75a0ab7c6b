//! Charsets by the numbers of code pages, and code pages by the character sets of fonts.
//!
//! Source: Microsoft's "Code Page Identifiers"; the RTF specification 1.9.1, `\fcharset`.

use encoding_rs::{self as charset, Encoding};

/// Returns the charset of a code page; unknown ones, such as those of DOS, are taken for Western.
pub(crate) fn of_number(number: i64) -> &'static Encoding {
    match number {
        65001 => charset::UTF_8,
        1200 => charset::UTF_16LE,
        1201 => charset::UTF_16BE,
        866 => charset::IBM866,
        874 => charset::WINDOWS_874,
        932 => charset::SHIFT_JIS,
        936 | 54936 => charset::GB18030,
        949 | 1361 => charset::EUC_KR,
        950 => charset::BIG5,
        1250 => charset::WINDOWS_1250,
        1251 => charset::WINDOWS_1251,
        1253 => charset::WINDOWS_1253,
        1254 => charset::WINDOWS_1254,
        1255 => charset::WINDOWS_1255,
        1256 => charset::WINDOWS_1256,
        1257 => charset::WINDOWS_1257,
        1258 => charset::WINDOWS_1258,
        10000 => charset::MACINTOSH,
        10007 => charset::X_MAC_CYRILLIC,
        20866 => charset::KOI8_R,
        21866 => charset::KOI8_U,
        28592 => charset::ISO_8859_2,
        28595 => charset::ISO_8859_5,
        28597 => charset::ISO_8859_7,
        28605 => charset::ISO_8859_15,
        51932 => charset::EUC_JP,
        _ => charset::WINDOWS_1252,
    }
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
