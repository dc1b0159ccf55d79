//! Derive macros of Indelible.

mod persist;
mod plain;
mod repr;
mod stable_hash;
mod variants;

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

/// Derives `indelible::Persist`: values of the type may live in the heap of an object.
///
/// Accepts structs with `#[repr(C)]` or `#[repr(transparent)]`, and enums with the integer that says which
/// variant it is, `#[repr(u8)]` or `#[repr(C, u8)]`; all fields are `Persist`. A type with containers has one
/// lifetime, that of the heap.
#[proc_macro_derive(Persist)]
pub fn derive_persist(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    persist::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `indelible::collections::StableHash`: the type may be the key of a hash map in an object.
///
/// Hashes the fields in their order; of an enum first the integer of its variant.
#[proc_macro_derive(StableHash)]
pub fn derive_stable_hash(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    stable_hash::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
