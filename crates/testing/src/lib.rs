//! Simulated media for Indelible.
