//! Derive macros of Indelible.
