//! Parsing of `#[repr]`.

use proc_macro2::TokenStream;
use syn::{Attribute, DeriveInput, Ident, Result};

#[derive(Default)]
pub(crate) struct Repr {
    pub(crate) fixed: bool,
    pub(crate) packed: bool,
    pub(crate) integer: Option<Ident>,
}

impl Repr {
    pub(crate) fn of(input: &DeriveInput) -> Result<Repr> {
        Repr::of_attributes(&input.attrs)
    }

    pub(crate) fn of_attributes(attributes: &[Attribute]) -> Result<Repr> {
        let mut repr = Repr::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
            attribute.parse_nested_meta(|meta| {
                repr.fixed |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
                repr.packed |= meta.path.is_ident("packed");
                if let Some(ident) = meta.path.get_ident()
                    && ident.to_string().starts_with(['u', 'i'])
                {
                    repr.integer = Some(ident.clone());
                }
                if meta.input.peek(syn::token::Paren) {
                    let content;
                    syn::parenthesized!(content in meta.input);
                    content.parse::<TokenStream>()?;
                }
                Ok(())
            })?;
        }
        Ok(repr)
    }
}
