use crate::alike;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::out::{Out, confirm};
use crate::target::Target;
use crate::values::pool;
use clap::{Args, Subcommand};
use indelible::{Pool, Rights, RuleKind, SecurityContext};
use serde::Serialize;
use std::path::PathBuf;

/// Make, change and show security contexts: the rights of programs to objects
///
/// A security context is an object with rights to objects of the same pool: default ones, and
/// others object by object. A program that runs in a view and in security contexts gets each object
/// with the rights that the view asks for, as far as one of the contexts allows them; nothing is
/// refused before it is used. A mask limits the rights that its context gives to an object. A
/// delegation lets another context's rights count here as well, as a group's for its members.
/// Contexts keep programs from mistakes; they are no barrier against a program that means to pass
/// them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo context create data.pmo staff           gives nothing yet
  pmo context default data.pmo staff r        loads of every object
  pmo context allow data.pmo staff orders rw
  pmo context mask data.pmo staff wages none  not even loads of this one
  pmo context create data.pmo ann
  pmo context delegate data.pmo ann staff rw  what staff has, ann has
  pmo context list data.pmo staff
  pmo context rights data.pmo orders ann      what a program in this context may do
  pmo context clear data.pmo ann staff
  pmo run data.pmo --view work --context ann ./program

JSON: default; rules: an array of kind (allow, mask, delegate), id, object (name; null: there is no \
such object), rights. Of `rights`: object, contexts, rights")]
pub struct SecurityContexts {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a security context that gives nothing
    Create(Create),
    /// State the rights to all objects that it says nothing else of
    Default(Default),
    /// State the rights to an object
    Allow(Entry),
    /// Limit the rights to an object, delegated ones included
    Mask(Entry),
    /// Have another context's rights count here as well, these at most
    Delegate(Entry),
    /// Take away all that it says of an object, or of another context
    Clear(Clear),
    /// Show its rights, as the last change left them, attached or not
    List(Of),
    /// Show the rights to an object that contexts give together
    Rights(Effective),
}

#[derive(Debug, Args)]
struct Of {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the security context
    context: String,
}

#[derive(Debug, Args)]
struct Create {
    #[command(flatten)]
    of: Of,

    /// Number of entries, up to 65,536: each takes 128 bytes
    #[arg(long, default_value_t = 127)]
    entries: usize,
}

#[derive(Debug, Args)]
struct Default {
    #[command(flatten)]
    of: Of,

    /// r: loads. rw: loads and stores. none: no access
    #[arg(value_parser = rights)]
    rights: Wanted,
}

#[derive(Debug, Args)]
struct Entry {
    #[command(flatten)]
    of: Of,

    /// The object, or the other context, by name or as id: and 32 hexadecimal digits
    object: String,

    /// r: loads. rw: loads and stores. none: no access
    #[arg(value_parser = rights)]
    rights: Wanted,
}

#[derive(Debug, Args)]
struct Clear {
    #[command(flatten)]
    of: Of,

    /// The object, or the other context, by name or as id: and 32 hexadecimal digits
    object: String,
}

#[derive(Debug, Args)]
struct Effective {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// The object
    object: String,

    /// Names of the security contexts
    #[arg(required = true, value_name = "CONTEXT")]
    contexts: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Wanted(Option<Rights>);

fn rights(text: &str) -> std::result::Result<Wanted, String> {
    match text {
        "r" => Ok(Wanted(Some(Rights::READ))),
        "rw" => Ok(Wanted(Some(Rights::READ | Rights::WRITE))),
        "none" => Ok(Wanted(None)),
        _ => Err("rights are r, rw or none".to_owned()),
    }
}

fn shown(rights: Option<Rights>) -> &'static str {
    match rights {
        None => "none",
        Some(rights) if rights.has(Rights::WRITE) => "rw",
        Some(_) => "r",
    }
}

#[derive(Debug, Serialize)]
struct Rules {
    default: &'static str,
    rules: Vec<Rule>,
}

#[derive(Debug, Serialize)]
struct Rule {
    kind: &'static str,
    #[serde(flatten)]
    target: Target,
    rights: &'static str,
}

impl Rule {
    fn of(pool: &Pool, of: &indelible::Rule) -> Rule {
        let kind = match of.kind {
            RuleKind::Mask => "mask",
            RuleKind::Delegation => "delegate",
            _ => "allow",
        };
        Rule { kind, target: Target::of(pool, &of.target), rights: shown(of.rights) }
    }

    fn line(&self) -> Vec<String> {
        vec![self.kind.to_owned(), self.rights.to_owned(), self.target.shown()]
    }
}

#[derive(Debug, Serialize)]
struct Given<'a> {
    object: &'a str,
    contexts: &'a [String],
    rights: &'static str,
}

pub fn run(context: &Context, args: &SecurityContexts) -> Result {
    match &args.action {
        Action::Create(Create { of, entries }) => {
            let pool = context.open(&of.pool)?;
            SecurityContext::create(&pool, &of.context, *entries)?;
            confirm(context.json, &Rules { default: "none", rules: Vec::new() }, |_, out| {
                out.line(&format!("created {} with room for {entries} entries", object(&of.context)))
            })
        }
        Action::Default(args) => change(context, &args.of, |_, of| Ok(of.set_default(args.rights.0)?)),
        Action::Allow(args) => entry(context, args, SecurityContext::allow),
        Action::Mask(args) => entry(context, args, SecurityContext::mask),
        Action::Delegate(args) => entry(context, args, SecurityContext::delegate),
        Action::Clear(args) => change(context, &args.of, |pool, of| {
            let cleared = of.clear(&args.object);
            match cleared.map_err(|error| alike::explain(pool, &args.object, error))? {
                0 => {
                    let (of, about) = (object(&args.of.context), object(&args.object));
                    let message = format!("{of} says nothing of {about}");
                    Err(Failure::new(Exit::NotFound, message, "`pmo context list` shows what it says"))
                }
                _ => Ok(()),
            }
        }),
        Action::List(of) => {
            let pool = context.open_to_read(&of.pool)?;
            show(context.json, &pool, of)
        }
        Action::Rights(args) => effective(context, args),
    }
}

fn entry(
    context: &Context,
    args: &Entry,
    put: fn(&mut SecurityContext, &str, Option<Rights>) -> indelible::Result<()>,
) -> Result {
    change(context, &args.of, |pool, of| {
        let put = put(of, &args.object, args.rights.0);
        put.map_err(|error| alike::explain(pool, &args.object, error))
    })
}

fn effective(context: &Context, args: &Effective) -> Result {
    let pool = context.open_to_read(&args.pool)?;
    let rights = SecurityContext::rights(&pool, &args.contexts, &args.object)
        .map_err(|error| alike::explain(&pool, &args.object, error))?;
    let given = Given { object: &args.object, contexts: &args.contexts, rights: shown(rights) };
    let mut out = Out::new();
    match context.json {
        true => out.json(&given)?,
        false => out.line(given.rights)?,
    }
    out.finish()
}

fn change(context: &Context, of: &Of, change: impl FnOnce(&Pool, &mut SecurityContext) -> Result) -> Result {
    let pool = context.open(&of.pool)?;
    let opened = SecurityContext::open(&pool, &of.context);
    let mut opened = opened.map_err(|error| alike::explain(&pool, &of.context, error))?;
    change(&pool, &mut opened)?;
    opened.psync()?;
    drop(opened);
    if context.json { show(true, &pool, of) } else { Ok(()) }
}

fn show(json: bool, pool: &Pool, of: &Of) -> Result {
    let read = SecurityContext::read(pool, &of.context);
    let read = read.map_err(|error| alike::explain(pool, &of.context, error))?;
    let rules = read.rules.iter().map(|rule| Rule::of(pool, rule)).collect();
    let rules = Rules { default: shown(read.default), rules };
    let mut out = Out::new();
    if json {
        out.json(&rules)?;
    } else {
        let all = vec!["default".to_owned(), rules.default.to_owned(), "every other object".to_owned()];
        let lines: Vec<Vec<String>> = rules.rules.iter().map(Rule::line).chain([all]).collect();
        out.table(&lines, &[false, false, false])?;
    }
    out.finish()
}
