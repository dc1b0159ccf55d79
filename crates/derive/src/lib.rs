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
/// Refused with a message that says why: enums and unions (not every bit pattern is a value), types
/// without a fixed layout, fields that mean nothing in another process.
#[proc_macro_derive(Plain)]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    plain::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct extendible: fields that later versions of a program add lie in blocks of their
/// own, so that values of all versions are used by programs of all versions.
///
/// It comes before `#[derive(Persist)]`. The struct has one parameter, the lifetime of the heap.
/// Fields of version 1 come first; those that were added in the next release are `#[extension(1)]`,
/// in the one after that `#[extension(2)]`, and so on, and stay as they were released. `init =
/// |item| …` computes the value that a field has before it is stored to; without it, that is the
/// default. Types of such fields are `Copy`.
///
/// For a field `price` there are `price()`, `price_mut()`, and both with `try_`; for all of them
/// `extend()` and `extended()`. The struct gets a field `extensions`, which is `Extensions::new()`
/// in a new value.
#[proc_macro_attribute]
pub fn extendible(arguments: TokenStream, input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::ItemStruct);
    extendible::expand(&arguments.into(), &input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `indelible::Persist`: values of the type may live in the heap of an object.
///
/// Accepts structs with `#[repr(C)]` or `#[repr(transparent)]`, and enums with the integer that
/// says which variant it is, `#[repr(u8)]` or `#[repr(C, u8)]`; all fields are `Persist`. A type
/// with containers has one lifetime, that of the heap.
///
/// `#[persist(target)]` on a field that is a raw pointer, or an array or vector of such, has the
/// type that it leads to described as well, so that audits follow it; `#[persist(target = Type)]`
/// says which, where the pointer does not.
#[proc_macro_derive(Persist, attributes(persist))]
pub fn derive_persist(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    persist::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Lets keys of maps that are this struct be looked up, and made, by a tuple of the parts that look
/// up and make its fields: a struct of a `PString` and a `u64` by `(&str, u64)`.
///
/// Accepts structs with two to six fields. Their derived `StableHash`, `PartialEq`, `PartialOrd`
/// and `Ord` go with it: implementations by hand have to hash, compare and order the fields as the
/// derived ones do, or keys are not found.
#[proc_macro_derive(Composite)]
pub fn derive_composite(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    composite::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `indelible::collections::StableHash`: the type may be the key of a hash map in an
/// object.
///
/// Hashes the fields in their order; of an enum first the integer of its variant.
#[proc_macro_derive(StableHash)]
pub fn derive_stable_hash(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    stable_hash::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
