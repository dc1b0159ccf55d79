//! Indelible.
