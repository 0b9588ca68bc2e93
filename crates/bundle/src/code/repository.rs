use std::{fmt, str::FromStr};

use crate::quote::Quoted;

/// Longest owner or repository name in bytes, which is GitHub's own limit for names.
const LONGEST_NAME: usize = 100;

/// A repository on the one host that the operator is configured for: `owner/name`.
///
/// The characters are so few that neither part can carry a host, a query, a fragment, an encoded slash or a `..` into
/// the URL of a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    owner: String,
    name: String,
}

impl Repository {
    /// The user or organisation.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The repository's name below its owner.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.owner, self.name)
    }
}

/// Text that is no [`Repository`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    /// A whole URL or a host.
    #[error("{} names a host: write only `owner/name`, the host is the operator's configuration", Quoted(.0))]
    Host(String),
    /// `owner/name@version`.
    #[error("{} has a version: write `owner/name` here and the version in `ref`", Quoted(.0))]
    Version(String),
    /// The name of a clone URL.
    #[error("{} ends in `.git`: write the repository's name without it", Quoted(.0))]
    DotGit(String),
    /// Anything else.
    #[error(
        "{} is not `owner/name`: an owner has letters, digits, `-` and `_`, a name also `.`, \
         each at most {LONGEST_NAME} characters", Quoted(.0)
    )]
    Form(String),
}

impl FromStr for Repository {
    type Err = RepositoryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text
            .split_once('/')
            .filter(|(owner, name)| is_owner(owner) && is_name(name));
        let Some((owner, name)) = parts else {
            return Err(explain(text));
        };
        if name.to_ascii_lowercase().ends_with(".git") {
            return Err(RepositoryError::DotGit(text.to_owned()));
        }
        Ok(Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
        })
    }
}

fn explain(text: &str) -> RepositoryError {
    let first = text.split('/').next().unwrap_or_default();
    let looks_like_a_host = first.contains(['@', ':']) || first.trim_start_matches('.').contains('.');
    match text.rsplit_once('@') {
        _ if looks_like_a_host => RepositoryError::Host(text.to_owned()),
        Some((repository, _)) if repository.parse::<Repository>().is_ok() => {
            RepositoryError::Version(text.to_owned())
        }
        _ => RepositoryError::Form(text.to_owned()),
    }
}

fn is_owner(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len())
        && !text.starts_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_name(text: &str) -> bool {
    (1..=LONGEST_NAME).contains(&text.len())
        && !matches!(text, "." | "..")
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_name_are_taken_apart() {
        let repository: Repository = "octo-org/my.tools_2".parse().unwrap();
        assert_eq!(
            (repository.owner(), repository.name()),
            ("octo-org", "my.tools_2")
        );
        assert_eq!(repository.to_string(), "octo-org/my.tools_2");
    }

    #[test]
    fn names_that_could_bend_a_request_are_refused() {
        let long = format!("o/{}", "n".repeat(101));
        for text in [
            "",
            "tools",
            "/tools",
            "octo/",
            "octo/tools/src",
            "../../user",
            "octo/..",
            "octo/.",
            "o/r?x=y",
            "o/r#f",
            "o/%2e%2e",
            "o/r r",
            "o/r\n",
            "o/r\0",
            "ö/r",
            "-o/r",
            "o/r\\x",
            &long,
        ] {
            let expected = RepositoryError::Form(text.to_owned());
            assert_eq!(text.parse::<Repository>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn the_host_is_not_the_manifests_choice() {
        for text in [
            "https://github.com/octo/tools",
            "github.com/octo/tools",
            "git@github.com:octo/tools.git",
            "user@169.254.169.254/r",
        ] {
            let expected = RepositoryError::Host(text.to_owned());
            assert_eq!(text.parse::<Repository>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn a_version_belongs_into_the_other_field() {
        let error = "octo/tools@v1".parse::<Repository>().unwrap_err();
        assert_eq!(error, RepositoryError::Version("octo/tools@v1".to_owned()));
    }

    #[test]
    fn the_suffix_of_a_clone_url_is_pointed_out() {
        let error = "octo/tools.git".parse::<Repository>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`octo/tools.git` ends in `.git`: write the repository's name without it"
        );
    }
}
