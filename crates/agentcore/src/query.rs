//! The query string of a request.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::validation::ValidationError;

/// Parameters of a query string, still encoded. A plus sign is a plus sign: the SDKs write a space as `%20`.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a>(&'a str);

impl<'a> Query<'a> {
    /// From what follows the question mark.
    pub fn new(raw: Option<&'a str>) -> Self {
        Self(raw.unwrap_or_default())
    }

    /// Names and values, still encoded. An empty piece is none.
    pub(crate) fn pieces(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .split('&')
            .filter(|piece| !piece.is_empty())
            .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
    }

    /// The decoded value of `name`. A parameter that is there twice is refused, since two readers could take different ones.
    pub(crate) fn value(self, name: &str) -> Result<Option<Cow<'a, str>>, ValidationError> {
        let mut values = self
            .pieces()
            .filter(|(key, _)| percent_decode_str(key).eq(name.bytes()))
            .map(|(_, value)| value);
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(ValidationError::field(
                name,
                "must stand once in the query string",
            ));
        }
        percent_decode_str(value)
            .decode_utf8()
            .map(Some)
            .map_err(|_| ValidationError::field(name, "must be UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let query = Query::new(Some("a=%C3%A9+%26&%62=2&&c"));
        assert_eq!(query.value("a").unwrap().unwrap(), "é+&");
        assert_eq!(query.value("b").unwrap().unwrap(), "2");
        assert_eq!(query.value("c").unwrap().unwrap(), "");
        assert_eq!(query.value("d").unwrap(), None);
        assert_eq!(Query::new(None).value("a").unwrap(), None);
    }

    #[test]
    fn a_parameter_twice_or_not_utf8_is_refused() {
        let twice = Query::new(Some("a=1&%61=1")).value("a").unwrap_err();
        assert_eq!(twice.message(), "a: must stand once in the query string");
        let binary = Query::new(Some("a=%FF")).value("a").unwrap_err();
        assert_eq!(binary.message(), "a: must be UTF-8");
    }
}
