//! `mkpmo`: `pmo format` under the name that people look for beside mkfs.

fn main() -> std::process::ExitCode {
    indelible_cli::mkpmo(std::env::args_os()).into()
}
