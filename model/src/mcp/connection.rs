//! States of a server's connection and their transitions (M4, M9): small, `Copy`, explorable.
//!
//! Source: 004 (M4): connected, failed, needs-auth, disabled, pending; only connected servers' tools are in the pool;
//! needs-auth is not failure; reconnect with exponential backoff; on success rediscover; on giving up, failed. (M9): an
//! attempt has a timeout and ends in a state, never in an exception.

/// Where a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// An attempt is under way; so many attempts have failed before it.
    Pending {
        /// Failed attempts of this series.
        failures: u8,
    },
    /// Established: its tools are in the pool.
    Connected,
    /// Given up.
    Failed,
    /// Waits for the user to log in.
    NeedsAuth,
    /// Switched off by the user.
    Disabled,
}

/// What can happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The attempt succeeded.
    Established,
    /// The attempt failed or timed out.
    AttemptFailed,
    /// The server wants authorization (HTTP 401).
    Unauthorized,
    /// The user has logged in.
    Authorized,
    /// An established connection ended.
    Lost,
    /// The user switches it off.
    Disable,
    /// The user switches it on.
    Enable,
    /// A call, or the user, wants it again.
    Retry,
}

/// What follows from a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing.
    None,
    /// Begin an attempt after so many milliseconds.
    Attempt {
        /// From now.
        after_ms: u64,
    },
    /// Its lists are read and its tools enter the pool.
    Discover,
    /// Its tools leave the pool; and an attempt begins after so many milliseconds, where the transport reconnects.
    Withdraw {
        /// From now; `None`: no attempt by itself.
        attempt_after_ms: Option<u64>,
    },
}

/// How often and how fast a connection is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// Attempts of one series.
    pub attempts: u8,
    /// The wait before the second attempt.
    pub first_ms: u64,
    /// The longest wait.
    pub longest_ms: u64,
    /// Whether a lost connection is tried again by itself (remote servers are, stdio servers are not).
    pub reconnects: bool,
}

impl Backoff {
    /// Remote servers: five attempts, from 1 s, doubling (004; MCP documentation, automatic reconnection).
    pub const REMOTE: Self = Self { attempts: 5, first_ms: 1_000, longest_ms: 30_000, reconnects: true };
    /// Processes: one attempt, none by itself.
    pub const STDIO: Self = Self { attempts: 1, first_ms: 1_000, longest_ms: 1_000, reconnects: false };

    /// The wait after so many failures: doubling, bounded.
    pub fn wait_ms(self, failures: u8) -> u64 {
        let doubled = self.first_ms.checked_shl(u32::from(failures.saturating_sub(1))).unwrap_or(u64::MAX);
        let overflowed = u32::from(failures.saturating_sub(1)) >= self.first_ms.leading_zeros();
        if overflowed { self.longest_ms } else { doubled.min(self.longest_ms) }
    }
}

impl Status {
    /// Whether its tools are in the pool: exactly when it is connected (M4).
    pub fn in_pool(self) -> bool {
        self == Self::Connected
    }

    /// Applies a change. Total: a change that has no meaning in a state leaves it, with no effect.
    pub fn step(self, change: Change, backoff: Backoff) -> (Self, Effect) {
        let pending = Self::Pending { failures: 0 };
        let now = Effect::Attempt { after_ms: 0 };
        match (self, change) {
            (Self::Disabled, Change::Enable) => (pending, now),
            (Self::Disabled, _) => (self, Effect::None),
            (Self::Connected, Change::Disable) => {
                (Self::Disabled, Effect::Withdraw { attempt_after_ms: None })
            }
            (_, Change::Disable) => (Self::Disabled, Effect::None),
            (Self::Pending { .. }, Change::Established) => (Self::Connected, Effect::Discover),
            (Self::Pending { .. }, Change::Unauthorized) => (Self::NeedsAuth, Effect::None),
            (Self::Pending { failures }, Change::AttemptFailed | Change::Lost) => {
                let failures = failures.saturating_add(1);
                if failures >= backoff.attempts {
                    (Self::Failed, Effect::None)
                } else {
                    (Self::Pending { failures }, Effect::Attempt { after_ms: backoff.wait_ms(failures) })
                }
            }
            (Self::Connected, Change::Unauthorized) => {
                (Self::NeedsAuth, Effect::Withdraw { attempt_after_ms: None })
            }
            (Self::Connected, Change::Lost) if backoff.reconnects => {
                (pending, Effect::Withdraw { attempt_after_ms: Some(backoff.first_ms) })
            }
            (Self::Connected, Change::Lost) => (Self::Failed, Effect::Withdraw { attempt_after_ms: None }),
            (Self::Failed | Self::NeedsAuth, Change::Retry) | (Self::NeedsAuth, Change::Authorized) => {
                (pending, now)
            }
            _ => (self, Effect::None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const CHANGES: [Change; 8] = [
        Change::Established,
        Change::AttemptFailed,
        Change::Unauthorized,
        Change::Authorized,
        Change::Lost,
        Change::Disable,
        Change::Enable,
        Change::Retry,
    ];

    fn reachable(backoff: Backoff) -> BTreeSet<Status> {
        let mut seen = BTreeSet::from([Status::Pending { failures: 0 }]);
        let mut todo = vec![Status::Pending { failures: 0 }];
        while let Some(status) = todo.pop() {
            for change in CHANGES {
                let (next, _) = status.step(change, backoff);
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
        seen
    }

    /// M4 and M9, over every reachable state and change.
    #[test]
    fn m4_tools_enter_and_leave_with_the_state() {
        for backoff in [Backoff::REMOTE, Backoff::STDIO] {
            let all = reachable(backoff);
            assert_eq!(all.len(), usize::from(backoff.attempts) + 4);
            for status in all {
                for change in CHANGES {
                    let (next, effect) = status.step(change, backoff);
                    assert_eq!(
                        !status.in_pool() && next.in_pool(),
                        effect == Effect::Discover,
                        "{status:?} {change:?}"
                    );
                    assert_eq!(
                        status.in_pool() && !next.in_pool(),
                        matches!(effect, Effect::Withdraw { .. }),
                        "{status:?} {change:?}"
                    );
                    // Whatever is pending has an attempt under way or due.
                    let begins = matches!(
                        effect,
                        Effect::Attempt { .. } | Effect::Withdraw { attempt_after_ms: Some(_) }
                    );
                    if matches!(next, Status::Pending { .. }) && next != status {
                        assert!(begins, "{status:?} {change:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn backoff_doubles_and_is_bounded() {
        let waits: Vec<u64> = (1..=8).map(|n| Backoff::REMOTE.wait_ms(n)).collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(Backoff::REMOTE.wait_ms(u8::MAX), 30_000);
    }
}
