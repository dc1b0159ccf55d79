use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use clap::Args;
use indelible_leds::{Compiler, Lock, Lowered, Problem, Request, lower};
use std::fs;
use std::path::{Path, PathBuf};

/// Lower extendible structs of C or C++ to plain ones, whose later fields lie in blocks of their
/// own
///
/// A source may have `extendible struct item { int id; EXTENSION(1) { int stock; INIT(struct item
/// *it) { it->stock = it->id; } } };`. The output is plain C or C++ with #line directives, in which
/// `p->stock` is looked for in a block that the struct links to. The first store to a field of an
/// extension makes it; a read of one that was not stored to gives what INIT computes. Data of
/// programs without the extension, or with further ones, stay as they are, and are used by all of
/// them. Included files with such structs become part of the output. The source includes <pmo.h>
/// before its first extendible struct.
///
/// Sources are understood by libclang, with the flags of the compiler behind --. Nothing is written
/// if something is wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo leds shop.c -o build/shop.c -- $(pkg-config --cflags pmo) -Iinclude
  pmo leds shop.c -o build/shop.c --lock layouts.lock
  pmo leds shop.c -o build/shop.c --lock layouts.lock --update-lock

With --lock, it fails if a layout that was released has changed. --update-lock notes the layouts of a release: commit the file.")]
pub struct Leds {
    /// The source
    source: PathBuf,

    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// File of the layouts as they were released: fail if one of them changed, or is not in it
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,

    /// Add new structs and extensions to the file of layouts
    #[arg(long, requires = "lock")]
    update_lock: bool,

    /// Write a rule for make with the files that the output depends on
    #[arg(long, value_name = "FILE")]
    depfile: Option<PathBuf>,

    /// Flags of the compiler
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

pub fn run(_: &Context, args: &Leds) -> Result {
    if args.output == args.source {
        let message = "the output would take the place of the source";
        return Err(Failure::new(Exit::Usage, message, "give it another name, or another folder"));
    }
    let compiler = Compiler::load().map_err(|error| {
        let (message, help) = error.split_once(": ").unwrap_or((&error, ""));
        Failure::new(Exit::Failed, message, help)
    })?;
    let lock = args.lock.as_ref().map(|path| Lock { path: path.clone(), update: args.update_lock });
    let request = Request { source: args.source.clone(), flags: flags(args), lock };
    let lowered = lower(&compiler, &request).map_err(|problems| failure(&problems))?;
    write(&args.output, &lowered.text)?;
    match &args.depfile {
        Some(path) => write(path, &rule(&args.output, &lowered)),
        None => Ok(()),
    }
}

fn flags(args: &Leds) -> Vec<String> {
    let mut flags = args.flags.clone();
    let tool = std::env::current_exe().ok();
    let include = tool.as_deref().and_then(Path::parent).map(|bin| bin.join("../include"));
    if let Some(include) = include.filter(|include| include.join("pmo.h").exists()) {
        flags.push(format!("-I{}", include.display()));
    }
    flags
}

fn write(path: &Path, text: &str) -> Result {
    fs::write(path, text).map_err(|error| Failure::file("write", path, &error))
}

fn rule(output: &Path, lowered: &Lowered) -> String {
    let name = |path: &Path| path.display().to_string().replace(' ', "\\ ").replace('$', "$$");
    let files: Vec<_> = lowered.files.iter().map(|path| name(path)).collect();
    format!("{}: {}\n", name(output), files.join(" \\\n  "))
}

fn failure(problems: &[Problem]) -> Failure {
    let help = "correct the source, or the flags behind --; nothing was written";
    let failure = |problem: &Problem| Failure::new(Exit::Failed, problem.to_string(), help);
    let Some((last, others)) = problems.split_last() else { return Failure::Quiet(Exit::Failed) };
    others.iter().for_each(|problem| failure(problem).report());
    failure(last)
}
