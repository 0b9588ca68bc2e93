//! Small container images made of a few files, written in the format of `docker save`. That format carries the image's full name, which
//! containerd takes over as it stands.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::hexadecimal::hexadecimal;

/// An image with one layer.
pub(super) struct Image {
    name: String,
    layer: tar::Builder<Vec<u8>>,
    configuration: serde_json::Value,
}

impl Image {
    /// An empty image. `configuration` is the `config` block of the OCI image specification.
    pub(super) fn new(name: &str, configuration: serde_json::Value) -> Self {
        Self {
            name: name.to_owned(),
            layer: tar::Builder::new(Vec::new()),
            configuration,
        }
    }

    /// Adds a program.
    pub(super) fn program(&mut self, path: &str, contents: &[u8]) -> Result<()> {
        let mut header = header(tar::EntryType::Regular, 0o755);
        header.set_size(u64::try_from(contents.len())?);
        Ok(self.layer.append_data(&mut header, path, contents)?)
    }

    /// Adds a folder that everyone may write to.
    pub(super) fn open_folder(&mut self, path: &str) -> Result<()> {
        Ok(self.layer.append_data(
            &mut header(tar::EntryType::Directory, 0o1777),
            path,
            std::io::empty(),
        )?)
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) -> Result<()> {
        Ok(self
            .layer
            .append_link(&mut header(tar::EntryType::Symlink, 0o777), path, target)?)
    }

    /// Writes the image as an archive for [`super::load_image`].
    pub(super) fn write(self, destination: impl Write) -> Result<()> {
        let layer = self.layer.into_inner()?;
        let layer_digest = hexadecimal(&Sha256::digest(&layer));
        let configuration = serde_json::to_vec(&json!({
            "architecture": architecture(std::env::consts::ARCH),
            "os": "linux",
            "config": self.configuration,
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_digest}")] },
        }))?;
        let configuration_path = format!("{}.json", hexadecimal(&Sha256::digest(&configuration)));
        let layer_path = format!("{layer_digest}/layer.tar");
        let manifest = serde_json::to_vec(&json!([{
            "Config": configuration_path,
            "RepoTags": [self.name],
            "Layers": [layer_path],
        }]))?;
        let mut archive = tar::Builder::new(destination);
        for (path, contents) in [
            ("manifest.json", &manifest),
            (configuration_path.as_str(), &configuration),
            (layer_path.as_str(), &layer),
        ] {
            let mut header = header(tar::EntryType::Regular, 0o644);
            header.set_size(u64::try_from(contents.len())?);
            archive.append_data(&mut header, path, contents.as_slice())?;
        }
        archive.into_inner()?.flush()?;
        Ok(())
    }
}

fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

/// The name that images use for a processor.
fn architecture(rust_name: &str) -> &str {
    match rust_name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_archive_names_the_image_and_its_parts() {
        let mut image = Image::new("localhost/x:dev", json!({ "Cmd": ["/a"] }));
        image.program("a", b"contents").unwrap();
        image.link("b", "a").unwrap();
        image.open_folder("tmp/").unwrap();
        let mut archive = Vec::new();
        image.write(&mut archive).unwrap();

        let mut files: Vec<(String, Vec<u8>)> = tar::Archive::new(archive.as_slice())
            .entries()
            .unwrap()
            .map(|entry| {
                let mut entry = entry.unwrap();
                let mut contents = Vec::new();
                entry.read_to_end(&mut contents).unwrap();
                (entry.path().unwrap().display().to_string(), contents)
            })
            .collect();
        let (layer_path, layer) = files.pop().unwrap();
        let (configuration_path, configuration) = files.pop().unwrap();
        let (manifest_path, manifest) = files.pop().unwrap();
        assert!(files.is_empty());
        assert_eq!(manifest_path, "manifest.json");
        assert_eq!(
            serde_json::from_slice::<serde_json::Value>(&manifest).unwrap(),
            json!([{ "Config": configuration_path, "RepoTags": ["localhost/x:dev"], "Layers": [layer_path] }])
        );
        let configuration: serde_json::Value = serde_json::from_slice(&configuration).unwrap();
        assert_eq!(
            configuration["rootfs"]["diff_ids"][0],
            format!("sha256:{}", hexadecimal(&Sha256::digest(&layer)))
        );
        let paths: Vec<String> = tar::Archive::new(layer.as_slice())
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(paths, ["a", "b", "tmp/"]);
    }
}
