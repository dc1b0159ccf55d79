//! The interfaces of C and C++, as installed in a fresh folder.

mod beside;
mod blocks;
mod boundary;
mod c;
mod convert;
mod cookbook;
mod cpp;
mod examples;
mod far;
mod ground;
mod header;
mod kill;
mod leds;
mod libraries;
mod rebase;
mod services;
mod shared;
mod showpieces;
mod traps;
mod views;
