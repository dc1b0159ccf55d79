//! Extendible structs as bytes: untyped functions and pointers copy, move or free the link alone.
//!
//! `memcpy` and `memmove` of whole structs become copies with extensions, and `qsort` exchanges
//! whole structs with their links. The rest is refused.

use crate::access::variable;
use crate::layout::describer;
use crate::problem::Place;
use crate::rewrite::Rewrite;
use crate::tree::{Kind, Node, Type};

/// Functions that copy, move, compare or write bytes, with any cast of their arguments.
const BYTES: [&str; 22] = [
    "memcpy",
    "memmove",
    "mempcpy",
    "memccpy",
    "memcmp",
    "bcopy",
    "wmemcpy",
    "wmemmove",
    "qsort",
    "qsort_r",
    "realloc",
    "reallocarray",
    "pmo_realloc",
    "fwrite",
    "fread",
    "fwrite_unlocked",
    "fread_unlocked",
    "write",
    "read",
    "pwrite",
    "pread",
    "send",
];

/// They need no type: they call functions of the caller, free structs without extensions, or make
/// zeroed structs.
const PLAIN: [&str; 6] = ["bsearch", "free", "memset", "madvise", "msync", "pthread_create"];

const REMEDY: &str = "assign it (`*to = *from`), free it by pmo_free, and pass its fields";

/// Without decorations of compilers or C libraries.
fn plain_name(name: &str) -> &str {
    let name = name.trim_start_matches("__builtin_").trim_start_matches("__");
    name.strip_suffix("_chk").unwrap_or(name)
}

impl Rewrite<'_> {
    /// Lowers or refuses a call that takes extendible structs as bytes, behind any cast.
    pub(crate) fn bytes(&mut self, call: &Node) {
        let [callee, arguments @ ..] = &call.children[..] else { return };
        let name = plain_name(&call.name);
        if !BYTES.contains(&name) {
            return self.templates(call);
        }
        let led = |argument: &Node| argument.ty.is_pointer().then(|| self.led(argument)).flatten();
        let whole = arguments.iter().find_map(|argument| self.whole(argument));
        match (name, arguments) {
            ("memcpy" | "memmove", [to, from, size])
                if whole.is_some() && led(to) == whole && led(from) == whole =>
            {
                return self.copies(call, callee, (to, size), whole);
            }
            ("qsort", [base, _, size, _])
                if led(base).is_some()
                    && self.whole(size) == led(base)
                    && size.plain().kind == Kind::Unevaluated =>
            {
                return;
            }
            _ => {}
        }
        if arguments.iter().any(|argument| self.loses(argument)) {
            let copied = match name {
                "memcpy" | "memmove" => "a number of bytes that is no product with the struct's sizeof",
                _ => "its bytes",
            };
            let text = format!(
                "{name} takes an extendible struct as bytes, without its extensions ({copied}): {REMEDY}"
            );
            self.refuse(call.begin, text);
        } else if whole.is_some() {
            let text = format!(
                "{name} takes an extendible struct as bytes, by a pointer that does not say so: have the pointer lead to the struct"
            );
            self.refuse(call.begin, text);
        }
    }

    /// Copies each whole struct with its extensions.
    fn copies(&mut self, call: &Node, callee: &Node, (to, size): (&Node, &Node), of: Option<Place>) {
        let Some(describer) = of.and_then(|place| describer(self.program, place)) else { return };
        if addressed(to) {
            let text = format!("{} to a variable would share its extensions: assign it", call.name);
            return self.refuse(call.begin, text);
        }
        if self.is_new(callee.begin, call.name.clone()) {
            self.replace_name(callee, "PMO_LEDS_COPIES".to_owned());
            self.edits(size.end).close(size.end.offset, format!(", {describer}()"));
        }
    }

    fn whole(&self, size: &Node) -> Option<Place> {
        let size = size.plain();
        match (size.kind, &size.children[..]) {
            (Kind::Unevaluated, [operand, ..]) => {
                let text = self.text(size.begin.file).get(size.begin.offset..size.end.offset)?;
                let pointer = operand.kind == Kind::TypeName && text.contains(['*', '[', '&']);
                let place = operand.ty.record().filter(|_| text.starts_with("sizeof") && !pointer)?;
                self.program.record_extends(place).then_some(place)
            }
            (Kind::Binary, [left, right]) => {
                let between = left.end.offset..right.begin.offset;
                let times = self.text(left.end.file).get(between)?.trim() == "*";
                let product = || self.whole(left).or_else(|| self.whole(right));
                times.then(product).flatten()
            }
            (Kind::Cast, [.., inner]) => self.whole(inner),
            _ => None,
        }
    }

    /// Refuses a `void **` to a pointer to extendible structs: functions move or free them by it.
    pub(crate) fn untyped_pointer(&mut self, node: &Node) {
        let is_cast = matches!(node.kind, Kind::Cast | Kind::Implicit);
        let from = node.children.last().filter(|_| is_cast && node.ty.target().is_some_and(is_void));
        let target = from.and_then(|from| from.ty.target()).and_then(Type::target);
        if target.is_some_and(|to| self.program.extends(to)) {
            let text = "a void ** leads to a pointer to an extendible struct, which may be moved or freed by it without its \
                        extensions: pass a pointer to the struct; if only the address is meant, write the casts (void **)(void *)";
            self.refuse(node.begin, text);
        }
    }

    /// Refuses an implicit conversion to `void *`, in an argument or an assignment.
    pub(crate) fn untyped(&mut self, node: &Node, parents: &[&Node]) {
        let from = node.children.last().filter(|_| node.kind == Kind::Implicit && is_void(&node.ty));
        let typed = from.is_some_and(|from| from.ty.target().is_some_and(|to| self.program.extends(to)));
        let Some(parent) = parents.last().filter(|_| typed) else { return };
        let to = match parent.kind {
            Kind::Call => {
                let known =
                    parent.name.to_ascii_lowercase().starts_with("pmo_") || PLAIN.contains(&&*parent.name);
                if known || BYTES.contains(&plain_name(&parent.name)) {
                    return;
                }
                if parent.name.is_empty() { "a function".to_owned() } else { parent.name.clone() }
            }
            Kind::Variable | Kind::InitList => "a variable".to_owned(),
            Kind::Binary if parent.ty.is_pointer() && !self.links(parent) => "a variable".to_owned(),
            _ => return,
        };
        let text = format!(
            "{to} gets an extendible struct as void *, and may copy or free it without its extensions: {REMEDY}; \
             if it is freed there, free its extensions by PMO_UNEXTEND before; then, and if only the address is meant, write \
             the cast (void *)"
        );
        self.refuse(node.begin, text);
    }

    /// Whether it assigns to a field of an extendible struct, or of a handle in it: these link
    /// structs.
    fn links(&self, assignment: &Node) -> bool {
        let to = assignment.children.first().map(Node::inner).filter(|to| to.kind == Kind::Member);
        to.and_then(|to| to.refers).is_some_and(|field| self.program.is_within(field.place))
    }

    fn loses(&self, argument: &Node) -> bool {
        argument.ty.target().is_none_or(|to| !self.program.extends(to)) && self.led(argument).is_some()
    }

    fn led(&self, node: &Node) -> Option<Place> {
        let typed = node.ty.target().filter(|to| self.program.extends(to)).and_then(Type::record);
        let inner = matches!(node.kind, Kind::Paren | Kind::Implicit | Kind::Cast);
        typed.or_else(|| node.children.last().filter(|_| inner).and_then(|inner| self.led(inner)))
    }
}

fn is_void(ty: &Type) -> bool {
    ty.target().is_some_and(|to| to.text.trim_start_matches("const ") == "void")
}

fn addressed(pointer: &Node) -> bool {
    let Some(inner) = pointer.children.last() else { return false };
    match pointer.kind {
        Kind::Unary => variable(inner).is_some(),
        Kind::Implicit if inner.ty.is_array() => variable(inner).is_some(),
        Kind::Paren | Kind::Implicit | Kind::Cast => addressed(inner),
        _ => false,
    }
}
