use super::*;

#[test]
fn a_log_that_cannot_be_folded_is_named_once_and_tried_again_later() {
    let config = CollectionConfig {
        name: Name::new("c").unwrap(),
        feed: "http://localhost/".parse().unwrap(),
        token: None,
        certificate: None,
        allow_private: true,
        groups: Default::default(),
    };
    let at = Duration::from_secs;
    let mut followed = Followed::new(config, at(0));
    let full = || Err("no room".to_owned());
    let problem = followed.handle_fold(full(), at(10));
    assert_eq!(problem.as_deref(), Some("the log cannot be folded: no room"));
    assert_eq!(followed.handle_fold(full(), at(20)), None);
    let due = |it: &Followed| it.unfolded.as_ref().map(|it| (it.at, it.due));
    assert_eq!(due(&followed), Some((at(20), at(22))));
    assert_eq!(followed.handle_fold(Ok(()), at(30)), None);
    assert_eq!(due(&followed), None);
    assert!(followed.handle_fold(full(), at(40)).is_some());
}

#[test]
fn pauses_grow_up_to_a_limit() {
    let pauses: Vec<u64> = (0..12).map(|it| pause(it).as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    assert_eq!(pause(u32::MAX), RETRY_MAX);
    let away = |secs| Some(Duration::from_secs(secs));
    let soon: Vec<u128> = (0..7).map(|it| feed_pause(it, away(60)).as_millis()).collect();
    assert_eq!(soon, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    let secs = |away| feed_pause(u32::MAX, away).as_secs();
    assert_eq!([away(120), away(240), away(86_400), None].map(secs), [5, 10, 300, 300]);
}
