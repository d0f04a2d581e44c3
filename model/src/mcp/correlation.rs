//! The table of open requests: which answer belongs to which request (proposition 3.3).
//!
//! Q = requests sent and unanswered. If `id` is injective on Q, every answer matches at most one request, and the
//! matching does not depend on the order of arrival. The table keeps the ids of Q distinct: [`OpenRequests::open`]
//! refuses an id that is open. Legacy revisions forbid any reuse in a session, modern ones only reuse while open
//! (mcp.md 1.1); that is [`IdRule`]. Strict matching compares type and value, as the specification says; coercing
//! matching also accepts the other type with the same printed form, as Claude Code 2.1.332 does (mcp.md 3.3).
//!
//! Memory: one entry an open request, and under [`IdRule::NeverReused`] one id an answered request.

use super::jsonrpc::RequestId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// How an answer's id is compared with those of the open requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Matching {
    /// Type and value must be identical.
    Strict,
    /// `"1"` also answers `1`, and the reverse.
    Coercing,
}

/// When an id may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdRule {
    /// Never in the session (2025-11-25 and older).
    NeverReused,
    /// Once its request is answered (2026-07-28).
    NotWhileOpen,
}

/// Why an id cannot be used for a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DuplicateId {
    /// A request with this id is open: answers would have two candidates.
    #[error("the id is that of an open request")]
    Open,
    /// It was used before, which this era forbids.
    #[error("the id was used before in this session")]
    UsedBefore,
}

/// What an answer's id means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matched<T> {
    /// It answers this request.
    Request(T),
    /// It answers this request only after coercion: the id changed its type.
    Coerced(T),
    /// It was answered before.
    AlreadyAnswered,
    /// No request has this id. Under strict matching `coercible` names the open request that a coercing client would
    /// have taken.
    Unknown {
        /// The open id with the same printed form.
        coercible: Option<RequestId>,
    },
}

/// The open requests of one sender, in the order of sending.
#[derive(Clone, Debug)]
pub struct OpenRequests<T> {
    matching: Matching,
    rule: IdRule,
    by_id: FxHashMap<RequestId, u64>,
    in_order: BTreeMap<u64, (RequestId, T)>,
    answered: FxHashSet<RequestId>,
    next: u64,
}

impl<T> OpenRequests<T> {
    /// An empty table.
    pub fn new(matching: Matching, rule: IdRule) -> Self {
        Self {
            matching,
            rule,
            by_id: FxHashMap::default(),
            in_order: BTreeMap::new(),
            answered: FxHashSet::default(),
            next: 0,
        }
    }

    /// Notes a request as sent.
    ///
    /// # Errors
    /// When the id rule forbids the id; the table is unchanged then.
    pub fn open(&mut self, id: RequestId, request: T) -> Result<(), DuplicateId> {
        if self.by_id.contains_key(&id) {
            return Err(DuplicateId::Open);
        }
        if self.rule == IdRule::NeverReused && self.answered.contains(&id) {
            return Err(DuplicateId::UsedBefore);
        }
        self.answered.remove(&id);
        self.by_id.insert(id.clone(), self.next);
        self.in_order.insert(self.next, (id, request));
        self.next += 1;
        Ok(())
    }

    /// Takes the request that an answer with this id belongs to.
    pub fn answer(&mut self, id: &RequestId) -> Matched<T> {
        if let Some(request) = self.close(id) {
            self.answered.insert(id.clone());
            return Matched::Request(request);
        }
        if self.answered.contains(id) {
            return Matched::AlreadyAnswered;
        }
        let coercible = id.coerced().filter(|other| self.by_id.contains_key(other));
        match (self.matching, &coercible) {
            (Matching::Coercing, Some(other)) => match self.close(other) {
                Some(request) => {
                    self.answered.insert(other.clone());
                    Matched::Coerced(request)
                }
                None => Matched::Unknown { coercible },
            },
            _ => Matched::Unknown { coercible },
        }
    }

    /// Gives a request up (cancelled, timed out): its later answer counts as already answered.
    pub fn abandon(&mut self, id: &RequestId) -> Option<T> {
        let request = self.close(id)?;
        self.answered.insert(id.clone());
        Some(request)
    }

    /// The open requests, oldest first; the table is empty afterwards. What a closed connection leaves unanswered.
    pub fn drain(&mut self) -> Vec<(RequestId, T)> {
        self.by_id.clear();
        std::mem::take(&mut self.in_order).into_values().collect()
    }

    /// The open requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&RequestId, &T)> {
        self.in_order.values().map(|(id, request)| (id, request))
    }

    /// The open request with exactly this id.
    pub fn get(&self, id: &RequestId) -> Option<&T> {
        self.by_id.get(id).and_then(|place| self.in_order.get(place)).map(|(_, request)| request)
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.in_order.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    fn close(&mut self, id: &RequestId) -> Option<T> {
        let place = self.by_id.remove(id)?;
        self.in_order.remove(&place).map(|(_, request)| request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_the_text_one() {
        let mut open = OpenRequests::new(Matching::Strict, IdRule::NotWhileOpen);
        open.open(42.into(), "a").expect("free");
        open.open("42".into(), "b").expect("another id");
        assert_eq!(open.answer(&"42".into()), Matched::Request("b"));
        assert_eq!(open.answer(&"42".into()), Matched::AlreadyAnswered);
        assert_eq!(open.answer(&42.into()), Matched::Request("a"));
    }

    #[test]
    fn coercion_is_a_parameter() {
        let table = |matching| {
            let mut open = OpenRequests::new(matching, IdRule::NotWhileOpen);
            open.open(0.into(), ()).expect("free");
            open
        };
        assert_eq!(
            table(Matching::Strict).answer(&"0".into()),
            Matched::Unknown { coercible: Some(0.into()) }
        );
        assert_eq!(table(Matching::Coercing).answer(&"0".into()), Matched::Coerced(()));
    }

    #[test]
    fn exercise_9_2_reuse_after_the_answer() {
        for (rule, expected) in
            [(IdRule::NeverReused, Err(DuplicateId::UsedBefore)), (IdRule::NotWhileOpen, Ok(()))]
        {
            let mut open = OpenRequests::new(Matching::Strict, rule);
            open.open(7.into(), ()).expect("free");
            assert_eq!(open.open(7.into(), ()), Err(DuplicateId::Open));
            assert_eq!(open.answer(&7.into()), Matched::Request(()));
            assert_eq!(open.open(7.into(), ()), expected);
        }
    }
}
