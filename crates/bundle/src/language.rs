use std::fmt;

use serde::{Deserialize, Serialize};

/// The language runtime that a body needs (AIP-17, `needs.language`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// JavaScript and TypeScript.
    Node,
    /// Python.
    Python,
    /// Anything: shell scripts and bodies that name their own programs.
    Multi,
}

impl Language {
    /// The language as it is written in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Python => "python",
            Self::Multi => "multi",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}
