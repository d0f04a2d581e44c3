//! The environment that children get: an allowlist, so that the caller's secrets do not reach them.

use std::ffi::OsString;

/// What is passed on without being asked: what a shell, an interpreter and a locale need.
pub const ALLOWED: [&str; 9] =
    ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "LOGNAME", "SHELL"];

/// What the caller wants passed on besides (`--pass-env`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PassEnv {
    /// Nothing besides [`ALLOWED`].
    #[default]
    None,
    /// These names.
    Names(Vec<String>),
    /// Everything, as the real harness does.
    All,
}

impl PassEnv {
    /// Reads the values of `--pass-env`.
    pub fn from_flags(flags: &[String]) -> Self {
        if flags.iter().any(|flag| flag == "all") {
            Self::All
        } else if flags.is_empty() {
            Self::None
        } else {
            Self::Names(flags.to_vec())
        }
    }
}

/// The environment of a child: the allowlist, what `pass` adds, our marker, then `extra` (which wins).
pub fn child_environment(pass: &PassEnv, extra: &[(String, String)]) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| {
            let Some(name) = name.to_str() else { return *pass == PassEnv::All };
            ALLOWED.contains(&name)
                || match pass {
                    PassEnv::None => false,
                    PassEnv::Names(names) => names.iter().any(|n| n == name),
                    PassEnv::All => true,
                }
        })
        .collect();
    environment.push((super::MARKER.into(), std::process::id().to_string().into()));
    for (name, value) in extra {
        environment.retain(|(n, _)| n.to_str() != Some(name));
        environment.push((name.into(), value.into()));
    }
    environment
}
