//! Tests of the simulated media, the enumerator of crashes and the judge of programs, in one
//! program: it links in the time of one.

mod classes;
mod crash;
mod forged;
mod model;
mod oracle;
mod processes;
