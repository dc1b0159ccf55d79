//! `#[derive(StableHash)]`.

use crate::repr::Repr;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Result};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!(::indelible::collections::StableHash));
    }
    let body = match &input.data {
        Data::Struct(data) => {
            let members = data.fields.members();
            quote!(#(::indelible::collections::StableHash::stable_hash(&self.#members, hash);)*)
        }
        Data::Enum(data) => {
            let plain = data.variants.iter().all(|variant| matches!(variant.fields, Fields::Unit));
            let (true, Some(integer)) = (plain, Repr::of(input)?.integer) else {
                return Err(Error::new_spanned(
                    name,
                    "an enum needs the integer it is, such as #[repr(u8)], and no fields, for its hash to stay the same",
                ));
            };
            let variants = data.variants.iter().map(|variant| &variant.ident);
            quote! {
                let number = match self { #(Self::#variants => Self::#variants as #integer,)* };
                ::indelible::collections::StableHash::stable_hash(&number, hash);
            }
        }
        Data::Union(_) => return Err(Error::new_spanned(name, "a union has no hash")),
    };
    let (impl_generics, _, bounds) = generics.split_for_impl();
    let (_, type_generics, _) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::indelible::collections::StableHash for #name #type_generics #bounds {
            fn stable_hash(&self, hash: &mut ::indelible::collections::KeyHash) {
                #body
            }
        }
    })
}
