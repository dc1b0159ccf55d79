//! `pmo-replicate`: the program behind `pmo replicate`.

#![forbid(unsafe_code)]

mod program;

fn main() -> std::process::ExitCode {
    program::main()
}
