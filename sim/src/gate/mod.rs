//! The gate on the real file system: settings files found and loaded, hooks really run, cases in workspaces of their
//! own. The rules themselves are in `windtunnel_model::gate` and `windtunnel_model::hooks`.

pub mod case;
pub mod effects;
pub mod files;
pub mod http;
pub mod load;
pub mod run_hooks;
pub mod said;
pub mod server;
pub mod test_case;
