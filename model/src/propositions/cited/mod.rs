//! Chapters that 000 only cites, restated because its propositions lean on them.

mod cache_3_3;
mod loop_3_4;
mod loop_3_5;
mod loop_4_1;
mod permissions_3_6;
mod permissions_7_2;

use super::Proposition;

/// In the order in which the chapters stand.
pub(super) const ALL: &[&Proposition] = &[
    &loop_3_4::PROPOSITION,
    &loop_3_5::PROPOSITION,
    &loop_4_1::PROPOSITION,
    &permissions_3_6::PROPOSITION,
    &permissions_7_2::PROPOSITION,
    &cache_3_3::PROPOSITION,
];
