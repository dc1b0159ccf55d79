use crate::bytes::human;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::keys::KeyArgs;
use crate::out::{Out, show};
use crate::reading;
use crate::sealing::SealArgs;
use crate::text::{count, printable};
use crate::values::pool;
use clap::Args;
use indelible::retention::Comparison;
use indelible::{ReadHeap, Root, TypeInfo};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Compare the types in an object with those of a program whose types have changed
///
/// Each root is the same, only grew (fields behind the last ones of structs), or differs from a
/// named field on. Where it is not the same, the plan says whether it could be reset, and which
/// blocks that would free. Nothing is changed: converting and resetting are the program's work.
#[derive(Debug, Args)]
#[command(after_help = "\
The program writes its types to a file: `RootTypes::to_json` in Rust.

Examples:
  pmo migrate --plan data.pmo words --to types.json
  pmo migrate --plan data.pmo words --to types.json --json | jq '.[] | select(.types != \"same\")'")]
pub struct Migrate {
    /// Say what differs, and do nothing
    #[arg(long, required = true)]
    plan: bool,

    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// The types of the program, as `RootTypes::to_json` writes them
    #[arg(long, value_name = "FILE")]
    to: PathBuf,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

#[derive(Deserialize)]
struct Declared {
    version: u32,
    roots: Vec<DeclaredRoot>,
}

#[derive(Deserialize)]
struct DeclaredRoot {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    description: String,
}

#[derive(Serialize)]
struct Line {
    root: String,
    in_heap: Option<String>,
    in_program: Option<String>,
    types: Types,
    /// "here" is the heap, "there" the program.
    first_difference: Option<String>,
    /// Whether a reset is possible; null where the types are the same.
    reset: Option<Reset>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Reset {
    Frees { blocks: u64, bytes: u64 },
    Refused { refused: String },
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Types {
    Same,
    Appended,
    Differ,
    Undescribed,
    HeapOnly,
    ProgramOnly,
}

pub fn run(context: &Context, args: &Migrate) -> Result {
    let declared = read(&args.to)?;
    let key = args.key.read()?;
    let pool = context.open_to_read(&args.pool)?;
    let heap = ReadHeap::open(reading::attach(&pool, &args.name, &key, &args.seal)?)?;
    let roots = heap.roots()?;
    let mut lines: Vec<Line> = roots.iter().map(|root| Line::of(&heap, root, &declared.roots)).collect();
    let made = declared.roots.iter().filter(|new| roots.iter().all(|root| root.name != new.name));
    lines.extend(made.map(Line::only_in_program));
    show(context.json, &lines, |lines, out| lines.iter().try_for_each(|line| line.text(out)))
}

fn read(path: &Path) -> Result<Declared> {
    let text = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    let wrong = |why: String| {
        let message = format!("{} has no types of a program: {why}", path.display());
        Failure::new(Exit::Usage, message, "have the program write it with `RootTypes::to_json`")
    };
    let declared: Declared = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    match declared.version {
        1 => Ok(declared),
        version => Err(wrong(format!("version {version}; this tool knows version 1"))),
    }
}

impl Line {
    fn of(heap: &ReadHeap, root: &Root, declared: &[DeclaredRoot]) -> Line {
        let (name, in_heap) = (root.name.clone(), Some(root.type_name.clone()));
        let Some(new) = declared.iter().find(|new| new.name == root.name) else {
            return Line {
                root: name,
                in_heap,
                in_program: None,
                types: Types::HeapOnly,
                first_difference: None,
                reset: None,
            };
        };
        let (types, first_difference) = match root.compare(&TypeInfo::described(&new.ty, &new.description)) {
            Comparison::Same => (Types::Same, None),
            Comparison::Appended(first) => (Types::Appended, Some(first)),
            Comparison::Differs(first) => (Types::Differ, Some(first)),
            _ => (Types::Undescribed, None),
        };
        let reset = (types != Types::Same).then(|| match heap.reclaimable(&root.name) {
            Ok(found) => Reset::Frees { blocks: found.blocks, bytes: found.bytes },
            Err(error) => Reset::Refused { refused: error.to_string() },
        });
        Line { root: name, in_heap, in_program: Some(new.ty.clone()), types, first_difference, reset }
    }

    fn only_in_program(new: &DeclaredRoot) -> Line {
        Line {
            root: new.name.clone(),
            in_heap: None,
            in_program: Some(new.ty.clone()),
            types: Types::ProgramOnly,
            first_difference: None,
            reset: None,
        }
    }

    fn text(&self, out: &mut Out) -> Result {
        let heap = printable(self.in_heap.as_deref().unwrap_or_default());
        let program = printable(self.in_program.as_deref().unwrap_or_default());
        let first = printable(self.first_difference.as_deref().unwrap_or_default());
        let what = match self.types {
            Types::Same => format!("{heap}: the same"),
            Types::Appended => format!("{heap}: only grew; first, {first}"),
            Types::Differ => format!("{heap}: differs; first, {first}"),
            Types::Undescribed => format!("{heap} in the heap, {program} in the program, not both described"),
            Types::HeapOnly => format!("{heap}: in the heap only"),
            Types::ProgramOnly => format!("{program}: in the program only, which makes it"),
        };
        out.line(&format!("{}: {what}", printable(&self.root)))?;
        match &self.reset {
            Some(Reset::Frees { blocks, bytes }) => {
                out.line(&format!("  a reset frees {}, {}", count(*blocks, "block"), human(*bytes)))
            }
            Some(Reset::Refused { refused }) => {
                out.line(&format!("  a reset is refused: {}", printable(refused)))
            }
            None => Ok(()),
        }
    }
}
