//! Ties and far pointers between objects.

use super::answer::Answer;
use super::heap::Other;
use super::look::{Found, Look};
use super::objects::page;
use super::query::Query;
use crate::text::printable;
use indelible::ErrorKind;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Graph {
    matching: usize,
    from: usize,
    looked: usize,
    /// Heaps that cannot be looked into: processes write them, or they take a key.
    closed: usize,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

#[derive(Serialize)]
struct Node {
    /// `None`: outside of the pool, or gone.
    name: Option<String>,
    shown: String,
}

/// From node to node, by their places.
#[derive(Serialize)]
struct Edge(usize, usize, Kind);

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// The first object outlives the second.
    Tie,
    Far,
}

#[derive(Default)]
struct Nodes {
    places: BTreeMap<(bool, String), usize>,
    nodes: Vec<Node>,
}

impl Nodes {
    fn object(&mut self, name: &str) -> usize {
        self.place(Some(name), &printable(name))
    }

    fn place(&mut self, name: Option<&str>, shown: &str) -> usize {
        let key = (name.is_some(), name.unwrap_or(shown).to_owned());
        *self.places.entry(key).or_insert_with(|| {
            self.nodes.push(Node { name: name.map(str::to_owned), shown: shown.to_owned() });
            self.nodes.len() - 1
        })
    }
}

pub fn answer(look: &Look<'_>, query: &Query) -> Found<Answer> {
    let (index, pool) = (look.index()?, &look.pool);
    let matching = index.beginning(query.text("prefix").unwrap_or_default());
    let shown = page(&matching, query.number("from", 0)?);
    let (mut nodes, mut edges, mut closed) = (Nodes::default(), Vec::new(), 0);
    for name in &index.names[shown.clone()] {
        // An object may be gone meanwhile.
        for tie in pool.ties(name).unwrap_or_default() {
            edges.push(Edge(nodes.object(name), nodes.object(&tie.name), Kind::Tie));
        }
        let far = match pool.glance(name) {
            Ok(found) => found.far,
            Err(error) => {
                closed += usize::from(!matches!(error.kind(), ErrorKind::NotAHeap | ErrorKind::NotFound));
                continue;
            }
        };
        for Other { name: target, shown, .. } in far.iter().map(|entry| Other::of(pool, entry)) {
            edges.push(Edge(nodes.object(name), nodes.place(target.as_deref(), &shown), Kind::Far));
        }
    }
    let (matching, from) = (matching.len(), shown.start - matching.start);
    Ok(Answer::json(&Graph { matching, from, looked: shown.len(), closed, nodes: nodes.nodes, edges }))
}
