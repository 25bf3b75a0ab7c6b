//! Directives for robots about one answer: `X-Robots-Tag`, `<meta name=robots>`, `rel=nofollow`.
//!
//! Source: Google's robots meta tag specification, which others follow; HTML, link type
//! `nofollow`. Unknown directives are skipped.
//!
//! Sans-I/O.

use crate::date;

/// What a page asks of a product. Directives add up: the stricter holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// The page is not to be found by a search: no record of it is kept.
    pub noindex: bool,
    /// No link of the page is to be followed.
    pub nofollow: bool,
    /// Time from which on the page is not to be found, in milliseconds since 1970 UTC.
    pub unavailable_after_ms: Option<u64>,
}

impl Directives {
    /// Adds the value of one `X-Robots-Tag` field. Directives after `name:` are for that product
    /// alone, up to the next name; those before any name are for all.
    pub fn add_header(&mut self, value: &str, product: &str) {
        let mut is_meant = true;
        let mut parts = value.split(',');
        while let Some(mut part) = parts.next() {
            if let Some((name, directive)) = part.split_once(':')
                && !has_value(name)
            {
                is_meant = name.trim().eq_ignore_ascii_case(product);
                part = directive;
            }
            // In `Friday, 25 Jun 2010 15:00:00 GMT` the day of the week stands before a comma.
            let date = if is_day(part) { parts.next() } else { None };
            match date.filter(|_| is_meant) {
                Some(date) => self.add(&[part, date].join(",")),
                None if is_meant => self.add(part),
                None => {}
            }
        }
    }

    /// Adds a `<meta>` element of a page by its name and content, if it is for the product or for
    /// all (`robots`).
    pub fn add_meta(&mut self, name: &str, content: &str, product: &str) {
        let name = name.trim();
        if name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(product) {
            self.add_header(content, product);
        }
    }

    /// Returns whether no record of the page is to be kept now.
    pub fn hides(&self, now_ms: u64) -> bool {
        self.noindex || self.unavailable_after_ms.is_some_and(|it| it <= now_ms)
    }

    fn add(&mut self, directive: &str) {
        let directive = directive.trim();
        match directive.to_ascii_lowercase().as_str() {
            "noindex" => self.noindex = true,
            "nofollow" => self.nofollow = true,
            "none" => (self.noindex, self.nofollow) = (true, true),
            _ => {
                let text = directive.split_once(':').filter(|_| is_date(directive));
                if let Some(at_ms) = text.and_then(|(_, date)| date::any_ms(date)) {
                    let first = self.unavailable_after_ms.map_or(at_ms, |it| it.min(at_ms));
                    self.unavailable_after_ms = Some(first);
                }
            }
        }
    }
}

/// Returns whether the `rel` attribute of a link asks not to follow it.
pub fn is_nofollow(rel: &str) -> bool {
    rel.split_ascii_whitespace().any(|it| it.eq_ignore_ascii_case("nofollow"))
}

/// Returns whether a directive has a value after a colon, so that its name is no product's.
fn has_value(name: &str) -> bool {
    const NAMES: [&str; 4] =
        ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
    NAMES.iter().any(|it| name.trim().eq_ignore_ascii_case(it))
}

/// Returns whether a directive is a date of which there is only the day of the week.
fn is_day(directive: &str) -> bool {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let value = directive.split_once(':').filter(|_| is_date(directive));
    let start = value.and_then(|it| it.1.trim().get(..3));
    start.is_some_and(|it| DAYS.iter().any(|day| it.eq_ignore_ascii_case(day)))
        && !directive.contains(|it: char| it.is_ascii_digit())
}

fn is_date(directive: &str) -> bool {
    let name = directive.split(':').next().unwrap_or_default();
    name.trim().eq_ignore_ascii_case("unavailable_after")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robots::PRODUCT;

    /// date -u -d 2010-06-25T15:00:00Z +%s
    const JUNE_MS: u64 = 1_277_478_000_000;

    #[track_caller]
    fn check(value: &str, noindex: bool, nofollow: bool, unavailable_after_ms: Option<u64>) {
        let mut found = Directives::default();
        found.add_header(value, PRODUCT);
        assert_eq!(found, Directives { noindex, nofollow, unavailable_after_ms }, "{value}");
    }

    #[test]
    fn fields_are_for_all_or_for_one_product() {
        check("noindex", true, false, None);
        check(" NoIndex , nofollow", true, true, None);
        check("none", true, true, None);
        check("all, index, follow, noarchive", false, false, None);
        check("googlebot: noindex, nofollow", false, false, None);
        check("googlebot: noindex, harvest: nofollow", false, true, None);
        check("Harvest: noindex, otherbot: nofollow", true, false, None);
        check("nofollow, otherbot: noindex, nosnippet", false, true, None);
        check("max-snippet: 20, noindex", true, false, None);
        check("", false, false, None);
        check(",,:,", false, false, None);
    }

    #[test]
    fn dates_are_read_in_all_usual_forms() {
        for date in [
            "25 Jun 2010 15:00:00 GMT",
            "25 Jun 2010 07:00:00 -0800",
            "Fri, 25 Jun 2010 15:00:00 GMT",
            "Friday, 25-Jun-10 15:00:00 GMT",
            "2010-06-25T15:00:00Z",
            "2010-06-25T17:00:00+02:00",
        ] {
            let field = format!("unavailable_after: {date}, nofollow");
            check(&field, false, true, Some(JUNE_MS));
            check(&format!("harvest: {field}"), false, true, Some(JUNE_MS));
            check(&format!("otherbot: {field}"), false, false, None);
        }
        check("unavailable_after: 2010-06-25", false, false, Some(1_277_424_000_000));
        check("unavailable_after: some day, noindex", true, false, None);
        let mut both = Directives::default();
        both.add_header("unavailable_after: 2010-06-25T15:00:00Z", PRODUCT);
        both.add_header("unavailable_after: 2011-06-25T15:00:00Z", PRODUCT);
        assert!(!both.hides(JUNE_MS - 1));
        assert!(both.hides(JUNE_MS));
    }

    #[test]
    fn elements_and_links_count_too() {
        let mut found = Directives::default();
        found.add_meta("googlebot", "noindex", PRODUCT);
        found.add_meta("description", "noindex", PRODUCT);
        assert_eq!(found, Directives::default());
        found.add_meta("ROBOTS", "nofollow", PRODUCT);
        found.add_meta("harvest", "noindex", PRODUCT);
        assert!(found.noindex && found.nofollow);
        assert!(is_nofollow("noopener NoFollow"));
        assert!(!is_nofollow("nofollowing"));
    }
}
