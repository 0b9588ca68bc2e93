//! What tests make the server do wrong, for one repository or for all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a request is about; requests are counted and disturbed by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RequestKind {
    /// `GET /repos/{owner}/{name}`
    Repository,
    /// `GET /repos/{owner}/{name}/git/ref/…`
    Reference,
    /// `GET /repos/{owner}/{name}/git/tags/{id}`
    TagObject,
    /// `GET /repos/{owner}/{name}/git/commits/{id}`
    Commit,
    /// `GET /repos/{owner}/{name}/tarball/{id}`
    Tarball,
    /// `GET /repos/{owner}/{name}/installation`
    Installation,
    /// `POST /app/installations/{number}/access_tokens`, counted for the repository `app/installations`
    AccessToken,
    /// Anything on the download listener.
    Download,
}

/// Disturbances. The default disturbs nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Switches {
    /// Waits this long before each answer.
    pub delay_milliseconds: u64,
    /// Requests of these kinds are counted, then wait until the switch no longer names their kind.
    pub hold: Vec<RequestKind>,
    /// Answers something else than the truth.
    pub answer: Option<Answer>,
    /// Where the API sends those who ask for an archive.
    pub redirect: Redirect,
    /// How an archive's bytes flow.
    pub body: Body,
    /// Which bytes the archive has.
    pub archive: Archive,
}

/// A fixed answer in place of the right one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// Headers that are added, or that replace the usual ones (also those of the rate limit).
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body; without one, GitHub's JSON with the status' usual phrase.
    #[serde(default)]
    pub body: Option<String>,
    /// Which kinds of request are answered so; none named means all.
    #[serde(default)]
    pub kinds: Vec<RequestKind>,
    /// After so many answers the truth returns; without it, never.
    #[serde(default)]
    pub times: Option<u32>,
}

/// Where an archive is said to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Redirect {
    /// One 302 to the download listener.
    #[default]
    Direct,
    /// This many 302 answers in all, the later ones by the download listener.
    Chain(u32),
    /// A 302 without `Location`.
    NoLocation,
    /// A 302 to this address.
    To(String),
}

/// How the body of an archive flows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Body {
    /// At most this many bytes each second, in ten pieces.
    pub bytes_per_second: Option<u32>,
    /// What happens after `percent` of the bytes.
    pub cut: Option<Cut>,
}

/// An archive that does not come whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cut {
    /// Share of the bytes that still come, 0 to 100.
    pub percent: u8,
    /// What comes then.
    pub then: AfterCut,
}

/// What follows the last byte of a cut archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AfterCut {
    /// The connection breaks.
    Close,
    /// The answer ends in good order, as if it were complete.
    End,
    /// Nothing more comes, and the connection stays open.
    Stall,
}

/// Archives that are not what was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Archive {
    /// Archives this revision instead; `main^{tree}` gives an archive without a commit comment.
    pub revision: Option<String>,
    /// Writes this commit id into the comment; it has the length of the real one.
    pub comment: Option<String>,
    /// The first component of all names, in place of `owner-name-abcdef0`.
    pub top_folder: Option<String>,
    /// Compression level, 0 to 9.
    pub level: Option<u8>,
    /// These bytes (base64 in JSON) and nothing else.
    #[serde(with = "base64_bytes", skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Vec<u8>>,
}

mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde's `with` asks for")]
    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => serializer.serialize_some(&STANDARD.encode(bytes)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| STANDARD.decode(text).map_err(serde::de::Error::custom))
            .transpose()
    }
}

/// The switches of all repositories. A repository's own ones replace the global ones as a whole.
#[derive(Debug, Default)]
pub(crate) struct SwitchBoard {
    pub(crate) global: Switches,
    pub(crate) repositories: BTreeMap<String, Switches>,
}

impl SwitchBoard {
    pub(crate) fn of(&self, repository: &str) -> &Switches {
        self.repositories.get(repository).unwrap_or(&self.global)
    }

    fn of_mut(&mut self, repository: &str) -> &mut Switches {
        self.repositories.get_mut(repository).unwrap_or(&mut self.global)
    }

    /// The fixed answer for this request, if one is due; counts it.
    pub(crate) fn take_answer(&mut self, repository: &str, kind: RequestKind) -> Option<Answer> {
        let slot = &mut self.of_mut(repository).answer;
        let answer = slot.as_mut()?;
        if !answer.kinds.is_empty() && !answer.kinds.contains(&kind) {
            return None;
        }
        let given = answer.clone();
        match &mut answer.times {
            Some(0 | 1) => *slot = None,
            Some(times) => *times -= 1,
            None => {}
        }
        Some(given)
    }
}
