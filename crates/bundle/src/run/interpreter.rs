use std::collections::BTreeSet;

use crate::{language::Language, path::BundlePath};

/// What runs a file, by its extension (AIP-26, "`run` — three forms").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interpreter {
    Tsx,
    Node,
    Python,
    Bash,
}

/// Every extension that says how to run a file.
const TABLE: [(&str, Interpreter); 8] = [
    ("ts", Interpreter::Tsx),
    ("tsx", Interpreter::Tsx),
    ("mts", Interpreter::Tsx),
    ("js", Interpreter::Node),
    ("mjs", Interpreter::Node),
    ("cjs", Interpreter::Node),
    ("py", Interpreter::Python),
    ("sh", Interpreter::Bash),
];

/// The same as text for messages.
pub(super) const EXTENSIONS: &str = "`.ts`, `.tsx`, `.mts`, `.js`, `.mjs`, `.cjs`, `.py` and `.sh`";

impl Interpreter {
    pub(super) fn of(path: &BundlePath) -> Option<Self> {
        let extension = path.extension()?;
        TABLE
            .iter()
            .find(|(known, _)| *known == extension)
            .map(|(_, interpreter)| *interpreter)
    }

    pub(super) fn language(self) -> Language {
        match self {
            Self::Tsx | Self::Node => Language::Node,
            Self::Python => Language::Python,
            Self::Bash => Language::Multi,
        }
    }

    /// The program, and the arguments before the file's path.
    pub(super) fn command(self, tools: &BTreeSet<String>) -> &'static [&'static str] {
        match self {
            Self::Tsx if tools.contains("tsx") => &["tsx"],
            Self::Tsx => &["npx", "--yes", "tsx"],
            Self::Node => &["node"],
            Self::Python => &["python"],
            Self::Bash => &["bash"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_lists_exactly_the_table() {
        let table: Vec<_> = TABLE
            .iter()
            .map(|(extension, _)| format!("`.{extension}`"))
            .collect();
        let (last, rest) = table.split_last().unwrap();
        assert_eq!(EXTENSIONS, format!("{} and {last}", rest.join(", ")));
    }
}
