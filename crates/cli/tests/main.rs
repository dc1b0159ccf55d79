//! The tool as a person or a script uses it; in one program, which links in the time of one.

mod backups;
mod bad_pools;
mod chains;
mod classes;
mod clones;
mod common;
mod daily;
mod damage;
mod edges;
mod grow;
mod guard;
mod heaps;
mod keys_given;
mod leds;
mod logs;
mod objects;
mod output;
mod references;
mod scrub;
mod sealing;
mod signing;
mod snapshots;
mod states;
mod types;
mod upgrade;
mod views;
