//! The models are tests: `tests/main.rs`.
