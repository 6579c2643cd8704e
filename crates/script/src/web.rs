//! URLs, text and base64 for the prelude. Bytes come and go as text with one character per byte: reading the memory of a
//! typed array is not safe in general, and none of this is large.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray};
use url::{Url, form_urlencoded, quirks};

/// As `atob` reads it: with padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

pub(crate) fn install<'js>(ctx: &Ctx<'js>, native: &Object<'js>) -> Result<()> {
    native.set("btoa", Function::new(ctx.clone(), btoa)?)?;
    native.set("atob", Function::new(ctx.clone(), atob)?)?;
    native.set("encode", Function::new(ctx.clone(), encode)?)?;
    native.set("decode", Function::new(ctx.clone(), decode)?)?;
    native.set("url", Function::new(ctx.clone(), url)?)?;
    native.set("setUrl", Function::new(ctx.clone(), set_url)?)?;
    native.set("parseForm", Function::new(ctx.clone(), parse_form)?)?;
    native.set("writeForm", Function::new(ctx.clone(), write_form)?)
}

/// Bytes from a text with one character per byte.
fn bytes(text: &str) -> Option<Vec<u8>> {
    text.chars()
        .map(|character| u8::try_from(u32::from(character)).ok())
        .collect()
}

fn btoa(ctx: Ctx<'_>, text: String) -> Result<String> {
    match bytes(&text) {
        Some(bytes) => Ok(LENIENT.encode(bytes)),
        None => Err(Exception::throw_range(
            &ctx,
            "btoa takes characters up to U+00FF; encode the text first, with TextEncoder",
        )),
    }
}

fn atob(ctx: Ctx<'_>, text: String) -> Result<String> {
    let dense: String = text
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .collect();
    match LENIENT.decode(dense) {
        Ok(bytes) => Ok(bytes.into_iter().map(char::from).collect()),
        Err(_) => Err(Exception::throw_range(&ctx, "the text is not base64")),
    }
}

fn encode<'js>(ctx: Ctx<'js>, text: String) -> Result<TypedArray<'js, u8>> {
    TypedArray::new_copy(ctx, text.into_bytes())
}

/// UTF-8 bytes to text; what is not UTF-8 becomes U+FFFD, or an error.
fn decode(ctx: Ctx<'_>, text: String, fatal: bool) -> Result<String> {
    let bytes = bytes(&text).unwrap_or_default();
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(_) if fatal => Err(Exception::throw_type(&ctx, "the bytes are not UTF-8")),
        Err(error) => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// The parts of an address, as JSON: `href`, `origin` and so on, in the order in which `url.js` reads them.
fn url(ctx: Ctx<'_>, text: String, base: Option<String>) -> Result<String> {
    let base = base.map(|base| Url::parse(&base)).transpose();
    let url = base.and_then(|base| Url::options().base_url(base.as_ref()).parse(&text));
    match url {
        Ok(url) => Ok(parts(&url)),
        Err(_) => {
            let shown: String = text.chars().take(200).collect();
            Err(Exception::throw_type(&ctx, &format!("Invalid URL: {shown}")))
        }
    }
}

/// The address with one part changed; unchanged when the part does not fit, as on the web.
fn set_url(ctx: Ctx<'_>, href: String, part: String, value: String) -> Result<String> {
    let invalid = |_| Exception::throw_type(&ctx, "Invalid URL");
    let mut url = Url::parse(&href).map_err(invalid)?;
    let url = &mut url;
    // A part that does not fit is ignored.
    let _ = match part.as_str() {
        "href" => {
            *url = Url::parse(&value).map_err(invalid)?;
            Ok(())
        }
        "protocol" => quirks::set_protocol(url, &value),
        "username" => quirks::set_username(url, &value),
        "password" => quirks::set_password(url, &value),
        "host" => quirks::set_host(url, &value),
        "hostname" => quirks::set_hostname(url, &value),
        "port" => quirks::set_port(url, &value),
        "pathname" => {
            quirks::set_pathname(url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(url, &value);
            Ok(())
        }
        _ => {
            quirks::set_hash(url, &value);
            Ok(())
        }
    };
    Ok(parts(url))
}

fn parts(url: &Url) -> String {
    serde_json::json!([
        quirks::href(url),
        quirks::origin(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ])
    .to_string()
}

/// The pairs of a query, as JSON.
fn parse_form(text: String) -> String {
    let pairs: Vec<_> = form_urlencoded::parse(text.as_bytes()).collect();
    serde_json::json!(pairs).to_string()
}

/// The query that JSON pairs make.
fn write_form(ctx: Ctx<'_>, pairs: String) -> Result<String> {
    let pairs: Vec<(String, String)> = serde_json::from_str(&pairs)
        .map_err(|_| Exception::throw_type(&ctx, "expected pairs of a name and a value"))?;
    Ok(form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish())
}
