//! `#[derive(StableHash)]`.

use crate::repr::Repr;
use crate::variants::{Variant, Variants};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Result};

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
            let repr = Repr::of(input)?;
            let arms = Variants::of(input, data, &repr)?.all.into_iter().map(|variant| {
                let Variant { ident, tag, fields } = variant;
                let members: Vec<_> = fields.into_iter().map(|(member, _)| member).collect();
                let names: Vec<_> = (0..members.len()).map(|index| format_ident!("field_{index}")).collect();
                quote! {
                    Self::#ident { #(#members: #names),* } => {
                        ::indelible::collections::StableHash::stable_hash(&#tag, hash);
                        #(::indelible::collections::StableHash::stable_hash(#names, hash);)*
                    }
                }
            });
            quote!(match self { #(#arms)* })
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
