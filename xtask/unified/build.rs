//! Nothing: cargo looks at build dependencies of packages with a build script alone.

fn main() {}
