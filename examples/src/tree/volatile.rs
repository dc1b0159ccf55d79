//! Nodes in volatile memory.

use super::{Descent, Links, Nodes, Side, Steps, Walk};
use anyhow::Result;
use std::cmp::Ordering;

/// Nodes side by side; a place is an index.
#[derive(Debug, Default)]
pub struct VolatileNodes {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    value: u64,
    parent: Option<u32>,
    children: [Option<u32>; 2],
    red: bool,
}

impl Walk for VolatileNodes {
    type Place = u32;
    type Key = u64;
    type Sought = u64;
    type Value = u64;

    fn root(&self) -> Result<Option<u32>> {
        Ok(self.root)
    }

    fn links(&self, at: u32) -> Result<Links<u32>> {
        let node = &self.nodes[at as usize];
        let [left, right] = node.children;
        Ok(Links { parent: node.parent, left, right, red: node.red })
    }

    fn entry(&self, at: u32) -> Result<(u64, u64)> {
        let node = &self.nodes[at as usize];
        Ok((node.key, node.value))
    }

    fn descend(&self, sought: &u64) -> Result<Descent<u32>> {
        let (mut at, mut above, mut steps) = (self.root, None, Steps::default());
        while let Some(here) = at {
            steps.step()?;
            let node = &self.nodes[here as usize];
            let side = match sought.cmp(&node.key) {
                Ordering::Equal => return Ok(Descent::Found(here)),
                Ordering::Less => Side::Left,
                Ordering::Greater => Side::Right,
            };
            above = Some((here, side));
            at = node.children[side as usize];
        }
        Ok(Descent::Vacant(above))
    }
}

impl Nodes for VolatileNodes {
    fn set_root(&mut self, to: Option<u32>) -> Result<()> {
        self.root = to;
        Ok(())
    }

    fn change(&mut self, at: u32, change: impl FnOnce(&mut Links<u32>)) -> Result<()> {
        let mut links = self.links(at)?;
        change(&mut links);
        let node = &mut self.nodes[at as usize];
        (node.parent, node.children, node.red) = (links.parent, [links.left, links.right], links.red);
        Ok(())
    }

    fn set_value(&mut self, at: u32, value: u64) -> Result<()> {
        self.nodes[at as usize].value = value;
        Ok(())
    }

    fn make(&mut self, key: u64, value: u64, parent: Option<u32>) -> Result<u32> {
        let node = Node { key, value, parent, children: [None; 2], red: true };
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            return Ok(at);
        }
        self.nodes.push(node);
        Ok(u32::try_from(self.nodes.len() - 1)?)
    }

    fn discard(&mut self, at: u32) -> Result<()> {
        self.free.push(at);
        Ok(())
    }
}
