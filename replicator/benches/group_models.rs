//! Models of groups: random costs of links, by a seed.

/// Pseudo-random numbers, the same for the same seed (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (it ^ (it >> 31)) % bound
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Model {
    /// Members anywhere on a square; the cost of a link is its length.
    Square,
    /// Sites of ten, far from each other.
    Sites,
    /// Each member has a line of its own, which all its links share.
    Lines,
    /// Random costs.
    Any,
    /// Random costs; one link in five is missing.
    Holes,
}

pub(crate) const MODELS: [Model; 5] =
    [Model::Square, Model::Sites, Model::Lines, Model::Any, Model::Holes];

/// Calls `set` for every link, with its two members and its cost.
pub(crate) fn make(
    model: Model,
    members: usize,
    seed: u64,
    mut set: impl FnMut(usize, usize, u32),
) {
    let mut dice = Dice(seed);
    let positions: Vec<(u64, u64)> =
        (0..members).map(|_| (dice.below(30_000), dice.below(30_000))).collect();
    for a in 0..members {
        for b in a + 1..members {
            let (one, other) = (positions[a], positions[b]);
            let square = one.0.abs_diff(other.0).pow(2) + one.1.abs_diff(other.1).pow(2);
            let cost = match model {
                Model::Square => square.isqrt(),
                Model::Sites if a / 10 == b / 10 => 200 + dice.below(50),
                Model::Sites => 80_000 + dice.below(5_000),
                Model::Lines => one.0 + other.0,
                Model::Holes if dice.below(5) == 0 => continue,
                Model::Any | Model::Holes => dice.below(1_000_000),
            };
            set(a, b, 1 + u32::try_from(cost).unwrap_or(u32::MAX - 2));
        }
    }
}
