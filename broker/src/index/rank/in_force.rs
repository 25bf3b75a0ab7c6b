//! The ranking that is in force: that of the settings, from the last start or reload.

use crate::index::schema::Fields;
use crate::index::{Index, Ranking, locked};

impl Index {
    /// Returns the ranking of all searches that begin now.
    pub fn ranking(&self) -> Ranking {
        *locked(&self.inner.ranking)
    }

    /// Replaces the ranking; searches that run keep theirs.
    pub fn set_ranking(&self, ranking: Ranking) {
        *locked(&self.inner.ranking) = ranking;
    }

    /// Returns the fields with the weights that are in force.
    pub(in crate::index) fn weighed(&self) -> Fields {
        self.ranking().weigh(&self.inner.fields)
    }
}
