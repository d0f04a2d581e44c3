//! Examples and exercises: the figures of the documents, to the digit.

mod example_3_9;
mod example_6_3;
mod exercise_9_1;
mod exercise_9_2;
mod exercise_9_3;
mod exercise_9_4;

use super::Proposition;

/// In the order of the document.
pub(super) const ALL: &[&Proposition] = &[
    &example_3_9::PROPOSITION,
    &example_6_3::PROPOSITION,
    &exercise_9_1::PROPOSITION,
    &exercise_9_2::PROPOSITION,
    &exercise_9_3::PROPOSITION,
    &exercise_9_4::PROPOSITION,
];
