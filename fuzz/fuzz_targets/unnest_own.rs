//! Fuzzing of our own container parsers, each chosen by the first byte: compress, cpio, ar, deb,
//! rpm, shell archives, uuencode, BinHex, mail, and 7z.

#![no_main]

use formats::object::Object;
use formats::unnest::{Budget, Format, Limits, Packing, members, unpack};
use libfuzzer_sys::fuzz_target;

const FORMATS: &[Format] = &[
    Format::Cpio,
    Format::Ar,
    Format::Deb,
    Format::Rpm,
    Format::Shar,
    Format::Uuencoded,
    Format::BinHex,
    Format::Message,
    Format::Mailbox,
    Format::SevenZip,
];

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let object = Object::whole("http://h.example/a", bytes.to_vec());
    let budget = Budget::new(Limits { bytes_max: 1 << 20, ..Limits::default() }, &|| false);
    match FORMATS.get(usize::from(*choice)) {
        Some(format) => {
            let mut kept = 0;
            members(&object, *format, &budget, &mut |it| kept += it.object.bytes.len());
            assert!(kept <= 1 << 20);
        }
        None => {
            let opened = unpack(&object, Packing::Compress, &budget, &|_, _| usize::MAX);
            assert!(opened.bytes.len() <= 1 << 20);
        }
    }
});
