//! Fields of an `#[extendible]` struct, and refused ones.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Error, Expr, Field, Fields, GenericParam, Ident, ItemStruct, Lifetime, LitInt, Result, Token,
    Type,
};

/// Extensions of a struct at most.
pub(crate) const MOST: usize = 64;

/// A field's `1, init = |item| …`.
struct Arguments {
    number: LitInt,
    init: Option<Expr>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let number = input.parse()?;
        let mut init = None;
        if input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let word: Ident = input.parse()?;
            if word != "init" {
                return Err(Error::new_spanned(word, "only `init = |item| …` can follow the number"));
            }
            input.parse::<Token![=]>()?;
            init = Some(input.parse()?);
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(Arguments { number, init })
    }
}

/// A field of an extension.
pub(crate) struct Extended<'a> {
    pub(crate) documentation: Vec<&'a Attribute>,
    pub(crate) vis: TokenStream,
    pub(crate) name: String,
    pub(crate) ident: TokenStream,
    pub(crate) ty: &'a Type,
    pub(crate) init: Option<Expr>,
}

#[derive(Default)]
pub(crate) struct Parts<'a> {
    pub(crate) base: Vec<&'a Field>,
    pub(crate) extensions: Vec<Vec<Extended<'a>>>,
}

/// A field's name or visibility in the expansion, which lints ignore, as it may be unused.
pub(crate) fn generated(tokens: TokenStream) -> TokenStream {
    let respanned = |mut token: TokenTree| {
        let span = token.span().resolved_at(Span::call_site());
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), generated(group.stream())).into();
        }
        token.set_span(span);
        token
    };
    tokens.into_iter().map(respanned).collect()
}

pub(crate) fn heap_of(input: &ItemStruct) -> Result<Lifetime> {
    let one = "an extendible struct has one parameter, the lifetime of the heap that its extensions are made in: \
               `struct Item<'h>`; their types must be the same in every version of a program";
    let mut parameters = input.generics.params.iter();
    match (parameters.next(), parameters.next()) {
        (Some(GenericParam::Lifetime(heap)), None) => Ok(heap.lifetime.clone()),
        (None, None) => Err(Error::new_spanned(&input.ident, one)),
        _ => Err(Error::new_spanned(&input.generics, one)),
    }
}

pub(crate) fn parts(input: &ItemStruct) -> Result<Parts<'_>> {
    let Fields::Named(fields) = &input.fields else {
        return Err(Error::new_spanned(
            &input.ident,
            "an extendible struct has fields with names: they become methods",
        ));
    };
    let mut parts = Parts::default();
    for field in &fields.named {
        let Some(attribute) = field.attrs.iter().find(|attribute| attribute.path().is_ident("extension"))
        else {
            if !parts.extensions.is_empty() {
                return Err(Error::new_spanned(
                    field,
                    "a field behind an extension: say which extension it belongs to, `#[extension(1)]`, or move it before all of them",
                ));
            }
            parts.base.push(field);
            continue;
        };
        let Arguments { number, init } = attribute.parse_args()?;
        let found: usize = number.base10_parse()?;
        let last = parts.extensions.len();
        if found == last + 1 && found <= MOST {
            parts.extensions.push(Vec::new());
        } else if found != last || found == 0 {
            let next = last + 1;
            let what = if last == 0 { "1".to_owned() } else { format!("{last} or {next}") };
            let what = if next > MOST { format!("{MOST}, the last that there can be,") } else { what };
            return Err(Error::new_spanned(
                number,
                format!("extensions follow each other from 1 on, as they were released: {what} comes here"),
            ));
        }
        let others =
            |other: &&Attribute| !other.path().is_ident("extension") && !other.path().is_ident("doc");
        if let Some(other) = field.attrs.iter().find(others) {
            return Err(Error::new_spanned(other, "a field of an extension has no other attributes"));
        }
        let Some(ident) = &field.ident else { continue };
        let documentation = field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).collect();
        let (vis, name) = (generated(field.vis.to_token_stream()), ident.unraw().to_string());
        let ident = generated(ident.to_token_stream());
        let extended = Extended { documentation, vis, name, ident, ty: &field.ty, init };
        parts.extensions[found - 1].push(extended);
    }
    Ok(parts)
}
