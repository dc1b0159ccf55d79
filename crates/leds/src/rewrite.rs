//! Changes of expressions: accesses to extensions become calls, copies become deep, frees free
//! chains.

use crate::access::{Use, usage, variable};
use crate::dominance::{EXTENDED, Known, known};
use crate::edit::Edits;
use crate::extendible::Init;
use crate::layout::describer;
use crate::problem::{Place, Refusal};
use crate::program::{FieldOf, Program};
use crate::token::is_closed;
use crate::tree::{Kind, Node, Type};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

pub(crate) const INIT: &str = "pmo_leds_init_";
const EXTEND: &str = "PMO_EXTEND";
const UNEXTEND: &str = "PMO_UNEXTEND";
/// Changes by file, of code, and of functions of initial values, which leave their structs.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    pub(crate) code: BTreeMap<usize, Edits>,
    pub(crate) inits: BTreeMap<usize, Edits>,
}

pub(crate) fn rewrite(program: &Program<'_>) -> Result<Rewritten, Vec<Refusal>> {
    let mut walk = Rewrite {
        program,
        out: Rewritten::default(),
        refused: Vec::new(),
        known: Known::default(),
        temporary: HashSet::new(),
        init: None,
        counter: 0,
        done: HashMap::new(),
    };
    for declaration in &program.unit.declarations {
        walk.declaration(declaration);
    }
    let Rewrite { out, mut refused, .. } = walk;
    for (file, edits) in out.code.iter().chain(&out.inits) {
        let text = "an extension is used in a way that a macro makes ambiguous: write it without the macro";
        refused.extend(edits.conflict().map(|offset| Refusal::new(Place { file: *file, offset }, text)));
    }
    if refused.is_empty() { Ok(out) } else { Err(refused) }
}

/// The walked function computes initial values.
#[derive(Clone, Copy)]
struct Computes {
    of: usize,
    extension: usize,
    it: Place,
}

pub(crate) struct Rewrite<'a> {
    pub(crate) program: &'a Program<'a>,
    out: Rewritten,
    refused: Vec<Refusal>,
    pub(crate) known: Known,
    pub(crate) temporary: HashSet<Place>,
    init: Option<Computes>,
    counter: usize,
    /// Changed places, and how: a macro may repeat its argument.
    done: HashMap<Place, String>,
}

impl<'a> Rewrite<'a> {
    pub(crate) fn refuse(&mut self, at: Place, text: impl Into<String>) {
        self.refused.push(Refusal::new(at, text));
    }

    /// Notes a change; returns whether it is new. Refuses a place changed in another way: a macro
    /// uses its argument differently.
    pub(crate) fn is_new(&mut self, at: Place, how: String) -> bool {
        let before = self.done.get(&at);
        if before.is_some_and(|before| *before != how) {
            self.refuse(at, "a macro uses it in several ways: give the macro a variable");
        }
        self.done.insert(at, how).is_none()
    }

    pub(crate) fn text(&self, file: usize) -> &'a str {
        self.program.texts.get(file).map_or("", String::as_str)
    }

    pub(crate) fn edits(&mut self, at: Place) -> &mut Edits {
        let inside = |init: &Init| init.body.contains(&at.offset);
        let mut inits =
            self.program.structs.iter().filter(|of| of.file == at.file).flat_map(|of| &of.extensions);
        let is_init = inits.any(|extension| extension.init.as_ref().is_some_and(inside));
        let edits = if is_init { &mut self.out.inits } else { &mut self.out.code };
        edits.entry(at.file).or_default()
    }

    fn declaration(&mut self, node: &Node) {
        self.known = known(self.program, node);
        self.temporary.clear();
        self.init = self.computes(node);
        if node.kind == Kind::Function {
            let by_value = |ty: &Type| self.program.extends(ty) && !ty.is_array();
            let parameters =
                node.children.iter().filter(|child| child.kind == Kind::Parameter && by_value(&child.ty));
            let wrong: Vec<_> = parameters.map(|child| child.at).collect();
            for at in wrong {
                self.refuse(at, "an extendible struct that is passed by value would share its extensions with the original: pass a pointer");
            }
        }
        self.find_temporaries(node);
        self.visit(node, &mut Vec::new());
    }

    fn computes(&mut self, node: &Node) -> Option<Computes> {
        let rest = node.name.strip_prefix(INIT)?;
        let (tag, number) = rest.rsplit_once('_')?;
        let (of, extension) =
            (self.program.structs.iter().position(|of| of.tag == tag)?, number.parse().ok()?);
        let it = node.children.iter().find(|child| child.kind == Kind::Parameter)?;
        let leads = it.ty.target().and_then(Type::record).and_then(|place| self.program.structure(place));
        if leads != Some(of) {
            self.refuse(it.at, format!("INIT has one parameter, a struct {tag} *"));
        }
        Some(Computes { of, extension, it: it.at })
    }

    /// Local variables that receive a value with extensions.
    fn find_temporaries(&mut self, node: &Node) {
        self.temporary.extend(self.program.shallow_copy(node));
        node.children.iter().for_each(|child| self.find_temporaries(child));
    }

    fn visit<'n>(&mut self, node: &'n Node, parents: &mut Vec<&'n Node>) {
        match node.kind {
            Kind::Member => self.member(node, parents),
            Kind::FieldName => {
                if let Some(field) = node.refers.and_then(|to| self.program.field(to.place)) {
                    let text = format!(
                        "{} lies in an extension: it has no offset, and no initial value but that of INIT",
                        field.name
                    );
                    self.refuse(node.at, text);
                }
            }
            Kind::Call => {
                self.bytes(node);
                self.call(node);
            }
            Kind::Binary => self.assignment(node),
            Kind::Variable => {
                self.local(node, parents);
                self.container(node);
            }
            Kind::CompoundLiteral => {
                if let Some(list) = node.children.last().filter(|list| list.kind == Kind::InitList) {
                    self.list(&node.ty, list);
                }
            }
            Kind::Unary if node.ty.is_pointer() => self.address(node),
            Kind::Cast | Kind::Implicit => self.allocation(node),
            _ => {}
        }
        self.untyped(node, parents);
        self.untyped_pointer(node);
        if self.program.is_copy(node) && !self.may_copy(node, parents) {
            let text = "a copy of an extendible struct would share its extensions: assign it (`*to = *from`), or copy it to a variable that is only read";
            self.refuse(node.begin, text);
            return;
        }
        self.copy_of_variable(node);
        parents.push(node);
        for child in &node.children {
            self.visit(child, parents);
        }
        parents.pop();
    }

    fn member<'n>(&mut self, node: &'n Node, parents: &[&'n Node]) {
        let Some(to) = node.refers else { return };
        let Some(field) = self.program.field(to.place) else { return self.own_field(node, parents) };
        let Some(base) = node.children.first() else {
            let text = format!(
                "{} lies in an extension: in a method, write this->{0}, or lower a function that has a pointer",
                field.name
            );
            return self.refuse(node.at, text);
        };
        let Some(tail) = self.tail(node, base, field.name) else {
            let text = format!(
                "{} of an extension is used in the body of a macro: make it an inline function",
                field.name
            );
            return self.refuse(node.at, text);
        };
        let usage = usage(node, parents);
        let stores = matches!(usage, Use::Stored | Use::Placed);
        if let Some(init) = self.init {
            let own = base.plain().refers.is_some_and(|to| to.place == init.it) && field.of == init.of;
            if own && field.extension == init.extension {
                let text = format!("pmo_own->{}", field.name);
                if !self.is_new(node.at, text.clone()) {
                    return;
                }
                return self.edits(base.begin).replace(base.begin.offset..tail.end, text);
            }
            if own && field.extension > init.extension {
                let text =
                    format!("INIT of extension {} reads {} of a later one", init.extension, field.name);
                return self.refuse(node.at, text);
            }
            if stores {
                return self.refuse(node.at, "INIT stores only to fields of its own extension");
            }
        }
        let arrow = base.ty.is_pointer();
        if stores && !arrow && variable(base).is_some() {
            let text = format!(
                "{} lies in an extension, which a variable has no place for: allocate the struct in an object",
                field.name
            );
            return self.refuse(node.at, text);
        }
        let evaluated = !arrow && !matches!(usage, Use::Unevaluated);
        if evaluated && self.refuse_stale(base, node.at, field.name) {
            return;
        }
        self.access(node, base, field, tail, usage);
    }

    /// A field of the struct itself, in INIT.
    fn own_field(&mut self, node: &Node, parents: &[&Node]) {
        let Some(init) = self.init else { return };
        let own = node
            .children
            .first()
            .is_some_and(|base| base.plain().refers.is_some_and(|to| to.place == init.it));
        if own && matches!(usage(node, parents), Use::Stored) {
            self.refuse(node.at, "INIT stores only to fields of its own extension");
        }
    }

    /// The operator and the name behind the base, unless a macro has them.
    fn tail(&self, node: &Node, base: &Node, name: &str) -> Option<Range<usize>> {
        let text = self.text(node.at.file);
        let (begin, at) = (base.end.offset, node.at.offset);
        let between = text.get(begin..at)?.trim_start();
        let operator = between.starts_with("->") || between.starts_with('.');
        let named = text.get(at..)?.starts_with(name);
        let same =
            base.begin.file == node.at.file && base.end.file == node.at.file && base.begin.offset < begin;
        (operator && named && same && is_closed(text.get(base.begin.offset..begin)?))
            .then_some(begin..at + name.len())
    }

    fn access(&mut self, node: &Node, base: &Node, field: FieldOf<'_>, tail: Range<usize>, usage: Use<'_>) {
        let FieldOf { of, extension, name } = field;
        let tag = &self.program.structs[of].tag;
        let arrow = base.ty.is_pointer();
        let is_const = if arrow { base.ty.target().is_some_and(|to| to.is_const) } else { base.ty.is_const };
        let is_known = self.known.there.contains(&node.at) && !matches!(usage, Use::Unevaluated);
        let get = format!("pmo_leds_{tag}_{extension}");
        let how = match usage {
            Use::Read(all) => format!("{is_known} {:?} {:?}", all.begin, all.end),
            other => format!("{is_known} {:?}", std::mem::discriminant(&other)),
        };
        if !self.is_new(node.at, how) {
            return;
        }
        // The call before the pointer, and the rest after it.
        let (call, behind) = match usage {
            _ if is_known => (format!("{get}_there("), format!(")->{name}")),
            Use::Stored | Use::Placed | Use::Unevaluated => (format!("{get}("), format!(")->{name}")),
            Use::Read(all) if std::ptr::eq(all.inner(), node) && !node.ty.is_array() => {
                (format!("pmo_leds_{tag}_get_{name}("), ")".to_owned())
            }
            Use::Read(all) => {
                let scratch = self.scratch();
                if !self.wrap(all, node, &format!("{tag}Extension{extension} {scratch}")) {
                    return;
                }
                (format!("{get}_read("), format!(", &{scratch})->{name}"))
            }
            Use::Passed if self.program.is_cpp => {
                (format!("{get}_passed("), format!(", {tag}Extension{extension}())->{name}"))
            }
            Use::Passed => {
                (format!("{get}_read("), format!(", &(struct {tag}Extension{extension}){{0}})->{name}"))
            }
        };
        let constant = matches!(usage, Use::Read(_) | Use::Passed) && !is_known;
        let cast = if is_const && !constant { format!("(struct {tag} *)") } else { String::new() };
        let (open, close) = match (arrow, cast.is_empty()) {
            (true, true) => (call, behind),
            (true, false) => (format!("{call}{cast}("), format!("){behind}")),
            (false, _) => (format!("{call}{cast}&("), format!("){behind}")),
        };
        let edits = self.edits(base.begin);
        edits.open(base.begin.offset, open);
        edits.replace(tail, close);
    }

    fn scratch(&mut self) -> String {
        self.counter += 1;
        format!("pmo_leds_{}", self.counter)
    }

    /// Puts a read expression beyond the field beside a variable for initial values.
    fn wrap(&mut self, all: &Node, node: &Node, variable: &str) -> bool {
        let text = self.text(node.at.file);
        let range = all.begin.offset..all.end.offset;
        let same =
            all.begin.file == node.at.file && range.start <= node.begin.offset && node.at.offset < range.end;
        if !same || !text.get(range.clone()).is_some_and(is_closed) {
            self.refuse(
                node.at,
                format!("{} of an extension is used by a macro: make it an inline function", node.name),
            );
            return false;
        }
        let edits = self.edits(all.begin);
        edits.open(range.start, format!("(__extension__({{ struct {variable}; "));
        edits.close(range.end, "; }))".to_owned());
        true
    }

    fn call(&mut self, node: &Node) {
        let [callee, arguments @ ..] = &node.children[..] else { return };
        if node.name == "operator=" {
            return self.assignment(node);
        }
        let leads = |argument: &Node| argument.plain().ty.target().and_then(Type::record);
        let Some(first) = arguments.first() else { return };
        match node.name.as_str() {
            EXTEND | EXTENDED | UNEXTEND => {
                let Some(of) = leads(first).and_then(|place| self.program.structure(place)) else {
                    return self.refuse(
                        first.begin,
                        format!("{} has one argument, a pointer to an extendible struct", node.name),
                    );
                };
                let name = match node.name.as_str() {
                    EXTEND => "try",
                    UNEXTEND => "none",
                    _ => "all",
                };
                let name = format!("pmo_leds_{}_{name}", self.program.structs[of].tag);
                if !self.is_new(callee.begin, name.clone()) {
                    return;
                }
                self.replace_name(callee, name);
            }
            "pmo_free" => {
                let place = leads(first).filter(|place| self.program.record_extends(*place));
                let Some(describer) = place.and_then(|place| describer(self.program, place)) else { return };
                if !self.is_new(callee.begin, node.name.clone()) {
                    return;
                }
                self.replace_name(callee, "pmo_extended_free".to_owned());
                self.edits(first.end).close(first.end.offset, format!(", 1, {describer}()"));
            }
            _ => {}
        }
    }

    pub(crate) fn replace_name(&mut self, callee: &Node, name: String) {
        let (at, old) = (callee.begin, callee.plain().name.len());
        let text = self.text(at.file);
        if text.get(at.offset..at.offset + old).is_some_and(|found| found == callee.plain().name) {
            self.edits(at).replace(at.offset..at.offset + old, name);
        } else {
            self.refuse(at, format!("{} is called by a macro: call it in a function", callee.plain().name));
        }
    }

    /// `*to = *from`: a deep copy, unless to a variable.
    fn assignment(&mut self, node: &Node) {
        let [to, .., from] = &node.children[..] else { return };
        let copies =
            self.program.is_copy(from) || (node.kind == Kind::Call && self.program.extends(&from.ty));
        if !copies {
            return;
        }
        if self.refuse_stale(from.plain(), from.begin, "it") {
            return;
        }
        if !self.program.extends(&to.ty) || variable(to).is_some() {
            return;
        }
        let Some(describer) = to.ty.record().and_then(|place| describer(self.program, place)) else { return };
        let text = self.text(node.begin.file);
        let between = to.end.offset..from.begin.offset;
        if text.get(between.clone()).is_none_or(|between| between.trim() != "=") {
            return self.refuse(node.begin, "a struct is assigned by a macro: assign it in a function");
        }
        let tag = describer.trim_start_matches("pmo_type_").trim_start_matches("pmo_leds_type_").to_owned();
        let edits = self.edits(node.begin);
        edits.open(to.begin.offset, "PMO_LEDS_COPY(&(".to_owned());
        edits.replace(between, "), &(".to_owned());
        edits.close(from.end.offset, format!("), {describer}(), \"{tag}\")"));
    }
}
