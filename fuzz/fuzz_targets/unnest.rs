//! Fuzzing of unnesting: any bytes as every kind of container give members within the budget, and the
//! same members if only their front is in memory.

#![no_main]

use std::io;
use std::sync::Arc;

use formats::object::{Object, ReadAt, Rest};
use formats::unnest::{Budget, Format, Limits, Packing, members, unpack};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits {
    bytes_max: 1 << 20,
    member_bytes_max: 1 << 16,
    ratio_max: 100,
    ratio_from_bytes: 1 << 14,
    depth_max: 8,
    members_max: 64,
    names_bytes_max: 1 << 14,
    records_bytes_max: 1 << 18,
    held_bytes_max: 1 << 18,
};

#[derive(Debug)]
struct Opened(Vec<u8>);

impl ReadAt for Opened {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap().min(self.0.len());
        io::Read::read(&mut &self.0[from..], into)
    }
}

/// Returns the paths and contents of the members.
fn opened(object: &Object, format: Format) -> Vec<(String, Vec<u8>)> {
    let budget = Budget::new(LIMITS, &|| false);
    let mut found = Vec::new();
    members(object, format, &budget, &mut |member| {
        assert!(member.object.bytes.len() <= LIMITS.member_bytes_max);
        found.push((member.path, member.object.bytes.to_vec()));
    });
    let kept: u64 = found.iter().map(|(_, it)| it.len() as u64).sum();
    assert!(found.len() as u64 <= LIMITS.members_max && kept <= LIMITS.bytes_max);
    found
}

fuzz_target!(|bytes: &[u8]| {
    let object = Object::whole("http://h.example/a", bytes.to_vec());
    let front = object.bytes.slice(..bytes.len() / 2);
    let rest = Some(Rest::new(Arc::new(Opened(bytes.to_vec()))));
    let cut = Object { bytes: front, truncated: true, rest, ..object.clone() };
    for format in Format::ALL {
        let (of_cut, of_whole) = (opened(&cut, *format), opened(&object, *format));
        if matches!(format, Format::Zip | Format::SevenZip | Format::Tar | Format::Cpio) {
            assert_eq!(of_cut, of_whole);
        }
    }
    for packing in Packing::ALL {
        let budget = Budget::new(LIMITS, &|| false);
        let opened = unpack(&object, *packing, &budget, &|_, _| usize::MAX);
        assert!(opened.bytes.len() <= LIMITS.member_bytes_max);
    }
});
