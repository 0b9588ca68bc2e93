use codeworkspace_bundle::Digest;

use crate::cache::CommitKey;

/// What a stored file is about, in full. Each file repeats it, so that a copied or renamed one serves nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// The tree of a commit.
    pub(super) fn tree(key: &CommitKey) -> Self {
        Self::of(&[
            "tree",
            &key.host,
            &key.repository.to_string(),
            key.commit.as_str(),
        ])
    }

    /// Something small. The first part says what it is, the others what it is about.
    pub(crate) fn of(parts: &[&str]) -> Self {
        // JSON keeps `a, bc` and `ab, c` apart whatever the parts hold.
        Self(serde_json::json!(parts).to_string())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Hex digits only: nothing that others chose becomes a path.
    pub(super) fn file_name(&self) -> String {
        Digest::of(self.0.as_bytes()).hex()
    }
}

/// Whether a name in the cache's folder can be one of ours.
pub(super) fn is_file_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_other_parts_are_other_keys() {
        let names = [&["a", "bc"][..], &["ab", "c"], &["abc"], &["a", "b", "c"]].map(|parts| {
            let name = Key::of(parts).file_name();
            assert!(is_file_name(&name), "{name}");
            name
        });
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len());
    }
}
