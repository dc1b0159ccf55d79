//! Volumes as a library: operations, models, power cuts.

mod contract;
mod crash;
mod full;
mod model;
mod page;
mod support;
