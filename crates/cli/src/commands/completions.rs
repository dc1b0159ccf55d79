//! `pmo completions`: for the shell.

use crate::args::{Cli, MkPmo};
use crate::failure::Result;
use crate::out::Out;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// Print completions for a shell, of pmo and mkpmo
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo completions bash > ~/.local/share/bash-completion/completions/pmo
  pmo completions zsh > ~/.zfunc/_pmo
  pmo completions fish > ~/.config/fish/completions/pmo.fish")]
pub struct Completions {
    /// Shell
    shell: Shell,
}

pub fn run(args: &Completions) -> Result {
    let mut text = Vec::new();
    generate(args.shell, &mut Cli::command(), "pmo", &mut text);
    // zsh looks for one command in a file.
    if args.shell != Shell::Zsh {
        generate(args.shell, &mut MkPmo::command(), "mkpmo", &mut text);
    }
    let mut out = Out::new();
    out.bytes(&text)?;
    out.finish()
}
