//! The pure heart of the operator: from a manifest's blocks and the files of its sources to one deterministic bundle.
//!
//! Nothing here reads a file, a clock, a cluster or a network; what sources hold comes in as a [`FileTree`], what is to
//! be delivered goes out as bytes. The rules come from AIP-26 (`code`, `run`, `network`, and what a `ref` leads to), AIP-17
//! (`runner`), AIP-19 (`secrets`) and AIP-36 (`sandbox`).
//!
//! ```
//! use std::collections::BTreeSet;
//!
//! use codeworkspace_bundle::{Bundle, BundleReader, Caps, Layer, code::Source, define_code, define_run, overlay};
//! use serde_json::json;
//!
//! let code = define_code(&json!({ "sources": [
//!     { "inline": { "path": "tool.py", "content": "print(1)" } },
//!     { "github": { "repo": "octo/tools", "ref": "--upload-pack=x" } },
//! ] }))
//! .expect("there is a list of sources");
//!
//! // Each source stands for itself: one is wrong, the other can be used.
//! let errors: Vec<_> = code.all_errors().map(|error| error.field.as_str()).collect();
//! assert_eq!(errors, ["code.sources[1].github.ref"]);
//! let Ok(Source::Inline(inline)) = &code.sources[0].source else { unreachable!("it is inline") };
//!
//! // The trees of all sources are laid over each other and packed.
//! let tree = overlay(&[Layer { name: &code.sources[0].field, tree: &inline.tree() }])?;
//! let bundle = Bundle::build(&tree, &Caps::default())?;
//! assert_eq!(BundleReader::new(&bundle.compressed[..])?.finish()?, bundle.digest);
//!
//! let run = define_run(&json!("tool.py")).expect("it is a file");
//! assert_eq!(run.resolve(&tree, "/workspace", &BTreeSet::new())?.argv, ["python", "/workspace/tool.py"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bundle;
mod caps;
mod digest;
mod field;
#[cfg(test)]
mod fixtures;
mod follow;
mod form;
mod glob;
mod gzip;
mod inherit;
mod language;
mod link;
mod near;
mod network;
mod object;
mod overlay;
mod path;
mod quote;
mod reader;
mod select;
mod taken;
mod tar;
mod tree;
mod twins;
mod warnings;
mod writer;

pub mod code;
pub mod expand;
pub mod manifest;
pub mod run;
pub mod runner;
pub mod runtime;
pub mod sandbox;
pub mod secrets;

pub use bundle::{BuildError, Bundle};
pub use caps::{BundleSizeError, Caps};
pub use code::{Code, GithubSource, SourceEntry, SourceKind, define_code};
pub use digest::{Digest, DigestError};
pub use expand::{Catalog, Expanded, Expansion, Lookup, NodeKey, expand};
pub use field::FieldError;
pub use follow::part_of_root;
pub use glob::{Glob, GlobError, GlobRule, MAX_GLOB_BYTES};
pub use inherit::Inherited;
pub use language::Language;
pub use link::{LinkError, LinkRule, link_destination};
pub use manifest::{Blocks, Manifest, ManifestError, read_manifest};
pub use near::nearest_paths;
pub use network::{Network, define_network};
pub use overlay::{Clash, Layer, OverlayError, overlay};
pub use path::{BundlePath, MAX_PATH_BYTES, MAX_SEGMENT_BYTES, PathError, PathRule};
pub use quote::shortened;
pub use reader::{BundleReader, ReadError};
pub use run::{ResolvedRun, Run, RunError, define_run, long_command};
pub use runner::{RunnerDefinition, RunnerHandle, define_runner};
pub use runtime::{Runtime, define_runtime};
pub use sandbox::{Sandbox, SandboxDefinition, define_sandbox};
pub use secrets::{SecretSource, Secrets, define_secrets};
pub use select::{SelectError, Selected, select};
pub use taken::{Entries, JudgeError, Judged, LinkPolicy, Origin, Taken, link_above, nearest_entries};
pub use tar::HeaderError;
pub use tree::{Entry, FileTree, Found, PlaceError, TreeError};
pub use twins::{twins, twins_between};
pub use warnings::source_warnings;
pub use writer::{BundleWriter, WriteError};
