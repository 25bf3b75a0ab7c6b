//! Fuzzing of Essence: any bytes under any name (the first line) are typed, opened and summarized.
//! Records are within bounds; each has its own URL, and the object's record is the first.

#![no_main]

mod bounds;

use std::collections::HashSet;

use essence::extract::{EssenceSettings, extract};
use formats::object::Object;
use formats::unnest::Limits;
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits {
    bytes_max: 1 << 20,
    member_bytes_max: 1 << 18,
    ratio_max: 100,
    ratio_from_bytes: 1 << 16,
    depth_max: 4,
    members_max: 64,
    names_bytes_max: 1 << 16,
    records_bytes_max: 1 << 18,
    held_bytes_max: 1 << 19,
};

fuzz_target!(|bytes: &[u8]| {
    bounds::print_panics();
    let (name, content) = bounds::first_line(bytes);
    let name = String::from_utf8_lossy(name).into_owned();
    let url = "http://h.example/d/a";
    let object = Object { name, ..Object::whole(url, content.to_vec()) };
    let settings = EssenceSettings { unnest: LIMITS, ..EssenceSettings::default() };
    let summaries = extract(object, &settings, &|| false);
    assert_eq!(summaries.first().map(|it| it.record.url.as_str()), Some(url));
    assert!(summaries.len() as u64 <= 1 + LIMITS.members_max);
    let urls: HashSet<&str> = summaries.iter().map(|it| it.record.url.as_str()).collect();
    assert_eq!(urls.len(), summaries.len());
    summaries.iter().for_each(|it| bounds::check(url, it));
});
