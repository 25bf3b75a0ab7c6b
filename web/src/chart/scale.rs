//! Positions of values on an axis, and its ticks.

use super::number;
use super::text;
use super::{Axis, CATEGORY_CHARS_MAX, Scale};

/// Values further from 0 are drawn at this distance from 0.
const VALUE_MAX: f64 = 1e150;

/// Values nearer to 0 are drawn as 0; on a logarithmic axis, values below this as this.
const VALUE_MIN: f64 = 1e-150;

/// A span below this share of the values is taken as none: its ticks would need too many digits.
const SPAN_MIN: f64 = 1e-12;

/// Share of a step by which a value may miss a whole step because of rounding.
const SLACK: f64 = 1e-9;

/// Maximum number of ticks on an axis of numbers, apart from the one at its start.
pub(super) const TICKS_MAX: usize = 8;

/// Maximum number of ticks on an axis of categories.
pub(super) const CATEGORIES_SHOWN_MAX: usize = 40;

/// Rule by which the range of an axis follows from its data.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fit {
    /// From the least to the largest value.
    Exact,
    /// With room at both ends, as a share of the whole.
    Padded(f64),
    /// With room at both ends: half of the least distance between values.
    Bars,
    /// Out to the next tick, including 0 if `zero`.
    Nice { zero: bool },
}

/// An axis with its range; positions are shares of its length, from 0 to 1.
#[derive(Clone, Debug)]
pub(super) struct Range<'a> {
    axis: &'a Axis,
    /// Lower end: a value, its decimal logarithm or an index, by the axis' scale.
    low: f64,
    /// Upper end, in the same form.
    high: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Tick {
    /// Its position.
    pub at: f64,
    /// Its label.
    pub label: String,
}

impl<'a> Range<'a> {
    /// Returns the range of `axis` for the `values` that it can show; `None` if it can show none.
    pub(super) fn new(axis: &'a Axis, values: impl Iterator<Item = f64>, fit: Fit) -> Option<Self> {
        let mut projected: Vec<f64> = values.filter_map(|value| project(axis, value)).collect();
        projected.sort_unstable_by(f64::total_cmp);
        let (low, high) = (*projected.first()?, *projected.last()?);
        let mut range = Self { axis, low, high };
        match (&axis.scale, fit) {
            (Scale::Categories(labels), _) => {
                (range.low, range.high) = (-0.5, labels.len() as f64 - 0.5);
            }
            (_, Fit::Exact) => range.widen(),
            (_, Fit::Padded(share)) => {
                range.widen();
                range.pad(share * (range.high - range.low));
            }
            (_, Fit::Bars) => {
                range.pad(gap(&projected) / 2.0);
                range.widen();
            }
            (_, Fit::Nice { zero }) => range.round(zero),
        }
        Some(range)
    }

    /// Returns the position of `value`; `None` for a gap.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        project(self.axis, value).map(|projected| self.share(projected))
    }

    /// Returns the position at which bars begin: 0, or the nearest end of the axis.
    pub(super) fn base(&self) -> f64 {
        match self.axis.scale {
            Scale::Linear => self.share(0.0),
            Scale::Logarithmic | Scale::Categories(_) => 0.0,
        }
    }

    /// Returns the room of a lone bar: its category, or the whole axis.
    pub(super) fn band(&self) -> f64 {
        match &self.axis.scale {
            Scale::Categories(labels) => 1.0 / labels.len() as f64,
            Scale::Linear | Scale::Logarithmic => 1.0,
        }
    }

    /// Returns about `count` ticks or fewer, in ascending order.
    pub(super) fn ticks(&self, count: usize) -> Vec<Tick> {
        match &self.axis.scale {
            Scale::Linear => {
                let step = step(self.high - self.low, count);
                let tick = |at: f64| self.tick(at, at, step);
                multiples(self.low, self.high, step).map(tick).collect()
            }
            Scale::Logarithmic => self.decades(count),
            Scale::Categories(labels) => {
                let every = every(labels.len().div_ceil(count.max(1)));
                let tick = |(index, label): (usize, &String)| Tick {
                    at: self.share(index as f64),
                    label: text::clip(label, CATEGORY_CHARS_MAX),
                };
                labels.iter().enumerate().step_by(every).map(tick).collect()
            }
        }
    }

    fn decades(&self, count: usize) -> Vec<Tick> {
        let span = self.high - self.low;
        let every = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].into_iter();
        let every = every.clone().find(|every| span / every <= count as f64).unwrap_or(100.0);
        let mantissas: &[f64] = if span * 3.0 <= count as f64 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let (low, high) = (self.low - SLACK, self.high + SLACK);
        let ticks: Vec<Tick> = multiples(self.low - 1.0, self.high, every)
            .flat_map(|decade| {
                let size = 10f64.powf(decade);
                mantissas
                    .iter()
                    .map(move |mantissa| (decade + mantissa.log10(), mantissa * size, size))
            })
            .filter(|(projected, _, _)| (low..=high).contains(projected))
            .map(|(projected, value, size)| self.tick(projected, value, size))
            .collect();
        if 1 < ticks.len() {
            return ticks;
        }
        // Within less than a decade, even steps show more.
        let (least, largest) = (10f64.powf(self.low), 10f64.powf(self.high));
        let step = step(largest - least, count);
        multiples(least, largest, step).map(|it| self.tick(it.log10(), it, step)).collect()
    }

    fn tick(&self, projected: f64, value: f64, step: f64) -> Tick {
        Tick { at: self.share(projected), label: number::show(value, step, self.axis.percent) }
    }

    fn share(&self, projected: f64) -> f64 {
        ((projected - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Widens a range whose ends are equal, or nearly so ([`SPAN_MIN`]).
    fn widen(&mut self) {
        let size = self.low.abs().max(self.high.abs());
        if self.high - self.low > size * SPAN_MIN {
            return;
        }
        let is_share = self.axis.percent && 0.0 <= self.low && self.high <= 1.0;
        let room = match self.axis.scale {
            Scale::Logarithmic => 0.5,
            _ if size > 0.0 => size / 5.0,
            _ => 1.0,
        };
        self.pad(room);
        if is_share && self.axis.scale == Scale::Linear {
            (self.low, self.high) = (self.low.max(0.0), self.high.min(1.0));
        }
    }

    fn pad(&mut self, room: f64) {
        self.low -= room;
        self.high += room;
    }

    /// Extends the range to ticks.
    fn round(&mut self, zero: bool) {
        match self.axis.scale {
            Scale::Logarithmic => {
                if zero {
                    // The smallest bar must be visible, too.
                    self.low -= 0.3;
                }
                self.widen();
                let fine = self.high - self.low < 2.0;
                self.low = round_log(self.low, false, fine);
                self.high = round_log(self.high, true, fine);
            }
            _ => {
                if zero {
                    (self.low, self.high) = (self.low.min(0.0), self.high.max(0.0));
                }
                self.widen();
                // A longer range may take a larger step.
                for _ in 0..2 {
                    let step = step(self.high - self.low, TICKS_MAX - 2);
                    self.low = self.low.min((self.low / step + SLACK).floor() * step);
                    self.high = self.high.max((self.high / step - SLACK).ceil() * step);
                }
            }
        }
    }
}

/// Returns `value` as `axis` places it: itself, or its decimal logarithm; `None` for a gap.
pub(super) fn project(axis: &Axis, value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    match &axis.scale {
        Scale::Linear if value.abs() < VALUE_MIN => Some(0.0),
        Scale::Linear => Some(value.clamp(-VALUE_MAX, VALUE_MAX)),
        Scale::Logarithmic => (value > 0.0).then(|| value.clamp(VALUE_MIN, VALUE_MAX).log10()),
        Scale::Categories(labels) => {
            (-0.5..=labels.len() as f64 - 0.5).contains(&value).then_some(value)
        }
    }
}

/// Returns the step from one labelled category to the next, at least `least`. Categories are often
/// months, so the step is whole years or a divisor of a year.
fn every(least: usize) -> usize {
    let part = [1, 2, 3, 4, 6].into_iter().find(|part| least <= *part);
    part.unwrap_or_else(|| least.next_multiple_of(12))
}

/// Returns the least distance between two of `sorted`; 0 if all are equal.
fn gap(sorted: &[f64]) -> f64 {
    let gaps = sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
    let least = gaps.fold(f64::INFINITY, f64::min);
    if least.is_finite() { least } else { 0.0 }
}

/// Returns the least 1, 2 or 5 times a power of ten that cuts `span` into at most `count` parts.
fn step(span: f64, count: usize) -> f64 {
    let least = span / count.max(1) as f64;
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|it| least <= it * power * (1.0 + SLACK));
    factor.unwrap_or(10.0) * power
}

/// Returns the multiples of `step` within a range, at most 1,000.
fn multiples(low: f64, high: f64, step: f64) -> impl Iterator<Item = f64> {
    let first = (low / step - SLACK).ceil();
    let last = (high / step + SLACK).floor();
    let many = (0..1000_u32).map(move |index| first + f64::from(index));
    many.take_while(move |index| *index <= last).map(move |index| (index * step).clamp(low, high))
}

/// Rounds a decimal logarithm `up` or down to that of a power of ten; if `fine`, to that of 1, 2 or
/// 5 times a power of ten.
fn round_log(projected: f64, up: bool, fine: bool) -> f64 {
    let mantissas: &[f64] = if fine { &[1.0, 2.0, 5.0, 10.0] } else { &[1.0, 10.0] };
    let mut marks = mantissas.iter().map(|mantissa| projected.floor() + mantissa.log10());
    let mark = match up {
        true => marks.find(|mark| projected - SLACK <= *mark),
        false => marks.rfind(|mark| *mark <= projected + SLACK),
    };
    mark.unwrap_or(projected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64], fit: Fit, count: usize) -> String {
        let range = Range::new(axis, values.iter().copied(), fit).unwrap();
        let labels: Vec<String> = range.ticks(count).into_iter().map(|tick| tick.label).collect();
        labels.join(" ").replace('\u{a0}', "")
    }

    #[test]
    fn even_ticks_are_round_numbers() {
        let check = |values: &[f64], fit, expected: &str| {
            assert_eq!(labels(&Axis::new(""), values, fit, 6), expected, "{values:?}");
        };
        let nice = Fit::Nice { zero: false };
        check(&[0.0, 1.0], nice, "0 0.2 0.4 0.6 0.8 1");
        check(&[0.13, 0.94], nice, "0 0.2 0.4 0.6 0.8 1");
        check(&[13.0, 1217.0], nice, "0 500 1000 1500");
        check(&[13.0, 1217.0], Fit::Exact, "500 1000");
        check(&[1013.0, 1017.0], nice, "1013 1014 1015 1016 1017");
        check(&[1013.0, 1017.0], Fit::Nice { zero: true }, "0 200 400 600 800 1000 1200");
        check(&[-7.0, -3.0], Fit::Nice { zero: true }, "−8 −6 −4 −2 0");
        check(&[5.0], nice, "4 4.5 5 5.5 6");
        check(&[0.0], nice, "−1 −0.5 0 0.5 1");
        check(&[f64::MAX, -f64::MAX, f64::NAN], nice, "−10¹⁵⁰ −5×10¹⁴⁹ 0 5×10¹⁴⁹ 10¹⁵⁰");
        check(&[1.0, 2.0, 4.0], Fit::Bars, "1 2 3 4");
    }

    #[test]
    fn percentages_stay_below_100() {
        let axis = Axis::new("").percent();
        assert_eq!(labels(&axis, &[1.0], Fit::Nice { zero: false }, 6), "80% 85% 90% 95% 100%");
        assert_eq!(
            labels(&axis, &[0.93, 1.0], Fit::Nice { zero: false }, 4),
            "92% 94% 96% 98% 100%"
        );
    }

    #[test]
    fn logarithmic_ticks_are_decades() {
        let check = |values: &[f64], fit, count, expected: &str| {
            assert_eq!(labels(&Axis::new("").logarithmic(), values, fit, count), expected);
        };
        let nice = Fit::Nice { zero: false };
        check(&[1.0, 1e4], Fit::Exact, 8, "1 10 100 1000 10,000");
        check(&[3.0, 70.0], nice, 8, "2 5 10 20 50 100");
        check(&[3.0, 700.0, 0.0, -5.0], nice, 8, "1 10 100 1000");
        check(&[1e-3, 1e12], nice, 8, "0.01 1 100 10,000 10⁶ 10⁸ 10¹⁰ 10¹²");
        check(&[32.0, 38.0], Fit::Exact, 8, "32 33 34 35 36 37 38");
        check(&[10.0], Fit::Exact, 8, "5 10 20");
        check(&[10.0, 100.0], Fit::Nice { zero: true }, 8, "5 10 20 50 100");
    }

    #[test]
    fn categories_are_thinned() {
        let axis = Axis::new("").categories((0..10).map(|it| format!("c{it}")));
        assert_eq!(labels(&axis, &[0.0], Fit::Exact, 4), "c0 c3 c6 c9");
        assert_eq!(labels(&axis, &[0.0], Fit::Exact, 1), "c0", "every twelfth");
        let range = Range::new(&axis, [0.0].into_iter(), Fit::Exact).unwrap();
        assert_eq!(range.position(4.5), Some(0.5));
        assert_eq!(range.position(9.6), None);
    }

    #[test]
    fn bars_begin_at_zero() {
        let check = |axis: &Axis, values: &[f64], expected: f64| {
            let fit = Fit::Nice { zero: true };
            let range = Range::new(axis, values.iter().copied(), fit).unwrap();
            assert!((range.base() - expected).abs() < 1e-12, "{values:?}");
        };
        check(&Axis::new(""), &[3.0, 10.0], 0.0);
        check(&Axis::new(""), &[-5.0, 5.0], 0.5);
        check(&Axis::new("").logarithmic(), &[3.0, 10.0], 0.0);
    }
}
