//! How a request and a response travel: a length in four bytes, then as many bytes.

/// Bytes of the length.
pub(crate) const HEAD_BYTES: usize = 4;

/// The length that goes ahead of `bytes`.
pub(crate) fn head(bytes: &[u8]) -> std::io::Result<[u8; HEAD_BYTES]> {
    let length = u32::try_from(bytes.len()).map_err(|_| too_long(bytes.len()))?;
    Ok(length.to_be_bytes())
}

/// The length that was read, unless it is more than permitted.
pub(crate) fn length(head: [u8; HEAD_BYTES], bytes_max: usize) -> std::io::Result<usize> {
    let length = u32::from_be_bytes(head) as usize;
    if length > bytes_max {
        return Err(too_long(length));
    }
    Ok(length)
}

fn too_long(length: usize) -> std::io::Error {
    let reason = format!("a message of {length} bytes is longer than permitted");
    std::io::Error::new(std::io::ErrorKind::InvalidData, reason)
}
