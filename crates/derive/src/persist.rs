//! `#[derive(Persist)]`.

use crate::repr::Repr;
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DataEnum, DataStruct, DeriveInput, Error, Fields, GenericParam, Generics, Lifetime, Result, Type,
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

/// The lifetime of the heap, and generics with it, for the `impl`.
fn generics(input: &DeriveInput) -> Result<(Lifetime, Generics)> {
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

/// Fails for what can be seen to be wrong without knowing any type.
fn refuse(ty: &Type) -> Result<()> {
    let why = match ty {
        Type::Reference(_) => "a reference cannot live in an object: what it borrows is gone in the next run",
        Type::BareFn(_) => "a function pointer cannot live in an object: code is elsewhere in the next run",
        Type::TraitObject(_) => {
            "a trait object cannot live in an object: its methods are elsewhere in the next run"
        }
        Type::Tuple(tuple) if !tuple.elems.is_empty() => {
            "a tuple cannot live in an object: its layout is not fixed; make it a #[repr(C)] struct"
        }
        Type::Array(array) => return refuse(&array.elem),
        Type::Paren(inner) => return refuse(&inner.elem),
        Type::Group(inner) => return refuse(&inner.elem),
        _ => return Ok(()),
    };
    Err(Error::new_spanned(ty, why))
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
    let (mut any, mut check, mut describe) = (Vec::new(), Vec::new(), Vec::new());
    for (index, field) in data.fields.iter().enumerate() {
        refuse(&field.ty)?;
        let ty = &field.ty;
        let member = match &field.ident {
            Some(ident) => quote!(#ident),
            None => {
                let index = syn::Index::from(index);
                quote!(#index)
            }
        };
        let text = member.to_string();
        // Errors point at the type; names are those of this expansion, whatever macro the type came from.
        let span = ty.span().resolved_at(Span::call_site());
        any.push(quote_spanned!(span=> <#ty as ::indelible::Persist<#heap>>::ANY));
        check.push(quote_spanned! {span=>
            <#ty as ::indelible::Persist<#heap>>::check(&raw const (*at).#member, bounds)
        });
        describe.push(quote_spanned! {span=>
            members.field::<#ty>(#text, ::core::mem::offset_of!(Self, #member));
        });
    }
    let body = quote! {
        const ANY: bool = !::core::mem::needs_drop::<Self>() #(&& #any)*;

        #[inline]
        #[allow(unused_variables)]
        unsafe fn check(at: *const Self, bounds: &::indelible::collections::Bounds) -> bool {
            // SAFETY: the fields of what the caller promises.
            unsafe { true #(&& #check)* }
        }
    };
    Ok(assemble(input, &heap, &generics, body, quote!(#(#describe)*)))
}

fn of_enum(input: &DeriveInput, data: &DataEnum, repr: &Repr) -> Result<TokenStream> {
    let Some(integer) = &repr.integer else {
        return Err(Error::new_spanned(
            &input.ident,
            "a Persist enum needs the integer it is, such as #[repr(u8)]: without it the compiler chooses one",
        ));
    };
    if let Some(variant) = data.variants.iter().find(|variant| !matches!(variant.fields, Fields::Unit)) {
        return Err(Error::new_spanned(
            variant,
            "an enum with fields cannot be Persist: use a struct with a field that says which, or POption",
        ));
    }
    if data.variants.is_empty() {
        return Err(Error::new_spanned(&input.ident, "an enum without variants has no value to persist"));
    }
    let (heap, generics) = generics(input)?;
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let names: Vec<_> = variants.iter().map(|variant| variant.to_string()).collect();
    let body = quote! {
        const ANY: bool = false;

        #[inline]
        unsafe fn check(at: *const Self, _: &::indelible::collections::Bounds) -> bool {
            // SAFETY: readable, and any bits are an integer.
            let number = unsafe { at.cast::<#integer>().read() };
            false #(|| number == Self::#variants as #integer)*
        }
    };
    let describe = quote!(#(members.value(#names, Self::#variants as #integer as i128);)*);
    Ok(assemble(input, &heap, &generics, body, describe))
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
        // SAFETY: the layout is fixed, every field is checked, and what any bytes are owns nothing.
        #[automatically_derived]
        #[allow(unsafe_code)]
        unsafe impl #impl_generics ::indelible::Persist<#heap> for #ident #type_generics #bounds {
            #body

            fn describe(layout: &mut ::indelible::collections::Layout) {
                let mut name = ::std::string::String::new();
                Self::type_name(&mut name);
                #[allow(unused_variables)]
                layout.define::<Self>(&name, |members| { #describe });
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
                        a: (u8, u64),
                    }
                ),
                "a tuple cannot live",
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
                    #[repr(u8)]
                    enum A {
                        B(u8),
                        C,
                    }
                ),
                "an enum with fields",
            ),
            (
                syn::parse_quote!(
                    #[repr(u8)]
                    enum A {}
                ),
                "no value",
            ),
        ];
        for (input, what) in cases {
            let text = error_of(input);
            assert!(text.contains(what), "{text:?} does not say {what:?}");
        }
    }

    #[test]
    fn what_can_live_in_an_object_is_accepted() {
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
        ];
        for input in cases {
            expand(&input).expect("this can live in an object");
        }
    }
}
