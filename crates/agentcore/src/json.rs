//! Reading the JSON of requests: errors name the member, members that nobody knows are passed over, and long strings stay where
//! they are.

use std::{borrow::Cow, fmt, marker::PhantomData};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::error::Category;

use crate::validation::{Reason, ValidationError};

/// Reads a body. An empty one is an empty object: clients leave the body out when no member is set.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ValidationError> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let Object(value) =
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| explained(&error))?;
    deserializer.end().map_err(|error| not_json(&error))?;
    Ok(value)
}

fn explained(error: &serde_path_to_error::Error<serde_json::Error>) -> ValidationError {
    let path = error.path().to_string();
    match error.inner().classify() {
        Category::Data if path != "." => ValidationError::field(path, &error.inner().to_string()),
        Category::Data | Category::Syntax | Category::Eof | Category::Io => not_json(error.inner()),
    }
}

fn not_json(error: &serde_json::Error) -> ValidationError {
    let message = format!("the body must be a JSON object: {error}");
    ValidationError::new(Reason::CannotParse, &message)
}

/// A JSON object, and not the array that a derived structure would take as well.
#[derive(Debug, Default)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// A string that is copied only if it has escapes.
#[derive(Debug)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

/// Bytes, which are base64 in JSON.
#[derive(Debug)]
pub(crate) struct Blob(pub(crate) Vec<u8>);

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BlobVisitor;

        impl Visitor<'_> for BlobVisitor {
            type Value = Blob;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string in base64")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Blob, E> {
                STANDARD
                    .decode(text)
                    .map(Blob)
                    .map_err(|error| E::custom(format_args!("must be base64: {error}")))
            }
        }

        deserializer.deserialize_str(BlobVisitor)
    }
}
