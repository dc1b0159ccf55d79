//! `#[persist(target)]` on a field describes its pointer's target.

use crate::variants::span_of;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Field, Result, Token, Type};

enum Target {
    OfPointer,
    Named(Box<Type>),
}

fn target(field: &Field) -> Result<Option<Target>> {
    let mut found = None;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("persist")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("target") {
                return Err(meta.error("a field has #[persist(target)] or #[persist(target = Type)]"));
            }
            if found.is_some() {
                return Err(meta.error("a pointer has one target"));
            }
            found = Some(match meta.input.peek(Token![=]) {
                true => Target::Named(Box::new(meta.value()?.parse()?)),
                false => Target::OfPointer,
            });
            Ok(())
        })?;
    }
    Ok(found)
}

pub(crate) fn describe(field: &Field, name: &str, offset: &TokenStream) -> Result<TokenStream> {
    let ty = &field.ty;
    let span = span_of(ty);
    let target = match target(field)? {
        None => return Ok(quote_spanned!(span=> members.field::<#ty>(#name, #offset);)),
        Some(Target::Named(target)) => quote!(#target),
        Some(Target::OfPointer) => {
            quote_spanned!(span=> <#ty as ::indelible::collections::PointsTo>::Target)
        }
    };
    Ok(quote_spanned!(span=> members.pointer::<#ty, #target>(#name, #offset);))
}

#[cfg(test)]
mod tests {
    use super::describe;
    use quote::quote;
    use syn::parse::Parser;
    use syn::{Field, parse_quote};

    fn text(field: proc_macro2::TokenStream) -> String {
        let field = Field::parse_named.parse2(field).unwrap();
        match describe(&field, "f", &quote!(8)) {
            Ok(tokens) => tokens.to_string().replace(' ', ""),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn attributes_name_targets() {
        assert_eq!(text(parse_quote!(f: *mut A)), "members.field::<*mutA>(\"f\",8);");
        assert_eq!(
            text(parse_quote!(#[persist(target)] f: *mut A)),
            "members.pointer::<*mutA,<*mutAas::indelible::collections::PointsTo>::Target>(\"f\",8);"
        );
        assert_eq!(
            text(parse_quote!(#[persist(target = B<'h>)] f: *mut u8)),
            "members.pointer::<*mutu8,B<'h>>(\"f\",8);"
        );
    }

    #[test]
    fn other_attributes_are_refused() {
        assert!(text(parse_quote!(#[persist(targets)] f: *mut A)).contains("#[persist(target)]"));
        assert!(text(parse_quote!(#[persist(target, target = B)] f: *mut A)).contains("one target"));
    }
}
