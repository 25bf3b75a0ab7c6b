//! Fuzzing of the cache's policy: a request, its answer and a later request, as heads of HTTP. What must
//! not be stored is not, no part reaches beyond its object, and nothing gets younger.

#![no_main]

use cache::policy::choice::{Choice, choose};
use cache::policy::freshness::{Rules, Times};
use cache::policy::range::{self, Asked, Extent};
use cache::policy::storing::{Ask, keep};
use cache::policy::validation::{continues, has_already, update, validated};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use libfuzzer_sys::fuzz_target;

const CAME_MS: u64 = 784_111_777_000;

fn headers(text: &[u8]) -> HeaderMap {
    let lines = text.split(|it| *it == b'\n').take(50).filter_map(|line| {
        let at = line.iter().position(|it| *it == b':')?;
        let name = HeaderName::from_bytes(&line[..at]).ok()?;
        Some((name, HeaderValue::from_bytes(line[at + 1..].trim_ascii()).ok()?))
    });
    lines.collect()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((front, rest)) = bytes.split_first_chunk::<3>() else { return };
    let mut parts = rest.split(|it| *it == 0).map(headers);
    let mut next = || parts.next().unwrap_or_default();
    let (first, answer, second) = (next(), next(), next());
    let [high, low, later] = *front;
    let status = StatusCode::from_u16(200 + u16::from_be_bytes([high, low]) % 400).expect("it is one");
    let rules = Rules { is_before_origin: later & 1 == 1, ..Rules::default() };
    let times = Times { sent_ms: CAME_MS, came_ms: CAME_MS };
    let ask = |headers| Ask { method: &Method::GET, headers };
    let length = answer.len() as u64 * 10;
    if let Asked::Part(part) = range::asked(&second, length) {
        assert!(part.start < part.end && part.end <= length);
    }
    let Ok(mut head) = keep(ask(&first), status, &answer, times, &rules) else { return };
    assert!(!head.headers.contains_key("set-cookie"));
    assert!(head.vary.answers(&first));
    assert!(!head.terms.control.no_store || head.terms.control.must_understand);
    if let Some(part) = head.extent().and_then(|it: Extent| it.asked(&second)) {
        let whole = head.extent().expect("it has one").part;
        assert!(whole.start <= part.start && part.end <= whole.end);
    }
    let now_ms = CAME_MS + u64::from(later) * 1_000;
    assert_eq!(head.terms.age(now_ms), head.terms.age(CAME_MS) + u64::from(later));
    let choice = choose(ask(&second), &[&head], now_ms);
    if let Choice::Use { validate: false, .. } = choice {
        assert!(head.vary.answers(&second));
    }
    let _ = (has_already(&second, &head), continues(&second, &head));
    let _ = validated(&head, status, &second, now_ms);
    let came = Times { sent_ms: now_ms, came_ms: now_ms };
    update(&mut head, &second, came, &rules);
});
