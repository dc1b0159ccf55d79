//! Types as C and C++ describe them: the layout as a text, and its fingerprint.

use crate::args::{array, borrow, boundary, fill, fill_text, text};
use crate::guard::{Failure, Result, status};
use sha2::{Digest, Sha256};
use std::ffi::{c_char, c_int};
use std::fmt::Write;

/// `struct pmo_field`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Field {
    pub name: *const c_char,
    pub ty: *const c_char,
    pub offset: usize,
    pub size: usize,
    pub nested: Option<extern "C" fn() -> *const Type>,
}

/// `struct pmo_type`.
#[repr(C)]
#[allow(missing_docs)]
pub struct Type {
    pub name: *const c_char,
    pub size: usize,
    pub fields: *const Field,
    pub count: usize,
}

/// The description of a type that a root keeps.
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) layout: String,
    pub(crate) fingerprint: u128,
    /// Bytes of a value.
    pub(crate) size: usize,
}

/// Bytes of a layout that a root keeps; the fingerprint is of all of it.
const KEPT: usize = 3500;
/// Bytes of a type's name that a root keeps.
const NAME: usize = 255;

impl Described {
    /// # Safety
    /// NULL, or a type as the header has it, which stays.
    pub(crate) unsafe fn of(ty: *const Type) -> Result<Described> {
        let mut layout = String::new();
        // SAFETY: the caller's promise.
        let name = unsafe { describe(ty, &mut Vec::new(), &mut layout) }?;
        layout.truncate(layout.trim_end().len());
        let digest = Sha256::digest(format!("{name}\n{layout}"));
        let fingerprint = u128::from_le_bytes(std::array::from_fn(|index| digest[index]));
        cut(&mut layout, KEPT);
        let mut name = name.to_owned();
        cut(&mut name, NAME);
        // SAFETY: the caller's promise.
        let size = unsafe { borrow(ty, "type") }?.size;
        Ok(Described { name, layout, fingerprint, size })
    }

    pub(crate) fn info(&self) -> indelible::TypeInfo<'_> {
        indelible::TypeInfo { name: &self.name, fingerprint: self.fingerprint, layout: &self.layout }
    }
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(boundary(text, most - 3));
        text.push('…');
    }
}

/// Fails unless fields lie in their type, apart from each other. Those without the text of a type are parts of C++ types, which
/// a container may have elsewhere.
fn apart(name: &str, size: usize, fields: &[Field]) -> Result<()> {
    // SAFETY: each is NULL or a text, as the caller of `describe` promises.
    let given =
        |field: &&Field| unsafe { text(field.ty, "type of a field") }.is_ok_and(|text| !text.is_empty());
    let mut places: Vec<_> =
        fields.iter().filter(given).map(|field| (field.offset, field.size, field.name)).collect();
    places.sort_unstable();
    let mut at = 0;
    for (offset, len, field) in places {
        let end = offset.checked_add(len).filter(|end| *end <= size);
        if offset < at || end.is_none() {
            // SAFETY: as above.
            let field = unsafe { text(field, "name of a field") }?;
            let what = if offset < at { "overlaps the one before it" } else { "ends behind it" };
            return Err(Failure::argument(format!(
                "field {field} of {name}, which has {size} bytes, {what}"
            )));
        }
        at = end.unwrap_or(at);
    }
    Ok(())
}

/// Appends the fields of a type, those of its fields' types below them, and returns its name. `above`: the
/// types that are being described, as types of C++ may lead back to themselves.
///
/// # Safety
/// As for [`Described::of`].
unsafe fn describe<'a>(ty: *const Type, above: &mut Vec<*const Type>, out: &mut String) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let this = unsafe { borrow(ty, "type") }?;
    // SAFETY: the caller's promise.
    let name = unsafe { text(this.name, "name of the type") }?;
    let depth = above.len();
    if depth == 0 {
        let _ = writeln!(out, "{} bytes", this.size);
    }
    // SAFETY: the caller's promise.
    let fields = unsafe { array(this.fields, this.count, &format!("list of fields of {name}")) }?;
    above.push(ty);
    apart(name, this.size, fields)?;
    for field in fields {
        // SAFETY: the caller's promise.
        let (field_name, kind) =
            unsafe { (text(field.name, "name of a field")?, text(field.ty, "type of a field")?) };
        let nested = field.nested.map_or(std::ptr::null(), |nested| nested());
        let named = match nested.is_null() {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(unsafe { text(borrow(nested, "type of a field")?.name, "name of a type") }?),
        };
        // C++ leaves it to the type's own name.
        let kind = if kind.is_empty() { named.unwrap_or("") } else { kind };
        // The program's name for the type may be an alias.
        let alias = named
            .filter(|named| !kind.starts_with(named))
            .map_or_else(String::new, |named| format!(" ({named})"));
        let (offset, size) = (field.offset, field.size);
        let _ =
            writeln!(out, "{:1$}{field_name}: {kind}{alias} at {offset}, {size} bytes", "", 2 * depth + 2);
        if !nested.is_null() && !above.contains(&nested) {
            // SAFETY: the caller's promise.
            unsafe { describe(nested, above, out) }?;
        }
    }
    above.pop();
    Ok(name)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_type_describe(
    ty: *const Type,
    out: *mut c_char,
    len: usize,
    fingerprint: *mut u64,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        let described = unsafe { Described::of(ty) }?;
        if !fingerprint.is_null() {
            let halves = [described.fingerprint as u64, (described.fingerprint >> 64) as u64];
            // SAFETY: room for two numbers, as the caller promises.
            unsafe { fill(fingerprint.cast::<[u64; 2]>(), halves) }?;
        }
        if !out.is_null() {
            // SAFETY: the caller's promise.
            unsafe { fill_text(out, len, &format!("{}, {}", described.name, described.layout)) };
        }
        Ok(())
    })
}
