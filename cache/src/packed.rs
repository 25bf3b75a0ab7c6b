//! Packed heads: what is kept of an answer beside its body, in few bytes.
//!
//! Most of what is stored lies in memory for long and is used now and then, and a table of headers
//! takes several times the bytes of their texts. So a head is one piece of bytes, with a byte in place
//! of each common name; whoever uses it unpacks it.
//!
//! Sans-I/O.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use net::client::{http_date, http_date_of};

use crate::policy::control::{Control, Scope};
use crate::policy::freshness::{Basis, Terms, Times};
use crate::policy::storing::Head;
use crate::policy::vary::Vary;

/// Names that are one byte; that of others is the number of these, and the text follows.
const NAMES: [HeaderName; 40] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::ACCEPT_RANGES,
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_ALLOW_HEADERS,
    header::ACCESS_CONTROL_ALLOW_METHODS,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::ACCESS_CONTROL_EXPOSE_HEADERS,
    header::ALT_SVC,
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_SECURITY_POLICY,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DATE,
    header::ETAG,
    header::EXPIRES,
    header::HOST,
    header::LAST_MODIFIED,
    header::LINK,
    header::LOCATION,
    header::ORIGIN,
    header::PRAGMA,
    header::REFERRER_POLICY,
    header::RETRY_AFTER,
    header::SERVER,
    header::STRICT_TRANSPORT_SECURITY,
    header::USER_AGENT,
    header::VARY,
    header::VIA,
    header::X_CONTENT_TYPE_OPTIONS,
    header::X_FRAME_OPTIONS,
    header::X_XSS_PROTECTION,
    HeaderName::from_static("cdn-cache-control"),
    HeaderName::from_static("x-powered-by"),
];

/// Headers that an answer gets beside the stored ones: there is room for them.
const ADDED: usize = 4;

/// A packed head.
#[derive(Clone, Debug)]
pub(crate) struct Packed(Box<[u8]>);

impl Packed {
    /// Packs a head. Of its directives those stay that say how it is used.
    pub(crate) fn of(head: &Head) -> Self {
        let Head { status, headers, times, terms, vary } = head;
        let mut out = Writer(Vec::with_capacity(256));
        out.0.extend(status.as_u16().to_le_bytes());
        out.0.extend(times.came_ms.to_le_bytes());
        out.count(times.came_ms.saturating_sub(times.sent_ms));
        out.count(terms.initial_age_ms);
        out.count(terms.lifetime);
        let control = &terms.control;
        for after in [control.stale_while_revalidate, control.stale_if_error] {
            out.count(after.map_or(0, |it| u64::from(it) + 1));
        }
        let basis = Basis::ALL.iter().position(|it| *it == terms.basis).unwrap_or_default();
        out.0.push(u8::try_from(basis).unwrap_or(u8::MAX));
        out.0.push(u8::from(control.must_revalidate));
        out.0.push(u8::from(control.no_cache == Scope::All));
        out.size(vary.parts().len());
        for (name, value) in vary.parts() {
            out.name(name);
            out.0.push(u8::from(value.is_some()));
            out.text(value.as_deref().unwrap_or_default().as_bytes());
        }
        out.size(headers.len());
        for (name, value) in headers {
            out.name(name);
            out.value(value);
        }
        Self(out.0.into())
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the head.
    pub(crate) fn head(&self) -> Head {
        // Its values share one copy.
        let mut bytes = Reader(Bytes::copy_from_slice(&self.0));
        let status = StatusCode::from_u16(u16::from_le_bytes(bytes.array())).unwrap_or_default();
        let came_ms = u64::from_le_bytes(bytes.array());
        let sent_ms = came_ms.saturating_sub(bytes.count());
        let (initial_age_ms, lifetime) = (bytes.count(), short(bytes.count()));
        let [meanwhile, instead] = std::array::from_fn(|_| bytes.count().checked_sub(1).map(short));
        let [basis] = bytes.array();
        let basis = Basis::ALL.get(usize::from(basis)).copied().unwrap_or(Basis::Nothing);
        let [must_revalidate, no_cache] = bytes.array().map(|it: u8| it == 1);
        let control = Control {
            must_revalidate,
            no_cache: if no_cache { Scope::All } else { Scope::Absent },
            stale_while_revalidate: meanwhile,
            stale_if_error: instead,
            ..Control::default()
        };
        let terms = Terms { control, lifetime, basis, initial_age_ms, came_ms };
        let parts = (0..bytes.size()).map(|_| {
            let (name, [is_there]) = (bytes.name(), bytes.array());
            let value = String::from_utf8_lossy(&bytes.text()).into_owned();
            (name, (is_there == 1).then_some(value))
        });
        let vary = Vary::from_parts(parts.collect());
        let count = bytes.size();
        let mut headers = HeaderMap::with_capacity(count + ADDED);
        for _ in 0..count {
            let name = bytes.name();
            headers.extend(bytes.value().map(|it| (name, it)));
        }
        Head { status, headers, times: Times { sent_ms, came_ms }, terms, vary }
    }
}

/// Returns a number that was written as one of so many bits.
fn short(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

struct Writer(Vec<u8>);

impl Writer {
    /// Writes a number: seven bits a byte, the low ones first, and a bit that says that more follow.
    fn count(&mut self, count: impl Into<u64>) {
        let mut left = count.into();
        loop {
            let [low, ..] = left.to_le_bytes();
            left >>= 7;
            if left == 0 {
                return self.0.push(low);
            }
            self.0.push(low | 0x80);
        }
    }

    fn size(&mut self, size: usize) {
        self.count(size as u64);
    }

    fn text(&mut self, text: &[u8]) {
        self.size(text.len());
        self.0.extend(text);
    }

    /// Writes a value; a date as its seconds, after a number that no length has.
    fn value(&mut self, value: &HeaderValue) {
        let seconds = value.to_str().ok().and_then(http_date);
        match seconds.filter(|it| http_date_of(*it).as_bytes() == value.as_bytes()) {
            Some(seconds) => [0, seconds].iter().for_each(|it| self.count(*it)),
            None => {
                self.size(value.len() + 1);
                self.0.extend(value.as_bytes());
            }
        }
    }

    fn name(&mut self, name: &HeaderName) {
        let code = NAMES.iter().position(|it| it == name).unwrap_or(NAMES.len());
        self.size(code);
        if code == NAMES.len() {
            self.text(name.as_str().as_bytes());
        }
    }
}

/// Reads what [`Packed::of`] wrote.
struct Reader(Bytes);

impl Reader {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let read = self.0.first_chunk().copied().unwrap_or([0; N]);
        self.take(N);
        read
    }

    fn take(&mut self, count: usize) -> Bytes {
        self.0.split_to(count.min(self.0.len()))
    }

    fn count(&mut self) -> u64 {
        let mut count = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array();
            count |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        count
    }

    /// Returns a count of what is in memory.
    fn size(&mut self) -> usize {
        usize::try_from(self.count()).unwrap_or(usize::MAX)
    }

    fn text(&mut self) -> Bytes {
        let count = self.size();
        self.take(count)
    }

    fn value(&mut self) -> Option<HeaderValue> {
        match self.size().checked_sub(1) {
            Some(length) => HeaderValue::from_maybe_shared(self.take(length)).ok(),
            None => HeaderValue::try_from(http_date_of(self.count())).ok(),
        }
    }

    fn name(&mut self) -> HeaderName {
        let named = NAMES.get(self.size()).cloned();
        // A name that was written is one.
        named.unwrap_or_else(|| HeaderName::from_bytes(&self.text()).unwrap_or(header::WARNING))
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use proptest::prelude::*;

    use super::*;
    use crate::policy::freshness::Rules;
    use crate::policy::storing::{Ask, keep};

    /// Values that say something of the use of an answer, and others.
    fn value() -> impl Strategy<Value = String> {
        let said = "max-age=9|s-maxage=8, stale-if-error=7|stale-while-revalidate=6, no-cache|\
                    x, user-agent|(Fri|Sat), 21 Aug 2026 06:00:0[0-9] GMT|[ -~]{0,300}";
        proptest::string::string_regex(said).unwrap()
    }

    proptest! {
        #[test]
        fn a_head_is_unpacked_as_it_was(
            lines in proptest::collection::vec((0..NAMES.len() + 4, value()), 0..300),
        ) {
            let name = |at: usize| NAMES.get(at).cloned().unwrap_or_else(|| {
                format!("x-{at}").parse().unwrap()
            });
            let lines = lines.into_iter().filter(|it| it.1.trim() == it.1);
            let headers: HeaderMap =
                lines.map(|(at, it)| (name(at), HeaderValue::try_from(it).unwrap())).collect();
            let ask = Ask { method: &Method::GET, headers: &headers };
            let times = Times { sent_ms: 1_000, came_ms: 2_000 };
            let Ok(head) = keep(ask, StatusCode::OK, &headers, times, &Rules::default()) else {
                return Ok(());
            };
            let seen = Packed::of(&head).head();
            prop_assert_eq!((seen.status, seen.times, &seen.vary), (head.status, times, &head.vary));
            prop_assert_eq!(&seen.headers, &head.headers);
            let (seen, terms) = (seen.terms, head.terms);
            prop_assert_eq!((seen.lifetime, seen.basis), (terms.lifetime, terms.basis));
            for now_ms in (0..20).map(|it| it * 1_000) {
                let used = |it: &Terms| {
                    (it.left_ms(now_ms), it.is_fresh(now_ms, 1), it.may_be_stale(now_ms, 2),
                     it.may_be_used_meanwhile(now_ms), it.may_be_used_instead(now_ms))
                };
                prop_assert_eq!(used(&seen), used(&terms));
            }
        }
    }
}
