use crate::context::Context;
use crate::exit::exit_codes;
use crate::failure::{Failure, Result};
use crate::out::Out;
use clap::{Args, Command};
use clap_mangen::Man as Page;
use std::io;
use std::path::{Path, PathBuf};

/// Print the manual page of pmo, or write the pages of all commands into a directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo man | man -l -
  pmo man ~/.local/share/man/man1")]
pub struct Man {
    /// Directory to write pmo.1, mkpmo.1, pmo-ls.1 and so on into; it is made if it is missing
    dir: Option<PathBuf>,
}

pub fn run(context: &Context, args: &Man) -> Result {
    let [pmo, mkpmo] = (context.command_lines)();
    let Some(dir) = &args.dir else {
        let mut out = Out::new();
        out.bytes(&page(pmo)?)?;
        return out.finish();
    };
    std::fs::create_dir_all(dir).map_err(|error| Failure::file("make the directory", dir, &error))?;
    write(dir, mkpmo)?;
    let mut built = pmo.clone();
    built.build();
    for command in built.get_subcommands().filter(|command| command.get_name() != "help") {
        // clap wants names that live as long as the program.
        let name: &'static str = format!("pmo-{}", command.get_name()).leak();
        write(dir, command.clone().name(name).display_name(name))?;
    }
    write(dir, pmo)
}

fn write(dir: &Path, command: Command) -> Result {
    let path = dir.join(format!("{}.1", command.get_name()));
    std::fs::write(&path, page(command)?).map_err(|error| Failure::file("write", &path, &error))
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // Examples and exit codes have their own sections.
    let examples = command.get_after_help().map(ToString::to_string);
    let page = Page::new(command.after_help("").after_long_help("")).manual("Indelible").section("1");
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    page.render_subcommands_section(&mut text)?;
    for (title, body) in [
        ("EXAMPLES", examples),
        ("EXIT STATUS", Some(exit_codes())),
        ("ENVIRONMENT", Some(ENVIRONMENT.into())),
    ] {
        if let Some(body) = body {
            text.extend(literal(title, &body).into_bytes());
        }
    }
    Ok(text)
}

const ENVIRONMENT: &str = "\
PMO_POOL       the pool, where POOL is left out or -
PMO_KEY        key of the object, where --key and --key-file are not given
PMO_READ_KEY   for pmo create: as --read-key
PMO_WRITE_KEY  for pmo create: as --write-key
NO_COLOR       if it is set and not empty: no color, unless --color says otherwise";

const WIDTH: usize = 100;

fn literal(title: &str, body: &str) -> String {
    let mut text = format!(".SH \"{title}\"\n.nf\n");
    for line in body.lines() {
        let is_long = line.chars().count() > WIDTH;
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A dot or quote at a line's start would be a request.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        text += &match is_long {
            true => format!(".fi\n{guard}{}\n.nf\n", line.trim_start()),
            false => format!("{guard}{line}\n"),
        };
    }
    text + ".fi\n"
}
