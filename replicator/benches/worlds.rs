//! Groups of members, made up by a seed: what their links cost.

/// Numbers that look random and are the same every time (SplitMix64).
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
pub(crate) enum World {
    /// Members anywhere on a square; a link costs as much as it is long.
    Square,
    /// Sites of ten, far from each other.
    Sites,
    /// Each member has a line of its own, which every link to it goes through.
    Lines,
    /// Any cost for any link.
    Any,
    /// As `Any`, but one link in five is not there.
    Holes,
}

pub(crate) const WORLDS: [World; 5] =
    [World::Square, World::Sites, World::Lines, World::Any, World::Holes];

/// Tells `set` of every link there is, between which two members, and what it costs.
pub(crate) fn make(
    world: World,
    members: usize,
    seed: u64,
    mut set: impl FnMut(usize, usize, u32),
) {
    let mut dice = Dice(seed);
    let places: Vec<(u64, u64)> =
        (0..members).map(|_| (dice.below(30_000), dice.below(30_000))).collect();
    for a in 0..members {
        for b in a + 1..members {
            let (one, other) = (places[a], places[b]);
            let square = one.0.abs_diff(other.0).pow(2) + one.1.abs_diff(other.1).pow(2);
            let cost = match world {
                World::Square => square.isqrt(),
                World::Sites if a / 10 == b / 10 => 200 + dice.below(50),
                World::Sites => 80_000 + dice.below(5_000),
                World::Lines => one.0 + other.0,
                World::Holes if dice.below(5) == 0 => continue,
                World::Any | World::Holes => dice.below(1_000_000),
            };
            set(a, b, 1 + u32::try_from(cost).unwrap_or(u32::MAX - 2));
        }
    }
}
