//! Unneeded checks. An extension stored to through a variable exists as long as the variable keeps
//! its value and no call may free, revert or replace its target. Copies in variables, which share
//! extensions, are readable until those may have changed.
//!
//! The walk follows statements. Facts hold from the end of a full expression, as C does not order
//! its parts. A loop, and each part of it, begins with the facts that it does not end; after a
//! condition the common facts of both ways hold; labels and cases begin with none.

use crate::access::{self, Use, usage};
use crate::problem::Place;
use crate::program::Program;
use crate::tree::{Kind, Node};
use std::collections::{HashMap, HashSet};

/// Existing extensions: the highest number by variable and struct.
type Facts = HashMap<(Place, usize), usize>;

/// Makes all extensions, or ends as an access does.
pub(crate) const EXTENDED: &str = "PMO_EXTENDED";

/// In place of a struct's number: the variable is a copy whose extensions are unchanged.
const FRESH: usize = usize::MAX;

/// They change and free nothing of an object, and call nothing of the program.
const PURE: [&str; 13] = [
    "printf", "fprintf", "dprintf", "puts", "fputs", "putchar", "fflush", "strlen", "strcmp", "strncmp",
    "memcmp", "abs", "labs",
];

#[derive(Default)]
pub(crate) struct Known {
    /// Uses of fields, by their names' places, whose extensions exist.
    pub(crate) there: HashSet<Place>,
    /// Names of copies whose extensions are unchanged.
    pub(crate) fresh: HashSet<Place>,
}

pub(crate) fn known(program: &Program<'_>, function: &Node) -> Known {
    let mut escaped = HashSet::new();
    find_escaped(function, &mut escaped);
    let mut walk = Walk { program, escaped, known: Known::default() };
    for child in &function.children {
        if child.kind == Kind::Block {
            walk.statement(child, &mut Facts::new());
        }
    }
    walk.known
}

/// Variables whose address is taken, or that an inner function uses.
fn find_escaped(node: &Node, out: &mut HashSet<Place>) {
    let unary = node.kind == Kind::Unary && node.ty.is_pointer();
    if unary
        && let Some(Node { kind: Kind::Name, refers: Some(to), .. }) = node.children.first().map(Node::inner)
    {
        out.insert(to.place);
    }
    if node.kind == Kind::Lambda {
        names(node, out);
    }
    node.children.iter().for_each(|child| find_escaped(child, out));
}

fn names(node: &Node, out: &mut HashSet<Place>) {
    out.extend(node.refers.filter(|_| node.kind == Kind::Name).map(|to| to.place));
    node.children.iter().for_each(|child| names(child, out));
}

struct Walk<'a> {
    program: &'a Program<'a>,
    escaped: HashSet<Place>,
    known: Known,
}

#[derive(Default)]
struct Ends {
    all: bool,
    copies: bool,
    variables: HashSet<Place>,
}

impl Ends {
    fn apply(&self, facts: &mut Facts) {
        if self.all {
            facts.clear();
        }
        facts.retain(|(variable, of), _| !(self.variables.contains(variable) || self.copies && *of == FRESH));
    }
}

fn variable(pointer: &Node) -> Option<&Node> {
    let inner = pointer.plain();
    (inner.kind == Kind::Name && inner.ty.is_pointer()).then_some(inner)
}

impl<'a> Walk<'a> {
    fn own(&self, pointer: &Node) -> Option<Place> {
        let to = variable(pointer)?.refers?;
        (to.is_local && !self.escaped.contains(&to.place)).then_some(to.place)
    }

    fn statement(&mut self, node: &Node, facts: &mut Facts) {
        match node.kind {
            Kind::Block | Kind::Declarations => {
                node.children.iter().for_each(|child| self.statement(child, facts));
            }
            Kind::If | Kind::Loop if is_entered(node) => {
                facts.clear();
                self.repeated(node, facts);
            }
            Kind::Switch if has_label(node) => {
                facts.clear();
                self.repeated(node, facts);
            }
            Kind::If => self.branches(node, facts),
            Kind::Loop | Kind::Switch => self.repeated(node, facts),
            Kind::Label | Kind::Case => {
                facts.clear();
                node.children.iter().for_each(|child| self.statement(child, facts));
            }
            // Statements within an expression, or of an unknown kind.
            _ if has_statements(node) => self.repeated(node, facts),
            _ => self.expression(node, facts),
        }
    }

    fn branches(&mut self, node: &Node, facts: &mut Facts) {
        let [condition, ways @ ..] = &node.children[..] else { return };
        // C++ has declarations before the condition.
        if matches!(condition.kind, Kind::Declarations | Kind::Variable) || ways.len() > 2 {
            return self.repeated(node, facts);
        }
        self.expression(condition, facts);
        let mut after: Vec<Facts> = if ways.len() < 2 { vec![facts.clone()] } else { Vec::new() };
        for way in ways {
            let mut inside = facts.clone();
            self.statement(way, &mut inside);
            after.push(inside);
        }
        *facts = after.into_iter().reduce(meet).unwrap_or_default();
    }

    /// Parts that may run in any number and order.
    fn repeated(&mut self, node: &Node, facts: &mut Facts) {
        let mut ends = Ends::default();
        self.find_ends(node, &mut ends);
        ends.apply(facts);
        for child in &node.children {
            self.statement(child, &mut facts.clone());
        }
    }

    /// A full expression, or a variable with its initial value.
    fn expression(&mut self, node: &Node, facts: &mut Facts) {
        self.operands(node, facts);
        let mut ends = Ends::default();
        self.find_ends(node, &mut ends);
        ends.apply(facts);
        let mut made = Facts::new();
        self.members(node, &mut Vec::new(), facts, true, &mut made);
        // The same expression may end them after making them.
        ends.apply(&mut made);
        for (variable, extension) in made {
            let known = facts.entry(variable).or_default();
            *known = extension.max(*known);
        }
        facts.extend(self.program.shallow_copy(node).map(|to| ((to, FRESH), 1)));
    }

    /// Marks copies read before the last call or assignment of an expression.
    fn operands(&mut self, node: &Node, facts: &Facts) {
        let mut last = node;
        while let (Kind::Variable | Kind::Implicit | Kind::Paren | Kind::Other, [inner]) =
            (last.kind, &last.children[..])
        {
            last = inner;
        }
        let (mut ends, mut before) = (Ends::default(), facts.clone());
        last.children.iter().for_each(|child| self.find_ends(child, &mut ends));
        ends.apply(&mut before);
        self.mark_fresh(last, &before);
    }

    fn mark_fresh(&mut self, node: &Node, facts: &Facts) {
        let is_fresh = |node: &Node| node.refers.is_some_and(|to| facts.contains_key(&(to.place, FRESH)));
        if node.kind == Kind::Name && is_fresh(node) {
            self.known.fresh.insert(node.at);
        }
        node.children.iter().for_each(|child| self.mark_fresh(child, facts));
    }

    /// Marks known uses, and collects certainly made extensions.
    fn members<'n>(
        &mut self,
        node: &'n Node,
        parents: &mut Vec<&'n Node>,
        facts: &Facts,
        certain: bool,
        made: &mut Facts,
    ) {
        if node.kind == Kind::Member
            && let Some(field) = node.refers.and_then(|to| self.program.field(to.place))
            && let Some(place) = node.children.first().and_then(|base| self.own(base))
        {
            if facts.get(&(place, field.of)).is_some_and(|known| *known >= field.extension) {
                self.known.there.insert(node.at);
            }
            if certain && matches!(usage(node, parents), Use::Stored) {
                let known = made.entry((place, field.of)).or_default();
                *known = field.extension.max(*known);
            }
        } else if certain && node.kind == Kind::Call && node.name == EXTENDED {
            made.extend(self.extended(node));
        }
        parents.push(node);
        for (number, child) in node.children.iter().enumerate() {
            // `&&`, `||` and `?:` may skip all but their first part; only the text tells a binary
            // operator.
            let sure = certain
                && match node.kind {
                    Kind::Binary => number == 0 || self.is_assignment(node),
                    Kind::Conditional => number == 0,
                    // With several parts it is a choice, or unknown.
                    Kind::Implicit => number == 0,
                    Kind::Unevaluated | Kind::Lambda | Kind::Other => false,
                    _ => true,
                };
            self.members(child, parents, facts, sure, made);
        }
        parents.pop();
    }

    /// Whether both sides are evaluated, as the left one is stored to.
    fn is_assignment(&self, node: &Node) -> bool {
        node.children.first().is_some_and(|left| {
            // A unary operator may also be `!`.
            matches!(left.inner().kind, Kind::Name | Kind::Member | Kind::Subscript)
        })
    }

    fn extended(&self, call: &Node) -> Option<((Place, usize), usize)> {
        let argument = call.children.get(1)?.plain();
        let of = self.program.structure(argument.ty.target()?.record()?)?;
        Some(((self.own(argument)?, of), self.program.structs[of].extensions.len()))
    }

    fn find_ends(&self, node: &Node, ends: &mut Ends) {
        let stored = match node.kind {
            Kind::Binary | Kind::CompoundAssign | Kind::Unary => node.children.first(),
            Kind::Variable => {
                ends.variables.insert(node.at);
                None
            }
            // A function may free anything, unless it makes extensions.
            Kind::Call => {
                ends.all |= node.name != EXTENDED && !PURE.contains(&node.name.as_str());
                None
            }
            Kind::Lambda => {
                ends.all = true;
                None
            }
            _ => None,
        };
        if let Some(to) = stored.map(Node::inner) {
            if to.kind != Kind::Implicit {
                let variable = access::variable(to).filter(|_| to.kind == Kind::Name);
                ends.all |= self.program.extends(&to.ty) && variable.is_none();
                ends.copies |= self.changes(to);
            }
            ends.variables.extend(to.refers.filter(|_| to.kind == Kind::Name).map(|to| to.place));
        }
        node.children.iter().for_each(|child| self.find_ends(child, ends));
    }
}

impl Walk<'_> {
    fn changes(&self, to: &Node) -> bool {
        let Some(base) = to.children.first().map(Node::inner) else {
            return to.refers.is_none_or(|to| to.is_reference);
        };
        let extends = |pointer: &Node| pointer.ty.target().is_some_and(|to| self.program.extends(to));
        match to.kind {
            Kind::Member if to.refers.is_some_and(|to| self.program.field(to.place).is_some()) => true,
            Kind::Member if base.ty.is_pointer() => !extends(base),
            Kind::Member => self.changes(base),
            Kind::Subscript => match base.children.first().filter(|_| base.kind == Kind::Implicit) {
                Some(array) if array.ty.is_array() => self.changes(array.inner()),
                _ => !extends(base),
            },
            _ => !self.program.extends(&to.ty),
        }
    }
}

fn is_entered(node: &Node) -> bool {
    node.children.iter().any(|child| match child.kind {
        Kind::Label => true,
        Kind::Case if node.kind != Kind::Switch => true,
        // Its own cases follow its condition.
        Kind::Switch => child.children.iter().any(has_label),
        _ => is_entered(child),
    })
}

fn has_label(node: &Node) -> bool {
    node.kind == Kind::Label || node.children.iter().any(has_label)
}

fn has_statements(node: &Node) -> bool {
    node.children.iter().any(|child| {
        matches!(
            child.kind,
            Kind::Block | Kind::If | Kind::Loop | Kind::Switch | Kind::Case | Kind::Label | Kind::Lambda
        ) || has_statements(child)
    })
}

fn meet(one: Facts, other: Facts) -> Facts {
    let both =
        one.into_iter().filter_map(|(variable, known)| Some((variable, known.min(*other.get(&variable)?))));
    both.collect()
}
