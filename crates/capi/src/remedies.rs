//! Advice of errors, with C's names of functions.

const WORDS: [(&str, &str); 21] = [
    ("`View::create`", "pmo_view_create"),
    ("`SecurityContext::create`", "pmo_context_create"),
    ("`Space::add`", "pmo_space_add"),
    (", or change the entry (`Heap::retarget`)", ""),
    ("`Pool::attach_with_on_demand`", "pmo_attach_with_on_demand"),
    ("Pool::format", "pmo_format"),
    ("Pool::grow", "pmo_pool_grow"),
    ("`PoolOptions::wait`", "pmo_wait"),
    ("`Pool::set_reach`, `pmo set --reach`", "pmo_set_reach"),
    ("`Pool::attach_sealed`", "pmo_attach_sealed"),
    ("`SealKey::sealed_as` or --sealed-as", "pmo_seal_key_sealed_as"),
    ("`Pool::bind_name`", "pmo_bind_name"),
    ("`Pool::rename_sealed`", "pmo_rename_sealed"),
    ("`Heap::format`", "pmo_heap_format"),
    ("`HeapOptions::grow`, `PMO_HEAP_GROW`", "PMO_HEAP_GROW"),
    ("`Heap::roots`", "pmo_roots"),
    ("`Heap::check`", "pmo_heap_check"),
    ("`Heap::remove_root`, `Heap::drop_root` with its value", "pmo_root_remove"),
    ("`Heap::reserve`, `Object::grow`, `pmo_grow`", "pmo_grow"),
    ("`Pool::resize`, `pmo resize`", "pmo_resize"),
    ("`Heap::compact_far` frees", "a program in Rust (compact_far) frees"),
];

/// Advice with C's names of functions.
#[must_use]
pub fn in_c(remedy: &str) -> String {
    WORDS.iter().fold(remedy.to_owned(), |remedy, (rust, c)| remedy.replace(rust, c))
}

pub(crate) fn text(error: &indelible::Error) -> String {
    let (text, remedy) = (error.to_string(), error.remedy());
    match text.strip_suffix(&format!("({remedy})")) {
        Some(before) => format!("{before}({})", in_c(remedy)),
        None => text,
    }
}
