//! End-to-end tests of the library and the binary, one submodule a subject.
mod cost;
mod explore;
mod explore_oracle;
mod gate;
mod mcp_cli;
mod mcp_field_reports;
mod mcp_hostile;
mod mcp_http;
mod mcp_matrix;
mod profile;
mod readme;
mod replay;
mod run;
mod support;
mod workspace;
