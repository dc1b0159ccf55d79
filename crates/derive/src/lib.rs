//! Derive macros of Indelible.

mod plain;

use proc_macro::TokenStream;

/// Derives `indelible::Plain`: the type may be the root of an object.
///
/// Accepts structs with `#[repr(C)]` or `#[repr(transparent)]` whose fields are all `Plain`. Refused
/// with a message that says why: enums and unions (not every bit pattern is a value), types without a
/// fixed layout, fields that mean nothing in another process.
#[proc_macro_derive(Plain)]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    plain::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
