//! Kubernetes quantities in the few forms that the schema of `volume.sizeLimit` lets through.

/// The bytes that a quantity stands for; `None` when it has another form.
pub fn bytes(text: &str) -> Option<i64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * factor;
    // A volume beyond 2^53 bytes is larger than any node's disk, so the loss of precision above it does not matter.
    #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate")]
    bytes.is_finite().then_some(bytes as i64)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn the_units_of_the_schema_are_understood_and_nothing_else() {
        assert_eq!(bytes("1Gi"), Some(1 << 30));
        assert_eq!(bytes("1.5Mi"), Some(1_572_864));
        assert_eq!(bytes("100"), Some(100));
        assert_eq!(bytes("2M"), Some(2_000_000));
        assert_eq!((bytes("1Pi"), bytes("Mi"), bytes("-")), (None, None, None));
    }
}
