//! `#[derive(Plain)]`.

use crate::repr::Repr;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Result};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "only structs can be Plain: an enum or union has bit patterns that are no value, and an \
             object's bytes may hold any",
        ));
    };
    if !Repr::of(input)?.fixed {
        return Err(Error::new_spanned(
            &input.ident,
            "a Plain struct needs #[repr(C)] or #[repr(transparent)]: without it the compiler may lay \
             out the fields differently in the next build, and data would be misread",
        ));
    }
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let types: Vec<_> = data.fields.iter().map(|field| &field.ty).collect();
    let mut bounds = where_clause.cloned().unwrap_or_else(|| syn::WhereClause {
        where_token: Default::default(),
        predicates: Default::default(),
    });
    for ty in &types {
        bounds.predicates.push(syn::parse_quote!(#ty: ::indelible::Plain));
    }
    let check = quote! {
        assert!(
            ::core::mem::size_of::<Self>() == 0 #(+ ::core::mem::size_of::<#types>())*,
            "a Plain struct has no padding: order the fields by size, or name the bytes in between",
        )
    };
    // Without parameters the layout is known now; otherwise at the type's use.
    let at_once = input.generics.params.is_empty().then(|| {
        quote! {
            const _: () = <#name as ::indelible::Plain>::LAYOUT;
        }
    });
    Ok(quote! {
        // SAFETY: the layout is fixed, without padding, and every field accepts every bit pattern.
        #[automatically_derived]
        unsafe impl #impl_generics ::indelible::Plain for #name #type_generics #bounds {
            const SHARED: bool = false #(|| <#types as ::indelible::Plain>::SHARED)*;
            const ATOMICS: bool = false #(|| <#types as ::indelible::Plain>::ATOMICS)*;
            const CELLS: bool = true #(&& <#types as ::indelible::Plain>::CELLS)*;
            const LAYOUT: () = {
                #(<#types as ::indelible::Plain>::LAYOUT;)*
                #check
            };
        }
        #at_once
    })
}
