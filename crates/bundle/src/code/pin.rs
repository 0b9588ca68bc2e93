use super::{CommitId, GitReference, GithubSource};

impl GithubSource {
    /// Why the source may not be used where only commits are (`requirePin`; AIP-26, "Cache invalidation for `github` sources"); `None` for
    /// a full commit id, which never moves. `now` is the commit that the reference stands for at the moment, if that is known.
    pub fn unpinned(&self, now: Option<&CommitId>) -> Option<String> {
        if matches!(self.reference, GitReference::Commit(_)) {
            return None;
        }
        let wanted = match now {
            Some(commit) => format!("write `ref: {commit}`, which is what it stands for now"),
            None => "write the commit's full id of 40 hex digits".to_owned(),
        };
        Some(format!(
            "`ref: {}` of `{}` can move to another commit, and only pinned sources are allowed here: {wanted}",
            self.reference, self.repository
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Target;

    const COMMIT: &str = "4f3a2b1ca73b5e9f8d2c1a0b3e6f7d4c8b1a2e3f";

    fn source(reference: &str) -> GithubSource {
        GithubSource {
            repository: "octo/tools".parse().unwrap(),
            reference: reference.parse().unwrap(),
            path: None,
            target: Target::default(),
        }
    }

    #[test]
    fn only_full_commit_ids_are_pinned() {
        assert_eq!(source(COMMIT).unpinned(None), None);
        assert_eq!(source(&"0123456789abcdef".repeat(4)).unpinned(None), None);
        for floating in ["main", "v1.2.3", "refs/tags/v1", "refs/heads/main", "4f3a2b1c"] {
            assert!(source(floating).unpinned(None).is_some(), "{floating}");
        }
    }

    #[test]
    fn what_floats_is_named_with_what_to_write() {
        assert_eq!(
            source("main").unpinned(None).unwrap(),
            "`ref: main` of `octo/tools` can move to another commit, and only pinned sources are allowed here: write the commit's full \
             id of 40 hex digits"
        );
        assert_eq!(
            source("refs/tags/v1")
                .unpinned(Some(&COMMIT.parse().unwrap()))
                .unwrap(),
            format!(
                "`ref: refs/tags/v1` of `octo/tools` can move to another commit, and only pinned sources are allowed here: write \
                 `ref: {COMMIT}`, which is what it stands for now"
            )
        );
    }
}
