//! Who this checkout's cluster is: its name, its network and its paths. Everything that two clusters on one machine could fight over is
//! derived here from the checkout's path, so that no other module has to think about neighbours.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::hexadecimal::hexadecimal;
use super::network::Network;

/// Where the clusters of all checkouts of this machine keep their state.
pub(super) const INSTANCES: &str = "/var/lib/codeworkspace-dev";

/// One checkout's cluster. Holds names and paths only; nothing of it needs to exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instance {
    id: String,
}

impl Instance {
    /// The cluster of the checkout at `path`, which should be canonical: another spelling of the same folder is another cluster.
    pub(super) fn of(path: &Path) -> Self {
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        Self {
            id: hexadecimal(&digest[..4]),
        }
    }

    /// Eight hexadecimal digits.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The file that pins the network namespace. `ip netns` would leave its folder mounted for ever.
    pub(super) fn network_namespace(&self) -> PathBuf {
        self.path("namespaces/network")
    }

    /// The machine's end of the cable into the network namespace. Interface names have at most 15 bytes.
    pub(super) fn link(&self) -> String {
        format!("cw{}", self.id)
    }

    /// The control group that holds every process of the cluster, relative to the root of each hierarchy.
    pub(super) fn control_group(&self) -> String {
        format!("codeworkspace-{}", self.id)
    }

    /// Everything that the cluster keeps, in one folder.
    pub(super) fn directory(&self) -> PathBuf {
        Path::new(INSTANCES).join(&self.id)
    }

    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.directory().join(relative)
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    pub(super) fn log(&self, component: &str) -> PathBuf {
        self.path("log").join(format!("{component}.log"))
    }

    /// The file that pins the mount namespace in which all programs of the cluster live.
    pub(super) fn mount_namespace(&self) -> PathBuf {
        self.path("namespaces/mount")
    }

    /// containerd's socket as it is seen from outside the cluster's mount namespace.
    pub(super) fn containerd_socket(&self) -> PathBuf {
        self.path("node/run/containerd/containerd.sock")
    }

    /// The first number to try for [`Network`]: spread by the id, so that a checkout tends to get the same addresses again.
    pub(super) fn preferred_network(&self) -> u8 {
        let number = u32::from_str_radix(&self.id, 16).unwrap_or_default();
        Network::FIRST + u8::try_from(number % u32::from(Network::COUNT)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_checkout_has_its_own_names_and_the_same_ones_each_time() {
        let first = Instance::of(Path::new("/home/a/codeworkspace"));
        let second = Instance::of(Path::new("/home/b/codeworkspace"));
        assert_eq!(first, Instance::of(Path::new("/home/a/codeworkspace")));
        assert_ne!(first.id(), second.id());
        assert_ne!(first.network_namespace(), second.network_namespace());
        assert_ne!(first.link(), second.link());
        assert_ne!(first.control_group(), second.control_group());
        assert_ne!(first.directory(), second.directory());
    }

    #[test]
    fn names_fit_the_kernels_limits() {
        let instance = Instance::of(Path::new("/x"));
        assert!(instance.link().len() <= 15, "interface name: {}", instance.link());
        let socket = instance.containerd_socket();
        assert!(
            socket.as_os_str().len() < 108,
            "socket path: {}",
            socket.display()
        );
    }
}
