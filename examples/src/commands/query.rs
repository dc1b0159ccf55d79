use crate::index::{Index, Reader};
use crate::place::Place;
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

pub(crate) fn run<I: Index>(place: &Place, args: &Args) -> Result<()> {
    let start = Instant::now();
    let (_pool, object) = place.attach_read()?;
    let len = object.len();
    let index = super::attach::<I>(object)?;
    let attached = start.elapsed();
    let start = Instant::now();
    let reader = I::read(&index)?;
    let found = find(reader, &args.words)?;
    let answered = start.elapsed();
    let shown = if args.limit == 0 { found.len() } else { args.limit };
    for (file, count) in found.iter().take(shown) {
        println!("{count:>8}  {}", reader.file(*file)?.path.display());
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
        HumanCount(reader.totals()?.files),
        HumanBytes(len as u64),
    );
    Ok(())
}

fn find<'a, R: Reader<'a>>(reader: R, words: &[String]) -> Result<Vec<(R::File, u64)>> {
    let mut terms = Vec::new();
    for word in words {
        let term = term(reader, &word.to_lowercase())?;
        let mut files = 0_u64;
        for word in &term {
            files = files.saturating_add(reader.word(*word)?.files);
        }
        terms.push((files, term));
    }
    // The rarest first: the others only narrow it.
    terms.sort_by_key(|(files, _)| *files);
    let mut found: Option<HashMap<R::File, u64>> = None;
    for (_, term) in terms {
        let mut hits = HashMap::new();
        for word in term {
            for posting in reader.postings(word) {
                let (file, count) = posting?;
                let before = match &found {
                    Some(found) => found.get(&file).copied(),
                    None => Some(0),
                };
                if let Some(before) = before {
                    let sum = hits.entry(file).or_insert(before);
                    *sum = u64::saturating_add(*sum, count);
                }
            }
        }
        found = Some(hits);
    }
    let mut sorted = Vec::new();
    for (file, count) in found.unwrap_or_default() {
        sorted.push((std::cmp::Reverse(count), reader.file(file)?.path, file));
    }
    sorted.sort_by_key(|(count, path, _)| (*count, *path));
    Ok(sorted.into_iter().map(|(count, _, file)| (file, count.0)).collect())
}

fn term<'a, R: Reader<'a>>(reader: R, word: &str) -> Result<Vec<R::Word>> {
    match word.strip_suffix('*') {
        Some(prefix) => reader.find_prefix(prefix),
        None => Ok(reader.find_word(word)?.into_iter().collect()),
    }
}
