//! Extendible structs as bytes: a function or a pointer without their type copies, moves or frees the link alone.

use crate::rewrite::Rewrite;
use crate::tree::{Kind, Node, Type};

/// Functions that copy, move, compare or write bytes, whatever cast their arguments have.
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

/// Functions that need no type: they look at structs by functions of the caller, free structs without extensions,
/// or begin structs as zeros.
const PLAIN: [&str; 6] = ["bsearch", "free", "memset", "madvise", "msync", "pthread_create"];

const REMEDY: &str = "assign it (`*to = *from`), free it by pmo_free, and pass its fields";

impl Rewrite<'_> {
    /// Refuses a call of a function that takes extendible structs as bytes, behind any cast.
    pub(crate) fn bytes(&mut self, call: &Node) {
        let name = call.name.trim_start_matches("__builtin_").trim_start_matches("__");
        let name = name.strip_suffix("_chk").unwrap_or(name);
        let [_, arguments @ ..] = &call.children[..] else { return };
        if !BYTES.contains(&name) || !arguments.iter().any(|argument| self.loses(argument)) {
            return;
        }
        let text = format!("{name} takes an extendible struct as bytes, without its extensions: {REMEDY}");
        self.refuse(call.begin, text);
    }

    /// Refuses a conversion to `void *` that is not written down, in an argument or an assignment.
    pub(crate) fn untyped(&mut self, node: &Node, parents: &[&Node]) {
        let is_void =
            |ty: &Type| ty.target().is_some_and(|to| to.text.trim_start_matches("const ") == "void");
        let from = node.children.last().filter(|_| node.kind == Kind::Implicit && is_void(&node.ty));
        let typed = from.is_some_and(|from| from.ty.target().is_some_and(|to| self.program.extends(to)));
        let Some(parent) = parents.last().filter(|_| typed) else { return };
        let to = match parent.kind {
            Kind::Call => {
                let known =
                    parent.name.to_ascii_lowercase().starts_with("pmo_") || PLAIN.contains(&&*parent.name);
                let name = parent.name.trim_start_matches("__builtin_").trim_start_matches("__");
                if known || BYTES.contains(&name.strip_suffix("_chk").unwrap_or(name)) {
                    return;
                }
                if parent.name.is_empty() { "a function".to_owned() } else { parent.name.clone() }
            }
            Kind::Variable | Kind::InitList => "a variable".to_owned(),
            Kind::Binary if parent.ty.is_pointer() => "a variable".to_owned(),
            _ => return,
        };
        let text = format!(
            "{to} gets an extendible struct as void *, and may copy or free it without its extensions: {REMEDY}; \
             if only the address is meant, write the cast (void *)"
        );
        self.refuse(node.begin, text);
    }

    /// Whether an argument is a pointer to an extendible struct that was converted to another pointer.
    fn loses(&self, argument: &Node) -> bool {
        argument.ty.target().is_none_or(|to| !self.program.extends(to)) && self.leads(argument)
    }

    /// Whether a pointer to an extendible struct lies behind conversions and casts.
    fn leads(&self, node: &Node) -> bool {
        let typed = node.ty.target().is_some_and(|to| self.program.extends(to));
        let inner = matches!(node.kind, Kind::Paren | Kind::Implicit | Kind::Cast);
        typed || inner && node.children.last().is_some_and(|inner| self.leads(inner))
    }
}
