//! A Delaunay triangulation of a square in words; points are inserted one by one (Bowyer and
//! Watson).
//!
//! Integer coordinates and exact predicates: no rounding breaks the mesh.

use super::arena::Heap;
use super::memory::{Outcome, Words};

pub const SIDE: i64 = 1 << 22;
/// Most square of a circumradius, relative to the shortest side: no angle is below 20 degrees.
const MOST: f64 = 2.1372;

/// Points of a triangle, counterclockwise; opposite each point the next triangle, or 0 at the
/// border; 1 while in the mesh.
const POINTS: u64 = 0;
const NEXT: u64 = 3;
const ALIVE: u64 = 6;
const TRIANGLE: u64 = 8;
const POINT: u64 = 2;

pub type Place = (i64, i64);

#[derive(Clone, Copy, Debug)]
pub struct Triangle {
    pub points: [u64; 3],
    pub next: [u64; 3],
    pub places: [Place; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    Fine,
    Skinny,
    /// The point opposite this border side is in the circle around the side.
    Encroached(usize),
}

#[derive(Clone, Copy)]
pub enum How {
    Given,
    Unless,
    Between(u64, u64),
}

pub enum Put {
    In(Vec<u64>),
    Encroaches(u64, usize),
    Refused,
}

/// Twice the area; positive if counterclockwise.
pub fn area(a: Place, b: Place, c: Place) -> i128 {
    let difference = |p: Place, q: Place| (i128::from(p.0 - q.0), i128::from(p.1 - q.1));
    let (ab, ac) = (difference(b, a), difference(c, a));
    ab.0 * ac.1 - ab.1 * ac.0
}

pub fn in_circle([a, b, c]: [Place; 3], p: Place) -> bool {
    let row = |q: Place| {
        let (x, y) = (i128::from(q.0 - p.0), i128::from(q.1 - p.1));
        (x, y, x * x + y * y)
    };
    let (a, b, c) = (row(a), row(b), row(c));
    a.0 * (b.1 * c.2 - c.1 * b.2) - a.1 * (b.0 * c.2 - c.0 * b.2) + a.2 * (b.0 * c.1 - c.0 * b.1) > 0
}

fn squared(a: Place, b: Place) -> f64 {
    let (x, y) = ((a.0 - b.0) as f64, (a.1 - b.1) as f64);
    x * x + y * y
}

fn encroaches(a: Place, b: Place, p: Place) -> bool {
    let (x, y) = (i128::from(a.0 - p.0), i128::from(a.1 - p.1));
    x * i128::from(b.0 - p.0) + y * i128::from(b.1 - p.1) < 0 || area(a, b, p) <= 0
}

/// The circumcenter, or, if outside, a point in its direction just beyond the square.
fn middle([a, b, c]: [Place; 3]) -> Place {
    let (bx, by) = ((b.0 - a.0) as f64, (b.1 - a.1) as f64);
    let (cx, cy) = ((c.0 - a.0) as f64, (c.1 - a.1) as f64);
    let (d, b2, c2) = (2.0 * (bx * cy - by * cx), bx * bx + by * by, cx * cx + cy * cy);
    let (x, y) = (a.0 as f64 + (cy * b2 - by * c2) / d, a.1 as f64 + (bx * c2 - cx * b2) / d);
    let from = ((a.0 + b.0 + c.0) as f64 / 3.0, (a.1 + b.1 + c.1) as f64 / 3.0);
    // The part of the way from within the triangle that is in the square.
    let side = SIDE as f64;
    let part = |from: f64, to: f64| match to {
        to if to < 0.0 => (from + 1.0) / (from - to),
        to if to > side => (side + 1.0 - from) / (to - from),
        _ => 1.0,
    };
    let part = part(from.0, x).min(part(from.1, y)).min(1.0);
    ((from.0 + (x - from.0) * part).round() as i64, (from.1 + (y - from.1) * part).round() as i64)
}

impl Triangle {
    pub fn read<T: Words>(tx: &mut T, at: u64) -> Outcome<Triangle> {
        let mut read = Triangle { points: [0; 3], next: [0; 3], places: [(0, 0); 3] };
        for (side, to) in (0..).zip(0..3_usize) {
            let point = tx.get(at + POINTS + side)?;
            read.points[to] = point;
            read.next[to] = tx.get(at + NEXT + side)?;
            read.places[to] = (tx.get(point)? as i64, tx.get(point + 1)? as i64);
        }
        Ok(read)
    }

    pub fn alive<T: Words>(tx: &mut T, at: u64) -> Outcome<Option<Triangle>> {
        if tx.get(at + ALIVE)? == 0 { Ok(None) } else { Triangle::read(tx, at).map(Some) }
    }

    pub fn side(&self, side: usize) -> ([u64; 2], [Place; 2]) {
        let (a, b) = ((side + 1) % 3, (side + 2) % 3);
        ([self.points[a], self.points[b]], [self.places[a], self.places[b]])
    }

    pub fn judge(&self) -> Judgement {
        for side in 0..3 {
            let (_, [a, b]) = self.side(side);
            if self.next[side] == 0 && encroaches(a, b, self.places[side]) {
                return Judgement::Encroached(side);
            }
        }
        let sides = [0, 1, 2].map(|side| {
            let (_, [a, b]) = self.side(side);
            squared(a, b)
        });
        let shortest = sides.into_iter().fold(f64::INFINITY, f64::min);
        let area = area(self.places[0], self.places[1], self.places[2]) as f64;
        let radius = sides.into_iter().product::<f64>() / (4.0 * area * area);
        if radius > MOST * shortest { Judgement::Skinny } else { Judgement::Fine }
    }
}

fn make<T: Words>(tx: &mut T, heap: Heap, points: [u64; 3], outer: u64) -> Outcome<u64> {
    let at = heap.alloc(tx, TRIANGLE)?;
    for (nth, value) in (0..).zip(points.into_iter().chain([0, 0, outer, 1])) {
        tx.set(at + nth, value)?;
    }
    Ok(at)
}

pub fn square<T: Words>(tx: &mut T, heap: Heap) -> Outcome<u64> {
    let mut corners = [0; 4];
    for (corner, (x, y)) in corners.iter_mut().zip([(0, 0), (SIDE, 0), (SIDE, SIDE), (0, SIDE)]) {
        *corner = heap.alloc(tx, POINT)?;
        tx.set(*corner, x as u64)?;
        tx.set(*corner + 1, y as u64)?;
    }
    let [a, b, c, d] = corners;
    let (one, other) = (make(tx, heap, [c, a, b], 0)?, make(tx, heap, [a, c, d], 0)?);
    tx.set(one + NEXT + 2, other)?;
    tx.set(other + NEXT + 2, one)?;
    Ok(one)
}

pub fn locate<T: Words>(tx: &mut T, from: u64, place: Place) -> Outcome<u64> {
    let mut at = from;
    loop {
        let triangle = Triangle::read(tx, at)?;
        let beyond = (0..3).find(|side| {
            let (_, [a, b]) = triangle.side(*side);
            area(a, b, place) < 0 && triangle.next[*side] != 0
        });
        match beyond {
            Some(side) => at = triangle.next[side],
            None => return Ok(at),
        }
    }
}

/// Points, places, and the triangle beyond.
type Edge = ([u64; 2], [Place; 2], u64);

/// The triangles around `from` with `place` in their circles, and the sides around them; or an
/// encroached side.
#[allow(clippy::type_complexity)]
fn cavity<T: Words>(
    tx: &mut T,
    from: u64,
    place: Place,
    how: How,
) -> Outcome<Result<(Vec<u64>, Vec<Edge>), Put>> {
    let (mut within, mut edges, mut done) = (vec![from], Vec::new(), 0);
    while let Some(&at) = within.get(done) {
        done += 1;
        let triangle = Triangle::read(tx, at)?;
        if triangle.places.contains(&place) {
            return Ok(Err(Put::Refused));
        }
        for side in 0..3 {
            let (next, (points, places)) = (triangle.next[side], triangle.side(side));
            if next == 0 {
                if matches!(how, How::Unless) && encroaches(places[0], places[1], place) {
                    return Ok(Err(Put::Encroaches(at, side)));
                }
                edges.push((points, places, 0));
            } else if !within.contains(&next) {
                if in_circle(Triangle::read(tx, next)?.places, place) {
                    within.push(next);
                } else {
                    edges.push((points, places, next));
                }
            }
        }
    }
    Ok(Ok((within, edges)))
}

pub fn put<T: Words>(tx: &mut T, heap: Heap, from: u64, place: Place, how: How) -> Outcome<Put> {
    let (within, mut edges) = match cavity(tx, from, place, how)? {
        Ok(found) => found,
        Err(put) => return Ok(put),
    };
    if let How::Between(a, b) = how {
        edges.retain(|(points, ..)| *points != [a, b]);
    }
    if edges.iter().any(|(_, [a, b], _)| area(*a, *b, place) <= 0) {
        return Ok(Put::Refused);
    }
    let point = heap.alloc(tx, POINT)?;
    tx.set(point, place.0 as u64)?;
    tx.set(point + 1, place.1 as u64)?;
    let mut new = Vec::with_capacity(edges.len());
    for ([a, b], _, outer) in &edges {
        let at = make(tx, heap, [*a, *b, point], *outer)?;
        new.push(at);
        if *outer != 0 {
            let corners = Triangle::read(tx, *outer)?.points;
            let opposite = corners.iter().position(|corner| corner != a && corner != b).unwrap_or(0);
            tx.set(*outer + NEXT + opposite as u64, at)?;
        }
    }
    for (([a, b], ..), at) in edges.iter().zip(&new) {
        let beside = |found: &dyn Fn(&Edge) -> bool| edges.iter().position(found).map_or(0, |nth| new[nth]);
        // Opposite `a` is the triangle that begins at this one's end, opposite `b` the one that
        // ends at its begin.
        tx.set(*at + NEXT, beside(&|edge: &Edge| edge.0[0] == *b))?;
        tx.set(*at + NEXT + 1, beside(&|edge: &Edge| edge.0[1] == *a))?;
    }
    for at in within {
        tx.set(at + ALIVE, 0)?;
        heap.free(tx, at, TRIANGLE)?;
    }
    Ok(Put::In(new))
}

/// Returns triangles to look at again, and whether it could be improved.
pub fn refine<T: Words>(tx: &mut T, heap: Heap, at: u64) -> Outcome<(Vec<u64>, bool)> {
    let Some(triangle) = Triangle::alive(tx, at)? else { return Ok((Vec::new(), true)) };
    let put = match triangle.judge() {
        Judgement::Fine => return Ok((Vec::new(), true)),
        Judgement::Encroached(side) => Put::Encroaches(at, side),
        Judgement::Skinny => put(tx, heap, at, middle(triangle.places), How::Unless)?,
    };
    let put = match put {
        Put::Encroaches(other, side) => {
            let ([a, b], [from, to]) = Triangle::read(tx, other)?.side(side);
            let half = ((from.0 + to.0) / 2, (from.1 + to.1) / 2);
            self::put(tx, heap, other, half, How::Between(a, b))?
        }
        put => put,
    };
    match put {
        Put::In(mut new) => {
            new.push(at);
            Ok((new, true))
        }
        Put::Encroaches(..) | Put::Refused => Ok((Vec::new(), false)),
    }
}
