//! `#[derive(Composite)]`.

use crate::persist;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Generics, Ident, Index, Path, Result};

/// Fields of a key, looked up by a tuple.
const FIELDS: std::ops::RangeInclusive<usize> = 2..=6;

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) if FIELDS.contains(&data.fields.len()) => &data.fields,
        _ => {
            return Err(Error::new_spanned(
                name,
                "a composite key is a struct with two to six fields: it is looked up by a tuple of as many",
            ));
        }
    };
    let parts: Vec<Ident> = (0..fields.len()).map(|index| format_ident!("__Q{index}")).collect();
    let indices: Vec<Index> = (0..fields.len()).map(Index::from).collect();
    let members: Vec<_> = fields.members().collect();
    let types: Vec<_> = fields.iter().map(|field| &field.ty).collect();
    let (_, type_generics, _) = input.generics.split_for_impl();
    // Each part of the tuple replaces its field.
    let with_parts = |mut generics: Generics, by: &dyn Fn(&syn::Type) -> Path| {
        for (part, ty) in parts.iter().zip(&types) {
            let by = by(ty);
            generics.params.push(syn::parse_quote!(#part: #by));
        }
        generics
    };
    let lookup =
        with_parts(input.generics.clone(), &|ty| syn::parse_quote!(::indelible::collections::Lookup<#ty>));
    let compare =
        with_parts(input.generics.clone(), &|ty| syn::parse_quote!(::indelible::collections::Compare<#ty>));
    let (heap, generics) = persist::generics(input)?;
    let into =
        with_parts(generics, &|ty| syn::parse_quote!(::indelible::collections::IntoPersist<#heap, #ty>));
    let (lookup, _, lookup_bounds) = lookup.split_for_impl();
    let (compare, _, compare_bounds) = compare.split_for_impl();
    let (into, _, into_bounds) = into.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #lookup ::indelible::collections::Lookup<#name #type_generics> for (#(#parts,)*) #lookup_bounds {
            #[inline]
            fn matches(&self, key: &#name #type_generics) -> bool {
                true #(&& ::indelible::collections::Lookup::matches(&self.#indices, &key.#members))*
            }
        }

        #[automatically_derived]
        impl #compare ::indelible::collections::Compare<#name #type_generics> for (#(#parts,)*) #compare_bounds {
            #[inline]
            fn compare(&self, key: &#name #type_generics) -> ::core::cmp::Ordering {
                ::core::cmp::Ordering::Equal
                    #(.then_with(|| ::indelible::collections::Compare::compare(&self.#indices, &key.#members)))*
            }
        }

        #[automatically_derived]
        impl #into ::indelible::collections::IntoPersist<#heap, #name #type_generics> for (#(#parts,)*) #into_bounds {
            #[inline]
            fn into_persist(
                self,
                heap: ::indelible::collections::HeapRef<#heap>,
            ) -> ::indelible::Result<#name #type_generics> {
                ::core::result::Result::Ok(#name {
                    #(#members: ::indelible::collections::IntoPersist::into_persist(self.#indices, heap)?,)*
                })
            }
        }
    })
}
