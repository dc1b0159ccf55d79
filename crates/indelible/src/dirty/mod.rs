//! dirty
