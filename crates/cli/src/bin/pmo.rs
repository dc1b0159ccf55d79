//! `pmo`: pools of persistent memory objects on the command line.

fn main() -> std::process::ExitCode {
    indelible_cli::pmo(std::env::args_os()).into()
}
