use crate::bytes::exactly;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::{Out, show};
use crate::reading;
use crate::sealing::SealArgs;
use crate::text::printable;
use crate::values::pool;
use clap::Args;
use indelible::ReadHeap;
use indelible::retention::{FieldDefinition, TypeDefinition};
use serde::Serialize;
use std::path::PathBuf;

/// Show the types of the roots in an object: fields, offsets, sizes, types within types
///
/// The heap keeps a description of each root's type, as the program that made it had it. The object
/// is attached for reading meanwhile; if a process writes it, that process goes on, and the state
/// of its newest psync is shown. Nothing in it is changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo types data.pmo words               the types of all roots
  pmo types data.pmo words visits        of one of them
  pmo types data.pmo words --json | jq '.[].definitions[] | {name, size}'")]
pub struct Types {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// Name of a root; all of them if it is left out
    root: Option<String>,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

#[derive(Serialize)]
pub struct Root {
    root: String,
    #[serde(rename = "type")]
    ty: String,
    size: u64,
    fingerprint: String,
    /// Null without a description.
    definitions: Option<Vec<Definition>>,
    #[serde(skip)]
    lines: String,
}

#[derive(Serialize)]
struct Definition {
    name: String,
    kind: &'static str,
    size: u64,
    alignment: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<Field>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variants: Option<Vec<Variant>>,
}

#[derive(Serialize)]
struct Field {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    offset: u64,
    size: u64,
}

#[derive(Serialize)]
struct Variant {
    name: String,
    /// As text: tags have up to 128 bits.
    number: String,
    fields: Vec<Field>,
}

pub fn run(context: &Context, args: &Types) -> Result {
    let key = args.key.read()?;
    let pool = context.open_to_read(&args.pool)?;
    let heap = ReadHeap::open(reading::attach(&pool, &args.name, &key, &args.seal)?)?;
    let mut roots = heap.roots()?;
    if let Some(wanted) = &args.root {
        roots.retain(|root| root.name == *wanted);
        if roots.is_empty() {
            let message = format!("{} has no root {wanted:?}", object(&args.name));
            return Err(Failure::new(Exit::NotFound, message, "`pmo heap roots` lists the roots there are"));
        }
    }
    let roots: Vec<Root> = roots.iter().map(Root::of).collect();
    show(context.json, &roots, |roots, out| roots.iter().try_for_each(|root| root.text(out)))
}

impl Root {
    pub fn of(root: &indelible::Root) -> Root {
        Root {
            root: root.name.clone(),
            ty: root.type_name.clone(),
            size: root.size,
            fingerprint: format!("{:032x}", root.fingerprint),
            definitions: root.definitions().map(|all| all.into_iter().map(Definition::of).collect()),
            lines: root.lines(),
        }
    }

    fn text(&self, out: &mut Out) -> Result {
        let (name, ty) = (printable(&self.root), printable(&self.ty));
        out.line(&format!("{name}: {ty}, {}, fingerprint {}", exactly(self.size), self.fingerprint))?;
        if self.definitions.is_none() {
            out.line("  not described by the heap; the program that made it says:")?;
        }
        self.lines.lines().try_for_each(|line| out.line(&format!("  {}", printable(line))))
    }
}

impl Definition {
    fn of(ty: TypeDefinition) -> Definition {
        let variants: Option<Vec<Variant>> = ty.variants.map(|all| {
            let variant = |variant: indelible::retention::VariantDefinition| Variant {
                name: variant.name,
                number: variant.number.to_string(),
                fields: listed(variant.fields),
            };
            all.into_iter().map(variant).collect()
        });
        let is_enum = variants.is_some();
        Definition {
            name: ty.name,
            kind: if is_enum { "enum" } else { "struct" },
            size: ty.size,
            alignment: ty.align,
            fields: (!is_enum).then(|| listed(ty.fields)),
            variants,
        }
    }
}

fn listed(fields: Vec<FieldDefinition>) -> Vec<Field> {
    let field = |field: FieldDefinition| Field {
        name: field.name,
        ty: field.type_name,
        offset: field.offset,
        size: field.size,
    };
    fields.into_iter().map(field).collect()
}
