//! Variants of an enum: their tags, and their fields' places.

use crate::repr::Repr;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DataEnum, DeriveInput, Error, Field, Ident, Index, Member, Result, Type};

pub(crate) struct Variants<'a> {
    pub(crate) integer: &'a Ident,
    /// A `Layout`: what precedes each variant's fields.
    start: TokenStream,
    pub(crate) all: Vec<Variant<'a>>,
}

pub(crate) struct Variant<'a> {
    pub(crate) ident: &'a Ident,
    pub(crate) tag: TokenStream,
    pub(crate) fields: Vec<(Member, &'a Type)>,
}

impl<'a> Variants<'a> {
    pub(crate) fn of(input: &DeriveInput, data: &'a DataEnum, repr: &'a Repr) -> Result<Self> {
        let Some(integer) = &repr.integer else {
            return Err(Error::new_spanned(
                &input.ident,
                "an enum needs the integer that says which variant it is, such as #[repr(u8)] or \
                 #[repr(C, u8)]: without it the compiler chooses one, and where the fields lie",
            ));
        };
        if data.variants.is_empty() {
            return Err(Error::new_spanned(&input.ident, "an enum without variants has no values"));
        }
        let plain = data.variants.iter().all(|variant| variant.fields.is_empty());
        let (mut first, mut after) = (quote!(0), 0_i128);
        let all: Vec<_> = data
            .variants
            .iter()
            .map(|variant| {
                if let Some((_, number)) = &variant.discriminant {
                    (first, after) = (quote!(#number), 0);
                }
                let ident = &variant.ident;
                let tag = match plain {
                    true => quote!((Self::#ident as #integer)),
                    // The language has no cast: the last written tag plus the distance.
                    false => {
                        quote!(const { let first: #integer = #first; (first as i128 + #after) as #integer })
                    }
                };
                after += 1;
                Variant { ident, tag, fields: variant.fields.iter().enumerate().map(member).collect() }
            })
            .collect();
        let tag = quote!(::core::alloc::Layout::new::<#integer>());
        let start = match repr.fixed {
            // The fields are a union after the tag, with the strictest alignment.
            true => {
                let types = all.iter().flat_map(|variant| variant.fields.iter().map(|(_, ty)| layout_of(ty)));
                quote!(::indelible::collections::variants::before_union(#tag, &[#(#types),*]))
            }
            false => tag,
        };
        Ok(Variants { integer, start, all })
    }

    fn extend(&self, variant: &Variant<'_>) -> TokenStream {
        let (start, types) = (&self.start, variant.fields.iter().map(|(_, ty)| layout_of(ty)));
        quote!(::indelible::collections::variants::extend(#start, [#(#types),*]))
    }

    pub(crate) fn offsets(&self, variant: &Variant<'_>) -> TokenStream {
        let extend = self.extend(variant);
        quote!(const { #extend.0 })
    }

    /// Fails to compile unless the enum ends with its longest variant.
    pub(crate) fn assert(&self) -> TokenStream {
        let ends = self.all.iter().map(|variant| self.extend(variant));
        quote!(::indelible::collections::variants::assert_size::<Self>(&[#(#ends.1.size()),*]))
    }
}

pub(crate) fn member((index, field): (usize, &Field)) -> (Member, &Type) {
    let member = match &field.ident {
        Some(ident) => Member::Named(ident.clone()),
        None => Member::Unnamed(Index::from(index)),
    };
    (member, &field.ty)
}

/// Errors point at the type; names are the expansion's.
pub(crate) fn span_of(ty: &Type) -> Span {
    ty.span().resolved_at(Span::call_site())
}

fn layout_of(ty: &Type) -> TokenStream {
    quote_spanned!(span_of(ty)=> ::core::alloc::Layout::new::<#ty>())
}
