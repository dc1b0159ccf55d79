//! Check finds all damage and nothing else; repair brings intact data back.
//!
//! Invariants checked:
//! 1. The store alone leaves a clean pool, at every moment and after every crash.
//! 2. One wrong bit in any byte of the table in use is reported, and the store gives a typed error
//!    or the right data.
//! 3. After the loss of any part of the table, repair restores every object with an intact entry;
//!    losses are named.
//! 4. Repair can be interrupted anywhere and run again; run twice, it has nothing left to do.

mod bases;
mod clean;
mod damage;
mod dead_lanes;
mod found;
mod generations;
mod hostile;
mod killed;
mod neighbours;
mod rebuild;
mod sample;
mod spare;
mod ties;
mod typed;
mod writers;
