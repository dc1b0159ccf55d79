//! `mkpmo`: `pmo format` under a name like mkfs.

fn main() -> std::process::ExitCode {
    indelible_cli::mkpmo(std::env::args_os()).into()
}
