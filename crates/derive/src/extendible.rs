//! `#[extendible]`: a struct whose later fields lie in blocks of their own.

use crate::extension_fields::{Extended, Parts, generated, heap_of, parts};
use crate::repr::Repr;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::{Error, Field, Ident, ItemStruct, Lifetime, Result};

fn own(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

pub(crate) fn expand(arguments: &TokenStream, input: &ItemStruct) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(
            arguments,
            "`#[extendible]` has no arguments: its fields have, `#[extension(1)]`",
        ));
    }
    let repr = Repr::of_attributes(&input.attrs)?;
    if !repr.fixed || repr.packed {
        return Err(Error::new_spanned(&input.ident, "an extendible struct needs #[repr(C)]"));
    }
    let heap = heap_of(input)?;
    let parts = parts(input)?;
    let names: Vec<Ident> = (1..=parts.extensions.len())
        .map(|number| own(&format!("{}Extension{number}", input.ident.unraw())))
        .collect();
    let base = base(input, &heap, &parts, &names);
    let types = types(input, &parts, &names);
    let methods = methods(input, &heap, &parts, &names);
    let view = view(input, &heap, &parts, &names);
    Ok(quote!(#base #types #methods #view))
}

fn base(input: &ItemStruct, heap: &Lifetime, parts: &Parts<'_>, names: &[Ident]) -> TokenStream {
    let ItemStruct { attrs, vis, ident, generics, .. } = input;
    let (fields, bounds) = (&parts.base, &generics.where_clause);
    let list = names.iter().rev().fold(quote!(()), |list, name| quote!((#name, #list)));
    quote! {
        #(#attrs)*
        #vis struct #ident #generics #bounds {
            #(#fields,)*
            /// The link to the blocks with the fields of later versions.
            #vis extensions: ::indelible::retention::Extensions<#heap, #list>,
        }
    }
}

fn types(input: &ItemStruct, parts: &Parts<'_>, names: &[Ident]) -> TokenStream {
    let (vis, of) = (&input.vis, input.ident.unraw().to_string());
    let types = names.iter().zip(&parts.extensions).enumerate().map(|(index, (name, fields))| {
        let number = index + 1;
        let text = format!("Extension {number} of [`{of}`].");
        let fields = fields.iter().map(|Extended { documentation, vis, ident, ty, .. }| {
            quote!(#(#documentation)* #vis #ident: #ty)
        });
        quote! {
            #[doc = #text]
            #[derive(::core::clone::Clone, ::core::marker::Copy, ::indelible::Persist)]
            #[repr(C)]
            #vis struct #name { #(#fields),* }

            #[automatically_derived]
            impl ::indelible::retention::Extension for #name {
                const OF: &'static str = #of;
                const NUMBER: usize = #number;

                fn identity() -> &'static ::indelible::retention::Identity {
                    static IDENTITY: ::indelible::retention::Identity = ::indelible::retention::Identity::new();
                    &IDENTITY
                }
            }
        }
    });
    quote!(#(#types)*)
}

fn initial(field: &Extended<'_>) -> TokenStream {
    match &field.init {
        Some(init) => quote!(::indelible::retention::initial(#init, self)),
        None => quote!(::core::default::Default::default()),
    }
}

fn up_to(number: usize) -> Ident {
    own(&format!("__extend_{number}"))
}

fn methods(input: &ItemStruct, heap: &Lifetime, parts: &Parts<'_>, names: &[Ident]) -> TokenStream {
    let ItemStruct { vis, ident, .. } = input;
    let steps = names.iter().zip(&parts.extensions).enumerate().map(|(index, (name, fields))| {
        let (step, before) = (up_to(index + 1), (index > 0).then(|| up_to(index)));
        let before = before.map(|before| quote!(self.#before()?;));
        let (idents, inits) = (fields.iter().map(|field| &field.ident), fields.iter().map(initial));
        let accessors = fields.iter().map(|field| accessors(field, name, &step));
        quote! {
            #[doc(hidden)]
            fn #step(&self) -> ::indelible::Result<()> {
                #before
                self.extensions.ensure::<#name>(|| #name { #(#idents: #inits),* })
            }
            #(#accessors)*
        }
    });
    let all = names.len();
    let last = (all > 0).then(|| up_to(all)).map_or_else(|| quote!(Ok(())), |last| quote!(self.#last()));
    let extend = own("extend");
    quote! {
        #[automatically_derived]
        impl<#heap> #ident<#heap> {
            /// Makes all extensions that are not there yet, with the initial values of their
            /// fields. Any number of threads may call it at once.
            ///
            /// # Errors
            /// `HeapFull`; `ReadOnly` if the heap is a reader's, `NotAttached` if the value lies in
            /// no heap yet; `Damaged`; `RootType` if an extension is of another type.
            #vis fn #extend(&self) -> ::indelible::Result<()> {
                #last
            }
            #(#steps)*
        }

        #[automatically_derived]
        impl<#heap> ::indelible::retention::Extendible<#heap> for #ident<#heap> {
            fn extension_types() -> ::std::vec::Vec<::indelible::retention::ExtensionType> {
                ::std::vec![#(::indelible::retention::ExtensionType::of::<#names>()),*]
            }
        }
    }
}

fn accessors(field: &Extended<'_>, of: &Ident, step: &Ident) -> TokenStream {
    let Extended { documentation, vis, name, ident, ty, .. } = field;
    let initial = initial(field);
    let (get_mut, try_get, try_get_mut) =
        (own(&format!("{name}_mut")), own(&format!("try_{name}")), own(&format!("try_{name}_mut")));
    quote! {
        #(#documentation)*
        ///
        /// The initial value if it was not stored to yet; nothing is stored.
        ///
        /// # Panics
        /// If the extensions are damaged, or of other types.
        #vis fn #ident(&self) -> #ty {
            ::indelible::retention::expect(self.#try_get())
        }

        /// As without `try_`.
        ///
        /// # Errors
        /// `Damaged`; `RootType` if an extension is of another type.
        #vis fn #try_get(&self) -> ::indelible::Result<#ty> {
            ::core::result::Result::Ok(match self.extensions.get::<#of>()? {
                ::core::option::Option::Some(there) => there.#ident,
                ::core::option::Option::None => #initial,
            })
        }

        #(#documentation)*
        ///
        /// For storing. The first time makes the extension.
        ///
        /// # Panics
        /// As [`extend`](Self::extend) fails.
        #vis fn #get_mut(&mut self) -> &mut #ty {
            ::indelible::retention::expect(self.#try_get_mut())
        }

        /// As without `try_`.
        ///
        /// # Errors
        /// As for [`extend`](Self::extend).
        #vis fn #try_get_mut(&mut self) -> ::indelible::Result<&mut #ty> {
            self.#step()?;
            ::core::result::Result::Ok(&mut self.extensions.get_mut::<#of>()?.#ident)
        }
    }
}

/// All fields, for storing, after the extensions are made and checked.
fn view(input: &ItemStruct, heap: &Lifetime, parts: &Parts<'_>, names: &[Ident]) -> TokenStream {
    let ItemStruct { vis, ident, .. } = input;
    let name = own(&format!("{}Extended", ident.unraw()));
    let text = format!("All fields of a [`{}`], with those of its extensions, for storing.", ident.unraw());
    let borrow = Lifetime::new("'__extended", Span::call_site());
    let ident_of = |field: &&Field| generated(field.ident.to_token_stream());
    let idents: Vec<_> = parts.base.iter().map(ident_of).collect();
    let base = parts.base.iter().zip(&idents);
    let base = base.map(|(Field { vis, ty, .. }, ident)| {
        let vis = generated(vis.to_token_stream());
        quote!(#vis #ident: &#borrow mut #ty)
    });
    let extended = parts.extensions.iter().flatten();
    let extended = extended.map(|Extended { vis, ident, ty, .. }| quote!(#vis #ident: &#borrow mut #ty));
    let fields = base.chain(extended).map(|field| quote!(#[doc = "See the struct."] #field));
    let (chain, all) = (Ident::new("chain", Span::mixed_site()), Ident::new("all", Span::mixed_site()));
    let locals: Vec<_> = (1..=names.len())
        .map(|number| Ident::new(&format!("extension_{number}"), Span::mixed_site()))
        .collect();
    let borrowed = locals.iter().zip(&parts.extensions).flat_map(|(local, fields)| {
        fields.iter().map(move |Extended { ident, .. }| quote!(#ident: &mut #local.#ident))
    });
    let (extended, try_extended) = (own("extended"), own("try_extended"));
    quote! {
        #[doc = #text]
        #vis struct #name<#borrow, #heap> {
            #(#fields,)*
            #[doc(hidden)]
            __heap: ::core::marker::PhantomData<&#borrow &#heap ()>,
        }

        #[automatically_derived]
        impl<#heap> #ident<#heap> {
            /// All fields, with those of the extensions, which are made if they are not there yet.
            /// They are checked here, and not each time that a field is used.
            ///
            /// # Panics
            /// As [`extend`](Self::extend) fails.
            #vis fn #extended(&mut self) -> #name<'_, #heap> {
                ::indelible::retention::expect(self.#try_extended())
            }

            /// As [`extended`](Self::extended).
            ///
            /// # Errors
            /// As for [`extend`](Self::extend).
            #vis fn #try_extended(&mut self) -> ::indelible::Result<#name<'_, #heap>> {
                self.extend()?;
                let #ident { #(#idents,)* extensions: #chain } = self;
                let mut #all = #chain.parts();
                #(let #locals = #all.take::<#names>()?;)*
                let _ = &mut #all;
                ::core::result::Result::Ok(#name {
                    #(#idents,)*
                    #(#borrowed,)*
                    __heap: ::core::marker::PhantomData,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension_fields::MOST;

    fn error_of(input: ItemStruct) -> String {
        expand(&TokenStream::new(), &input).expect_err("this cannot be extended").to_string()
    }

    #[test]
    fn refusals_say_why() {
        let cases: Vec<(ItemStruct, &str)> = vec![
            (
                syn::parse_quote!(
                    struct A<'h> {
                        a: u8,
                    }
                ),
                "needs #[repr(C)]",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A {
                        a: u8,
                    }
                ),
                "one parameter",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h, T> {
                        a: T,
                    }
                ),
                "one parameter",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h, const N: usize> {
                        a: [u8; N],
                    }
                ),
                "one parameter",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h>(u8);
                ),
                "fields with names",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h> {
                        #[extension(1)]
                        a: u8,
                        b: u8,
                    }
                ),
                "a field behind an extension",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h> {
                        #[extension(0)]
                        a: u8,
                    }
                ),
                "1 comes here",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h> {
                        #[extension(2)]
                        a: u8,
                    }
                ),
                "1 comes here",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h> {
                        #[extension(1)]
                        a: u8,
                        #[extension(2)]
                        b: u8,
                        #[extension(1)]
                        c: u8,
                    }
                ),
                "2 or 3 comes here",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h> {
                        #[extension(1, from = 2)]
                        a: u8,
                    }
                ),
                "only `init",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'h> {
                        #[extension(1)]
                        #[cfg(x)]
                        a: u8,
                    }
                ),
                "no other attributes",
            ),
        ];
        for (input, what) in cases {
            let text = error_of(input);
            assert!(text.contains(what), "{text:?} does not say {what:?}");
        }
        let input: ItemStruct = syn::parse_quote!(
            #[repr(C)]
            struct A<'h> {
                a: u8,
            }
        );
        assert!(expand(&quote!(1), &input).is_err());
    }

    #[test]
    fn one_extension_more_than_there_can_be_is_refused() {
        let of = |most: usize| -> ItemStruct {
            let fields = (1..=most).map(|number| {
                let (name, number) =
                    (own(&format!("f{number}")), proc_macro2::Literal::usize_unsuffixed(number));
                quote!(#[extension(#number)] #name: u8)
            });
            syn::parse_quote!(#[repr(C)] struct A<'h> { #(#fields),* })
        };
        expand(&TokenStream::new(), &of(MOST)).expect("as many as there can be");
        assert!(error_of(of(MOST + 1)).contains("64, the last"));
    }
}
