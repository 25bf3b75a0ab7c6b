//! The parameters of the page Freshness, and URLs made of them.
//!
//! | parameter | is | default |
//! |---|---|---|
//! | `policy` | the policy to preview, by its name in the settings | the policy of the aim |
//! | `theta`, `price`, `pulls_per_hour`, `interval` | the aim: one of them | that of the settings |
//! | `price_power` | `price` as a power of ten, from the slider | none |
//! | `sort` | the order of the preview: `change` (the largest first) or `name` | `change` |
//! | `page`, `list` | number of the page in the preview, and in the list of sources, from 1 | 1 |
//! | `format` | `html` or `json` | the format that the client prefers |
//!
//! Aims are written as in `[freshness]`. Without a policy and without an aim there is no preview. A
//! mistake is shown next to its field.
//!
//! Sans-I/O.

use settings::parse_duration;
use url::form_urlencoded;
use web::failure::Wants;

use super::format;
use crate::config::{Freshness, PolicyName};
use crate::status;

/// Maximum length of a parameter's value, in characters.
const VALUE_CHARS_MAX: usize = 64;
/// Highest power of ten that `price_power` takes.
pub(super) const POWER_MAX: f64 = 9.0;
const PAGE_MAX: usize = 1_000_000;

/// A field of the page's forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Policy,
    Theta,
    Price,
    PricePower,
    PullsPerHour,
    Interval,
    Sort,
    Page,
    List,
    Format,
}

impl Field {
    const ALL: [(Self, &'static str); 10] = [
        (Self::Policy, "policy"),
        (Self::Theta, "theta"),
        (Self::Price, "price"),
        (Self::PricePower, "price_power"),
        (Self::PullsPerHour, "pulls_per_hour"),
        (Self::Interval, "interval"),
        (Self::Sort, "sort"),
        (Self::Page, "page"),
        (Self::List, "list"),
        (Self::Format, "format"),
    ];

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, it)| *it == name).map(|(field, _)| field)
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(it, _)| *it == self).map_or("", |(_, name)| name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Aim {
    /// The field of the aim's setting: `theta`, `price`, `pulls_per_hour` or `interval`.
    pub(super) field: Field,
    /// The value in the setting's unit; seconds if the setting is a time.
    pub(super) value: f64,
}

impl Aim {
    /// Returns the aim of the settings; `None` for the policy `best_estimation`.
    pub(super) fn of(settings: Freshness) -> Option<Self> {
        let status::Aim { setting, value } = settings.aim()?;
        Some(Self { field: Field::by_name(&setting)?, value })
    }

    /// Returns the aim's value as it is written in the settings file and in a URL.
    pub(super) fn written(self) -> String {
        match self.field {
            Field::Interval => duration_written(self.value),
            _ => self.value.to_string(),
        }
    }

    /// Returns whether `policy` has this kind of aim.
    fn suits(self, policy: PolicyName) -> bool {
        policy.setting() == Some(self.field.name())
    }

    /// Returns a policy with this kind of aim: `now` if it has one, otherwise the usual one.
    fn policy(self, now: PolicyName) -> PolicyName {
        match self.field {
            _ if self.suits(now) => now,
            Field::Price => PolicyName::CombinedCost,
            Field::PullsPerHour => PolicyName::Budget,
            Field::Interval => PolicyName::Fixed,
            _ => PolicyName::Oap,
        }
    }
}

/// Renders a duration for the settings, in the largest unit that makes it a whole number.
pub(super) fn duration_written(secs: f64) -> String {
    let units = [(86_400.0, "days"), (3_600.0, "h"), (60.0, "min")];
    let whole = units.iter().find(|(unit, _)| *unit <= secs && secs % unit == 0.0);
    match whole {
        Some((unit, "days")) if secs <= *unit => "1 day".to_owned(),
        Some((unit, name)) => format!("{} {name}", secs / unit),
        None => format!("{secs} s"),
    }
}

/// The order of the preview.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// The largest change first.
    #[default]
    Change,
    Name,
}

impl Sort {
    pub(super) const ALL: [Self; 2] = [Self::Change, Self::Name];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Name => "name",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parameters {
    policy: Option<PolicyName>,
    aim: Option<Aim>,
    pub(super) sort: Sort,
    /// Page of the preview, from 1; 0 counts as 1.
    pub(super) page: usize,
    /// Page of the sources, from 1; 0 counts as 1.
    pub(super) list: usize,
    format: Option<Wants>,
    /// The mistakes in fields; at most one for each field.
    pub(super) mistakes: Vec<Mistake>,
}

/// A field that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) field: Field,
    /// The beginning of the typed text.
    pub(super) typed: String,
    /// A sentence without its full stop.
    pub(super) message: String,
}

impl Parameters {
    /// Reads the part of a URL after `?`. Ignores parameters with other names.
    pub(super) fn parse(query: Option<&str>) -> Self {
        let mut asked = Self::default();
        let mut seen = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let Some(field) = Field::by_name(&name) else { continue };
            let outcome = if seen.contains(&field) {
                Err(format!("{name} is given twice"))
            } else if value.chars().nth(VALUE_CHARS_MAX).is_some() {
                Err(format!("{name} is longer than {VALUE_CHARS_MAX} characters"))
            } else {
                asked.take(field, value.trim())
            };
            seen.push(field);
            if let Err(message) = outcome {
                asked.mistake(field, &value, message);
            }
        }
        if let (Some(policy), Some(aim)) = (asked.policy, asked.aim)
            && !aim.suits(policy)
        {
            let message = format!("the policy {} has no {}", policy.name(), aim.field.name());
            asked.mistake(aim.field, &aim.written(), message);
        }
        asked
    }

    fn take(&mut self, field: Field, value: &str) -> Result<(), String> {
        let (field, value) = match field {
            // A form sends an empty value for an empty field.
            _ if value.is_empty() => return Ok(()),
            Field::Policy => {
                let names = PolicyName::NAMES.join(", ");
                let policy = PolicyName::by_name(value);
                self.policy = Some(policy.ok_or_else(|| format!("policy is one of {names}"))?);
                return Ok(());
            }
            Field::Sort => {
                let sort = Sort::ALL.into_iter().find(|it| it.name() == value);
                self.sort = sort.ok_or("sort is change or name")?;
                return Ok(());
            }
            Field::Page => return page(field, value).map(|it| self.page = it),
            Field::List => return page(field, value).map(|it| self.list = it),
            Field::Format => {
                self.format = Some(match value {
                    "html" => Wants::Html,
                    "json" => Wants::Json,
                    _ => return Err("format is html or json".to_owned()),
                });
                return Ok(());
            }
            Field::Theta => {
                (field, number(field, value, Freshness::THETA_MAX, "; 0.95 means 95 %")?)
            }
            Field::Price | Field::PullsPerHour => {
                (field, number(field, value, Freshness::PULLS_MAX, "")?)
            }
            Field::PricePower => (Field::Price, power(number(field, value, POWER_MAX, "")?)),
            Field::Interval => {
                let interval = parse_duration(value).filter(|it| Freshness::INTERVALS.contains(it));
                let expected =
                    "interval is a time from 100 ms to 365 days, such as 90 min or 1 day";
                (field, interval.ok_or(expected)?.as_secs_f64())
            }
        };
        match self.aim.replace(Aim { field, value }) {
            None => Ok(()),
            Some(_) => Err("only one aim can be previewed at a time".to_owned()),
        }
    }

    fn mistake(&mut self, field: Field, typed: &str, message: String) {
        if self.mistakes.iter().all(|it| it.field != field) {
            let typed = typed.chars().take(VALUE_CHARS_MAX).collect();
            self.mistakes.push(Mistake { field, typed, message });
        }
    }

    pub(super) fn mistake_in(&self, field: Field) -> Option<&Mistake> {
        self.mistakes.iter().find(|it| it.field == field)
    }

    /// Returns the settings to preview; `None` if no parameter asks for a preview, or if a
    /// parameter has a mistake.
    pub(super) fn settings(&self, now: Freshness) -> Option<Freshness> {
        if !self.mistakes.is_empty() || (self.policy.is_none() && self.aim.is_none()) {
            return None;
        }
        let policy =
            self.policy.or_else(|| Some(self.aim?.policy(now.policy))).unwrap_or(now.policy);
        let mut then = Freshness { policy, ..now };
        if let Some(Aim { field, value }) = self.aim {
            match field {
                Field::Price => then.price = value,
                Field::PullsPerHour => then.pulls_per_hour = value,
                Field::Interval => then.interval = value,
                _ => then.theta = value,
            }
        }
        Some(then)
    }

    pub(super) fn wants(&self, accepted: Wants) -> Wants {
        self.format.unwrap_or(accepted)
    }

    /// Returns the query part of a URL for the same preview with another order and other pages:
    /// `?…`.
    pub(super) fn address(&self, sort: Sort, page: usize, list: usize) -> String {
        let mut all = form_urlencoded::Serializer::new(String::new());
        if let Some(policy) = self.policy {
            all.append_pair("policy", policy.name());
        }
        if let Some(aim) = self.aim {
            all.append_pair(aim.field.name(), &aim.written());
        }
        if sort != Sort::default() {
            all.append_pair("sort", sort.name());
        }
        for (field, number) in [(Field::Page, page), (Field::List, list)] {
            if 1 < number {
                all.append_pair(field.name(), &number.to_string());
            }
        }
        format!("?{}", all.finish())
    }
}

fn page(field: Field, value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|it| (1..=PAGE_MAX).contains(it));
    number.ok_or_else(|| format!("{} is a whole number from 1 to {PAGE_MAX}", field.name()))
}

fn number(field: Field, value: &str, max: f64, note: &str) -> Result<f64, String> {
    let number = value.parse::<f64>().ok().filter(|it| (0.0..=max).contains(it));
    // Adding 0.0 turns -0.0 into 0.0.
    let most = if max < 1_000.0 { max.to_string() } else { format::number(max) };
    let expected = || format!("{} is a number from 0 to {most}{note}", field.name());
    number.map(|it| it + 0.0).ok_or_else(expected)
}

/// Returns ten to the power of `exponent`, with three significant digits.
fn power(exponent: f64) -> f64 {
    let unit = 10_f64.powf(exponent.floor() - 2.0);
    let digits = (10_f64.powf(exponent) / unit).round();
    // Division by a power of ten is exact; multiplication by its inverse is not.
    if unit < 1.0 { digits / unit.recip().round() } else { digits * unit }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn preview(query: &str) -> Option<Freshness> {
        Parameters::parse(Some(query)).settings(Freshness::default())
    }

    fn check(query: &str, policy: PolicyName, field: Field, value: f64) {
        let read = preview(query).unwrap();
        let aim = Some(Aim { field, value });
        assert_eq!((read.policy, Aim::of(read)), (policy, aim), "{query}");
        // The URL in a link asks for the same preview.
        let asked = Parameters::parse(Some(query));
        let address = asked.address(asked.sort, asked.page, asked.list);
        assert_eq!(preview(&address[1..]), Some(read), "{address}");
    }

    #[test]
    fn an_aim_implies_its_policy() {
        check("theta=0.95", PolicyName::Oap, Field::Theta, 0.95);
        check("policy=ioap&theta=0", PolicyName::Ioap, Field::Theta, 0.0);
        check("policy=uap", PolicyName::Uap, Field::Theta, Freshness::default().theta);
        check("price=1e3", PolicyName::CombinedCost, Field::Price, 1_000.0);
        check("price_power=3", PolicyName::CombinedCost, Field::Price, 1_000.0);
        check("price_power=0.3", PolicyName::CombinedCost, Field::Price, 2.0);
        check("pulls_per_hour=60&theta=", PolicyName::Budget, Field::PullsPerHour, 60.0);
        check("interval=90+min&utm=x", PolicyName::Fixed, Field::Interval, 5_400.0);
        let uap = Freshness { policy: PolicyName::Uap, ..Freshness::default() };
        let asked = Parameters::parse(Some("theta=0.5")).settings(uap).unwrap();
        assert_eq!((asked.policy, asked.theta), (PolicyName::Uap, 0.5));
        assert_eq!(preview(""), None, "no parameter, no preview");
        assert_eq!(preview("sort=name&page=2&list=3"), None);
    }

    #[test]
    fn mistakes_are_named() {
        for (query, field, said) in [
            ("theta=1", Field::Theta, "0 to 0.9999"),
            ("theta=-0.1", Field::Theta, "95 %"),
            ("theta=NaN", Field::Theta, "number"),
            ("theta=inf", Field::Theta, "number"),
            ("theta=0.9&theta=0.8", Field::Theta, "twice"),
            ("price=1e400", Field::Price, "to 1,000,000,000"),
            ("price_power=10", Field::PricePower, "0 to 9"),
            ("pulls_per_hour=%F0%9F%92%A9", Field::PullsPerHour, "number"),
            ("interval=0+s", Field::Interval, "365 days"),
            ("interval=5", Field::Interval, "such as"),
            ("policy=best", Field::Policy, "combined_cost"),
            ("policy=budget&theta=0.9", Field::Theta, "budget has no theta"),
            ("theta=0.9&price=5", Field::Price, "one aim"),
            ("sort=%3Cscript%3E", Field::Sort, "change or name"),
            ("page=0", Field::Page, "from 1"),
            ("list=99999999999999999999", Field::List, "from 1"),
            ("format=xml", Field::Format, "json"),
        ] {
            let asked = Parameters::parse(Some(query));
            let mistake = asked.mistake_in(field).unwrap_or_else(|| panic!("{query}: {asked:?}"));
            assert!(mistake.message.contains(said), "{query}: {}", mistake.message);
            assert_eq!(asked.settings(Freshness::default()), None, "{query}");
        }
        let long = Parameters::parse(Some(&format!("theta={}", "9".repeat(100_000))));
        assert!(long.mistakes[0].typed.len() <= VALUE_CHARS_MAX, "{long:?}");
    }

    #[test]
    fn durations_are_written_in_the_form_of_the_settings() {
        for secs in [0.1, 1.0, 59.5, 60.0, 90.0, 5_400.0, 86_400.0, 129_600.0, 7.0 * 86_400.0] {
            let written = duration_written(secs);
            assert_eq!(parse_duration(&written), Some(Duration::from_secs_f64(secs)), "{written}");
        }
        assert_eq!(duration_written(129_600.0), "36 h");
        assert_eq!(duration_written(86_400.0), "1 day");
    }

    proptest! {
        #[test]
        fn any_query_is_read_or_has_a_mistake(query in "\\PC{0,80}|((theta|price|interval|page|policy)=[-0-9a-z.+ %]{0,12}&?){0,4}") {
            let asked = Parameters::parse(Some(&query));
            if let Some(then) = asked.settings(Freshness::default()) {
                prop_assert!((0.0..=Freshness::THETA_MAX).contains(&then.theta));
                prop_assert!(0.0 < then.interval && then.interval.is_finite());
                prop_assert!((0.0..=Freshness::PULLS_MAX).contains(&then.price));
            }
        }
    }
}
