//! The colors of a chart, alone and in a page.
//!
//! The colors of the series serve light and dark backgrounds alike. Each has a contrast of at least
//! 3 to 1 to either (WCAG 2.2, 1.4.11), and any two differ for every kind of color vision. Within
//! those bounds they are as far apart as eight colors can be.

use super::SERIES_MAX;

/// Use of a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The background.
    Ground,
    /// Names and titles.
    Text,
    /// Ticks and axes.
    Muted,
    /// The grid.
    Line,
    /// The marks of the series of this index.
    Series(usize),
}

/// The roles that differ between light and dark.
pub(super) const SHADED: [Role; 4] = [Role::Ground, Role::Text, Role::Muted, Role::Line];

const SERIES: [&str; SERIES_MAX] =
    ["#0077bb", "#cc7744", "#bb22ff", "#dd0000", "#776655", "#2299cc", "#cc0099", "#998888"];

impl Role {
    /// Returns the name in class names, and the colors on a light ground, on a dark ground, and in
    /// a page that has none for this role.
    fn row(self) -> [&'static str; 4] {
        match self {
            Self::Ground => ["ground", "#ffffff", "#101512", "Canvas"],
            Self::Text => ["text", "#18211b", "#e4ebe6", "currentColor"],
            Self::Muted => ["muted", "#526058", "#a2b0a7", "currentColor"],
            Self::Line => ["line", "#d5ddd6", "#2c372f", "#808080"],
            Self::Series(index) => {
                let color = SERIES[index % SERIES_MAX];
                ["series", color, color, color]
            }
        }
    }

    pub(super) fn name(self) -> &'static str {
        self.row()[0]
    }

    pub(super) fn light(self) -> &'static str {
        self.row()[1]
    }

    pub(super) fn dark(self) -> &'static str {
        self.row()[2]
    }

    /// Returns the page's color for this role, or one that is visible on any background.
    pub(super) fn inherited(self) -> String {
        let [name, .., otherwise] = self.row();
        match self {
            Self::Series(index) => format!("var(--series-{}, {otherwise})", index + 1),
            _ => format!("var(--{name}, {otherwise})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Color = [f64; 3];

    /// Full color vision, then vision without one kind of cone, in linear RGB: Machado, Oliveira
    /// and Fernandes, "A physiologically-based model for simulation of color vision deficiency"
    /// (2009), severity 1.
    const VISION: [[Color; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    fn linear(hex: &str) -> Color {
        [1, 3, 5].map(|at| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: &[Color; 3], color: Color) -> Color {
        matrix.map(|row| row.iter().zip(color).map(|(a, b)| a * b).sum())
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let [a, b] = [a, b].map(|it| {
            let [red, green, blue] = linear(it);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        });
        a.max(b) / a.min(b)
    }

    /// Björn Ottosson's Oklab, whose distances are close to perceived ones.
    fn oklab(color: Color) -> Color {
        let cones = times(
            &[
                [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
                [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
                [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
            ],
            color,
        );
        times(
            &[
                [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
                [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
                [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
            ],
            cones.map(f64::cbrt),
        )
    }

    #[test]
    fn every_color_stands_out_from_light_and_dark() {
        // The last two: the pages' own ground and surface.
        for ground in [Role::Ground.light(), Role::Ground.dark(), "#f7f9f6", "#181f1a"] {
            for index in 0..SERIES_MAX {
                let color = Role::Series(index).light();
                assert!(contrast(color, ground) >= 3.0, "{color} on {ground}");
            }
        }
        for color in [Role::Text, Role::Muted] {
            assert!(contrast(color.light(), Role::Ground.light()) >= 4.5);
            assert!(contrast(color.dark(), Role::Ground.dark()) >= 4.5);
        }
    }

    #[test]
    fn any_two_colors_differ_for_every_color_vision() {
        for (index, a) in SERIES.iter().enumerate() {
            for b in &SERIES[..index] {
                for vision in &VISION {
                    let seen =
                        |hex| oklab(times(vision, linear(hex)).map(|it| f64::clamp(it, 0.0, 1.0)));
                    let apart: f64 =
                        seen(a).iter().zip(seen(b)).map(|(a, b)| (a - b).powi(2)).sum();
                    assert!(apart.sqrt() > 0.08, "{a} and {b}");
                }
            }
        }
    }
}
