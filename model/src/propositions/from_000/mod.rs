//! The propositions of 000: correlation, negotiation, ends of calls, cost, hooks, skills, sources, termination.

mod blocking;
mod p3_4_1;
mod p3_4_2;
mod p3_4_3;
mod p3_4_4;
mod p4_2;
mod p4_3_1;
mod p7_1;
mod versions;

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[
    &p3_4_1::PROPOSITION,
    &p3_4_2::PROPOSITION,
    &p3_4_3::PROPOSITION,
    &p3_4_4::PROPOSITION,
    &p4_2::PROPOSITION,
    &p4_3_1::PROPOSITION,
    &p7_1::PROPOSITION,
];
