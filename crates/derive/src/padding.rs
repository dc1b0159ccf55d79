//! The padding of a value, and code that zeros it.
//!
//! Fields lie in the order of their declaration, as `repr(C)` and an integer `repr` promise.

use crate::variants::{Variants, span_of};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Lifetime, Type};

/// Fields at these offsets: their bytes, whether any are padded, their places, and code that clears
/// their padding.
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

pub(crate) fn of_struct(heap: &Lifetime, all: &[(&Type, TokenStream)]) -> TokenStream {
    let Fields { bytes, padded, places, clear } = fields(heap, all);
    quote! {
        const PADDED: bool = ::core::mem::size_of::<Self>() != #bytes || #padded;

        #[inline]
        unsafe fn clear_padding(at: *mut Self) {
            let len = ::core::mem::size_of::<Self>();
            // SAFETY: a value with its fields, by the caller's promise.
            unsafe {
                ::indelible::collections::variants::clear_gaps(at.cast::<u8>(), len, [#places]);
                #clear
            }
        }
    }
}

/// Clears the value's variant.
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
            // SAFETY: a value, by the caller's promise: its tag, and its variant's fields at the
            // language's offsets.
            unsafe {
                let tag = at.cast::<#integer>().read();
                #(#arms)*
            }
        }
    }
}
