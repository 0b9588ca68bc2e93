//! Go durations as `metav1.Duration` writes them: `90s`, `1h30m`, `1.5h`.

use jiff::SignedDuration;

/// Parses a duration.
pub fn parse(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("`{text}` is no duration: write for example `90s`, `10m` or `1h30m`");
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = &rest[digits..];
        let units = [("ms", 0.001), ("h", 3600.0), ("m", 60.0), ("s", 1.0)];
        let (name, factor) = units
            .into_iter()
            .find(|(name, _)| unit.starts_with(name))
            .ok_or_else(wrong)?;
        seconds += number * factor;
        rest = &unit[name.len()..];
    }
    if text.is_empty() || seconds > 31_536_000.0 {
        return Err(wrong());
    }
    SignedDuration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_go_are_understood() {
        assert_eq!(parse("90s"), Ok(SignedDuration::from_secs(90)));
        assert_eq!(parse("1h30m"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(parse("1.5h"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(parse("1500ms"), Ok(SignedDuration::from_millis(1500)));
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for text in ["", "10", "m", "-5s", "1d", "1..5h", "9999999h", "ten"] {
            assert!(parse(text).unwrap_err().contains("`10m`"), "{text}");
        }
    }
}
