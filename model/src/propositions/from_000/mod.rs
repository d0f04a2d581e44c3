//! The propositions of 000: correlation, negotiation, ends of calls, cost, hooks, skills, sources, termination.

pub(super) mod blocking;
mod costs;
mod p3_3;
mod p3_4_1;
mod p3_4_2;
mod p3_4_3;
mod p3_4_4;
mod p3_5;
pub(super) mod p3_7;
mod p3_8_1;
mod p3_8_2;
mod p3_8_3;
mod p3_8_4;
pub(super) mod p4_2;
mod p4_3_1;
mod p4_3_2;
mod p4_3_3;
mod p4_5_1;
mod p4_5_2;
mod p5_2;
pub(super) mod p6_2;
pub(super) mod p7_1;
pub(super) mod versions;

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[
    &p3_3::PROPOSITION,
    &p3_4_1::PROPOSITION,
    &p3_4_2::PROPOSITION,
    &p3_4_3::PROPOSITION,
    &p3_4_4::PROPOSITION,
    &p3_5::PROPOSITION,
    &p3_7::PROPOSITION,
    &p3_8_1::PROPOSITION,
    &p3_8_2::PROPOSITION,
    &p3_8_3::PROPOSITION,
    &p3_8_4::PROPOSITION,
    &p4_2::PROPOSITION,
    &p4_3_1::PROPOSITION,
    &p4_3_2::PROPOSITION,
    &p4_3_3::PROPOSITION,
    &p4_5_1::PROPOSITION,
    &p4_5_2::PROPOSITION,
    &p5_2::PROPOSITION,
    &p6_2::PROPOSITION,
    &p7_1::PROPOSITION,
];
