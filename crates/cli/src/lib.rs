//! The command line of Indelible: `pmo`, and `mkpmo`, which is `pmo format`.
//!
//! A command is a file in `commands`: its arguments, and its function. The JSON output and the exit
//! statuses are stable.

#![forbid(unsafe_code)]

mod alike;
mod anchor;
mod args;
mod bytes;
mod commands;
mod context;
mod directory;
mod ends;
mod erasing;
mod exit;
mod failure;
mod glob;
mod global;
mod keys;
mod listing;
mod out;
mod passphrase;
mod process;
mod progress;
mod reading;
mod replicas;
mod rows;
mod run;
mod sealing;
mod signatures;
mod signing;
mod target;
mod terminal;
mod text;
mod values;

pub use run::{mkpmo, pmo};
