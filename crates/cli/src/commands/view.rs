use crate::alike;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::out::{Out, confirm};
use crate::target::Target;
use crate::text::count;
use crate::values::pool;
use clap::{Args, Subcommand};
use indelible::{Pool, Rights, ViewSlot};
use serde::Serialize;
use std::path::PathBuf;

/// Make views, and change and show their slots: the objects that a program has in memory
///
/// A view is an object with slots. Each slot has an object of the same pool, and the rights that a
/// program asks for. A program attaches a view, and has each object from its first use on; `pmo
/// run` starts programs in a view, and starts them again after a death. Programs that have a view
/// find changes of it at their next use of an object that is new to them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo view create data.pmo work             a view with 126 slots
  pmo view set data.pmo work 0 counters rw
  pmo view set data.pmo work 1 names r --at-once
  pmo view list data.pmo work
  pmo view clear data.pmo work 1
  pmo cp data.pmo work copy-of-work         a view is copied as any object is
  pmo run data.pmo --view work ./program

JSON: an array of slots: slot, id, object (name; null: there is no such object), rights, at_once")]
pub struct View {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make an empty view
    Create(Create),
    /// Put an object into a slot
    Set(Set),
    /// Empty a slot
    Clear(Clear),
    /// Show the slots that are set, as the last change left them, attached or not
    List(Of),
}

#[derive(Debug, Args)]
struct Of {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the view
    view: String,
}

#[derive(Debug, Args)]
struct Create {
    #[command(flatten)]
    of: Of,

    /// Number of slots, up to 65,536: each takes 32 bytes
    #[arg(long, default_value_t = 126)]
    slots: usize,
}

#[derive(Debug, Args)]
struct Set {
    #[command(flatten)]
    of: Of,

    /// The slot
    slot: usize,

    /// The object, by name or as id: and 32 hexadecimal digits
    object: String,

    /// r: loads. rw: loads and stores
    #[arg(value_parser = rights)]
    rights: Rights,

    /// Attach the object together with the view, not when it is first used
    #[arg(long)]
    at_once: bool,
}

#[derive(Debug, Args)]
struct Clear {
    #[command(flatten)]
    of: Of,

    /// The slot
    slot: usize,
}

fn rights(text: &str) -> std::result::Result<Rights, String> {
    match text {
        "r" => Ok(Rights::READ),
        "rw" => Ok(Rights::READ | Rights::WRITE),
        _ => Err("rights are r or rw".to_owned()),
    }
}

#[derive(Debug, Serialize)]
struct Slot {
    slot: usize,
    #[serde(flatten)]
    target: Target,
    rights: &'static str,
    at_once: bool,
}

impl Slot {
    fn of(pool: &Pool, of: &ViewSlot) -> Slot {
        let rights = if of.rights.has(Rights::WRITE) { "rw" } else { "r" };
        Slot { slot: of.slot, target: Target::of(pool, &of.target), rights, at_once: of.at_once }
    }

    fn line(&self) -> Vec<String> {
        let when = if self.at_once { "at once" } else { "when used" };
        vec![self.slot.to_string(), self.rights.to_owned(), when.to_owned(), self.target.shown()]
    }
}

pub fn run(context: &Context, args: &View) -> Result {
    match &args.action {
        Action::Create(Create { of, slots }) => {
            let pool = context.open(&of.pool)?;
            indelible::View::create(&pool, &of.view, *slots)?;
            confirm(context.json, &Vec::<Slot>::new(), |_, out| {
                out.line(&format!("created {} with {}", object(&of.view), count(*slots as u64, "slot")))
            })
        }
        Action::Set(args) => change(context, &args.of, |pool, view| {
            let set = match args.at_once {
                true => view.set_at_once(args.slot, &args.object, args.rights),
                false => view.set(args.slot, &args.object, args.rights),
            };
            set.map_err(|error| alike::explain(pool, &args.object, error))
        }),
        Action::Clear(args) => change(context, &args.of, |_, view| match view.clear(args.slot)? {
            true => Ok(()),
            false => {
                let message = format!("slot {} of {} is empty", args.slot, object(&args.of.view));
                Err(Failure::new(Exit::NotFound, message, "`pmo view list` shows the slots that are set"))
            }
        }),
        Action::List(of) => {
            let pool = context.open_to_read(&of.pool)?;
            show(context.json, &pool, of)
        }
    }
}

fn change(context: &Context, of: &Of, change: impl FnOnce(&Pool, &mut indelible::View) -> Result) -> Result {
    let pool = context.open(&of.pool)?;
    let mut view =
        indelible::View::open(&pool, &of.view).map_err(|error| alike::explain(&pool, &of.view, error))?;
    change(&pool, &mut view)?;
    view.psync()?;
    drop(view);
    if context.json { show(true, &pool, of) } else { Ok(()) }
}

fn show(json: bool, pool: &Pool, of: &Of) -> Result {
    let slots =
        indelible::View::read(pool, &of.view).map_err(|error| alike::explain(pool, &of.view, error))?;
    let slots: Vec<Slot> = slots.iter().map(|slot| Slot::of(pool, slot)).collect();
    let mut out = Out::new();
    if json {
        out.array(slots)?;
    } else {
        let lines: Vec<Vec<String>> = slots.iter().map(Slot::line).collect();
        out.table(&lines, &[true, false, false, false])?;
    }
    out.finish()
}
