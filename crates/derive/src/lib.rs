//! Derive macros of Indelible.

mod composite;
mod extendible;
mod extension_fields;
mod padding;
mod persist;
mod plain;
mod repr;
mod stable_hash;
mod target;
mod variants;

use proc_macro::TokenStream;

/// Derives `indelible::Plain`: the type may be the root of an object.
///
/// Accepts structs with `#[repr(C)]` or `#[repr(transparent)]` whose fields are all `Plain`.
/// Refuses enums and unions (invalid bit patterns), types without a fixed layout, and fields
/// without a meaning in another process.
#[proc_macro_derive(Plain)]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    plain::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct extendible: fields of later versions lie in separate blocks, so that programs of
/// all versions use values of all versions.
///
/// It precedes `#[derive(Persist)]`. The struct has one parameter, the heap's lifetime. Fields of
/// version 1 come first; those of the next release are `#[extension(1)]`, then `#[extension(2)]`,
/// and so on; released ones never change. `init = |item| …` computes a field's initial value;
/// without it, that is the default. Their types are `Copy`.
///
/// A field `price` gets `price()`, `price_mut()`, and both with `try_`; the struct gets `extend()`,
/// `extended()`, and a field `extensions`, which is `Extensions::new()` in a new value.
#[proc_macro_attribute]
pub fn extendible(arguments: TokenStream, input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::ItemStruct);
    extendible::expand(&arguments.into(), &input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `indelible::Persist`: values of the type may live in the heap of an object.
///
/// Accepts structs with `#[repr(C)]` or `#[repr(transparent)]`, and enums with an integer tag,
/// `#[repr(u8)]` or `#[repr(C, u8)]`; all fields are `Persist`. A type with containers has one
/// lifetime, the heap's.
///
/// `#[persist(target)]` on a field that is a raw pointer, or an array or vector of them, describes
/// the pointer's type, which audits follow; `#[persist(target = Type)]` names another type.
#[proc_macro_derive(Persist, attributes(persist))]
pub fn derive_persist(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    persist::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Lets maps look up and make keys of this struct by a tuple: a struct of a `PString` and a `u64`
/// by `(&str, u64)`.
///
/// Accepts structs with two to six fields. `StableHash`, `PartialEq`, `PartialOrd` and `Ord` by
/// hand must treat the fields as derived ones do, or keys are not found.
#[proc_macro_derive(Composite)]
pub fn derive_composite(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    composite::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `indelible::collections::StableHash`: the type may be the key of a persistent hash map.
///
/// Hashes an enum's tag, then the fields in order.
#[proc_macro_derive(StableHash)]
pub fn derive_stable_hash(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    stable_hash::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
