//! Any bytes as a charter, a row, a request to join, a refusal, what was kept of a group, and an invitation: nothing
//! of it is believed, and nothing panics.

#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use net::identity::Identity;
use replicator::group::charter::Address;
use replicator::group::join::Invitation;
use replicator::group::{Group, Settings};
use replicator::id::MemberId;
use replicator::version::Name;

fuzz_target!(|bytes: &[u8]| {
    let identity = Arc::new(Identity::of(&[1; 32]).expect("any seed is a key"));
    let settings = Settings {
        address: Address::new("host:1").expect("an address"),
        site: Name::new("site").expect("a name"),
        trees: Vec::new(),
        carried: Vec::new(),
        connectivity: None,
        deputies: Vec::new(),
        access: None,
    };
    let name = Name::new("group").expect("a name");
    let founded = Group::found(Arc::clone(&identity), name, settings.clone(), Duration::ZERO);
    let mut group = founded.expect("an empty access list");
    let (from, now) = (MemberId(7), Duration::from_secs(1));
    let before = group.charter().map(|it| it.to_bytes());
    group.handle_link_up(from, now);
    group.handle_charter(from, bytes, now);
    group.handle_row(from, bytes, now);
    group.handle_join(from, None, bytes, now);
    group.handle_refused(from, bytes, now);
    while group.poll_action().is_some() {}
    assert_eq!(group.charter().map(|it| it.to_bytes()), before);
    let _ = Group::open(identity, settings, Some(bytes), None, Duration::ZERO);
    if let Some(invitation) = std::str::from_utf8(bytes).ok().and_then(|it| it.parse().ok()) {
        let again: Invitation = invitation;
        assert_eq!(again.to_string().parse(), Ok(again));
    }
});
