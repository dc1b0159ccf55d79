use crate::alike;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::show;
use crate::progress;
use crate::text::count;
use crate::values::pool;
use clap::Args;
use indelible::Pool;
use serde::Serialize;
use std::path::PathBuf;

/// Read all words of objects with check words, and repair those that are damaged
///
/// An object that was created with --ecc has a check word for each word. Up to 6 wrong bits of the
/// 128 of both are repaired, and nearly all damages of 7; a word with more wrong bits is lost, and
/// named. Repairs are durable when the command ends, also if it is interrupted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo scrub data.pmo                     all objects with check words
  pmo scrub data.pmo accounts
  pmo scrub data.pmo --json | jq '.[] | select(.lost != [])'

A lost word is right again once a transaction stores it anew. Until then a transaction that reads it fails, and never has a wrong value. \
Exit code 3: there are lost words. Without a name, objects that a process has attached are left out, and said to be.

JSON: a list of {\"object\":\"accounts\",\"words\":65536,\"repaired\":1,\"lost\":[],\"skipped\":null}; \
lost words by their offset as programs count bytes, skipped: why the object was left out")]
pub struct Scrub {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of an object [default: all that have check words]
    name: Option<String>,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Report {
    object: String,
    words: u64,
    repaired: u64,
    lost: Vec<u64>,
    skipped: Option<String>,
}

pub fn run(context: &Context, args: &Scrub) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let reports = match &args.name {
        Some(name) => {
            vec![scrub(&pool, name, &key).map_err(|error| alike::explain(&pool, name, error))?]
        }
        None => all(&pool, &key)?,
    };
    show(context.json, &reports, |reports, out| {
        for Report { object: name, words, repaired, lost, skipped } in reports {
            if let Some(why) = skipped {
                out.line(&format!("{}: not scrubbed: {why}", object(name)))?;
                continue;
            }
            for offset in lost {
                out.line(&format!("lost: the word at offset {offset:#x} of {}", object(name)))?;
            }
            let lost = if lost.is_empty() { "none lost".to_owned() } else { format!("{} LOST", lost.len()) };
            out.line(&format!("{}: {}, {repaired} repaired, {lost}", object(name), count(*words, "word")))?;
        }
        if reports.is_empty() {
            out.line("no object has check words")?;
        }
        Ok(())
    })?;
    let lost = reports.iter().any(|report| !report.lost.is_empty());
    if lost { Err(Failure::Quiet(Exit::Damaged)) } else { Ok(()) }
}

fn scrub(pool: &Pool, name: &str, key: &[u8]) -> indelible::Result<Report> {
    let bar = progress::bytes("scrubbing", Some(0));
    let found = pool.scrub(name, key, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let found = found?;
    let (words, repaired, lost) = (found.words, found.repaired, found.lost);
    Ok(Report { object: name.to_owned(), words, repaired, lost, skipped: None })
}

fn all(pool: &Pool, key: &[u8]) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for stat in pool.list() {
        let stat = stat?;
        if !stat.ecc {
            continue;
        }
        let skipped = |error: indelible::Error| Report {
            object: stat.name.clone(),
            words: 0,
            repaired: 0,
            lost: Vec::new(),
            skipped: Some(error.to_string()),
        };
        reports.push(scrub(pool, &stat.name, key).unwrap_or_else(skipped));
    }
    Ok(reports)
}
