//! `#[derive(Persist)]`.

use crate::padding;
use crate::repr::Repr;
use crate::target;
use crate::variants::{Variants, member, span_of};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Data, DataEnum, DataStruct, DeriveInput, Error, GenericParam, Generics, Lifetime, Member, Result, Type,
};

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let repr = Repr::of(input)?;
    match &input.data {
        Data::Struct(data) => of_struct(input, data, &repr),
        Data::Enum(data) => of_enum(input, data, &repr),
        Data::Union(_) => Err(Error::new_spanned(
            &input.ident,
            "a union cannot live in an object: nothing says which of its fields it holds",
        )),
    }
}

pub(crate) fn generics(input: &DeriveInput) -> Result<(Lifetime, Generics)> {
    let mut generics = input.generics.clone();
    let lifetimes: Vec<_> = generics.lifetimes().map(|parameter| parameter.lifetime.clone()).collect();
    let heap = match lifetimes.as_slice() {
        [] => {
            let heap = Lifetime::new("'__h", Span::call_site());
            generics.params.insert(0, syn::parse_quote!(#heap));
            heap
        }
        [one] => one.clone(),
        [_, more, ..] => {
            return Err(Error::new_spanned(
                more,
                "one lifetime is enough: that of the heap; other borrows cannot live in an object",
            ));
        }
    };
    let types: Vec<_> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    let bounds = generics.make_where_clause();
    for ty in types {
        bounds.predicates.push(syn::parse_quote!(#ty: ::indelible::Persist<#heap>));
    }
    Ok((heap, generics))
}

fn refuse(ty: &Type) -> Result<()> {
    let why = match ty {
        Type::Reference(_) => "a reference cannot live in an object: what it borrows is gone in the next run",
        Type::FnPtr(_) => "a function pointer cannot live in an object: code is elsewhere in the next run",
        Type::TraitObject(_) => {
            "a trait object cannot live in an object: its methods are elsewhere in the next run"
        }
        Type::Tuple(tuple) => return tuple.elems.iter().try_for_each(refuse),
        Type::Array(array) => return refuse(&array.elem),
        Type::Paren(inner) => return refuse(&inner.elem),
        Type::Group(inner) => return refuse(&inner.elem),
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, why))
}

fn member_text(member: &Member) -> String {
    quote!(#member).to_string()
}

fn of_struct(input: &DeriveInput, data: &DataStruct, repr: &Repr) -> Result<TokenStream> {
    if !repr.fixed {
        return Err(Error::new_spanned(
            &input.ident,
            "a Persist struct needs #[repr(C)] or #[repr(transparent)]: without it the compiler may lay \
             out the fields differently in the next build, and data would be misread",
        ));
    }
    if repr.packed {
        return Err(Error::new_spanned(&input.ident, "a packed struct cannot be used in place in an object"));
    }
    let (heap, generics) = generics(input)?;
    let (mut any, mut shared) = (Vec::new(), Vec::new());
    let (mut check, mut search, mut describe) = (Vec::new(), Vec::new(), Vec::new());
    let mut places = Vec::new();
    for (index, field) in data.fields.iter().enumerate() {
        let (member, ty) = member((index, field));
        refuse(ty)?;
        let (span, text) = (span_of(ty), member_text(&member));
        any.push(quote_spanned!(span=> <#ty as ::indelible::Persist<#heap>>::ANY));
        shared.push(quote_spanned!(span=> <#ty as ::indelible::Persist<#heap>>::SHARED));
        check.push(quote_spanned! {span=>
            <#ty as ::indelible::Persist<#heap>>::check(&raw const (*at).#member, bounds)
        });
        search.push(quote_spanned! {span=>
            <#ty as ::indelible::Persist<#heap>>::search(&raw const (*at).#member, bounds, search)
        });
        let offset = quote!(::core::mem::offset_of!(Self, #member));
        places.push((ty, offset.clone()));
        describe.push(target::describe(field, &text, &offset)?);
    }
    let padding = padding::of_struct(&heap, &places);
    let body = quote! {
        #padding
        const ANY: bool = !::core::mem::needs_drop::<Self>() #(&& #any)*;
        const SHARED: bool = false #(|| #shared)*;

        #[inline]
        unsafe fn check(at: *const Self, bounds: &::indelible::collections::Bounds) -> bool {
            let _ = (at, bounds);
            // SAFETY: fields of the caller's value.
            true #(&& unsafe { #check })*
        }

        unsafe fn expect_extensions(
            at: *const Self,
            bounds: &::indelible::collections::Bounds,
            search: &mut ::indelible::collections::Search,
        ) -> ::indelible::Result<()> {
            let _ = (at, bounds, &search);
            // SAFETY: fields of the caller's value.
            #(unsafe { #search }?;)*
            ::core::result::Result::Ok(())
        }
    };
    Ok(assemble(input, &heap, &generics, body, quote!(#(#describe)*)))
}

fn of_enum(input: &DeriveInput, data: &DataEnum, repr: &Repr) -> Result<TokenStream> {
    let variants = Variants::of(input, data, repr)?;
    let (heap, generics) = generics(input)?;
    let (mut shared, mut check, mut search, mut describe) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let padding = padding::of_enum(&heap, &variants);
    for (variant, declared) in variants.all.iter().zip(&data.variants) {
        let (tag, offsets) = (&variant.tag, variants.offsets(variant));
        let (mut checks, mut searches, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for (index, ((member, ty), field)) in variant.fields.iter().zip(&declared.fields).enumerate() {
            refuse(ty)?;
            let (span, text) = (span_of(ty), member_text(member));
            shared.push(quote_spanned!(span=> <#ty as ::indelible::Persist<#heap>>::SHARED));
            checks.push(quote_spanned! {span=>
                <#ty as ::indelible::Persist<#heap>>::check(at.byte_add(offsets[#index]).cast::<#ty>(), bounds)
            });
            searches.push(quote_spanned! {span=>
                <#ty as ::indelible::Persist<#heap>>::search(at.byte_add(offsets[#index]).cast::<#ty>(), bounds, search)
            });
            fields.push(target::describe(field, &text, &quote!(offsets[#index]))?);
        }
        check.push(quote! {
            if tag == #tag {
                let offsets = #offsets;
                let _ = offsets;
                return true #(&& #checks)*;
            }
        });
        search.push(quote! {
            if tag == #tag {
                let offsets = #offsets;
                let _ = offsets;
                #(#searches?;)*
            }
        });
        let name = variant.ident.to_string();
        describe.push(match fields.is_empty() {
            true => quote!(members.value(#name, #tag as i128);),
            false => quote! {
                let offsets = #offsets;
                members.variant(#name, #tag as i128, |members| { #(#fields)* });
            },
        });
    }
    let (integer, assert) = (variants.integer, variants.assert());
    if variants.all.iter().any(|variant| !variant.fields.is_empty()) {
        describe.insert(0, quote!(members.tag(::core::stringify!(#integer));));
    }
    let body = quote! {
        #padding
        const ANY: bool = {
            #assert;
            false
        };
        const SHARED: bool = false #(|| #shared)*;

        #[inline]
        unsafe fn check(at: *const Self, bounds: &::indelible::collections::Bounds) -> bool {
            let _ = bounds;
            // SAFETY: the tag is readable, and any bits are an integer; then the variant's fields
            // at the language's offsets.
            unsafe {
                let tag = at.cast::<#integer>().read();
                #(#check)*
                false
            }
        }

        unsafe fn expect_extensions(
            at: *const Self,
            bounds: &::indelible::collections::Bounds,
            search: &mut ::indelible::collections::Search,
        ) -> ::indelible::Result<()> {
            let _ = (bounds, &search);
            // SAFETY: as in `check`.
            unsafe {
                let tag = at.cast::<#integer>().read();
                let _ = tag;
                #(#search)*
            }
            ::core::result::Result::Ok(())
        }
    };
    Ok(assemble(input, &heap, &generics, body, quote!(#(#describe)*)))
}

fn assemble(
    input: &DeriveInput,
    heap: &Lifetime,
    generics: &Generics,
    body: TokenStream,
    describe: TokenStream,
) -> TokenStream {
    let ident = &input.ident;
    let (_, type_generics, _) = input.generics.split_for_impl();
    let (impl_generics, _, bounds) = generics.split_for_impl();
    let name = ident.to_string();
    let arguments: Vec<_> = generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => {
                let ty = &parameter.ident;
                Some(quote!(<#ty as ::indelible::Persist<#heap>>::type_name(out);))
            }
            GenericParam::Const(parameter) => {
                let number = &parameter.ident;
                Some(quote!(out.push_str(&::std::format!("{}", #number));))
            }
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    let arguments = match arguments.as_slice() {
        [] => quote!(),
        [first, others @ ..] => quote! {
            out.push('<');
            #first
            #(out.push_str(", "); #others)*
            out.push('>');
        },
    };
    quote! {
        // SAFETY: the layout is fixed, every field is checked, and types of any bytes own nothing.
        #[automatically_derived]
        unsafe impl #impl_generics ::indelible::Persist<#heap> for #ident #type_generics #bounds {
            #body

            fn describe(layout: &mut ::indelible::collections::Layout) {
                let mut name = ::std::string::String::new();
                Self::type_name(&mut name);
                layout.define::<Self>(&name, |members| {
                    let _ = &members;
                    #describe
                });
            }

            fn type_name(out: &mut ::std::string::String) {
                out.push_str(#name);
                #arguments
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(input: DeriveInput) -> String {
        expand(&input).expect_err("this cannot live in an object").to_string()
    }

    #[test]
    fn refusals_say_why() {
        let cases: Vec<(DeriveInput, &str)> = vec![
            (
                syn::parse_quote!(
                    struct A {
                        a: u8,
                    }
                ),
                "needs #[repr(C)]",
            ),
            (
                syn::parse_quote!(
                    #[repr(C, packed)]
                    struct A {
                        a: u8,
                    }
                ),
                "packed",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A {
                        a: &'static str,
                    }
                ),
                "a reference cannot live",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A {
                        a: [&'static str; 2],
                    }
                ),
                "a reference cannot live",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A {
                        a: fn(),
                    }
                ),
                "a function pointer cannot live",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A {
                        a: (u8, &'static str),
                    }
                ),
                "a reference cannot live",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    struct A<'a, 'b> {
                        a: P<'a>,
                        b: P<'b>,
                    }
                ),
                "one lifetime is enough",
            ),
            (syn::parse_quote!(#[repr(C)] union A { a: u8 }), "a union cannot live"),
            (
                syn::parse_quote!(
                    enum A {
                        B,
                        C,
                    }
                ),
                "needs the integer",
            ),
            (
                syn::parse_quote!(
                    #[repr(C)]
                    enum A {
                        B(u8),
                        C,
                    }
                ),
                "#[repr(C, u8)]",
            ),
            (
                syn::parse_quote!(
                    #[repr(u8)]
                    enum A {
                        B { text: &'static str },
                        C,
                    }
                ),
                "a reference cannot live",
            ),
            (
                syn::parse_quote!(
                    #[repr(u8)]
                    enum A<'a, 'b> {
                        B(P<'a>),
                        C(P<'b>),
                    }
                ),
                "one lifetime is enough",
            ),
            (
                syn::parse_quote!(
                    #[repr(u8)]
                    enum A {}
                ),
                "no values",
            ),
        ];
        for (input, what) in cases {
            let text = error_of(input);
            assert!(text.contains(what), "{text:?} does not say {what:?}");
        }
    }

    #[test]
    fn types_that_can_live_in_an_object_are_accepted() {
        let cases: Vec<DeriveInput> = vec![
            syn::parse_quote!(
                #[repr(C)]
                struct A<'h, T, const N: usize> {
                    a: PVec<'h, T>,
                    b: [u8; N],
                }
            ),
            syn::parse_quote!(
                #[repr(transparent)]
                struct A(u64);
            ),
            syn::parse_quote!(
                #[repr(C, align(64))]
                struct A {
                    a: (),
                }
            ),
            syn::parse_quote!(
                #[repr(i16)]
                enum A {
                    B = -1,
                    C,
                }
            ),
            syn::parse_quote!(
                #[repr(C, u8)]
                enum A<'h, T, const N: usize> {
                    B(PVec<'h, T>, [u8; N]) = 3,
                    C { next: Option<PBox<'h, Self>> },
                    D,
                }
            ),
        ];
        for input in cases {
            expand(&input).expect("this can live in an object");
        }
    }
}
