//! Tests of a whole collection against models: damage of all kinds, and power cuts.

mod damage_model;
mod power_cut;
