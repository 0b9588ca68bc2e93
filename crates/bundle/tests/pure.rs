//! Reading a manifest touches no file, network, process or clock (AIP-36, "No I/O at parse time"): nothing in this crate could.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Modules of the standard library that reach the world outside. The walls between crates keep everything else away.
const OUTSIDE: [&str; 6] = ["fs", "net", "process", "env", "time", "thread"];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn nothing_here_can_reach_a_file_a_network_or_a_clock() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(sources.iter().any(|path| path.ends_with("sandbox.rs")));
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        // `use std::{…}` lists modules, also over several lines.
        let without_space: String = text.split_whitespace().collect();
        for module in OUTSIDE {
            let is_used = [
                format!("std::{module}::"),
                format!("std::{module};"),
                format!("std::{{{module}"),
                format!(",{module}::"),
            ]
            .iter()
            .any(|usage| without_space.contains(usage));
            assert!(!is_used, "{} uses std::{module}", path.display());
        }
    }
}
