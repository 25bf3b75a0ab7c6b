//! Figures 3 to 9.
//!
//! Sans-I/O.

use std::fmt;
use std::str::FromStr;

use super::engine::Engine;
use super::{Costs, Mix, Table};
use freshness::interval::{Model, Policy, Source, plan};

/// The mix that the uniform policy of figures 4 and 5 assumes: 70 % T1.
const GUESS_T1: f64 = 0.7;
/// Value of a in figure 7.
const PRICE_DEFAULT: f64 = 10_000.0;

/// A figure of Adly's paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Cost of UAP divided by that of OAP(θ), by the mix of T1 and T4.
    Adly3,
    /// Freshness of UNAP, which assumes a mix of 70 % T1.
    Adly4,
    /// Cost of UNAP divided by that of OAP(θ).
    Adly5,
    /// Cost of IOAP divided by that of OAP(θ), by θ.
    Adly6,
    /// Combined cost by θ.
    Adly7,
    /// Least combined cost, and the cost and freshness where it is reached, by a.
    Adly8,
    /// As figure 8, when half of the last type's repositories have the weight 2.
    Adly9,
}

/// Settings of the figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The engine that evaluates policies.
    pub engine: Engine,
    /// The costs C_P of a pull and C_U of an update.
    pub costs: Costs,
    /// The number of repositories, M.
    pub repositories: usize,
    /// Values of θ, each within 0 to 1 (1 excluded); `None` for the figure's own.
    pub thetas: Option<Vec<f64>>,
    /// Mixes; `None` for the figure's own.
    pub mixes: Option<Vec<Mix>>,
    /// Values of a, the loss in a day in which everything is stale; `None` for the figure's own.
    pub prices: Option<Vec<f64>>,
}

impl Figure {
    /// All figures.
    pub const ALL: [Self; 7] =
        [Self::Adly3, Self::Adly4, Self::Adly5, Self::Adly6, Self::Adly7, Self::Adly8, Self::Adly9];

    /// Returns the title, in one line.
    pub fn title(self) -> &'static str {
        match self {
            Self::Adly3 => "Cost of a uniform interval over the optimum, by mix (Adly fig. 3)",
            Self::Adly4 => "Freshness of a uniform interval from a guessed mix (Adly fig. 4)",
            Self::Adly5 => {
                "Cost of a uniform interval from a guessed mix over the optimum (Adly fig. 5)"
            }
            Self::Adly6 => "Cost of each source for itself over the optimum, by θ (Adly fig. 6)",
            Self::Adly7 => "Combined cost by freshness (Adly fig. 7)",
            Self::Adly8 => "Least combined cost by the price of staleness (Adly fig. 8)",
            Self::Adly9 => "Least combined cost when half of the sources count twice (Adly fig. 9)",
        }
    }

    /// Computes the figure.
    pub fn table(self, settings: &Settings) -> Table {
        match self {
            Self::Adly3 => figure_3(settings),
            Self::Adly4 | Self::Adly5 => figures_4_and_5(self, settings),
            Self::Adly6 => figure_6(settings),
            Self::Adly7 => figure_7(settings),
            Self::Adly8 | Self::Adly9 => figures_8_and_9(self, settings),
        }
    }
}

/// `adly3` to `adly9`.
impl FromStr for Figure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| text.eq_ignore_ascii_case(&it.to_string()));
        found.ok_or_else(|| format!("the figures are adly3 to adly9; there is no {text:?}"))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = Self::ALL.into_iter().position(|it| it == *self).unwrap_or_default() + 3;
        write!(f, "adly{number}")
    }
}

impl Settings {
    fn sources(&self, mix: Mix) -> Vec<Source> {
        mix.sources(self.repositories, self.costs.pull)
    }

    fn cost_of(&self, sources: &[Source], policy: Policy) -> f64 {
        self.engine.run(sources, policy, self.costs).cost
    }

    fn thetas(&self, own: &[f64]) -> Vec<f64> {
        self.thetas.clone().unwrap_or_else(|| own.to_vec())
    }

    fn mixes(&self, own: impl IntoIterator<Item = Mix>) -> Vec<Mix> {
        self.mixes.clone().unwrap_or_else(|| own.into_iter().collect())
    }
}

/// Returns mixes with these shares of T1 in percent; the rest is T4.
fn t1_shares(percent: &[u8]) -> impl Iterator<Item = Mix> {
    percent.iter().map(|it| Mix::of_t1_and_t4(f64::from(*it) / 100.0))
}

fn majorities() -> impl Iterator<Item = Mix> {
    (0..4).map(Mix::majority).chain([Mix::EVEN])
}

fn figure_3(settings: &Settings) -> Table {
    let mixes = settings.mixes(t1_shares(&[75, 70, 65, 60, 55, 50, 45, 40, 35, 30]));
    let mut rows = Vec::new();
    for theta in settings.thetas(&[0.95, 0.96, 0.97, 0.98]) {
        for mix in &mixes {
            let sources = settings.sources(*mix);
            let ratio = settings.cost_of(&sources, Policy::Uniform { theta })
                / settings.cost_of(&sources, Policy::Optimal { theta });
            rows.push([theta, mix.t1(), ratio].map(Into::into).to_vec());
        }
    }
    Table { columns: vec!["theta", "t1_share", "ratio"], rows }
}

fn figures_4_and_5(figure: Figure, settings: &Settings) -> Table {
    let mixes = settings.mixes(t1_shares(&[80, 75, 70, 65, 60]));
    let guess = settings.sources(Mix::of_t1_and_t4(GUESS_T1));
    let mut rows = Vec::new();
    for theta in settings.thetas(&[0.85, 0.9, 0.95, 0.98]) {
        let guessed = plan(&guess, Policy::Uniform { theta }, Model::Printed);
        let interval = guessed.intervals.first().copied();
        let policy = Policy::Fixed { interval: interval.unwrap_or(f64::INFINITY) };
        for mix in &mixes {
            let sources = settings.sources(*mix);
            let shown = if figure == Figure::Adly4 {
                settings.engine.run(&sources, policy, settings.costs).freshness
            } else {
                settings.cost_of(&sources, policy)
                    / settings.cost_of(&sources, Policy::Optimal { theta })
            };
            rows.push([theta, mix.t1(), shown].map(Into::into).to_vec());
        }
    }
    let shown = if figure == Figure::Adly4 { "freshness" } else { "ratio" };
    Table { columns: vec!["theta", "t1_share", shown], rows }
}

fn figure_6(settings: &Settings) -> Table {
    let mixes = settings.mixes(majorities());
    let mut rows = Vec::new();
    for theta in settings.thetas(&[0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]) {
        for mix in &mixes {
            let sources = settings.sources(*mix);
            let ratio = settings.cost_of(&sources, Policy::Individual { theta })
                / settings.cost_of(&sources, Policy::Optimal { theta });
            rows.push(vec![theta.into(), mix.to_string().into(), ratio.into()]);
        }
    }
    Table { columns: vec!["theta", "majority", "ratio"], rows }
}

fn figure_7(settings: &Settings) -> Table {
    let own: Vec<f64> = (0..50_u8).map(|it| 0.5 + f64::from(it) / 100.0).collect();
    let mixes = settings.mixes(majorities());
    let mut rows = Vec::new();
    for price in settings.prices.as_deref().unwrap_or(&[PRICE_DEFAULT]) {
        for mix in &mixes {
            let sources = settings.sources(*mix);
            for theta in settings.thetas(&own) {
                let policy = Policy::Optimal { theta };
                let found = settings.engine.run(&sources, policy, settings.costs);
                let combined = price * (1.0 - found.freshness) + found.cost;
                let (price, mix) = (*price, mix.to_string());
                rows.push(vec![price.into(), theta.into(), mix.into(), combined.into()]);
            }
        }
    }
    Table { columns: vec!["a", "theta", "majority", "combined_cost"], rows }
}

fn figures_8_and_9(figure: Figure, settings: &Settings) -> Table {
    const PRICES: [f64; 7] = [1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7];
    let mut rows = Vec::new();
    for mix in settings.mixes([Mix::majority(3)]) {
        let mut sources = settings.sources(mix);
        if figure == Figure::Adly9 {
            let last = mix.counts(settings.repositories)[3];
            for source in sources.iter_mut().rev().take(last / 2) {
                source.weight = 2.0;
            }
        }
        for price in settings.prices.as_deref().unwrap_or(&PRICES) {
            let policy = Policy::CombinedCost { price: *price };
            let found = settings.engine.run(&sources, policy, settings.costs);
            let combined = price * found.stale_weighted + found.cost;
            let mix = mix.to_string().into();
            let [price, combined, cost, fresh] =
                [*price, combined, found.cost, found.freshness].map(Into::into);
            rows.push(vec![price, mix, combined, cost, fresh]);
        }
    }
    Table { columns: vec!["a", "majority", "min_combined_cost", "cost", "freshness"], rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Experiment;

    /// Returns the last cell of the row that begins with `begins`.
    fn at(figure: Figure, begins: &str) -> f64 {
        let csv = figure.table(&Settings::paper()).to_csv();
        let row = csv.lines().find(|it| it.starts_with(begins));
        row.and_then(|it| it.rsplit(',').next()).and_then(|it| it.parse().ok()).expect(begins)
    }

    fn check(figure: Figure, begins: &str, expected: f64) {
        let found = at(figure, begins);
        assert!((found - expected).abs() < 0.0005, "{figure} {begins}: {found}");
    }

    /// Ids `fig3.*` to `fig9.*`.
    #[test]
    fn figures_are_as_expected() {
        check(Figure::Adly3, "0.95,0.5,", 1.207_835);
        check(Figure::Adly3, "0.98,0.75,", 1.706_331);
        check(Figure::Adly4, "0.85,0.8,", 0.863_649);
        check(Figure::Adly4, "0.95,0.6,", 0.947_231);
        check(Figure::Adly5, "0.95,0.8,", 1.637_248);
        check(Figure::Adly5, "0.9,0.6,", 1.156_365);
        check(Figure::Adly6, "0.9,T2,", 1.252_025);
        check(Figure::Adly6, "0.6,even,", 1.032_969);
        check(Figure::Adly8, "100000,T4,", 0.691_367);
        check(Figure::Adly8, "10000000,T4,", 0.969_137);
        check(Figure::Adly9, "500000,T4,", 0.879_875);
        check(Figure::Adly9, "5000000,T4,", 0.962_013);
    }

    /// Ids `fig8.Min_CC.*`, `fig8.C_H.*` and `fig9.Min_CC.*`.
    #[test]
    fn the_least_combined_cost_is_the_formula_s() {
        for (figure, row, column, expected) in [
            (Figure::Adly8, 6, 2, 983_266.073_922),
            (Figure::Adly8, 2, 3, 435_012.445_075),
            (Figure::Adly9, 0, 2, 439_047.233_188),
            (Figure::Adly9, 6, 2, 1_096_472.331_879),
        ] {
            let table = figure.table(&Settings::paper());
            let found = table.rows[row][column].number().unwrap();
            assert!((found - expected).abs() < 0.5, "{figure} {row} {column}: {found}");
        }
    }

    /// The scheduler, which learns rates, agrees with the equations at settings not in the paper.
    #[test]
    fn the_engines_agree() {
        let free = Settings {
            engine: Engine::Equation,
            costs: Costs { update: 0.3, pull: 70.0 },
            repositories: 23,
            thetas: Some(vec![0.83, 0.91]),
            mixes: Some(vec!["40:5:10:45".parse().unwrap()]),
            prices: Some(vec![70_000.0]),
        };
        let experiment = Experiment { days: 1_000.0, seed: 3, gain: 0.25 };
        let played = Settings { engine: Engine::Event(experiment), ..free.clone() };
        for figure in Figure::ALL {
            let (computed, played) = (figure.table(&free), figure.table(&played));
            for (one, other) in computed.rows.iter().flatten().zip(played.rows.iter().flatten()) {
                match (one.number(), other.number()) {
                    (Some(one), Some(other)) => {
                        let off = (other / one - 1.0).abs();
                        assert!(off < 0.01, "{figure}: {other} played, {one} computed");
                    }
                    _ => assert_eq!(one, other),
                }
            }
        }
    }

    #[test]
    fn settings_are_free() {
        let mixes = Some(vec!["60:20:10:10".parse().unwrap()]);
        let settings = Settings {
            repositories: 7,
            thetas: Some(vec![0.42]),
            mixes,
            prices: Some(vec![3.0]),
            costs: Costs { update: 0.0, pull: 9.0 },
            engine: Engine::Equation,
        };
        for figure in Figure::ALL {
            assert_eq!(figure.to_string().parse(), Ok(figure));
            let table = figure.table(&settings);
            assert_eq!(table.rows.len(), 1, "{figure}");
            assert_eq!(table.rows[0].len(), table.columns.len());
        }
        let nobody = Settings { repositories: 0, ..settings };
        for figure in Figure::ALL {
            assert_eq!(figure.table(&nobody).rows.len(), 1);
        }
    }
}
