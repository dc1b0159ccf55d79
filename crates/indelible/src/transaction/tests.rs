//! Rules of transactions that programs cannot reach.
