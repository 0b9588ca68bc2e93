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
    /// What is in it.
    pub content: String,
}

impl InlineSource {
    /// The one file, executable if it begins with `#!`.
    pub fn tree(&self) -> FileTree {
        FileTree::of_file(self.path.clone(), Bytes::copy_from_slice(self.content.as_bytes()))
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
            content: content.to_owned(),
        }),
        _ => Err(issues),
    }
}
