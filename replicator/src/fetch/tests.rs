use proptest::prelude::*;

use super::peer::Window;
use super::*;
use crate::fetch::choice::{SHUN, SHUN_MAX};
use crate::version::Name;

const A: MemberId = MemberId(1);
const B: MemberId = MemberId(2);
const C: MemberId = MemberId(3);
const ONE: Number = Number { epoch: 0, sequence: 1 };
const SECOND: Duration = Duration::from_secs(1);
const NONE: Duration = Duration::ZERO;
const WIDE: Window = Window { bytes: 1 << 20, chunks: 100 };

fn tree(name: &str) -> Namespace {
    Namespace { origin: MemberId(9), name: Name::new(name).unwrap() }
}

fn hash(number: u8) -> Hash {
    Hash([number; 32])
}

/// Chunks of 1,000 bytes each.
fn chunks(numbers: impl IntoIterator<Item = u8>) -> Vec<(Hash, u32)> {
    numbers.into_iter().map(|it| (hash(it), 1_000)).collect()
}

fn sure(sources: &[MemberId]) -> Sources {
    Sources { sure: sources.to_vec(), possible: Vec::new() }
}

/// Begins to fetch one tree from these sources, all of them up.
fn fetch(sources: &[MemberId]) -> Fetch {
    let mut fetch = Fetch::default();
    for source in sources {
        fetch.handle_up(*source, WIDE, NONE);
    }
    fetch.begin(&tree("a"), ONE, sure(sources), 0);
    fetch
}

/// Takes the messages since the last call, as text: `+` for requests, `-` for cancels.
fn sent(fetch: &mut Fetch) -> Vec<String> {
    let list =
        |all: &[Hash]| all.iter().map(|it| it.0[0].to_string()).collect::<Vec<_>>().join(" ");
    let render = |(to, message): (MemberId, Message)| match message {
        Message::Request(Request { chunks, .. }) => format!("{}+{}", to.0, list(&chunks)),
        Message::Cancel(chunks) => format!("{}-{}", to.0, list(&chunks)),
        other => panic!("{other:?}"),
    };
    fetch.take_messages().into_iter().map(render).collect()
}

/// Calls the next timeout. Returns its time.
fn advance(fetch: &mut Fetch) -> Duration {
    let at = fetch.poll_timeout().expect("something is due");
    fetch.handle_timeout(at);
    at
}

#[test]
fn the_first_source_is_asked_for_all_chunks_in_order() {
    let mut fetch = fetch(&[B, A]);
    fetch.want(&tree("a"), &chunks([3, 1, 2]), NONE);
    assert_eq!(sent(&mut fetch), ["2+3 1 2"]);
    fetch.want(&tree("a"), &chunks([1, 4]), NONE);
    assert_eq!(sent(&mut fetch), ["2+4"], "nothing is asked for twice");
    for number in [3, 1, 2, 4] {
        assert!(!fetch.wants.of(&tree("a")).is_empty());
        let came = fetch.handle_chunk(B, &hash(number), SECOND);
        assert_eq!(came, Arrival::Wanted { namespaces: vec![tree("a")], waiting: Vec::new() });
    }
    assert!(fetch.wants.of(&tree("a")).is_empty());
    assert_eq!(fetch.poll_timeout(), None);
}

#[test]
fn a_window_bounds_the_requested_chunks() {
    for (window, first) in [
        (Window { bytes: 2_000, chunks: 10 }, "1+1 2"),
        (Window { bytes: 2_500, chunks: 10 }, "1+1 2 3"),
        (Window { bytes: 100_000, chunks: 1 }, "1+1"),
    ] {
        let mut fetch = fetch(&[A]);
        fetch.set_window(A, window);
        fetch.want(&tree("a"), &chunks(1..6), NONE);
        assert_eq!(sent(&mut fetch), [first], "{window:?}");
        fetch.handle_chunk(A, &hash(1), NONE);
        assert_eq!(sent(&mut fetch).len(), 1, "{window:?}");
    }
}

#[test]
fn urgent_chunks_do_not_wait_for_less_urgent_ones() {
    let mut fetch = fetch(&[A]);
    fetch.set_window(A, Window { bytes: 2_000, chunks: 10 });
    fetch.set_priority(&tree("a"), 3);
    fetch.want(&tree("a"), &chunks(1..6), NONE);
    assert_eq!(sent(&mut fetch), ["1+1 2"]);
    fetch.begin(&tree("b"), ONE, sure(&[A]), 1);
    fetch.want(&tree("b"), &chunks([9]), NONE);
    assert_eq!(sent(&mut fetch), ["1+9"]);
    fetch.begin(&tree("c"), ONE, sure(&[A]), 7);
    fetch.want(&tree("c"), &chunks([8]), NONE);
    assert_eq!(sent(&mut fetch), Vec::<String>::new());
}

#[test]
fn a_chunk_of_two_trees_is_requested_once() {
    let mut fetch = fetch(&[A]);
    fetch.begin(&tree("b"), ONE, sure(&[B]), 0);
    fetch.want(&tree("a"), &chunks([1, 2]), NONE);
    fetch.want(&tree("b"), &chunks([1]), NONE);
    assert_eq!(sent(&mut fetch), ["1+1 2"]);
    // Chunk 1 is still wanted for the other tree.
    fetch.end(&tree("a"));
    assert_eq!(sent(&mut fetch), ["1-2"]);
    let came = fetch.handle_chunk(A, &hash(1), NONE);
    assert_eq!(came, Arrival::Wanted { namespaces: vec![tree("b")], waiting: Vec::new() });
}

#[test]
fn waiting_neighbors_are_returned_as_soon_as_a_chunk_comes() {
    let mut fetch = fetch(&[A, B, C]);
    fetch.want(&tree("a"), &chunks([1]), NONE);
    let name = tree("a");
    assert!(fetch.wait(B, hash(1), 4, (&name, ONE), false, NONE), "it is on its way");
    assert!(fetch.wait(B, hash(1), 4, (&name, ONE), false, NONE), "asking twice changes nothing");
    assert!(fetch.wait(C, hash(1), 2, (&name, ONE), false, NONE));
    assert!(fetch.wait(C, hash(2), 2, (&name, ONE), true, NONE), "it is expected");
    assert!(!fetch.wait(C, hash(3), 2, (&name, ONE), false, NONE), "it is not expected");
    assert!(!fetch.wait(MemberId(7), hash(1), 2, (&name, ONE), true, NONE), "it has no link");
    let waiting = vec![(B, 4), (C, 2)];
    let came = fetch.handle_chunk(A, &hash(1), NONE);
    assert_eq!(came, Arrival::Wanted { namespaces: vec![tree("a")], waiting });
    fetch.handle_cancel(C, &[hash(2)]);
    assert_eq!(fetch.take_waiting(&name, ONE), []);
}

#[test]
fn neighbors_that_wait_for_an_ended_version_are_taken_out() {
    let mut fetch = fetch(&[A, B]);
    let two = Number { epoch: 0, sequence: 2 };
    assert!(fetch.wait(B, hash(1), 0, (&tree("a"), ONE), true, NONE));
    assert!(fetch.wait(B, hash(2), 1, (&tree("a"), two), true, NONE));
    assert!(fetch.wait(B, hash(3), 0, (&tree("b"), ONE), true, NONE));
    assert_eq!(fetch.take_waiting(&tree("a"), ONE), [(B, hash(1), 0)]);
    assert_eq!(fetch.take_waiting(&tree("a"), two), [(B, hash(2), 1)]);
    fetch.handle_down(B, NONE);
    assert_eq!(fetch.take_waiting(&tree("b"), ONE), []);
}

#[test]
fn a_neighbor_waits_for_a_bounded_number_of_chunks() {
    let mut fetch = fetch(&[A]);
    let name = tree("a");
    let number = |at: usize| Hash::of(&at.to_be_bytes());
    let waits = |fetch: &mut Fetch, at| fetch.wait(A, number(at), 0, (&name, ONE), true, NONE);
    assert!((0..WAITING_MAX).all(|it| waits(&mut fetch, it)));
    assert!(!waits(&mut fetch, WAITING_MAX));
    fetch.handle_cancel(A, &[number(0)]);
    assert!(waits(&mut fetch, WAITING_MAX));
}

#[test]
fn wanted_chunks_are_bounded() {
    let mut fetch = fetch(&[A]);
    let all: Vec<(Hash, u32)> =
        (0..WANTED_MAX + 5).map(|it| (Hash::of(&it.to_be_bytes()), 1)).collect();
    fetch.want(&tree("a"), &all, NONE);
    assert_eq!(fetch.room(), 0);
    fetch.handle_chunk(A, &all[0].0, NONE);
    assert_eq!(fetch.room(), 1);
}

#[test]
fn a_stalled_source_is_passed_over() {
    let mut fetch = fetch(&[A, B]);
    fetch.want(&tree("a"), &chunks([1, 2]), NONE);
    sent(&mut fetch);
    // One chunk is less than the pace.
    fetch.handle_chunk(A, &hash(1), SECOND * 9);
    assert_eq!(fetch.poll_timeout(), Some(STALL));
    assert_eq!(advance(&mut fetch), STALL);
    assert_eq!(sent(&mut fetch), ["1-2", "2+2"]);
    assert_eq!(fetch.take_faults(), [(A, Fault::Stalls)]);
    fetch.want(&tree("a"), &chunks([3]), STALL);
    assert_eq!(sent(&mut fetch), ["2+3"], "while it rests, others are asked");
}

#[test]
fn a_source_that_keeps_the_pace_does_not_stall() {
    let mut fetch = fetch(&[A, B]);
    fetch.want(&tree("a"), &chunks(1..50), NONE);
    sent(&mut fetch);
    // A pace is 9 chunks of 1,000 bytes.
    for number in 1..=45 {
        let now = SECOND * u32::from(number);
        assert!(fetch.poll_timeout() > Some(now), "{number}");
        fetch.handle_chunk(A, &hash(number), now);
    }
    assert_eq!(sent(&mut fetch), Vec::<String>::new());
}

#[test]
fn the_only_source_is_asked_again_after_its_rest() {
    let mut fetch = fetch(&[A]);
    fetch.want(&tree("a"), &chunks([1]), NONE);
    sent(&mut fetch);
    let mut last = NONE;
    for rest in [REST, REST * 2, REST * 4, REST * 4] {
        let stalled = advance(&mut fetch);
        assert_eq!(stalled - last, STALL);
        assert_eq!(sent(&mut fetch), Vec::<String>::new(), "requests to it stay");
        last = advance(&mut fetch);
        assert_eq!(last - stalled, rest);
        assert_eq!(sent(&mut fetch), ["1-1", "1+1"]);
    }
    assert!(matches!(fetch.handle_chunk(A, &hash(1), last), Arrival::Wanted { .. }));
    assert_eq!(fetch.poll_timeout(), None);
}

#[test]
fn a_source_that_gets_the_version_is_asked_again() {
    let mut refused = fetch(&[A, B]);
    refused.want(&tree("a"), &chunks([1]), NONE);
    refused.handle_gone(A, &[hash(1)], NONE);
    refused.handle_held(A, &tree("a"), NONE);
    assert_eq!(sent(&mut refused), ["1+1", "2+1"], "requested chunks are not moved");
    refused.handle_gone(B, &[hash(1)], NONE);
    assert_eq!(sent(&mut refused), ["1+1"]);
    assert_eq!(refused.take_missing(), BTreeSet::new());
    let mut rests = fetch(&[A, B]);
    rests.want(&tree("a"), &chunks([1]), NONE);
    advance(&mut rests);
    rests.handle_held(A, &tree("a"), STALL);
    rests.want(&tree("a"), &chunks([2]), STALL);
    assert_eq!(sent(&mut rests), ["1+1", "1-1", "2+1", "1+2"]);
}

#[test]
fn a_chunk_that_all_sources_refuse_is_missing() {
    let mut fetch = fetch(&[A, B]);
    fetch.want(&tree("a"), &chunks([1, 2]), NONE);
    let asked = fetch.handle_gone(A, &[hash(1), hash(2)], NONE);
    assert_eq!(asked, BTreeSet::from([tree("a")]));
    assert_eq!(fetch.handle_gone(A, &[hash(1)], NONE), BTreeSet::new(), "it was not asked");
    assert_eq!(fetch.take_missing(), BTreeSet::new());
    fetch.handle_gone(B, &[hash(2)], NONE);
    assert_eq!(fetch.take_missing(), BTreeSet::from([tree("a")]));
    assert_eq!(fetch.take_missing(), BTreeSet::new());
}

#[test]
fn requests_on_a_lost_link_go_to_others() {
    let mut fetch = fetch(&[A, B]);
    fetch.want(&tree("a"), &chunks([1, 2]), NONE);
    fetch.handle_down(A, NONE);
    assert_eq!(sent(&mut fetch), ["1+1 2", "2+1 2"]);
    fetch.handle_down(B, NONE);
    assert_eq!(sent(&mut fetch), Vec::<String>::new());
    assert_eq!(fetch.take_missing(), BTreeSet::new(), "nobody has refused it");
    fetch.handle_up(A, WIDE, NONE);
    assert_eq!(sent(&mut fetch), ["1+1 2"]);
}

#[test]
fn new_sources_get_only_chunks_not_requested_yet() {
    let mut fetch = fetch(&[A, B]);
    fetch.set_window(A, Window { bytes: 2_000, chunks: 10 });
    fetch.want(&tree("a"), &chunks(1..5), NONE);
    fetch.set_sources(&tree("a"), sure(&[B, A]), NONE);
    assert_eq!(sent(&mut fetch), ["1+1 2", "2+3 4"]);
}

#[test]
fn requests_move_from_possible_to_sure_sources() {
    let mut fetch = fetch(&[]);
    for source in [A, B, C] {
        fetch.handle_up(source, WIDE, NONE);
    }
    fetch.begin(&tree("a"), ONE, Sources { sure: vec![], possible: vec![A, B] }, 0);
    fetch.want(&tree("a"), &chunks(1..4), NONE);
    assert_eq!(sent(&mut fetch), ["1+1 2 3"]);
    // There is still no sure source.
    fetch.set_sources(&tree("a"), Sources { sure: vec![], possible: vec![B, A] }, NONE);
    assert_eq!(sent(&mut fetch), [""; 0]);
    fetch.set_sources(&tree("a"), Sources { sure: vec![C], possible: vec![B, A] }, NONE);
    assert_eq!(sent(&mut fetch), ["1-1 2 3", "3+1 2 3"]);
    // If the sure source stalls, possible sources are asked again,
    assert_eq!(advance(&mut fetch), STALL);
    assert_eq!(sent(&mut fetch), ["3-1 2 3", "2+1 2 3"]);
    // until there is another sure source.
    fetch.set_sources(&tree("a"), Sources { sure: vec![C, A], possible: vec![B] }, STALL);
    assert_eq!(sent(&mut fetch), ["2-1 2 3", "1+1 2 3"]);
}

#[test]
fn a_sure_source_is_asked_once_its_link_is_up() {
    let mut fetch = Fetch::default();
    for source in [A, B] {
        fetch.handle_up(source, WIDE, NONE);
    }
    fetch.begin(&tree("a"), ONE, Sources { sure: vec![], possible: vec![A, B] }, 0);
    fetch.want(&tree("a"), &chunks(1..4), NONE);
    assert_eq!(sent(&mut fetch), ["1+1 2 3"]);
    // A new topology has a route, but its link is not up yet.
    fetch.set_sources(&tree("a"), Sources { sure: vec![C], possible: vec![A, B] }, NONE);
    assert_eq!(sent(&mut fetch), [""; 0]);
    fetch.handle_up(C, WIDE, NONE);
    assert_eq!(sent(&mut fetch), ["1-1 2 3", "3+1 2 3"]);
    // It goes down before there is another sure source.
    fetch.handle_down(C, NONE);
    assert_eq!(sent(&mut fetch), ["1+1 2 3"]);
    fetch.set_sources(&tree("a"), Sources { sure: vec![C, B], possible: vec![A] }, NONE);
    assert_eq!(sent(&mut fetch), ["1-1 2 3", "2+1 2 3"]);
}

#[test]
fn two_neighbors_that_wait_for_each_other_do_not_repeat_requests() {
    // A is still the best source: A has to choose another one.
    let mut first = fetch(&[A, B]);
    first.want(&tree("a"), &chunks([1]), NONE);
    assert!(first.wait(A, hash(1), 0, (&tree("a"), ONE), true, NONE));
    assert_eq!(sent(&mut first), ["1+1"]);
    // A is not the best source any more.
    let mut second = fetch(&[A, B]);
    second.want(&tree("a"), &chunks([1]), NONE);
    second.set_sources(&tree("a"), sure(&[B, A]), NONE);
    assert!(second.wait(A, hash(1), 0, (&tree("a"), ONE), true, NONE));
    assert_eq!(sent(&mut second), ["1+1", "1-1", "2+1"]);
    // There is no other source.
    let mut third = fetch(&[A, B]);
    third.want(&tree("a"), &chunks([1]), NONE);
    third.handle_down(B, NONE);
    third.set_sources(&tree("a"), sure(&[B, A]), NONE);
    for _ in 0..3 {
        assert!(third.wait(A, hash(1), 0, (&tree("a"), ONE), true, NONE));
    }
    assert_eq!(sent(&mut third), ["1+1"]);
}

#[test]
fn a_neighbor_that_sends_unrequested_chunks_is_shunned() {
    let mut fetch = fetch(&[A, B]);
    fetch.want(&tree("a"), &chunks([1]), NONE);
    sent(&mut fetch);
    for number in 0..UNASKED_SHUNNED {
        assert_eq!(fetch.take_faults(), []);
        let chunk = Hash::of(&number.to_be_bytes());
        assert_eq!(fetch.handle_chunk(A, &chunk, NONE), Arrival::Unwanted);
    }
    assert_eq!(fetch.take_faults(), [(A, Fault::Unasked)]);
    assert_eq!(sent(&mut fetch), ["1-1", "2+1"]);
    // A new link does not end the shunning.
    fetch.handle_down(A, NONE);
    fetch.handle_up(A, WIDE, NONE);
    fetch.want(&tree("a"), &chunks([2]), NONE);
    assert_eq!(sent(&mut fetch), ["2+2"]);
    let came =
        (0..=UNASKED_MAX).map(|it| fetch.handle_chunk(A, &Hash::of(&it.to_le_bytes()), NONE));
    assert_eq!(came.last(), Some(Arrival::Flooded));
    assert_eq!(
        fetch.handle_chunk(MemberId(7), &hash(1), NONE),
        Arrival::Wanted { namespaces: vec![tree("a")], waiting: Vec::new() }
    );
}

#[test]
fn chunks_that_cross_with_their_cancel_are_no_fault() {
    let mut fetch = fetch(&[A, B]);
    fetch.want(&tree("a"), &chunks(1..50), NONE);
    fetch.end(&tree("a"));
    for number in 1..50 {
        assert_eq!(fetch.handle_chunk(A, &hash(number), NONE), Arrival::Unwanted);
    }
    assert_eq!(fetch.take_faults(), []);
    for number in 1..50 {
        fetch.handle_chunk(A, &hash(number), NONE);
    }
    assert_eq!(fetch.take_faults(), [(A, Fault::Unasked)], "each chunk may cross only once");
}

#[test]
fn a_liar_is_shunned_for_longer_each_time() {
    let mut fetch = fetch(&[A, B]);
    let mut now = NONE;
    for expected in [SHUN, SHUN * 2, SHUN * 4, SHUN * 8, SHUN * 16, SHUN_MAX, SHUN_MAX] {
        fetch.shun(A, Fault::Lacks, now);
        fetch.shun(A, Fault::Lacks, now);
        assert_eq!(fetch.take_faults(), [(A, Fault::Lacks)]);
        assert_eq!(fetch.poll_timeout(), Some(now + expected));
        now = advance(&mut fetch);
    }
    // After a long time its past is forgotten.
    now += SHUN_MAX;
    fetch.shun(A, Fault::Lacks, now);
    assert_eq!(fetch.poll_timeout(), Some(now + SHUN));
}

/// An event at a member that fetches.
#[derive(Clone, Copy, Debug)]
enum Step {
    Want(u8),
    Chunk(u64, u8),
    Gone(u64, u8),
    Wait(u64, u8),
    Down(u64),
    Up(u64),
    Held(u64),
    Timeout,
    Sources(u8),
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..12_u8).prop_map(Step::Want),
        (1..4_u64, 0..12_u8).prop_map(|(who, it)| Step::Chunk(who, it)),
        (1..4_u64, 0..12_u8).prop_map(|(who, it)| Step::Gone(who, it)),
        (1..4_u64, 0..12_u8).prop_map(|(who, it)| Step::Wait(who, it)),
        (1..4_u64).prop_map(Step::Down),
        (1..4_u64).prop_map(Step::Up),
        (1..4_u64).prop_map(Step::Held),
        Just(Step::Timeout),
        (0..4_u8).prop_map(Step::Sources),
        Just(Step::End),
    ]
}

proptest! {
    /// Checks that a chunk is requested from one neighbor at a time, and only while it is wanted.
    #[test]
    fn there_is_one_request_for_a_chunk(steps in prop::collection::vec(step(), 1..60)) {
        let name = tree("a");
        let mut fetch = fetch(&[A, B, C]);
        let mut asked: BTreeMap<Hash, MemberId> = BTreeMap::new();
        let mut now = NONE;
        for step in steps {
            now += SECOND / 3;
            match step {
                Step::Want(it) => fetch.want(&name, &chunks([it]), now),
                Step::Chunk(who, it) => {
                    let who = MemberId(who);
                    if asked.get(&hash(it)) == Some(&who) {
                        asked.remove(&hash(it));
                    }
                    fetch.handle_chunk(who, &hash(it), now);
                }
                Step::Gone(who, it) => {
                    if asked.get(&hash(it)) == Some(&MemberId(who)) {
                        asked.remove(&hash(it));
                    }
                    fetch.handle_gone(MemberId(who), &[hash(it)], now);
                }
                Step::Wait(who, it) => {
                    fetch.wait(MemberId(who), hash(it), 0, (&name, ONE), true, now);
                }
                Step::Down(who) => {
                    asked.retain(|_, it| *it != MemberId(who));
                    fetch.handle_down(MemberId(who), now);
                }
                Step::Up(who) if fetch.peers.contains_key(&MemberId(who)) => {}
                Step::Up(who) => fetch.handle_up(MemberId(who), WIDE, now),
                Step::Held(who) => fetch.handle_held(MemberId(who), &name, now),
                Step::Timeout => {
                    now = now.max(fetch.poll_timeout().unwrap_or_default());
                    fetch.handle_timeout(now);
                }
                Step::Sources(sure) => {
                    let mut possible = vec![C, B, A];
                    let sure = possible.drain(..usize::from(sure)).collect();
                    fetch.set_sources(&name, Sources { sure, possible }, now);
                }
                Step::End => {
                    fetch.end(&name);
                    fetch.begin(&name, ONE, sure(&[A, B, C]), 0);
                }
            }
            let messages = fetch.take_messages();
            let takes = |it: &&(MemberId, Message)| matches!(it.1, Message::Cancel(_));
            // A cancel and the new request come together.
            for (from, message) in messages.iter().filter(takes) {
                let Message::Cancel(hashes) = message else { unreachable!() };
                for hash in hashes {
                    prop_assert_eq!(asked.remove(hash), Some(*from));
                }
            }
            for (to, message) in &messages {
                let Message::Request(request) = message else { continue };
                for hash in &request.chunks {
                    prop_assert_eq!(asked.insert(*hash, *to), None);
                    prop_assert!(fetch.wants.get(hash).is_some());
                }
            }
        }
    }
}
