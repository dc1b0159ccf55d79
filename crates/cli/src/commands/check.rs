use super::references::References;
use crate::alike;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::keys::KeyArgs;
use crate::out::{Out, show};
use crate::process::is_zero;
use crate::progress;
use crate::sealing::SealArgs;
use crate::text::{count, printable};
use crate::values::pool;
use clap::Args;
use indelible::{BrokenPage, ErrorKind, Pool, Severity, Stat};
use indelible_backup::left_beside;
use serde::Serialize;
use std::path::PathBuf;

/// Verify a whole pool; nothing in it is changed
///
/// Reads every structure of the pool and reports damage: the structure, its offset, the object
/// concerned, and advice. Works on pools that cannot be opened, truncated ones too, and beside
/// programs that use the pool. Contents of objects have no checksums, so they are not judged; those
/// of sealed objects are, with `--seals` and their seal key, and those of objects whose ID is the
/// hash of their content (`pmo put --by-content`), unless reading them needs another key than the
/// one that is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo check data.pmo
  pmo check data.pmo && echo fine         exit code 3: something is wrong
  pmo check data.pmo --json | jq '.findings[] | select(.severity == \"error\")'
  pmo check data.pmo --seals --seal-key-file ledger.key
  pmo check data.pmo --references --with more.pmo

JSON:
  {\"clean\":false,\"objects\":12,\"lanes\":1,\"waiting\":0,\"left_off\":0,
   \"findings\":[{\"severity\":\"error\",\"part\":\"table entry\",\"offset\":593920,\"object\":\"counters\",
                \"what\":\"…\",\"remedy\":\"…\"}]}
  severity is note, warning or error; clean means that there are notes at most. waiting counts psyncs of \
writers that died, which the next attach completes. left_off counts findings beyond those listed. \
With --seals there is \"seals\":[{\"object\":\"ledger\",\"opened\":true,\"named\":true,\"pages\":25,\"broken\":[{\"page\":5,\"what\":\"of its contents\"}]}], \
and clean means that no page is broken, too; opened is false if the seal key is another object's; named is false if it was sealed under another name, and null if an earlier release sealed it. \
contents counts the objects whose ID is the hash of their content, changed names those that have another content now. \
With --references there is \"references\":{\"left_out\":[],\"dangling\":[{\"object\":\"graph\",\"entry\":1, \
\"target\":\"…32 hex digits…\",\"path\":\"first.next\",\"what\":\"…\"}]}, and clean means that none dangles, too.")]
pub struct Check {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Verify every page of the sealed objects that the seal key opens, also of attached ones;
    /// giving a seal key has the same effect
    #[arg(long)]
    seals: bool,

    /// Find far pointers that lead to no object, or beyond one, too; objects that processes write
    /// are left out
    #[arg(long)]
    references: bool,

    /// With --references: another pool in which objects are looked for; may be given several times
    #[arg(long = "with", value_name = "POOL", requires = "references")]
    with: Vec<PathBuf>,

    #[command(flatten)]
    seal: SealArgs,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Seals {
    object: String,
    /// Whether the seal key opens it.
    opened: bool,
    /// Whether it was sealed under its name; `None`: made by an earlier release, or not opened.
    named: Option<bool>,
    pages: u64,
    broken: Vec<Broken>,
}

#[derive(Serialize)]
struct Broken {
    page: u64,
    what: &'static str,
}

#[derive(Serialize)]
pub struct Report {
    clean: bool,
    objects: u64,
    lanes: u32,
    waiting: u64,
    left_off: u64,
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seals: Vec<Seals>,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<References>,
    contents: u64,
    changed: Vec<String>,
    /// Sealed objects that the seal key opens, and that were not verified for want of another key.
    #[serde(skip_serializing_if = "is_zero")]
    unverified: usize,
}

#[derive(Serialize)]
struct Finding {
    severity: &'static str,
    part: String,
    offset: u64,
    object: Option<String>,
    what: String,
    remedy: String,
}

impl Finding {
    fn of_seal(severity: &'static str, object: &str, error: indelible::Error) -> Finding {
        let remedy = match error.kind() {
            ErrorKind::Damaged => {
                "if it is meant to have no signature, or another one, check it without --verify-key-file, or with \
                 its own; else go back to a backup or a snapshot that the key verifies"
            }
            _ => "check again with its verify key (--verify-key-file), or its anchor (--anchor)",
        };
        Finding {
            severity,
            part: "seal".to_owned(),
            offset: 0,
            object: Some(object.to_owned()),
            what: error.to_string(),
            remedy: remedy.to_owned(),
        }
    }
}

impl Report {
    pub fn of(report: &indelible::Report) -> Self {
        let findings = report.findings.iter().map(|finding| Finding {
            severity: match finding.severity {
                Severity::Note => "note",
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            part: finding.part.to_string(),
            offset: finding.offset,
            object: finding.object.clone(),
            what: finding.what.clone(),
            remedy: finding.remedy.clone(),
        });
        Report {
            clean: report.is_clean(),
            objects: report.objects,
            lanes: report.lanes,
            waiting: report.waiting,
            left_off: report.left_off,
            findings: findings.collect(),
            seals: Vec::new(),
            references: None,
            contents: report.contents,
            changed: Vec::new(),
            unverified: 0,
        }
    }

    pub fn verdict(&self) -> Result {
        match (self.clean, self.unverified) {
            (false, _) => Err(Failure::Quiet(Exit::Damaged)),
            (true, 1..) => Err(Failure::Quiet(Exit::Denied)),
            (true, 0) => Ok(()),
        }
    }

    pub fn text(&self, out: &mut Out) -> Result {
        for Finding { severity, part, offset, object, what, remedy } in &self.findings {
            let object =
                object.as_ref().map(|name| format!("{}: ", crate::failure::object(name))).unwrap_or_default();
            out.line(&format!("{severity}: {part} at {offset}: {object}{}", printable(what)))?;
            out.line(&format!("  help: {}", printable(remedy)))?;
        }
        for Seals { object, opened, named, broken, .. } in &self.seals {
            let object = crate::failure::object(object);
            let note = match (opened, named) {
                (false, _) => "is sealed by another key: it was not verified",
                (_, Some(false)) => {
                    "was sealed under another name: it is a copy or a snapshot, or was renamed or exchanged without its key"
                }
                (_, None) if broken.is_empty() => {
                    "was sealed by an earlier release, without its name: `pmo key bind` seals that, too"
                }
                _ => "",
            };
            if !note.is_empty() {
                out.line(&format!("note: {object} {note}"))?;
            }
            for Broken { page, what } in broken {
                out.line(&format!("error: {object}: page {page}, {what}, is not what was sealed"))?;
                out.line("  help: restore the object from a backup: nothing can be read of the page")?;
            }
        }
        if let Some(references) = &self.references {
            references.text(out)?;
        }
        for name in &self.changed {
            let object = crate::failure::object(name);
            out.line(&format!("error: {object}: its content is not the one that its ID is the hash of"))?;
            out.line("  help: destroy it, and put it again: `pmo put --by-content`")?;
        }
        if self.left_off > 0 {
            out.line(&format!("and {} more", self.left_off))?;
        }
        let wrong =
            self.findings.iter().filter(|finding| finding.severity != "note").count() as u64 + self.left_off;
        let wrong = wrong + self.seals.iter().map(|seals| seals.broken.len() as u64).sum::<u64>();
        let wrong = wrong + self.changed.len() as u64;
        let wrong = wrong + self.references.as_ref().map_or(0, |references| references.dangling.len() as u64);
        let verdict = match (self.clean, self.unverified as u64) {
            (false, _) => format!("{} found", count(wrong, "problem")),
            (true, 0) => "clean".to_owned(),
            (true, unverified) => format!("{} not verified", count(unverified, "object")),
        };
        let waiting = match self.waiting {
            0 => String::new(),
            n => format!(", {} of dead writers waiting to be completed", count(n, "psync")),
        };
        out.line(&format!(
            "{}, {}{waiting}: {verdict}",
            count(self.objects, "object"),
            count(self.lanes.into(), "lane")
        ))
    }
}

pub fn run(context: &Context, args: &Check) -> Result {
    let bar = progress::steps("checking");
    let found = indelible::check(&args.pool, &context.options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let mut report = Report::of(&found?);
    report.findings.extend(left_beside(&args.pool).iter().map(|left| Finding {
        severity: "note",
        part: "file".to_owned(),
        offset: 0,
        object: None,
        what: format!("a restore, clone or backup that was killed left {} beside the pool", left.display()),
        remedy: "`pmo gc POOL` removes it".to_owned(),
    }));
    if args.seals || args.seal.is_asked() {
        verify(context, args, &mut report)?;
    }
    if report.contents > 0
        && let Ok(pool) = context.open_to_read(&args.pool)
    {
        report.changed = changed(&pool, &args.key.read()?)?;
        report.clean &= report.changed.is_empty();
    }
    if args.references {
        let found = References::find(context, &args.pool, &args.with)?;
        report.clean &= found.dangling.is_empty();
        report.references = Some(found);
    }
    show(context.json, &report, Report::text)?;
    report.verdict()
}

/// Verifies each sealed object by itself: one that cannot be verified hides nothing of the others.
fn verify(context: &Context, args: &Check, report: &mut Report) -> Result {
    if args.seal.is_named() {
        let message = "the names of all objects are looked at: --sealed-as says that of one";
        return Err(Failure::new(Exit::Usage, message, "leave it out"));
    }
    let (seal, key) = (args.seal.required()?.of_any_name(), args.key.read()?);
    let pool = context.open_to_read(&args.pool)?;
    // One anchor belongs to one object.
    let mut anchor_unused = args.seal.anchor().is_some();
    let (mut all, mut unverified, before) = (Vec::new(), Vec::new(), report.findings.len());
    // Listing an unreadable object is a finding already.
    for stat in pool.list().flatten().filter(|stat| stat.sealed) {
        let bar = progress::bytes("verifying", Some(stat.size));
        let mut tell = |done, _| bar.set_position(done);
        let mut verified = pool.verify_sealed(&stat.name, &key, &seal, &mut tell);
        match &verified {
            Err(error) if error.kind() == ErrorKind::Sealed && args.seal.anchor().is_some() => {
                verified = pool.verify_sealed(&stat.name, &key, &seal.clone().unanchored(), &mut tell);
            }
            verified => anchor_unused &= verified.is_err(),
        }
        bar.finish_and_clear();
        let (opened, broken) = match verified {
            // The seal key may still open others.
            Err(error) if error.kind() == ErrorKind::WrongKey && !needs_key(&stat, &key) => {
                (false, Vec::new())
            }
            // It lacks a signature, or has another one.
            Err(error) if error.kind() == ErrorKind::Damaged => {
                report.clean = false;
                report.findings.push(Finding::of_seal("error", &stat.name, error));
                continue;
            }
            // It needs another key, or an anchor.
            Err(error) if error.kind() == ErrorKind::Sealed => {
                unverified.push((stat.name, error));
                continue;
            }
            verified => (true, verified.map_err(|error| alike::explain(&pool, &stat.name, error))?),
        };
        let broken = broken.into_iter().map(|BrokenPage { page, what }| Broken { page, what }).collect();
        let named = if opened { pool.is_sealed_as_named(&stat.name, &key, &seal) } else { Ok(None) };
        let named = named.unwrap_or_default();
        all.push(Seals { object: stat.name, opened, named, pages: stat.size.div_ceil(4096), broken });
    }
    if report.findings.len() == before && all.iter().all(|seals: &Seals| !seals.opened) {
        if let Some((name, error)) = unverified.pop() {
            return Err(alike::explain(&pool, &name, error));
        }
        let help = "give a key of the objects that are sealed; an object that is not sealed may have taken the place of one";
        return Err(Failure::new(Exit::Denied, "the seal key opens no object of the pool", help));
    }
    if anchor_unused {
        let help =
            "give the anchor of one of the objects; the anchor of each is looked at by its own `pmo check`";
        return Err(Failure::new(Exit::Denied, "the anchor is that of no object of the pool", help));
    }
    report.unverified = unverified.len();
    let named = unverified.into_iter().map(|(name, error)| Finding::of_seal("warning", &name, error));
    report.findings.extend(named);
    report.clean &= all.iter().all(|seals| seals.broken.is_empty());
    report.seals = all;
    Ok(())
}

fn changed(pool: &Pool, key: &[u8]) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for stat in pool.list().flatten().filter(|stat| stat.by_content) {
        match pool.verify_content(&stat.name, key) {
            Ok(right) => changed.extend((right == Some(false)).then_some(stat.name)),
            Err(error) if matches!(error.kind(), ErrorKind::WrongKey | ErrorKind::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(changed)
}

fn needs_key(stat: &Stat, key: &[u8]) -> bool {
    key.is_empty() && (stat.read_key || stat.write_key)
}
