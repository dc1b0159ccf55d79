//! The algorithm: no red node has a red child, and all paths down have as many black nodes.

use super::{Descent, Links, Nodes, Side, Steps, Walk};
use anyhow::{Context, Result, ensure};

const DAMAGED: &str = "the tree is damaged: a node has no sibling";

/// Sets a key's value; returns the former one.
pub fn insert<N: Nodes>(
    nodes: &mut N,
    sought: &N::Sought,
    key: N::Key,
    value: N::Value,
) -> Result<Option<N::Value>> {
    let below = match nodes.descend(sought)? {
        Descent::Found(at) => {
            let (_, former) = nodes.entry(at)?;
            nodes.set_value(at, value)?;
            return Ok(Some(former));
        }
        Descent::Vacant(below) => below,
    };
    let at = nodes.make(key, value, below.map(|(parent, _)| parent))?;
    match below {
        Some((parent, side)) => nodes.change(parent, |of| *of.child_mut(side) = Some(at))?,
        None => nodes.set_root(Some(at))?,
    }
    after_insert(nodes, at)?;
    Ok(None)
}

/// A node is red, and its parent may be.
fn after_insert<N: Nodes>(nodes: &mut N, mut at: N::Place) -> Result<()> {
    while let Some(parent) = nodes.links(at)?.parent {
        let of_parent = nodes.links(parent)?;
        if !of_parent.red {
            return Ok(());
        }
        let grand = of_parent.parent.context("the tree is damaged: its root is red")?;
        let of_grand = nodes.links(grand)?;
        let side = of_grand.side_of(parent)?;
        if let Some(uncle) = of_grand.child(side.other())
            && nodes.links(uncle)?.red
        {
            paint(nodes, parent, false)?;
            paint(nodes, uncle, false)?;
            paint(nodes, grand, true)?;
            at = grand;
            continue;
        }
        if of_parent.child(side.other()) == Some(at) {
            rotate(nodes, parent, side, None)?;
        }
        return rotate(nodes, grand, side.other(), Some(true));
    }
    paint(nodes, at, false)
}

fn paint<N: Nodes>(nodes: &mut N, at: N::Place, red: bool) -> Result<()> {
    nodes.change(at, |of| of.red = red)
}

/// Moves a node down to a side, and its other child up, which gets its colour if it changes.
fn rotate<N: Nodes>(nodes: &mut N, at: N::Place, side: Side, red: Option<bool>) -> Result<()> {
    let of = nodes.links(at)?;
    let up = of.child(side.other()).context(DAMAGED)?;
    let mut inner = None;
    nodes.change(up, |of_up| {
        inner = of_up.child_mut(side).replace(at);
        of_up.parent = of.parent;
        of_up.red = red.map_or(of_up.red, |_| of.red);
    })?;
    nodes.change(at, |of| {
        *of.child_mut(side.other()) = inner;
        of.parent = Some(up);
        of.red = red.unwrap_or(of.red);
    })?;
    if let Some(inner) = inner {
        nodes.change(inner, |of| of.parent = Some(at))?;
    }
    rehang(nodes, of.parent, at, Some(up))
}

fn rehang<N: Nodes>(
    nodes: &mut N,
    parent: Option<N::Place>,
    at: N::Place,
    by: Option<N::Place>,
) -> Result<()> {
    match parent {
        Some(parent) => {
            let side = nodes.links(parent)?.side_of(at)?;
            nodes.change(parent, |of| *of.child_mut(side) = by)
        }
        None => nodes.set_root(by),
    }
}

fn replace<N: Nodes>(
    nodes: &mut N,
    parent: Option<N::Place>,
    at: N::Place,
    by: Option<N::Place>,
) -> Result<()> {
    rehang(nodes, parent, at, by)?;
    by.map_or(Ok(()), |by| nodes.change(by, |of| of.parent = parent))
}

/// Removes a key; returns it with its value. Other nodes keep their places.
pub fn remove<N: Nodes>(nodes: &mut N, sought: &N::Sought) -> Result<Option<(N::Key, N::Value)>> {
    let Descent::Found(at) = nodes.descend(sought)? else { return Ok(None) };
    let (entry, of) = (nodes.entry(at)?, nodes.links(at)?);
    let hole = match (of.left, of.right) {
        (Some(left), Some(right)) => {
            let heir = outermost(nodes, right, Side::Left)?;
            let of_heir = nodes.links(heir)?;
            let above = if heir == right {
                (heir, Side::Right)
            } else {
                let parent = of_heir.parent.context(DAMAGED)?;
                replace(nodes, Some(parent), heir, of_heir.right)?;
                nodes.change(right, |of| of.parent = Some(heir))?;
                (parent, Side::Left)
            };
            rehang(nodes, of.parent, at, Some(heir))?;
            nodes.change(left, |of| of.parent = Some(heir))?;
            nodes.change(heir, |heir_of| {
                let right = if heir == right { heir_of.right } else { Some(right) };
                *heir_of = Links { left: Some(left), right, ..of };
            })?;
            (!of_heir.red).then_some((of_heir.right, Some(above)))
        }
        (child, None) | (None, child) => {
            let above = match of.parent {
                Some(parent) => Some((parent, nodes.links(parent)?.side_of(at)?)),
                None => None,
            };
            replace(nodes, of.parent, at, child)?;
            (!of.red).then_some((child, above))
        }
    };
    if let Some((child, above)) = hole {
        after_remove(nodes, child, above)?;
    }
    nodes.discard(at)?;
    Ok(Some(entry))
}

/// Paths below `above` on one side lack a black node.
fn after_remove<N: Nodes>(
    nodes: &mut N,
    mut child: Option<N::Place>,
    mut above: Option<(N::Place, Side)>,
) -> Result<()> {
    loop {
        if let Some(child) = child
            && nodes.links(child)?.red
        {
            return paint(nodes, child, false);
        }
        let Some((parent, side)) = above else { return Ok(()) };
        let sibling = |nodes: &N| nodes.links(parent)?.child(side.other()).context(DAMAGED);
        let mut beside = sibling(nodes)?;
        if nodes.links(beside)?.red {
            rotate(nodes, parent, side, Some(true))?;
            beside = sibling(nodes)?;
        }
        let of_beside = nodes.links(beside)?;
        let is_red = |at: Option<N::Place>| at.map_or(anyhow::Ok(false), |at| Ok(nodes.links(at)?.red));
        let (inner_red, outer_red) = (is_red(of_beside.child(side))?, is_red(of_beside.child(side.other()))?);
        if !inner_red && !outer_red {
            paint(nodes, beside, true)?;
            let of_parent = nodes.links(parent)?;
            child = Some(parent);
            above = match of_parent.parent {
                Some(grand) => Some((grand, nodes.links(grand)?.side_of(parent)?)),
                None => None,
            };
            continue;
        }
        if !outer_red {
            rotate(nodes, beside, side.other(), Some(true))?;
            beside = sibling(nodes)?;
        }
        let outer = nodes.links(beside)?.child(side.other()).context(DAMAGED)?;
        paint(nodes, outer, false)?;
        return rotate(nodes, parent, side, Some(false));
    }
}

fn outermost<W: Walk>(nodes: &W, mut at: W::Place, side: Side) -> Result<W::Place> {
    let mut steps = Steps::default();
    while let Some(child) = nodes.links(at)?.child(side) {
        steps.step()?;
        at = child;
    }
    Ok(at)
}

/// The first node whose key is not less than the sought one.
pub fn first_from<W: Walk>(nodes: &W, sought: &W::Sought) -> Result<Option<W::Place>> {
    match nodes.descend(sought)? {
        Descent::Found(at) | Descent::Vacant(Some((at, Side::Left))) => Ok(Some(at)),
        Descent::Vacant(Some((at, Side::Right))) => next(nodes, at),
        Descent::Vacant(None) => Ok(None),
    }
}

pub fn next<W: Walk>(nodes: &W, mut at: W::Place) -> Result<Option<W::Place>> {
    let mut of = nodes.links(at)?;
    if let Some(right) = of.right {
        return outermost(nodes, right, Side::Left).map(Some);
    }
    let mut steps = Steps::default();
    while let Some(parent) = of.parent {
        steps.step()?;
        of = nodes.links(parent)?;
        if of.side_of(at)? == Side::Left {
            return Ok(Some(parent));
        }
        at = parent;
    }
    Ok(None)
}

/// Checks every node and the rules; returns the number of nodes.
pub fn check<W: Walk>(nodes: &W) -> Result<usize> {
    let Some(root) = nodes.root()? else { return Ok(0) };
    let of = nodes.links(root)?;
    ensure!(of.parent.is_none(), "the root has a parent");
    ensure!(!of.red, "the root is red");
    Ok(below(nodes, root, 1)?.0)
}

fn below<W: Walk>(nodes: &W, at: W::Place, depth: usize) -> Result<(usize, usize)> {
    ensure!(depth <= super::MOST_STEPS, "a way down has no end");
    let of = nodes.links(at)?;
    let mut black = [0; 2];
    let mut count = 1;
    for (side, black) in [Side::Left, Side::Right].into_iter().zip(&mut black) {
        let Some(child) = of.child(side) else { continue };
        let of_child = nodes.links(child)?;
        ensure!(of_child.parent == Some(at), "a child has another parent");
        ensure!(!(of.red && of_child.red), "a red node has a red child");
        let found = below(nodes, child, depth + 1)?;
        (count, *black) = (count + found.0, found.1);
    }
    ensure!(black[0] == black[1], "two ways down have {} and {} black nodes", black[0], black[1]);
    Ok((count, black[0] + usize::from(!of.red)))
}
