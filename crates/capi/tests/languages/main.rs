//! The interfaces as C and C++ programs meet them: installed in a fresh folder, compiled, killed.

mod boundary;
mod c;
mod ground;
mod header;
