//! Pages of other origins that browsers may call from.

use anyhow::bail;
use url::Url;

/// Allows every origin.
const ANY: &str = "*";
/// What browsers send for a page without an origin, such as a local file.
const OPAQUE: &str = "null";

/// Refuses what no browser ever sends as an origin: the setting would be without effect.
pub fn check(origins: &[String]) -> anyhow::Result<()> {
    for text in origins
        .iter()
        .filter(|text| ![ANY, OPAQUE].contains(&text.as_str()))
    {
        let setting = format!("the setting `http.origins` (TOOLGATE_HTTP_ORIGINS) has {text:?}");
        match origin_of(text) {
            Some(origin) if origin == *text => {}
            Some(origin) if text.strip_suffix('/') == Some(origin.as_str()) => {
                bail!("{setting}, leave out the \"/\" at its end: {origin:?}")
            }
            Some(origin) => bail!("{setting}, which no browser sends as an origin, did you mean {origin:?}?"),
            None => bail!(
                "{setting}, expected \"*\" or an origin with its scheme, such as \"https://app.example\" or \"http://localhost:3000\""
            ),
        }
    }
    Ok(())
}

/// The origin of an address as a browser writes it: in lower case, without the usual port and without a path.
fn origin_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url
        .host_str()
        .filter(|host| !host.is_empty() && !host.contains('*'))?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}://{host}{port}", url.scheme()))
}
