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

/// What a peer that does not say reads of one message (RFC 8841).
const REMOTE_MESSAGE_BYTES: usize = 64 * 1024;

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
            let candidate = Candidate::host(*address, "udp").map_err(|error| wrong(error.to_string()))?;
            rtc.add_local_candidate(candidate);
        }
        let answer = rtc
            .sdp_api()
            .accept_offer(read)
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Answered {
            rtc,
            fragment,
            sdp: answer.to_sdp_string(),
            message_bytes_max: limits.message_bytes_max.min(message_bytes_of(offer)),
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
            return Err(wrong(format!("{one:?} is offered; expected one data channel")));
        }
        others => {
            let count = others.len();
            return Err(wrong(format!(
                "{count} media sections are offered; expected one, a data channel"
            )));
        }
    }
    let kept = lines(offer).filter(|line| !line.starts_with("a=candidate:"));
    let text: String = kept.flat_map(|line| [line, "\r\n"]).collect();
    SdpOffer::from_sdp_string(&text).map_err(|error| wrong(error.to_string()))
}

fn lines(sdp: &str) -> impl Iterator<Item = &str> {
    sdp.lines().map(str::trim_end).filter(|line| !line.is_empty())
}

/// Bytes of one message that the peer says it reads; 0 stands for any number (RFC 8841).
fn message_bytes_of(offer: &str) -> usize {
    let said = lines(offer).find_map(|line| line.strip_prefix("a=max-message-size:"));
    match said.map(|said| said.trim().parse()) {
        Some(Ok(0)) => usize::MAX,
        Some(Ok(bytes)) => bytes,
        Some(Err(_)) | None => REMOTE_MESSAGE_BYTES,
    }
}

fn wrong(words: String) -> Refusal {
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
        let refusal = answerer
            .accept(offer, &RtcLimits::default(), Instant::now())
            .err()
            .unwrap();
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

    #[test]
    fn the_peer_says_how_much_it_reads() {
        assert_eq!(message_bytes_of("a=max-message-size:16384\r\n"), 16384);
        assert_eq!(message_bytes_of("a=max-message-size:0\r\n"), usize::MAX);
        assert_eq!(message_bytes_of("v=0\r\n"), REMOTE_MESSAGE_BYTES);
    }
}
