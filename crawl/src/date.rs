//! Dates in the forms that servers write them.
//!
//! Sans-I/O.

use std::time::UNIX_EPOCH;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;

/// Reads an HTTP date: IMF-fixdate, or one of the two obsolete forms (RFC 9110 §5.6.7). Returns
/// milliseconds since 1970 UTC.
fn http_ms(text: &str) -> Option<u64> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// Reads a date and time of W3C's profile of ISO 8601, with or without seconds, or only a day.
/// Returns milliseconds since 1970 UTC.
pub(crate) fn w3c_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let at = text.parse::<Timestamp>().or_else(|_| {
        let day = text.parse::<Date>()?;
        Ok::<_, jiff::Error>(day.to_zoned(TimeZone::UTC)?.timestamp())
    });
    u64::try_from(at.ok()?.as_millisecond()).ok()
}

/// Reads a date of any usual form: W3C's, that of mail (RFC 2822), of HTTP. Returns milliseconds
/// since 1970 UTC.
pub(crate) fn any_ms(text: &str) -> Option<u64> {
    const MAIL: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
    let text = text.trim();
    let mail = || {
        let at = MAIL.parse_timestamp(text).ok()?;
        u64::try_from(at.as_millisecond()).ok()
    };
    w3c_ms(text).or_else(mail).or_else(|| http_ms(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_read() {
        // date -u -d 1994-11-06T08:49:37Z +%s
        let at = Some(784_111_777_000);
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "6 Nov 1994 08:49:37 +0000",
            "1994-11-06T08:49:37Z",
            "1994-11-06T08:49:37.000+00:00",
            " 1994-11-06T09:49:37+01:00\n",
        ] {
            assert_eq!(any_ms(text), at, "{text}");
        }
        assert_eq!(w3c_ms("1970-01-02"), Some(86_400_000));
        assert_eq!(w3c_ms("1994-11-06T08:49Z"), Some(784_111_740_000));
        for text in ["", "soon", "1969-12-31", "1994", "Sun, 06 Nov 1994"] {
            assert_eq!(any_ms(text), None, "{text}");
        }
    }
}
