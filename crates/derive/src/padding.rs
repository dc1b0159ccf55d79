//! The bytes of a value that belong to none of its fields: whether there are any, and code that
//! zeros them.
//!
//! The fields lie in the order in which they are declared, as `repr(C)` and an integer as `repr`
//! promise.

use crate::variants::{Variants, span_of};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Lifetime, Type};

/// One set of fields at these offsets: how many bytes they have, which are padded
/// themselves, where they are, and code that clears these.
struct Fields {
    bytes: TokenStream,
    padded: TokenStream,
    places: TokenStream,
    clear: TokenStream,
}

fn fields(heap: &Lifetime, all: &[(&Type, TokenStream)]) -> Fields {
    let (mut sizes, mut padded, mut places, mut clear) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (ty, offset) in all {
        let span = span_of(ty);
        sizes.push(quote_spanned!(span=> ::core::mem::size_of::<#ty>()));
        padded.push(quote_spanned!(span=> <#ty as ::indelible::Persist<#heap>>::PADDED));
        places.push(quote_spanned!(span=> (#offset, ::core::mem::size_of::<#ty>())));
        clear.push(quote_spanned! {span=>
            if <#ty as ::indelible::Persist<#heap>>::PADDED {
                <#ty as ::indelible::Persist<#heap>>::clear_padding(at.byte_add(#offset).cast::<#ty>());
            }
        });
    }
    Fields {
        bytes: quote!(0 #(+ #sizes)*),
        padded: quote!(false #(|| #padded)*),
        places: quote!(#(#places),*),
        clear: quote!(#(#clear)*),
    }
}

/// `PADDED` and `clear_padding` of a struct with these fields.
pub(crate) fn of_struct(heap: &Lifetime, all: &[(&Type, TokenStream)]) -> TokenStream {
    let Fields { bytes, padded, places, clear } = fields(heap, all);
    quote! {
        const PADDED: bool = ::core::mem::size_of::<Self>() != #bytes || #padded;

        #[inline]
        unsafe fn clear_padding(at: *mut Self) {
            let len = ::core::mem::size_of::<Self>();
            // SAFETY: a value, by the caller's promise, with its fields.
            unsafe {
                ::indelible::collections::variants::clear_gaps(at.cast::<u8>(), len, [#places]);
                #clear
            }
        }
    }
}

/// `PADDED` and `clear_padding` of an enum, which clears the variant of the value.
pub(crate) fn of_enum(heap: &Lifetime, variants: &Variants<'_>) -> TokenStream {
    let integer = variants.integer;
    let (mut any, mut arms) = (Vec::new(), Vec::new());
    for variant in &variants.all {
        let (tag, offsets) = (&variant.tag, variants.offsets(variant));
        let all: Vec<_> = variant
            .fields
            .iter()
            .enumerate()
            .map(|(index, (_, ty))| (*ty, quote!(offsets[#index])))
            .collect();
        let Fields { bytes, padded, places, clear } = fields(heap, &all);
        any.push(quote! {
            ::core::mem::size_of::<Self>() != ::core::mem::size_of::<#integer>() + #bytes || #padded
        });
        arms.push(quote! {
            if tag == #tag {
                let offsets = #offsets;
                let _ = offsets;
                let places = [(0, ::core::mem::size_of::<#integer>()), #places];
                ::indelible::collections::variants::clear_gaps(at.cast::<u8>(), len, places);
                #clear
                return;
            }
        });
    }
    quote! {
        const PADDED: bool = false #(|| #any)*;

        #[inline]
        unsafe fn clear_padding(at: *mut Self) {
            let len = ::core::mem::size_of::<Self>();
            // SAFETY: a value, by the caller's promise: its tag, and the fields of the variant that
            // it names, where the language puts them.
            unsafe {
                let tag = at.cast::<#integer>().read();
                #(#arms)*
            }
        }
    }
}
