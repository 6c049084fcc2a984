//! Bytes as hexadecimal digits.

/// Two lower-case digits a byte.
pub(crate) fn hex_of_bytes(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of pairs of digits, of either case; `None` for anything else.
pub(crate) fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = digits.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    Some(pairs.iter().map(|[high, low]| (high * 16 + low) as u8).collect())
}
