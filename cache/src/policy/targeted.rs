//! `CDN-Cache-Control`: directives for caches before an origin alone, in place of `Cache-Control` and
//! `Expires`.
//!
//! Source: RFC 9213; its values are dictionaries (RFC 9651 §3.2).
//!
//! Sans-I/O.

use http::HeaderMap;
use sfv::{BareItem, Dictionary, InnerList, Item, ListEntry, Parser};

use super::control::{Control, SECONDS_MAX};

/// Name of the header.
const CDN_CACHE_CONTROL: &str = "cdn-cache-control";

/// Reads the header; `None` if it is missing, empty or cannot be read, and so counts as missing.
pub(super) fn control(headers: &HeaderMap) -> Option<Control> {
    let lines: Vec<&[u8]> =
        headers.get_all(CDN_CACHE_CONTROL).iter().map(|it| it.as_bytes()).collect();
    let directives: Dictionary = Parser::new(&lines.join(&b", "[..])).parse().ok()?;
    if directives.is_empty() {
        return None;
    }
    let (mut control, mut seen) = (Control::default(), Vec::new());
    for (name, entry) in &directives {
        match entry {
            ListEntry::Item(Item { bare_item, .. }) => {
                take(&mut control, name.as_str(), bare_item, &mut seen);
            }
            // A list of names of headers.
            ListEntry::InnerList(InnerList { items, .. }) => {
                let names = items.iter().filter_map(|it| it.bare_item.as_string());
                let names: Vec<&str> = names.map(|it| it.as_str()).collect();
                control.take(name.as_str(), Some(&names.join(",")), &mut seen);
            }
        }
    }
    Some(control)
}

fn take(control: &mut Control, name: &str, value: &BareItem, seen: &mut Vec<String>) {
    match value {
        BareItem::Boolean(true) => control.take(name, None, seen),
        BareItem::Boolean(false) => {}
        BareItem::Integer(seconds) => {
            let seconds = i64::from(*seconds);
            let known = u32::try_from(seconds).unwrap_or(if seconds < 0 { 0 } else { SECONDS_MAX });
            control.take(name, Some(&known.to_string()), seen);
        }
        // Times are integers (RFC 9213 §2.1): one in quotes is none.
        BareItem::String(names) if ["no-cache", "private"].contains(&name) => {
            control.take(name, Some(names.as_str()), seen);
        }
        // No directive has such a value: a time is none at all, everything else is taken as said.
        _ => control.take(name, None, seen),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::policy::control::Scope;

    fn of(lines: &[&str]) -> Option<Control> {
        let value =
            |it: &&str| (CDN_CACHE_CONTROL.parse().unwrap(), HeaderValue::from_str(it).unwrap());
        control(&lines.iter().map(value).collect())
    }

    #[test]
    fn it_is_read_as_a_dictionary() {
        let max_age = |seconds| Control { max_age: Some(seconds), ..Control::default() };
        assert_eq!(of(&["max-age=60;x=1"]), Some(max_age(60)));
        assert_eq!(of(&["max-age=1, max-age=60"]), Some(max_age(60)), "the last of a key counts");
        assert_eq!(of(&["no-store=?0", "max-age=60"]), Some(max_age(60)));
        assert_eq!(of(&["max-age=99999999999"]), Some(max_age(SECONDS_MAX)));
        assert_eq!(of(&["max-age=-1"]), Some(max_age(0)));
        assert_eq!(of(&["max-age=1.5"]), Some(max_age(0)));
        assert_eq!(of(&["max-age=\"60\""]), Some(max_age(0)));
        let no_store = Control { no_store: true, ..Control::default() };
        assert_eq!(of(&["no-store"]), Some(no_store));
        let no_cache = of(&["no-cache=(\"a\" \"b\")"]).unwrap().no_cache;
        assert_eq!(no_cache, Scope::Headers(vec!["a".parse().unwrap(), "b".parse().unwrap()]));
    }

    #[test]
    fn what_is_no_dictionary_is_not_there() {
        for lines in [&[][..], &[""], &["max-age =60"], &["Max-Age=60"], &["max-age=60,"], &["a b"]]
        {
            assert_eq!(of(lines), None, "{lines:?}");
        }
    }
}
