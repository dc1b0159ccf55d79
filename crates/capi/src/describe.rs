//! The description of a type of C or C++, in the words that roots keep (FORMAT.md, section 10).

use crate::args::{array, borrow, text};
use crate::guard::{Failure, Result};
use crate::numbers::number;
use crate::types::{Field, Kind, Type};
use std::collections::VecDeque;
use std::fmt::Write;

/// Types within each other at most.
const DEEPEST: usize = 90;
/// Bytes of a description at most, as of roots.
const MOST: usize = 1 << 20;

/// # Safety
/// NULL, or a valid, lasting type of C.
pub(crate) unsafe fn describe(ty: *const Type) -> Result<String> {
    let mut words = Words { out: String::new(), met: Vec::new(), pointers: 0, targets: VecDeque::new() };
    // SAFETY: the caller's promise.
    unsafe { words.of_type(ty, 0) }?;
    while let Some((number, target)) = words.targets.pop_front() {
        words.word(&format!("-> {number}"));
        // SAFETY: the caller's promise.
        unsafe { words.of_type(target(), 0) }?;
        if words.out.len() > MOST {
            return Err(Failure::argument(format!(
                "a type with its targets takes more than {MOST} bytes to describe"
            )));
        }
    }
    Ok(words.out)
}

struct Words {
    out: String,
    met: Vec<*const Type>,
    pointers: usize,
    targets: VecDeque<(usize, extern "C" fn() -> *const Type)>,
}

fn one_word(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join("_")
}

fn alignment(offset: usize, size: usize, most: usize) -> usize {
    let fits = |align: &usize| offset.is_multiple_of(*align) && size.is_multiple_of(*align) && *align <= most;
    [16, 8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

impl Words {
    fn word(&mut self, word: &str) {
        self.out.push_str(word);
        self.out.push(' ');
    }

    fn pointer(&mut self, target: &str) {
        self.pointers += 1;
        self.word("*mut");
        self.word(target);
    }

    fn far(&mut self, target: Option<extern "C" fn() -> *const Type>) {
        if let Some(target) = target {
            self.targets.push_back((self.pointers, target));
        }
        self.pointers += 1;
        self.word("far");
        self.word("void");
    }

    /// # Safety
    /// As for [`describe`].
    unsafe fn of_type(&mut self, ty: *const Type, depth: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        let this = unsafe { borrow(ty, "type") }?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(this.name, "name of the type") }?;
        if depth > DEEPEST {
            return Err(Failure::argument(format!(
                "more than {DEEPEST} types within each other, the last is {name}"
            )));
        }
        let what = format!("list of fields of {name}");
        // SAFETY: the caller's promise.
        let fields = unsafe { array(this.fields, this.count, &what) }?;
        match this.kind()? {
            Kind::Scalar => self.bytes(name, this.size, alignment(0, this.size, this.align.max(16))),
            Kind::Extensions => self.word("Extensions"),
            Kind::Far => self.far(fields.first().and_then(|field| field.nested)),
            Kind::Pointer => {
                if let Some(target) = fields.first().and_then(|field| field.nested) {
                    self.targets.push_back((self.pointers, target));
                }
                self.pointer("void");
            }
            Kind::Array => {
                let [field] = fields else {
                    return Err(Failure::argument(format!("{name}: not one element")));
                };
                let count = this.size.checked_div(field.size).unwrap_or(0);
                self.word(&format!("[{count}]"));
                // SAFETY: the caller's promise.
                unsafe { self.nested(field, depth) }?;
            }
            kind @ (Kind::Struct | Kind::Opaque) => {
                if let Some(number) = self.met.iter().position(|met| *met == ty) {
                    self.word(&format!("={number}"));
                    return Ok(());
                }
                self.met.push(ty);
                let align = if this.align > 0 { this.align } else { alignment(0, this.size, 16) };
                if !align.is_power_of_two() || !this.size.is_multiple_of(align) {
                    let size = this.size;
                    return Err(Failure::argument(format!("{name}: {size} bytes, alignment {align}")));
                }
                let name = name.trim_start_matches("struct ");
                self.word(&format!("{}:{}:{align}", one_word(name), this.size));
                let (open, close) = if kind == Kind::Struct { ("{", "}") } else { ("<", ">") };
                self.word(open);
                if kind == Kind::Struct {
                    // SAFETY: the caller's promise.
                    unsafe { self.fields(name, (this.size, align), fields, depth) }?;
                } else {
                    for field in fields {
                        // SAFETY: the caller's promise.
                        unsafe { self.nested(field, depth) }?;
                    }
                }
                self.word(close);
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`describe`], of the field's type.
    unsafe fn nested(&mut self, field: &Field, depth: usize) -> Result<()> {
        let nested = field.nested.map_or(std::ptr::null(), |nested| nested());
        // SAFETY: the caller's promise.
        unsafe { self.of_type(nested, depth + 1) }
    }

    /// # Safety
    /// As for [`describe`], of the fields.
    unsafe fn fields(
        &mut self,
        of: &str,
        (size, align): (usize, usize),
        fields: &[Field],
        depth: usize,
    ) -> Result<()> {
        let mut sorted: Vec<&Field> = fields.iter().collect();
        sorted.sort_by_key(|field| field.offset);
        let mut at = 0;
        for field in sorted {
            // SAFETY: the caller's promise.
            let name = unsafe { text(field.name, "name of a field") }?;
            let end = field.offset.checked_add(field.size).filter(|end| *end <= size);
            let wrong = match end {
                _ if field.offset < at => Some("overlaps the one before it"),
                None => Some("ends behind it"),
                Some(_) => None,
            };
            if let Some(wrong) = wrong {
                let what = format!("field {name} of {of}, which has {size} bytes, {wrong}");
                return Err(Failure::argument(what));
            }
            at = end.unwrap_or(at);
            self.word(&format!("{}@{}:{}", one_word(name), field.offset, field.size));
            // SAFETY: the caller's promise.
            unsafe { self.field(of, field, alignment(field.offset, field.size, align), depth) }?;
        }
        Ok(())
    }

    /// # Safety
    /// As for [`describe`], of the field.
    unsafe fn field(&mut self, of: &str, field: &Field, align: usize, depth: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        let kind = unsafe { text(field.ty, "type of a field") }?;
        let nested = field.nested.map_or(std::ptr::null(), |nested| nested());
        if nested.is_null() {
            if let Some(length) = far_pointers(kind, field.size, align) {
                if let Some(length) = length {
                    self.word(&format!("[{length}]"));
                }
                self.far(field.target);
                return Ok(());
            }
            let number = self.pointers;
            self.by_name(kind, field.size, align);
            match field.target {
                None => {}
                Some(target) if self.pointers > number => self.targets.push_back((number, target)),
                Some(_) => {
                    // SAFETY: the caller's promise.
                    let name = unsafe { text(field.name, "name of a field") }?;
                    let what =
                        format!("field {name} of {of} has a target, but {kind} is no type of a pointer");
                    return Err(Failure::argument(what));
                }
            }
            return Ok(());
        }
        // SAFETY: the caller's promise.
        let size = unsafe { borrow(nested, "type of a field") }?.size;
        match field.size.checked_div(size.max(1)) {
            Some(1) => {}
            Some(count) if count * size == field.size => self.word(&format!("[{count}]")),
            _ => {
                let what = format!("a field of {of} has {} bytes, its type {size}", field.size);
                return Err(Failure::argument(what));
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.of_type(nested, depth + 1) }
    }

    fn by_name(&mut self, kind: &str, size: usize, align: usize) {
        let (base, dimensions) = kind.find('[').map_or((kind, ""), |at| kind.split_at(at));
        let base = base.trim().trim_start_matches("const ").trim_start_matches("volatile ").trim();
        let element = match (dimensions.is_empty(), base.ends_with('*'), number(base)) {
            (true, ..) => size,
            (false, true, _) => 8,
            (false, false, Some((_, bytes))) => bytes,
            (false, false, None) => align.min(size),
        };
        if element == 0 || !size.is_multiple_of(element) || element > size {
            return self.bytes(kind, size, align);
        }
        if !dimensions.is_empty() {
            self.word(&format!("[{}]", size / element));
        }
        match base.strip_suffix('*') {
            Some(target) if element == 8 && align >= 8 => {
                let target = target.trim().trim_start_matches("const ").trim_start_matches("struct ");
                self.pointer(&one_word(if target.is_empty() { "void" } else { target }));
            }
            _ => self.bytes(base, element, align),
        }
    }

    fn bytes(&mut self, name: &str, size: usize, align: usize) {
        match number(name) {
            Some((word, bytes)) if bytes == size && align.min(bytes) == bytes => {
                if name != word {
                    self.word(&format!("{}~", one_word(name)));
                }
                self.word(word);
            }
            _ => {
                // A number that no later type can meet.
                self.met.push(std::ptr::null());
                let _ =
                    write!(self.out, "{}:{size}:{} < > ", one_word(name), align.min(alignment(0, size, 16)));
            }
        }
    }
}

fn far_pointers(kind: &str, size: usize, align: usize) -> Option<Option<usize>> {
    let (base, dimensions) = kind.find('[').map_or((kind, ""), |at| kind.split_at(at));
    let base = base.trim().trim_start_matches("const ").trim_start_matches("volatile ").trim();
    let whole = base == "pmo_ptr" && size > 0 && size.is_multiple_of(8) && align >= 8;
    whole.then(|| (!dimensions.is_empty()).then_some(size / 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{CString, c_char};

    fn leak(name: &str) -> *const c_char {
        CString::new(name).unwrap().into_raw()
    }

    fn field(name: &str, ty: &str, offset: usize, size: usize) -> Field {
        Field { name: leak(name), ty: leak(ty), offset, size, nested: None, target: None }
    }

    fn leaked(name: &str, size: usize, kind: i32, fields: Vec<Field>) -> *const Type {
        let fields = fields.leak();
        let (count, fields) = (fields.len(), fields.as_ptr());
        Box::leak(Box::new(Type { name: leak(name), size, fields, count, kind, align: 8 }))
    }

    fn described(ty: *const Type) -> Result<String> {
        // SAFETY: a valid type.
        unsafe { describe(ty) }
    }

    fn words(name: &str, (size, align): (usize, usize), fields: &[Field]) -> String {
        let ty =
            Type { name: leak(name), size, fields: fields.as_ptr(), count: fields.len(), kind: 0, align };
        // SAFETY: a valid type.
        let words = unsafe { describe(&raw const ty) }.unwrap();
        // Invalid types have no lines.
        let info = indelible::TypeInfo::described("t", &words);
        assert_ne!(info.lines(), words, "{words}");
        words
    }

    #[test]
    fn names_of_c_become_words() {
        let fields = [
            field("id", "const uint32_t", 0, 4),
            field("n", "long", 8, 8),
            field("text", "char[3][8]", 16, 24),
            field("next", "struct node *", 40, 8),
            field("all", "const struct node *[2]", 48, 16),
            field("call", "int (*)(void)", 64, 8),
            field("when", "struct timespec", 72, 16),
            field("ld", "long double", 96, 16),
        ];
        let expected = "node:112:16 { id@0:4 uint32_t~ u32 n@8:8 long~ i64 text@16:24 [24] char~ i8 next@40:8 *mut node \
            all@48:16 [2] *mut node call@64:8 int_(*)(void):8:8 < > when@72:16 struct_timespec:16:8 < > \
            ld@96:16 long_double:16:16 < > } ";
        assert_eq!(words("struct node", (112, 16), &fields), expected);
    }

    extern "C" fn node() -> *const Type {
        static NODE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let make = || {
            let next = Field { target: Some(node), ..field("next", "struct node *", 0, 8) };
            let all = Field { target: Some(leaf), ..field("all", "void *[2]", 8, 16) };
            leaked("struct node", 24, 0, vec![next, all]).expose_provenance()
        };
        std::ptr::with_exposed_provenance(*NODE.get_or_init(make))
    }

    extern "C" fn leaf() -> *const Type {
        leaked("leaf", 8, 2, vec![Field { nested: Some(node), ..field("target", "", 0, 24) }])
    }

    extern "C" fn endless() -> *const Type {
        leaked("endless", 8, 2, vec![Field { nested: Some(endless), ..field("target", "", 0, 8) }])
    }

    #[test]
    fn targets_are_described_behind_the_type() {
        let words = described(node()).unwrap();
        let own = "node:24:8 { next@0:8 *mut node all@8:16 [2] *mut void } ";
        assert_eq!(words, format!("{own}-> 0 =0 -> 1 *mut void -> 2 =0 "));
        let info = |words| indelible::TypeInfo::described("t", words).fingerprint;
        assert_eq!(info(&words), info(own));
        assert!(indelible::TypeInfo::described("t", &words).lines().starts_with("node: size 24"));
    }

    #[test]
    fn targets_that_cannot_be_are_refused() {
        let id = Field { target: Some(node), ..field("id", "node_pointer", 0, 8) };
        let failure = described(leaked("struct odd", 8, 0, vec![id])).unwrap_err();
        let expected = "field id of odd has a target, but node_pointer is no type of a pointer";
        assert!(format!("{failure:?}").contains(expected), "{failure:?}");
        let failure = described(endless()).unwrap_err();
        assert!(format!("{failure:?}").contains("more than 1048576 bytes"), "{failure:?}");
    }

    #[test]
    fn far_pointers_are_described_with_their_targets() {
        let fields = [
            field("any", "pmo_ptr", 0, 8),
            field("all", "const pmo_ptr[2][2]", 8, 32),
            Field { target: Some(node), ..field("next", "pmo_ptr", 40, 8) },
        ];
        let own = "list:48:8 { any@0:8 far void all@8:32 [4] far void next@40:8 far void } ";
        let words = self::words("struct list", (48, 8), &fields);
        // The first pointer, the array's four with one number, and the one with a target.
        assert!(words.starts_with(&format!("{own}-> 2 node:24:8 {{")), "{words}");
        // A type of its own, as in C++.
        let far =
            leaked("far pointer", 8, 6, vec![Field { nested: Some(node), ..field("target", "", 0, 24) }]);
        assert!(described(far).unwrap().starts_with("far void -> 0 node:24:8 {"));
        assert_eq!(described(leaked("far pointer", 8, 6, vec![])).unwrap(), "far void ");
        let packed = [field("tag", "char", 0, 1), field("next", "pmo_ptr", 1, 8)];
        let expected = "odd:9:1 { tag@0:1 char~ i8 next@1:8 pmo_ptr:8:1 < > } ";
        assert_eq!(self::words("struct odd", (9, 1), &packed), expected);
    }

    #[test]
    fn packed_fields_are_bytes() {
        let fields = [field("tag", "char", 0, 1), field("n", "long", 1, 8), field("p", "void *", 9, 8)];
        let expected = "odd:17:1 { tag@0:1 char~ i8 n@1:8 long:8:1 < > p@9:8 void_*:8:1 < > } ";
        assert_eq!(words("struct odd", (17, 1), &fields), expected);
    }
}
