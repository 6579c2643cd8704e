//! From an SDP offer to a connection and its answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use str0m::change::SdpOffer;
use str0m::config::{CryptoProvider, DtlsCert};
use str0m::ice::IceCreds;
use str0m::{Candidate, Rtc, RtcConfig};
use toolgate_http::problem::Refusal;
use toolgate_kernel::problem::Problem;

use crate::RtcLimits;

/// The line that says how many bytes of one message are read.
const MESSAGE_BYTES: &str = "a=max-message-size:";
/// What a peer that does not say reads of one message (RFC 8841).
const REMOTE_MESSAGE_BYTES: usize = 64 * 1024;

/// Least that a peer must read of one message: a problem, or an event without its large members.
const REMOTE_MESSAGE_BYTES_MIN: usize = 1024;
/// Lines of an offer beside candidates. A browser's has about 20, and reading one takes a while: the library tries each of
/// the attributes that it knows.
const LINES_MAX: usize = 128;

/// What the library says of an offer that it cannot use names places in memory, and is written for its authors.
const UNREADABLE: &str = "it cannot be read as a session description (RFC 8866)";
const UNUSABLE: &str = "it lacks what a data channel needs: ICE credentials, a DTLS fingerprint and a=setup";

/// Makes connections: one certificate and one set of addresses for all of them.
pub(crate) struct Answerer {
    crypto: Arc<CryptoProvider>,
    certificate: DtlsCert,
    /// Where browsers reach the gateway. Never empty.
    pub candidates: Vec<SocketAddr>,
}

/// A connection that waits for its peer.
pub(crate) struct Answered {
    pub rtc: Rtc,
    /// Names the peer in STUN requests.
    pub fragment: String,
    /// What to give to the peer.
    pub sdp: String,
    /// Bytes of one message that the peer reads.
    pub message_bytes_max: usize,
}

impl Answerer {
    /// With a fresh certificate; none if the crypto library makes none.
    pub fn new(candidates: Vec<SocketAddr>) -> Option<Self> {
        let crypto = Arc::new(str0m::crypto::from_feature_flags());
        let certificate = crypto.dtls_provider.generate_certificate()?;
        Some(Self {
            crypto,
            certificate,
            candidates,
        })
    }

    /// Accepts an offer of one data channel and nothing else.
    pub fn accept(&self, offer: &str, limits: &RtcLimits, now: Instant) -> Result<Answered, Refusal> {
        let read = read(offer)?;
        let remote_bytes_max = message_bytes_of(offer);
        if remote_bytes_max < REMOTE_MESSAGE_BYTES_MIN {
            return Err(wrong(&format!(
                "a=max-message-size is {remote_bytes_max}; expected at least {REMOTE_MESSAGE_BYTES_MIN}, or 0 for any size"
            )));
        }
        let credentials = IceCreds::new();
        let fragment = credentials.ufrag.clone();
        let mut rtc = RtcConfig::new()
            .set_crypto_provider(self.crypto.clone())
            .set_dtls_cert(self.certificate.clone())
            .set_local_ice_credentials(credentials)
            .set_ice_lite(true)
            .clear_codecs()
            .set_sctp_max_buffered_amount(limits.buffered_bytes_max.max(limits.message_bytes_max))
            .build(now);
        for address in &self.candidates {
            let candidate = Candidate::host(*address, "udp").map_err(unusable)?;
            rtc.add_local_candidate(candidate);
        }
        let answer = rtc.sdp_api().accept_offer(read).map_err(unusable)?;
        Ok(Answered {
            rtc,
            fragment,
            sdp: with_message_bytes(&answer.to_sdp_string(), limits.message_bytes_max),
            message_bytes_max: limits.message_bytes_max.min(remote_bytes_max),
        })
    }
}

/// The offer without the peer's own addresses: an answering agent sends to where valid requests come from, so addresses that
/// somebody merely wrote down are neither kept nor contacted.
fn read(offer: &str) -> Result<SdpOffer, Refusal> {
    let media: Vec<&str> = lines(offer).filter(|line| line.starts_with("m=")).collect();
    match media.as_slice() {
        [one] if one.starts_with("m=application ") => {}
        [one] => {
            return Err(wrong(&format!("{one:?} is offered; expected one data channel")));
        }
        others => {
            let count = others.len();
            return Err(wrong(&format!(
                "{count} media sections are offered; expected one, a data channel"
            )));
        }
    }
    // The library would say so in the log, as if something were wrong with the gateway.
    if lines(offer).filter(|line| line.starts_with("a=mid:")).count() != 1 {
        return Err(wrong("expected one a=mid in its media section"));
    }
    let kept: Vec<&str> = lines(offer)
        .filter(|line| !line.starts_with("a=candidate:"))
        .collect();
    if kept.len() > LINES_MAX {
        let count = kept.len();
        return Err(wrong(&format!(
            "it has {count} lines beside its candidates; expected at most {LINES_MAX}"
        )));
    }
    let text: String = kept.into_iter().flat_map(|line| [line, "\r\n"]).collect();
    SdpOffer::from_sdp_string(&text).map_err(|error| {
        tracing::debug!(%error, "an offer of a data channel cannot be read");
        wrong(UNREADABLE)
    })
}

/// The answer with the size of message that this gateway reads, in place of what its library could: a browser refuses to
/// send more (RFC 8841), and tells the page so.
fn with_message_bytes(answer: &str, bytes_max: usize) -> String {
    let told = |line: &str| match line.starts_with(MESSAGE_BYTES) {
        true => format!("{MESSAGE_BYTES}{bytes_max}\r\n"),
        false => format!("{line}\r\n"),
    };
    lines(answer).map(told).collect()
}

fn lines(sdp: &str) -> impl Iterator<Item = &str> {
    sdp.lines().map(str::trim_end).filter(|line| !line.is_empty())
}

/// Bytes of one message that the peer says it reads; 0 stands for any number (RFC 8841).
fn message_bytes_of(offer: &str) -> usize {
    let said = lines(offer).find_map(|line| line.strip_prefix(MESSAGE_BYTES));
    match said.map(|said| said.trim().parse()) {
        Some(Ok(0)) => usize::MAX,
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) | None => REMOTE_MESSAGE_BYTES,
    }
}

fn unusable(error: impl std::fmt::Display) -> Refusal {
    tracing::debug!(%error, "an offer of a data channel cannot be answered");
    wrong(UNUSABLE)
}

fn wrong(words: &str) -> Refusal {
    Refusal::invalid(vec![Problem::new(
        "/sdp",
        format!("is no offer that can be answered: {words}"),
    )])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(offer: &str) -> String {
        let answerer = Answerer::new(vec!["127.0.0.1:5000".parse().unwrap()]).unwrap();
        let accepted = answerer.accept(offer, &RtcLimits::default(), Instant::now());
        let refusal = accepted.err().unwrap_or_else(|| panic!("accepted: {offer:?}"));
        refusal.into_body().detail
    }

    #[test]
    fn what_offers_anything_but_one_data_channel_is_refused_with_words() {
        assert!(refused("v=0\r\n").contains("0 media sections are offered"));
        assert!(refused("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n").contains("expected one data channel"));
        assert!(
            refused("m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nm=audio 9 RTP 1\r\n")
                .contains("2 media")
        );
        assert!(refused("m=application nonsense").starts_with("/sdp is no offer"));
    }

    /// What a browser offers, with one line in place of another.
    fn offered(line: &str, instead: &str) -> String {
        let offer = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n\
            m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\n\
            a=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=fingerprint:sha-256 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:\
            FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\r\na=setup:actpass\r\na=mid:0\r\n\
            a=sctp-port:5000\r\na=max-message-size:262144\r\n";
        assert!(offer.contains(line));
        offer.replacen(line, instead, 1)
    }

    #[test]
    fn a_refusal_says_nothing_of_the_gateways_memory() {
        for (line, instead) in [
            ("v=0", "\0v=0"),
            ("v=0", "v=1"),
            ("a=mid:0\r\n", ""),
            ("a=mid:0", "a=mid:0\r\na=mid:0"),
            ("a=fingerprint", "a=x-fingerprint"),
            ("262144", "1000"),
        ] {
            let told = refused(&offered(line, instead));
            assert!(
                told.starts_with("/sdp is no offer that can be answered: "),
                "{told}"
            );
            assert!(!told.contains("0x") && !told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn an_offer_of_many_lines_is_refused_before_it_is_read() {
        let answerer = Answerer::new(vec!["127.0.0.1:5000".parse().unwrap()]).unwrap();
        let candidate = "a=candidate:1 1 udp 2130706431 192.0.2.1 9 typ host\r\n";
        let many_addresses = offered("a=mid:0\r\n", &format!("a=mid:0\r\n{}", candidate.repeat(400)));
        let accepted = answerer.accept(&many_addresses, &RtcLimits::default(), Instant::now());
        assert!(accepted.is_ok(), "a machine may have many addresses");
        let told = refused(&offered(
            "a=mid:0\r\n",
            &format!("a=mid:0\r\n{}", "a=x:1\r\n".repeat(LINES_MAX)),
        ));
        assert!(
            told.contains("lines beside its candidates; expected at most 128"),
            "{told}"
        );
    }

    #[test]
    fn the_answer_says_how_much_the_gateway_reads() {
        let answerer = Answerer::new(vec!["127.0.0.1:5000".parse().unwrap()]).unwrap();
        let limits = RtcLimits {
            message_bytes_max: 5_000,
            ..RtcLimits::default()
        };
        let accept = |offer: &str| answerer.accept(offer, &limits, Instant::now()).ok().unwrap();
        let answered = accept(&offered("262144", "2000"));
        let said: Vec<&str> = lines(&answered.sdp)
            .filter(|line| line.starts_with(MESSAGE_BYTES))
            .collect();
        assert_eq!(said, ["a=max-message-size:5000"]);
        assert_eq!(answered.message_bytes_max, 2_000);
    }

    #[test]
    fn the_peer_says_how_much_it_reads() {
        assert_eq!(message_bytes_of("a=max-message-size:16384\r\n"), 16384);
        assert_eq!(message_bytes_of("a=max-message-size:0\r\n"), usize::MAX);
        assert_eq!(message_bytes_of("v=0\r\n"), REMOTE_MESSAGE_BYTES);
    }
}
