//! Ties between objects, for a graph.

use super::answer::Answer;
use super::objects::page;
use super::query::Query;
use super::site::{Found, Look};
use crate::text::printable;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Graph {
    matching: usize,
    from: usize,
    looked: usize,
    nodes: Vec<Node>,
    /// Places of the nodes: the first outlives the second.
    edges: Vec<(usize, usize)>,
}

#[derive(Serialize)]
struct Node {
    name: String,
    shown: String,
}

#[derive(Default)]
struct Nodes {
    places: BTreeMap<String, usize>,
    nodes: Vec<Node>,
}

impl Nodes {
    fn place(&mut self, name: &str) -> usize {
        *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.nodes.push(Node { name: name.to_owned(), shown: printable(name) });
            self.nodes.len() - 1
        })
    }
}

pub fn answer(look: &Look<'_>, query: &Query) -> Found<Answer> {
    let index = look.index()?;
    let matching = index.beginning(query.text("prefix").unwrap_or_default());
    let shown = page(&matching, query.number("from", 0)?);
    let (mut nodes, mut edges) = (Nodes::default(), Vec::new());
    for name in &index.names[shown.clone()] {
        // An object may be gone meanwhile.
        for tie in look.pool.ties(name).unwrap_or_default() {
            edges.push((nodes.place(name), nodes.place(&tie.name)));
        }
    }
    let (matching, from) = (matching.len(), shown.start - matching.start);
    Ok(Answer::json(&Graph { matching, from, looked: shown.len(), nodes: nodes.nodes, edges }))
}
