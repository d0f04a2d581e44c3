//! End-to-end tests of the library and the binary, one submodule a subject.
mod mcp_matrix;
