use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::{
    field::FieldError,
    object::{Object, Shape},
    path::BundlePath,
    tree::FileTree,
};

pub(super) const SHAPE: Shape = Shape {
    fields: &["path", "content"],
    hints: &[
        ("name", "did you mean `path`?"),
        ("file", "did you mean `path`?"),
        ("text", "did you mean `content`?"),
        ("data", "did you mean `content`?"),
        ("mode", "a file is executable if its content begins with `#!`"),
        (
            "executable",
            "a file is executable if its content begins with `#!`",
        ),
    ],
};

/// An `inline` source: one file whose content stands in the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineSource {
    /// Where the file lands in the bundle.
    pub path: BundlePath,
    /// What is in it; shared, since one manifest may come in at many places.
    pub content: Arc<str>,
}

/// Lets bytes be a view of the text.
struct Shared(Arc<str>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl InlineSource {
    /// The one file, executable if it begins with `#!`.
    pub fn tree(&self) -> FileTree {
        let contents = Bytes::from_owner(Shared(Arc::clone(&self.content)));
        FileTree::of_file(self.path.clone(), contents)
    }
}

pub(super) fn read(field: &str, value: &Value) -> Result<InlineSource, Vec<FieldError>> {
    let mut issues = Vec::new();
    let Some(object) = Object::read(field, value, &SHAPE, &mut issues) else {
        return Err(issues);
    };
    for required in SHAPE.fields {
        object.require(required, &mut issues);
    }
    let path = object.string("path", &mut issues).and_then(|text| {
        let parsed = BundlePath::from_manifest(text);
        parsed
            .map_err(|error| issues.push(FieldError::new(object.place("path"), error)))
            .ok()
    });
    let content = object.string("content", &mut issues);
    if let Some(place) = content.and_then(|content| content.find('\0')) {
        let message = format!(
            "has a NUL character at byte {place}: inline content is text; binary files come from `local` or `github`"
        );
        issues.push(FieldError::new(object.place("content"), message));
    }
    match (path, content) {
        (Some(path), Some(content)) if issues.is_empty() => Ok(InlineSource {
            path,
            content: content.into(),
        }),
        _ => Err(issues),
    }
}
