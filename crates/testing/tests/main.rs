//! Tests of the simulated media, the crash enumerator and the judge of programs, in one program,
//! which links faster.

mod classes;
mod crash;
mod forged;
mod model;
mod oracle;
mod processes;
