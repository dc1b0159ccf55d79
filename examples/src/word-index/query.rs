//! `word-index query`.

use crate::arena::View;
use crate::layout::{File, Word};
use crate::place::Place;
use crate::reader::Reader;
use crate::text::hash;
use anyhow::Result;
use indicatif::{HumanBytes, HumanCount};
use std::collections::HashMap;
use std::time::Instant;

/// Which files contain all of some words, those that contain them most often first.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Words; `foo*` stands for all that begin with foo
    #[arg(required = true)]
    words: Vec<String>,
    /// Files to show, 0 for all
    #[arg(long, default_value_t = 10)]
    limit: usize,
}

pub(crate) fn run(place: &Place, args: &Args) -> Result<()> {
    let start = Instant::now();
    let (_pool, object) = place.attach_read()?;
    let attached = start.elapsed();
    let start = Instant::now();
    let reader = Reader::new(View::new(object.as_slice()))?;
    let found = find(reader, &args.words)?;
    let answered = start.elapsed();
    let shown = if args.limit == 0 { found.len() } else { args.limit };
    for (file, count) in found.iter().take(shown) {
        println!("{count:>8}  {}", reader.path(file)?.display());
    }
    if found.len() > shown {
        println!("     and {} more", HumanCount((found.len() - shown) as u64));
    }
    let files = match found.len() {
        1 => "1 file".into(),
        n => format!("{} files", HumanCount(n as u64)),
    };
    println!(
        "{files} of {} in {answered:.1?} (pool opened and object attached in {attached:.1?}; {} mapped, nothing loaded)",
        HumanCount(reader.root().files.len),
        HumanBytes(object.len() as u64),
    );
    Ok(object.detach()?)
}

/// Files that contain all of `words`, and how often they do.
pub(crate) fn find<'a>(reader: Reader<'a>, words: &[String]) -> Result<Vec<(&'a File, u64)>> {
    let mut terms = Vec::new();
    for word in words {
        terms.push(term(reader, &word.to_lowercase())?);
    }
    // The rarest first: the others only narrow it.
    terms.sort_by_key(|term| term.iter().fold(0, |sum: u64, word| sum.saturating_add(word.files)));
    let mut found: Option<HashMap<usize, (&File, u64)>> = None;
    for term in terms {
        let mut hits = HashMap::new();
        for word in term {
            for posting in reader.postings(word) {
                let (_, posting) = posting?;
                let key = posting.file.addr();
                let before = match &found {
                    Some(found) => found.get(&key).copied(),
                    None => Some((reader.view().get(posting.file)?, 0)),
                };
                if let Some(before) = before {
                    let (_, count) = hits.entry(key).or_insert(before);
                    *count = count.saturating_add(posting.count);
                }
            }
        }
        found = Some(hits);
    }
    let mut found: Vec<_> = found.unwrap_or_default().into_values().collect();
    let mut paths = Vec::new();
    for (file, count) in found.drain(..) {
        paths.push((std::cmp::Reverse(count), reader.path(file)?, file));
    }
    paths.sort_by_key(|(count, path, _)| (*count, *path));
    Ok(paths.into_iter().map(|(count, _, file)| (file, count.0)).collect())
}

/// The words that a word of a query stands for.
fn term<'a>(reader: Reader<'a>, word: &str) -> Result<Vec<&'a Word>> {
    match word.strip_suffix('*') {
        Some(prefix) => reader.find_prefix(prefix.as_bytes()),
        None => Ok(reader
            .find_word(word.as_bytes(), hash(word.as_bytes()))?
            .into_iter()
            .map(|(_, word)| word)
            .collect()),
    }
}
