//! Which peer a datagram is for. All peers share one UDP port: a STUN request names its peer, and everything else comes from
//! an address that such a request came from.

/// First bytes of every STUN message: type, length, the magic cookie, the transaction.
const STUN_HEADER_BYTES: usize = 20;
const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xA4, 0x42];
const BINDING_REQUEST: [u8; 2] = [0, 1];
const USERNAME: u16 = 0x0006;

/// How a datagram says whom it is for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Addressee<'a> {
    /// A STUN request that names the user fragment of a peer's credentials. Nothing is proven by it.
    Named(&'a str),
    /// The peer whose address it comes from.
    BySource,
    /// Nobody: a STUN message that an answering agent has no use for.
    Nobody,
}

/// Reads as little of a datagram as its way needs. Never fails: what cannot be read is for nobody.
pub(crate) fn addressee(datagram: &[u8]) -> Addressee<'_> {
    // RFC 7983: the first byte of STUN is 0 to 3.
    if datagram.first().is_none_or(|first| *first > 3) {
        return Addressee::BySource;
    }
    match local_fragment(datagram) {
        Some(fragment) => Addressee::Named(fragment),
        None => Addressee::Nobody,
    }
}

/// The part of the user name before the colon: the fragment that the gateway gave to the peer.
fn local_fragment(datagram: &[u8]) -> Option<&str> {
    let header = datagram.get(..STUN_HEADER_BYTES)?;
    if header[..2] != BINDING_REQUEST || header[4..8] != STUN_COOKIE {
        return None;
    }
    let mut rest = &datagram[STUN_HEADER_BYTES..];
    while let [k0, k1, l0, l1, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*l0, *l1]));
        let value = after.get(..length)?;
        if u16::from_be_bytes([*k0, *k1]) == USERNAME {
            return std::str::from_utf8(value)
                .ok()?
                .split_once(':')
                .map(|(local, _)| local);
        }
        // Attributes are padded to four bytes.
        rest = after.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: [u8; 2], attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut message = kind.to_vec();
        message.extend([0, 0]);
        message.extend(STUN_COOKIE);
        message.extend([7; 12]);
        for (kind, value) in attributes {
            message.extend(kind.to_be_bytes());
            message.extend((value.len() as u16).to_be_bytes());
            message.extend(*value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        message
    }

    #[test]
    fn a_request_names_its_peer_wherever_the_name_stands() {
        let message = request(BINDING_REQUEST, &[(0x8022, b"agent"), (USERNAME, b"mine:theirs")]);
        assert_eq!(addressee(&message), Addressee::Named("mine"));
    }

    #[test]
    fn what_is_no_request_or_is_cut_short_is_for_nobody() {
        let whole = request(BINDING_REQUEST, &[(USERNAME, b"mine:theirs")]);
        for length in 1..whole.len() - 1 {
            assert_eq!(addressee(&whole[..length]), Addressee::Nobody, "{length}");
        }
        assert_eq!(
            addressee(&request([1, 1], &[(USERNAME, b"mine:theirs")])),
            Addressee::Nobody
        );
        assert_eq!(
            addressee(&request(BINDING_REQUEST, &[(USERNAME, b"nobody")])),
            Addressee::Nobody
        );
        assert_eq!(
            addressee(&request(BINDING_REQUEST, &[(USERNAME, &[0xff, b':'])])),
            Addressee::Nobody
        );
    }

    #[test]
    fn everything_else_goes_by_its_source() {
        assert_eq!(addressee(&[22, 254, 253]), Addressee::BySource);
        assert_eq!(addressee(&[]), Addressee::BySource);
    }
}
