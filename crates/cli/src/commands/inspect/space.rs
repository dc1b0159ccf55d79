//! A map of the pool's bytes, in cells of equal size.

use super::answer::{Answer, Status};
use super::index::Extent;
use super::look::{Found, Look};
use super::query::Query;
use crate::text::printable;
use serde::Serialize;
use std::collections::BTreeMap;

const CELLS: u64 = 1024;

#[derive(Serialize)]
struct Space {
    length: u64,
    from: u64,
    to: u64,
    /// Bytes of a cell; the last one may have fewer.
    cell: u64,
    cells: Vec<Cell>,
    /// Names of the objects in the cells, and the same for people.
    objects: Vec<(String, String)>,
    totals: Cell,
}

/// Bytes of each kind.
#[derive(Clone, Default, Serialize)]
struct Cell {
    objects: u64,
    free: u64,
    lanes: u64,
    /// The table, and objects without a name.
    other: u64,
    /// The object with the most bytes here, and its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<usize>,
    #[serde(skip)]
    largest: u64,
}

pub fn answer(look: &Look<'_>, query: &Query) -> Found<Answer> {
    let (index, length) = (look.index()?, look.pool.info()?.length);
    let (from, to) = (query.number("from", 0)?, query.number("to", length)?.min(length));
    if from >= to {
        return Err(Status::BadRequest.into());
    }
    let (free, lanes) = look.pool.insides("inspect", |store| Ok((store.free_extents()?, store.lanes()?)))?;
    let mut map = Map::new(from, to);
    free.iter().for_each(|(offset, len)| map.add(*offset, *len, |cell, bytes| cell.free += bytes));
    lanes.iter().for_each(|lane| map.add(lane.offset, lane.len, |cell, bytes| cell.lanes += bytes));
    for Extent { offset, len, object } in &index.extents {
        map.add(*offset, *len, |cell, bytes| {
            cell.objects += bytes;
            if bytes > cell.largest {
                (cell.largest, cell.object) = (bytes, Some(*object));
            }
        });
    }
    let (mut numbers, mut objects) = (BTreeMap::new(), Vec::new());
    for object in map.cells.iter_mut().filter_map(|cell| cell.object.as_mut()) {
        *object = *numbers.entry(*object).or_insert_with(|| {
            let name = &*index.names[*object];
            objects.push((name.to_owned(), printable(name)));
            objects.len() - 1
        });
    }
    let totals = map.finish();
    Ok(Answer::json(&Space { length, from, to, cell: map.cell, cells: map.cells, objects, totals }))
}

struct Map {
    from: u64,
    to: u64,
    cell: u64,
    cells: Vec<Cell>,
}

impl Map {
    fn new(from: u64, to: u64) -> Map {
        let cell = (to - from).div_ceil(CELLS).next_multiple_of(64);
        Map { from, to, cell, cells: vec![Cell::default(); (to - from).div_ceil(cell) as usize] }
    }

    fn add(&mut self, offset: u64, len: u64, mut add: impl FnMut(&mut Cell, u64)) {
        let (mut at, end) = (offset.max(self.from), offset.saturating_add(len).min(self.to));
        while at < end {
            let cell = (at - self.from) / self.cell;
            let next = end.min(self.from + (cell + 1) * self.cell);
            add(&mut self.cells[cell as usize], next - at);
            at = next;
        }
    }

    /// The rest is the table's. A pool that changes meanwhile may count bytes twice.
    fn finish(&mut self) -> Cell {
        let mut totals = Cell::default();
        for (number, cell) in (0..).zip(&mut self.cells) {
            let all = self.cell.min(self.to - self.from - number * self.cell);
            cell.other = all.saturating_sub(cell.objects + cell.free + cell.lanes);
            totals.objects += cell.objects;
            totals.free += cell.free;
            totals.lanes += cell.lanes;
            totals.other += cell.other;
        }
        totals
    }
}
