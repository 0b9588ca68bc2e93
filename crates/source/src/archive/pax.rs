//! Extended headers (POSIX.1-2001 `pax`): records of the form `length key=value\n`.

use super::ArchiveError;
use crate::error::quoted;

/// The records of one extended header, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Records(Vec<(String, Vec<u8>)>);

impl Records {
    /// Reads records that fill `data` exactly. One that is malformed spoils all, since readers that skip it differ from
    /// those that do not.
    pub(super) fn parse(mut data: &[u8]) -> Result<Self, ArchiveError> {
        let malformed = || ArchiveError::refused("an extended header is malformed");
        let mut records: Vec<(String, Vec<u8>)> = Vec::new();
        while !data.is_empty() {
            let (key, value, rest) = split(data).ok_or_else(malformed)?;
            if records.iter().any(|(known, _)| known == key) {
                return Err(ArchiveError::refused(format!(
                    "an extended header has {} twice",
                    quoted(key)
                )));
            }
            records.push((key.to_owned(), value.to_vec()));
            data = rest;
        }
        if records.is_empty() {
            Err(malformed())
        } else {
            Ok(Self(records))
        }
    }

    /// Refuses keys that are not in `known`.
    pub(super) fn allow(&self, known: &[&str]) -> Result<(), ArchiveError> {
        match self.0.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            Some((key, _)) => Err(ArchiveError::refused(format!(
                "an extended header has {}, which is never read",
                quoted(key)
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_slice())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The first record and the rest.
fn split(data: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let space = data.iter().position(|byte| *byte == b' ')?;
    let digits = &data[..space];
    if !matches!(digits.first(), Some(b'1'..=b'9')) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let record = data.get(space + 1..length)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    let key = std::str::from_utf8(&record[..equals])
        .ok()
        .filter(|key| !key.is_empty())?;
    Some((key, &record[equals + 1..], &data[length..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_are_read_by_their_length_not_by_their_lines() {
        let records = Records::parse(b"12 path=a\nb\n14 linkpath=x\n").unwrap();
        assert_eq!(records.get("path"), Some(&b"a\nb"[..]));
        assert_eq!(records.get("linkpath"), Some(&b"x"[..]));
        records.allow(&["path", "linkpath"]).unwrap();
        records.allow(&["path"]).unwrap_err();
    }

    #[test]
    fn malformed_records_are_refused() {
        for data in [
            "",
            "\n",
            "9 path=a",
            "9 path=a\n9",
            "8 path=a\n",
            "11 path=a\n",
            "09 path=a\n",
            "+9 path=a\n",
            "9path=a\n",
            "7 path\n",
            "5 =a\n",
            "9 path=a\n9 path=b\n",
            "99999999999999999999 path=a\n",
            "0 \n",
        ] {
            Records::parse(data.as_bytes()).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Records::parse(&data);
        }

        #[test]
        fn what_is_written_is_read(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let record = crate::archive::tests::fixtures::record("path", &value);
            let records = Records::parse(&record).unwrap();
            prop_assert_eq!(records.get("path"), Some(value.as_slice()));
        }
    }
}
