//! What stands in the context of each request, in bytes and tokens, and what it costs.
//!
//! A request has three layers, in the order in which the API reads them: tools, system, messages. This module states
//! which texts enter which layer ([`definition`], [`loading`], [`conversation`], [`listing`]), keeps the account of
//! them ([`ledger`]), says what the prompt cache gives back ([`cache`]), what is left after compaction
//! ([`compaction`]), and what all of it costs ([`price`], [`plan`]).
//!
//! Two ways to count must not be confused. A profile's own *decisions* (is the listing over its budget, does a skill
//! fit after compaction) use its characters per token; *reports* use a [`tokens::Counter`] that the caller chooses.

pub mod amounts;
pub mod cache;
pub mod compaction;
pub mod conversation;
pub mod cut;
pub mod definition;
pub mod ledger;
pub mod listing;
pub mod loading;
pub mod plan;
pub mod price;
pub mod request;
pub mod search;
pub mod tokens;
