//! `#[derive(toolgate_client::JsonSchema)]` for programs that do not depend on `schemars` themselves.
//!
//! The derive of `schemars` writes paths that begin with `schemars::`, so it needs that crate among the
//! dependencies of whoever uses it, or an attribute that says where else it is. A derive cannot add attributes to
//! its item. So this one makes a copy of the item with the attribute, lets `schemars` derive the schema of the copy,
//! and gives it to the original.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Fields, Meta, Token, Visibility, parse_macro_input, parse_quote};

/// Attributes that say something of a schema. All others belong to the original alone.
const SCHEMA_ATTRIBUTES: [&str; 6] = ["deprecated", "doc", "garde", "schemars", "serde", "validate"];

/// Derives the schema of a type, by the rules and the attributes of `schemars`.
#[proc_macro_derive(JsonSchema, attributes(schemars, serde, validate, garde))]
pub fn json_schema(item: TokenStream) -> TokenStream {
    derive(parse_macro_input!(item as DeriveInput)).into()
}

fn derive(item: DeriveInput) -> Tokens {
    let original = &item.ident;
    let schemars = quote!(::toolgate_client::schemars);
    let mut copy = item.clone();
    copy.ident = format_ident!("SchemaOf{}", original.unraw());
    copy.vis = Visibility::Inherited;
    keep_schema_attributes(&mut copy);
    if !has(&copy.attrs, &["schemars"], "crate") {
        copy.attrs
            .push(parse_quote!(#[schemars(crate = "::toolgate_client::schemars")]));
    }
    if !has(&copy.attrs, &["schemars", "serde"], "rename") {
        let name = original.unraw().to_string();
        copy.attrs.push(parse_quote!(#[schemars(rename = #name)]));
    }
    let name = &copy.ident;
    let (impl_generics, type_generics, bounds) = item.generics.split_for_impl();
    let mut bounded = bounds.cloned().unwrap_or_else(|| parse_quote!(where));
    bounded
        .predicates
        .push(parse_quote!(#name #type_generics: #schemars::JsonSchema));
    // What `#[serde(default)]` on the type calls: the derive asks the copy, and the original knows.
    let default = has(&copy.attrs, &["serde"], "default").then(|| {
        quote! {
            impl #impl_generics #name #type_generics #bounds {
                fn default() -> #original #type_generics {
                    ::core::default::Default::default()
                }
            }
        }
    });
    quote! {
        const _: () = {
            #[allow(dead_code, non_camel_case_types)]
            #[derive(#schemars::JsonSchema)]
            #copy

            #default

            #[automatically_derived]
            impl #impl_generics #schemars::JsonSchema for #original #type_generics #bounded {
                fn inline_schema() -> bool {
                    <#name #type_generics as #schemars::JsonSchema>::inline_schema()
                }
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    <#name #type_generics as #schemars::JsonSchema>::schema_name()
                }
                fn schema_id() -> ::std::borrow::Cow<'static, str> {
                    <#name #type_generics as #schemars::JsonSchema>::schema_id()
                }
                fn json_schema(generator: &mut #schemars::SchemaGenerator) -> #schemars::Schema {
                    <#name #type_generics as #schemars::JsonSchema>::json_schema(generator)
                }
            }
        };
    }
}

/// Drops what the copy must not repeat: attributes of other derives, of lints, of the layout.
fn keep_schema_attributes(copy: &mut DeriveInput) {
    retain(&mut copy.attrs);
    match &mut copy.data {
        Data::Struct(data) => retain_of_fields(&mut data.fields),
        Data::Enum(data) => {
            for variant in &mut data.variants {
                retain(&mut variant.attrs);
                retain_of_fields(&mut variant.fields);
            }
        }
        Data::Union(_) => {}
    }
}

fn retain_of_fields(fields: &mut Fields) {
    for field in fields {
        retain(&mut field.attrs);
    }
}

fn retain(attributes: &mut Vec<Attribute>) {
    attributes.retain(|attribute| {
        SCHEMA_ATTRIBUTES
            .iter()
            .any(|name| attribute.path().is_ident(name))
    });
}

/// Whether one of the attributes has this entry, as in `#[serde(rename = "x")]`.
fn has(attributes: &[Attribute], names: &[&str], entry: &str) -> bool {
    let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
    attributes
        .iter()
        .filter(|attribute| names.iter().any(|name| attribute.path().is_ident(name)))
        .filter_map(|attribute| attribute.parse_args_with(parse).ok())
        .flatten()
        .any(|meta| meta.path().is_ident(entry))
}
