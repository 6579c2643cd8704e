//! Which compressed forms a client takes.

use http::HeaderValue;

/// A compressed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Brotli,
    Gzip,
}

impl Encoding {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The forms that `accept-encoding` allows. What is not named is not sent, and neither is what has the weight zero.
pub(crate) fn accepted<'a>(values: impl IntoIterator<Item = &'a HeaderValue>) -> Vec<Encoding> {
    let values = values.into_iter().filter_map(|value| value.to_str().ok());
    let offers = values.flat_map(|value| value.split(',')).filter_map(|offer| {
        let mut parts = offer.split(';').map(str::trim);
        let name = parts.next()?;
        let refused = parts.any(|part| {
            let weight = part
                .strip_prefix("q=")
                .and_then(|weight| weight.trim().parse::<f32>().ok());
            weight == Some(0.0)
        });
        (!refused).then_some(name)
    });
    let known = [Encoding::Brotli, Encoding::Gzip];
    offers
        .filter_map(|offer| {
            known
                .into_iter()
                .find(|form| offer.eq_ignore_ascii_case(form.name()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_sent_to_those_who_name_them() {
        let told = |text: &'static str| accepted([&HeaderValue::from_static(text)]);
        assert_eq!(told("gzip, deflate, BR"), [Encoding::Gzip, Encoding::Brotli]);
        assert_eq!(told("br;q=0, gzip;q=0.5"), [Encoding::Gzip]);
        assert_eq!(told("identity"), []);
        assert_eq!(told("gzip; q=0.000"), []);
    }
}
