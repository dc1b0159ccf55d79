use crate::failure::Result;
use crate::out::Out;
use crate::reading;
use crate::sealing::SealArgs;
use crate::text::printable;
use indelible::heap::touched::Touched;
use indelible::{Difference, ErrorKind, Pool, ReadHeap};
use indelible_store::error::StoreError;
use indelible_store::store::Reader;
use indelible_store::table::{Key, Layers, read_pages};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

const PAGE: u64 = 4096;
/// Bytes for each bit of a change.
const WORD: u64 = 8;

type Read<T> = std::result::Result<T, StoreError>;

#[derive(Serialize)]
pub struct RootChange {
    name: String,
    change: Change,
    /// Name of its type in the newer one, or in the older one if it was removed.
    #[serde(rename = "type")]
    ty: String,
    /// Name of its type in the older one, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<String>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    Added,
    Removed,
    /// Another type.
    Retyped,
    Changed,
    /// Its values are not described.
    Unknown,
}

impl RootChange {
    pub fn text(&self, out: &mut Out) -> Result {
        let (name, ty) = (printable(&self.name), printable(&self.ty));
        out.line(&match (self.change, &self.was) {
            (Change::Added, _) => format!("root {name} was added: {ty}"),
            (Change::Removed, _) => format!("root {name} was removed: {ty}"),
            (Change::Retyped, was) => {
                format!("root {name} is another type: {ty}, was {}", printable(was.as_deref().unwrap_or("?")))
            }
            (Change::Changed, _) => format!("root {name} differs: {ty}"),
            (Change::Unknown, _) => {
                format!("root {name} may differ: nothing describes what belongs to it: {ty}")
            }
        })
    }
}

type Known = (String, u128);

/// `None`: the two are no heaps.
pub fn changed(
    pool: &Pool,
    (older, newer): (&str, &str),
    key: &[u8],
    found: &Difference,
) -> Result<Option<Vec<RootChange>>> {
    let Some(mut before) = types(pool, older, key)? else { return Ok(None) };
    // Both have the same addresses: the newer one is detached first.
    let Some(heap) = open(pool, newer, key)? else { return Ok(None) };
    let reader = pool.recovering(|store| store.attach_still(older, Key(key)))?;
    let mut reader = reader.map_err(|error| failed(older, &error))?;
    let then = Then { pool, layers: reader.take_layers(), reader };
    let (mut words, mut failure) = (HashMap::new(), None);
    let touched = heap.touched(&mut |range| {
        let changed = differs(&range, found, heap.object().as_slice(), &then, &mut words);
        changed.unwrap_or_else(|error| {
            failure = Some(error);
            false
        })
    })?;
    if let Some(error) = failure {
        return Err(failed(older, &error));
    }
    let mut changes = Vec::new();
    for (root, touched) in touched {
        let was = before.remove(&root.name);
        let (change, was) = match (was, touched) {
            (None, _) => (Change::Added, None),
            (Some((was, fingerprint)), _) if (&was, fingerprint) != (&root.type_name, root.fingerprint) => {
                (Change::Retyped, Some(was))
            }
            (_, Touched::Yes) => (Change::Changed, None),
            (_, Touched::Unknown) if !found.pages.is_empty() => (Change::Unknown, None),
            _ => continue,
        };
        changes.push(RootChange { name: root.name, change, ty: root.type_name, was });
    }
    let removed =
        before.into_iter().map(|(name, (ty, _))| RootChange { name, change: Change::Removed, ty, was: None });
    changes.extend(removed);
    // A leftover base goes with the next snapshot.
    let _ = pool.store().end_snapshot(then.reader);
    Ok(Some(changes))
}

fn types(pool: &Pool, name: &str, key: &[u8]) -> Result<Option<BTreeMap<String, Known>>> {
    let Some(heap) = open(pool, name, key)? else { return Ok(None) };
    let roots = heap.roots()?.into_iter();
    Ok(Some(roots.map(|root| (root.name, (root.type_name, root.fingerprint))).collect()))
}

fn open(pool: &Pool, name: &str, key: &[u8]) -> Result<Option<ReadHeap>> {
    match ReadHeap::open(reading::attach(pool, name, key, &SealArgs::default())?) {
        Err(error) if error.kind() == ErrorKind::NotAHeap => Ok(None),
        heap => Ok(Some(heap?)),
    }
}

fn failed(name: &str, error: &StoreError) -> crate::failure::Failure {
    let message = format!("cannot read {}: {error}", crate::failure::object(name));
    crate::failure::Failure::new(
        crate::exit::Exit::Failed,
        message,
        "`pmo check` says whether the pool is damaged",
    )
}

struct Then<'a> {
    pool: &'a Pool,
    layers: Option<Layers>,
    reader: Reader,
}

fn differs(
    range: &Range<u64>,
    found: &Difference,
    now: &[u8],
    then: &Then<'_>,
    words: &mut HashMap<u64, [u64; 8]>,
) -> Read<bool> {
    for page in range.start / PAGE..range.end.div_ceil(PAGE) {
        let after = found.pages.partition_point(|pages| pages.start <= page);
        if !after.checked_sub(1).is_some_and(|at| found.pages[at].contains(&page)) {
            continue;
        }
        let known = match words.get(&page) {
            Some(known) => known,
            None => words.entry(page).or_insert(compare(page, now, then)?),
        };
        let first = range.start.max(page * PAGE) - page * PAGE;
        let last = range.end.min((page + 1) * PAGE) - 1 - page * PAGE;
        let mut within = first / WORD..=last / WORD;
        if within.any(|word| known[(word / 64) as usize] >> (word % 64) & 1 == 1) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn compare(page: u64, now: &[u8], then: &Then<'_>) -> Read<[u64; 8]> {
    let object = then.reader.object();
    let mut before = [0; PAGE as usize];
    let there = object.entry.size.get().saturating_sub(page * PAGE).min(PAGE) as usize;
    let medium = &**then.pool.store().device();
    read_pages(medium, object, then.layers.as_ref(), page * PAGE, &mut before[..there])?;
    let mut after = [0; PAGE as usize];
    let here = &now[(page * PAGE).min(now.len() as u64) as usize..];
    let here = &here[..here.len().min(PAGE as usize)];
    after[..here.len()].copy_from_slice(here);
    let mut words = [0; 8];
    let pairs = before.chunks(WORD as usize).zip(after.chunks(WORD as usize));
    for (word, _) in pairs.enumerate().filter(|(_, (before, after))| before != after) {
        words[word / 64] |= 1 << (word % 64);
    }
    Ok(words)
}
