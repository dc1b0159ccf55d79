use crate::bytes::{exactly, human};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::{Out, show};
use crate::reading;
use crate::sealing::SealArgs;
use crate::text::{address, count, printable};
use crate::values::pool;
use clap::{Args, Subcommand};
use indelible::heap::{AuditedPointer, AuditedRoot, HeapAudit, HeapFinding};
use indelible::{Pool, ReadHeap};
use serde::Serialize;
use std::path::PathBuf;

/// Look into the heap of an object: its roots, damage, leaks, pointers that lead nowhere
///
/// The object is attached for reading meanwhile, so no writer changes it; if a process writes it
/// already, that process goes on, and the state of its newest psync is shown. Nothing in it is
/// changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo heap roots data.pmo words          the entry points of its data, and their types
  pmo heap check data.pmo words && echo fine
  pmo heap leaks data.pmo words --json | jq '.leaks | length'
  pmo heap audit data.pmo words          all of it

Values are gone through by the descriptions of types that the roots keep, behind raw pointers too if their targets are \
described. Blocks whose content is not described, such as those of containers of C++, are gone through word by word: a word that could be the address of a \
block counts as one. An address that a program keeps as a number of a described type does not count.")]
pub struct Heap {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the roots: name, type, size; with --types, the fields of all structs
    Roots {
        #[command(flatten)]
        of: Of,

        /// Show the layout of the types, too
        #[arg(long)]
        types: bool,
    },
    /// Verify the heap and the values in it; exit code 3 if something is wrong
    Check(Of),
    /// Blocks that nothing in the heap refers to; exit code 3 if there are any, or if the heap is
    /// damaged, so that they are not to be relied on
    Leaks(Of),
    /// Damage, leaks, and pointers that lead to no block in use; exit code 3 if there are any
    Audit(Of),
}

#[derive(Debug, Args)]
struct Of {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

#[derive(Serialize)]
struct Root {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    offset: u64,
    size: u64,
    fingerprint: String,
    layout: String,
}

#[derive(Serialize)]
struct Report {
    clean: bool,
    blocks: u64,
    owned: u64,
    referred: u64,
    /// Roots with undescribed types.
    undescribed: Vec<String>,
    /// The reason for each.
    reasons: Vec<String>,
    /// Number of findings. With any, leaks are unreliable: a damaged value may own lost blocks, and
    /// lead to others' blocks.
    damaged: u64,
    findings: Option<Vec<Finding>>,
    leaks: Option<Vec<Leak>>,
    pointers: Option<Vec<Pointer>>,
}

#[derive(Serialize)]
struct Finding {
    offset: u64,
    what: String,
}

#[derive(Serialize)]
struct Leak {
    offset: u64,
    size: u64,
}

#[derive(Serialize)]
struct Pointer {
    path: String,
    offset: u64,
    target: String,
    leads_to: String,
}

#[derive(Clone, Copy)]
struct Parts {
    findings: bool,
    leaks: bool,
    pointers: bool,
}

pub fn run(context: &Context, args: &Heap) -> Result {
    let all = Parts { findings: true, leaks: true, pointers: true };
    match &args.action {
        Action::Roots { of, types } => roots(context, of, *types),
        Action::Check(of) => audit(context, of, Parts { leaks: false, pointers: false, ..all }),
        Action::Leaks(of) => audit(context, of, Parts { findings: false, pointers: false, ..all }),
        Action::Audit(of) => audit(context, of, all),
    }
}

fn open(context: &Context, of: &Of) -> Result<(Pool, ReadHeap)> {
    let key = of.key.read()?;
    let pool = context.open_to_read(&of.pool)?;
    let heap = ReadHeap::open(reading::attach(&pool, &of.name, &key, &of.seal)?)?;
    Ok((pool, heap))
}

fn roots(context: &Context, of: &Of, types: bool) -> Result {
    let (_pool, heap) = open(context, of)?;
    let base = heap.object().as_ptr().addr();
    let of_root = |root: &indelible::Root| Root {
        name: root.name.clone(),
        ty: root.type_name.clone(),
        offset: (root.address - base) as u64,
        size: root.size,
        fingerprint: format!("{:032x}", root.fingerprint),
        layout: root.lines(),
    };
    let roots: Vec<Root> = heap.roots()?.iter().map(of_root).collect();
    show(context.json, &roots, |roots, out| {
        for Root { name, ty, offset, size, layout, .. } in roots {
            let (name, ty) = (printable(name), printable(ty));
            out.line(&format!("{name}: {ty}, {} at {offset}", exactly(*size)))?;
            for line in layout.lines().filter(|_| types) {
                out.line(&format!("  {}", printable(line)))?;
            }
        }
        Ok(())
    })
}

fn audit(context: &Context, of: &Of, parts: Parts) -> Result {
    let (pool, heap) = open(context, of)?;
    let report = match heap.check().as_slice() {
        [] => Report::of(&pool, &heap, &heap.audit()?, parts)?,
        damage => Report::damaged(damage),
    };
    show(context.json, &report, |report, out| report.text(&of.name, out))?;
    if report.clean { Ok(()) } else { Err(Failure::Quiet(Exit::Damaged)) }
}

impl Report {
    fn damaged(findings: &[HeapFinding]) -> Report {
        let (damaged, findings) = (findings.len() as u64, Some(listed(findings)));
        let (undescribed, reasons, leaks, pointers) = (Vec::new(), Vec::new(), None, None);
        Report {
            clean: false,
            blocks: 0,
            owned: 0,
            referred: 0,
            undescribed,
            reasons,
            damaged,
            findings,
            leaks,
            pointers,
        }
    }

    fn of(pool: &Pool, heap: &ReadHeap, audit: &HeapAudit, parts: Parts) -> Result<Report> {
        let base = heap.object().as_ptr().addr();
        let places = Places::of(pool)?;
        let pointer = |pointer: &AuditedPointer| Pointer {
            path: pointer.path.clone(),
            offset: pointer.offset,
            target: address(pointer.target),
            leads_to: if pointer.inside { "free memory".to_owned() } else { places.name(pointer.target) },
        };
        let leak = |block: &indelible::heap::Block| Leak {
            offset: (block.address - base) as u64,
            size: block.size as u64,
        };
        let because = |root: &AuditedRoot| Some((root.name.clone(), root.why_not.clone()?));
        let (undescribed, reasons) = audit.roots.iter().filter_map(because).unzip();
        let wrong = [
            // Findings make the other parts unreliable.
            !audit.findings.is_empty(),
            parts.leaks && !audit.leaks.is_empty(),
            parts.pointers && !audit.pointers.is_empty(),
        ];
        Ok(Report {
            clean: wrong == [false; 3],
            blocks: audit.blocks,
            owned: audit.owned,
            referred: audit.referred,
            undescribed,
            reasons,
            damaged: audit.findings.len() as u64,
            findings: parts.findings.then(|| listed(&audit.findings)),
            leaks: parts.leaks.then(|| audit.leaks.iter().map(leak).collect()),
            pointers: parts.pointers.then(|| audit.pointers.iter().map(pointer).collect()),
        })
    }

    fn text(&self, name: &str, out: &mut Out) -> Result {
        for Finding { offset, what } in self.findings.iter().flatten() {
            out.line(&format!("wrong at {offset}: {}", printable(what)))?;
        }
        for Pointer { path, target, leads_to, .. } in self.pointers.iter().flatten() {
            let leads_to = printable(leads_to);
            out.line(&format!("pointer {} is {target}, which leads to {leads_to}", printable(path)))?;
        }
        for Leak { offset, size } in self.leaks.iter().flatten() {
            out.line(&format!("leaked: {} at {offset}", exactly(*size)))?;
        }
        for (root, why) in self.undescribed.iter().zip(&self.reasons) {
            let (root, why) = (printable(root), printable(why));
            out.line(&format!("note: the type of root {root} is not described: {why}"))?;
        }
        if self.findings.is_none() && self.damaged > 0 {
            let damaged = count(self.damaged, "damaged value");
            out.line(&format!(
                "wrong: {damaged}, so that the figures for leaks are not to be relied on; \
                 `pmo heap check` says where"
            ))?;
        }
        let parts = [
            self.findings.as_ref().map(|all| count(all.len() as u64, "damaged value")),
            self.pointers.as_ref().map(|all| count(all.len() as u64, "lost pointer")),
            self.leaks.as_ref().map(|all| {
                let bytes = human(all.iter().map(|leak| leak.size).sum());
                format!("{} leaked ({bytes})", count(all.len() as u64, "block"))
            }),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        out.line(&format!(
            "{}: {} in use, {} owned by described values, {} referred to otherwise; {}",
            object(name),
            count(self.blocks, "block"),
            self.owned,
            self.referred,
            parts.join(", ")
        ))
    }
}

fn listed(findings: &[HeapFinding]) -> Vec<Finding> {
    findings
        .iter()
        .map(|HeapFinding { offset, what }| Finding { offset: *offset, what: what.clone() })
        .collect()
}

struct Places(Vec<(u64, u64, String)>);

impl Places {
    fn of(pool: &Pool) -> Result<Places> {
        let mut all = Vec::new();
        for stat in pool.list() {
            let stat = stat?;
            all.push((stat.address, stat.size, stat.name));
        }
        Ok(Places(all))
    }

    fn name(&self, target: u64) -> String {
        let found = self.0.iter().find(|(start, size, _)| target.wrapping_sub(*start) < *size);
        match found {
            Some((start, _, name)) => format!("{} at {}", object(name), target - start),
            None => "no object of the pool".to_owned(),
        }
    }
}
