//! Extensions, as headers name them.

/// Header by which a client of 1.0 names the extensions that it uses, and a server those that it applied.
pub const HEADER: &str = "a2a-extensions";
/// The same of 0.3.
pub const HEADER_03: &str = "x-a2a-extensions";
/// Extensions that one request may name; further ones are not looked at.
const NAMED_MAX: usize = 32;

/// The URIs in the values of such a header.
pub fn named<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let uris = values.into_iter().flat_map(|value| value.split(','));
    let uris = uris.map(str::trim).filter(|uri| !uri.is_empty());
    uris.take(NAMED_MAX).map(str::to_owned).collect()
}
