//! Fuzzing of unnesting: any bytes as every kind of container give members within the budget.

#![no_main]

use formats::object::Object;
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

fuzz_target!(|bytes: &[u8]| {
    let object = Object::whole("http://h.example/a", bytes.to_vec());
    for format in Format::ALL {
        let budget = Budget::new(LIMITS, &|| false);
        let (mut count, mut kept) = (0, 0);
        members(&object, *format, &budget, &mut |member| {
            count += 1;
            kept += member.object.bytes.len() as u64;
            assert!(member.object.bytes.len() <= LIMITS.member_bytes_max);
        });
        assert!(count <= LIMITS.members_max && kept <= LIMITS.bytes_max);
    }
    for packing in Packing::ALL {
        let budget = Budget::new(LIMITS, &|| false);
        let opened = unpack(&object, *packing, &budget, &|_, _| usize::MAX);
        assert!(opened.bytes.len() <= LIMITS.member_bytes_max);
    }
});
