//! The hash that tells whether an image has to be built again.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;
use sha2::{Digest, Sha256};

/// A growing hash of named parts. Each part is preceded by its length: no two lists of parts hash alike because
/// they read alike when joined.
#[derive(Clone, Default)]
pub(super) struct Inputs(Sha256);

impl Inputs {
    pub(super) fn add(mut self, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_be_bytes());
        self.0.update(part);
        self
    }

    /// Adds the file, link or folder at `path` below `root`: names, contents and executable bits, and nothing that
    /// differs between two checkouts of one commit.
    pub(super) fn add_path(self, root: &Path, path: &str) -> Result<Self> {
        let full = root.join(path);
        let metadata = fs::symlink_metadata(&full)?;
        let inputs = self.add(path);
        if metadata.is_symlink() {
            return Ok(inputs
                .add("link")
                .add(fs::read_link(&full)?.as_os_str().as_encoded_bytes()));
        }
        if metadata.is_file() {
            let kind = if metadata.permissions().mode() & 0o100 == 0 {
                "file"
            } else {
                "program"
            };
            return Ok(inputs.add(kind).add(fs::read(&full)?));
        }
        let mut names = fs::read_dir(&full)?
            .map(|entry| {
                let name = entry?.file_name();
                name.into_string()
                    .ok()
                    .with_context(|| format!("a name in {} is not UTF-8", full.display()))
            })
            .collect::<Result<Vec<_>>>()?;
        names.sort_unstable();
        let inputs = inputs.add("folder");
        names.iter().try_fold(inputs, |inputs, name| {
            inputs.add_path(root, &format!("{path}/{name}"))
        })
    }

    /// The first 12 hexadecimal digits: the length in which container tools show their identifiers.
    pub(super) fn hash(self) -> String {
        let number = self
            .0
            .finalize()
            .iter()
            .take(6)
            .fold(0, |number: u64, byte| (number << 8) | u64::from(*byte));
        format!("{number:012x}")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder `src` with a file, a nested file and a link.
    fn checkout() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/nested")).unwrap();
        fs::write(folder.path().join("src/main.rs"), "fn main() {}").unwrap();
        fs::write(folder.path().join("src/nested/run.sh"), "exit 0").unwrap();
        symlink("main.rs", folder.path().join("src/link")).unwrap();
        folder
    }

    fn hash(folder: &tempfile::TempDir) -> String {
        Inputs::default().add_path(folder.path(), "src").unwrap().hash()
    }

    #[test]
    fn two_checkouts_of_the_same_files_hash_alike() {
        assert_eq!(hash(&checkout()), hash(&checkout()));
        assert_eq!(hash(&checkout()).len(), 12);
    }

    #[test]
    fn contents_names_links_and_the_executable_bit_matter() {
        let changes: [fn(&Path); 5] = [
            |src| fs::write(src.join("main.rs"), "fn main() { }").unwrap(),
            |src| fs::rename(src.join("main.rs"), src.join("lib.rs")).unwrap(),
            |src| fs::create_dir(src.join("empty")).unwrap(),
            |src| {
                fs::remove_file(src.join("link")).unwrap();
                symlink("nested", src.join("link")).unwrap();
            },
            |src| {
                fs::set_permissions(src.join("nested/run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
            },
        ];
        let original = hash(&checkout());
        for (index, change) in changes.into_iter().enumerate() {
            let folder = checkout();
            change(&folder.path().join("src"));
            assert_ne!(original, hash(&folder), "change {index}");
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(
            Inputs::default().add("ab").add("c").hash(),
            Inputs::default().add("a").add("bc").hash()
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Inputs::default()
            .add_path(Path::new("/"), "no-such-file")
            .err()
            .unwrap();
        assert!(format!("{error:#}").contains("/no-such-file"), "{error:#}");
    }
}
