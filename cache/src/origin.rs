//! Answers of an origin: whether they can be told to others, and what they say of what is stored.
//!
//! Source: RFC 9112 §6.3 (lengths), RFC 9110 §6.6.1 (dates), §8.6; RFC 9111 §3.2.
//!
//! Sans-I/O.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::policy::freshness::Times;
use crate::policy::storing::{Ask, Head, keep};
use crate::policy::validation::update;
use crate::request::Asked;

/// Returns whether an answer tells what the object is now, whoever asks.
pub(crate) fn is_of_object(status: StatusCode) -> bool {
    let is_partial = [StatusCode::PARTIAL_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
    let is_gone = [StatusCode::NOT_FOUND, StatusCode::GONE].contains(&status);
    (status.is_success() || status.is_redirection() || is_gone) && !is_partial
}

/// Returns a stored head with what validation or HEAD says of it; `None`: by that it is not for all.
pub(crate) fn renewed(
    asked: &Asked,
    stored: &Head,
    newer: &HeaderMap,
    times: Times,
) -> Option<Head> {
    let mut head = stored.clone();
    update(&mut head, newer, times, &asked.rules);
    let mut all = head.headers.clone();
    for name in [header::SET_COOKIE, header::CACHE_CONTROL, header::VARY] {
        let values = newer.get_all(&name).iter();
        if newer.contains_key(&name) {
            all.remove(&name);
        }
        for value in values {
            all.append(&name, value.clone());
        }
    }
    // Under other headers of requests it is another object.
    if all.get_all(header::VARY).iter().ne(stored.headers.get_all(header::VARY)) {
        return None;
    }
    // What this client says of its own request is not said of the object.
    let ask = Ask { method: &Method::GET, headers: &HeaderMap::new() };
    keep(ask, head.status, &all, times, &asked.rules).is_ok().then_some(head)
}

/// Makes the headers of an answer agree with its body, as it was read. `asks` says which of
/// [`CONDITIONS`] its request had.
///
/// # Errors
///
/// Nobody could tell what the answer is: it is passed on to no one.
pub(crate) fn sound(
    status: StatusCode,
    headers: &mut HeaderMap,
    asks: [bool; 6],
) -> Result<(), &'static str> {
    let [asks_part, conditions @ ..] = asks;
    match status {
        StatusCode::SWITCHING_PROTOCOLS => return Err("it switches the protocol unasked"),
        StatusCode::NOT_MODIFIED if !conditions.contains(&true) => {
            return Err("it says 304, and was not asked whether the object has changed");
        }
        StatusCode::PARTIAL_CONTENT if !asks_part => {
            return Err("it sends a part, and was asked for the whole");
        }
        _ => {}
    }
    let codings = headers.get_all(header::TRANSFER_ENCODING).iter().map(HeaderValue::as_bytes);
    let codings = codings.collect::<Vec<_>>().join(&b","[..]);
    // RFC 9112 §6.3: the length does not count then; other codings would have to be undone.
    if !codings.is_empty() {
        if !codings.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err("its body has a transfer coding that was not asked for");
        }
        headers.remove(header::CONTENT_LENGTH);
    }
    let lengths = headers.get_all(header::CONTENT_LENGTH).iter().filter_map(|it| it.to_str().ok());
    let mut lengths: Vec<String> =
        lengths.flat_map(|it| it.split(',')).map(|it| it.trim().to_owned()).collect();
    lengths.dedup();
    match &lengths[..] {
        [] => {}
        [length] => {
            let length: Option<u64> = length.parse().ok();
            let length = length.ok_or("its length is none")?;
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        _ => return Err("it has several lengths"),
    }
    if status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
    Ok(())
}

/// Adds the date to an answer without one (RFC 9110 §6.6.1).
pub(crate) fn dated(headers: &mut HeaderMap, times: Times) {
    if !headers.contains_key(header::DATE)
        && let Ok(date) = HeaderValue::try_from(net::client::http_date_of(times.came_ms / 1_000))
    {
        headers.insert(header::DATE, date);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn check(status: u16, lines: &[(&str, &str)], asks: [bool; 6], expected: Option<&str>) {
        let line = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let mut headers: HeaderMap = lines.iter().map(line).collect();
        let is_sound = sound(status.try_into().unwrap(), &mut headers, asks).is_ok();
        let length = headers.get(header::CONTENT_LENGTH).map(|it| it.to_str().unwrap());
        let seen = is_sound.then(|| length.unwrap_or("none"));
        assert_eq!(seen, expected, "{status} {lines:?}");
    }

    #[test]
    fn lengths_agree_with_bodies() {
        const PLAIN: [bool; 6] = [false; 6];
        let (length, chunked) = (("content-length", "3"), ("transfer-encoding", "Chunked"));
        check(200, &[length], PLAIN, Some("3"));
        check(200, &[length, chunked], PLAIN, Some("none"));
        check(200, &[("content-length", "3, 3")], PLAIN, Some("3"));
        check(200, &[length, ("content-length", "4")], PLAIN, None);
        check(200, &[("content-length", "-3")], PLAIN, None);
        check(200, &[("transfer-encoding", "gzip, chunked")], PLAIN, None);
        check(204, &[length], PLAIN, Some("none"));
    }

    #[test]
    fn what_was_not_asked_for_is_passed_on_to_no_one() {
        let asks = |at: usize| std::array::from_fn(|it| it == at);
        for (status, is_part) in [(101, None), (304, Some(false)), (206, Some(true))] {
            check(status, &[], [false; 6], None);
            check(status, &[], asks(0), is_part.filter(|it| *it).map(|_| "none"));
            check(status, &[], asks(2), is_part.filter(|it| !*it).map(|_| "none"));
        }
    }
}
