//! Which programs make up the cluster, and how each is configured.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fs_err as fs;
use sha2::{Digest, Sha256};

use super::certificates::Authority;
use super::hexadecimal::hexadecimal;
use super::instance::Instance;
use super::network::Network;
use super::{packages, programs, template};

/// The node's name.
pub(super) const NODE: &str = "node";

/// The name of the file of [`Components::dns_objects_file`].
const DNS_OBJECTS: &str = "coredns.yaml";

/// The users of the API server: name, subject (which is what gives the rights, by Kubernetes' built-in roles).
const USERS: [(&str, &str); 5] = [
    ("admin", "/O=system:masters/CN=admin"),
    ("kube-controller-manager", "/CN=system:kube-controller-manager"),
    ("kube-scheduler", "/CN=system:kube-scheduler"),
    ("kube-proxy", "/CN=system:kube-proxy"),
    // No built-in role fits a NetworkPolicy controller.
    ("kube-router", "/O=system:masters/CN=kube-router"),
];

/// A program with its arguments.
pub(super) type CommandLine = Vec<OsString>;

fn command_line(program: &Path, arguments: &[String]) -> CommandLine {
    std::iter::once(program.as_os_str().to_owned())
        .chain(arguments.iter().map(OsString::from))
        .collect()
}

/// What etcd and the API server are started with; the same for a whole cluster and for these two alone.
pub(super) struct ControlPlane<'a> {
    pub(super) authority: &'a Authority,
    /// Where etcd keeps its data.
    pub(super) data: &'a Path,
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
    pub(super) etcd_ports: [u16; 2],
    /// The range of Services' addresses.
    pub(super) services: String,
}

impl ControlPlane<'_> {
    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_ports[0])
    }

    pub(super) fn server(&self) -> String {
        format!("https://{}:{}", self.address, self.port)
    }

    /// etcd without its waits for the disk: the data is worth no more than the cluster.
    pub(super) fn etcd(&self) -> Result<CommandLine> {
        let client = self.etcd_url();
        let peer = format!("http://127.0.0.1:{}", self.etcd_ports[1]);
        let arguments = [
            format!("--data-dir={}", self.data.display()),
            "--unsafe-no-fsync".to_owned(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--log-level=warn".to_owned(),
        ];
        Ok(command_line(&programs::program("etcd")?, &arguments))
    }

    /// The API server with what its two forms have in common, and `more`.
    pub(super) fn api_server(&self, more: &[String]) -> Result<CommandLine> {
        let file = |name: &str| self.authority.path(name).display().to_string();
        let mut arguments = vec![
            format!("--etcd-servers={}", self.etcd_url()),
            format!("--advertise-address={}", self.address),
            format!("--bind-address={}", self.address),
            format!("--secure-port={}", self.port),
            format!("--tls-cert-file={}", file("kube-apiserver.crt")),
            format!("--tls-private-key-file={}", file("kube-apiserver.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--service-account-key-file={}", file("service-accounts.pub")),
            format!(
                "--service-account-signing-key-file={}",
                file("service-accounts.key")
            ),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-cluster-ip-range={}", self.services),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
        ];
        arguments.extend_from_slice(more);
        Ok(command_line(&programs::program("kube-apiserver")?, &arguments))
    }
}

/// The components of one cluster.
pub(super) struct Components<'a> {
    instance: &'a Instance,
    network: Network,
    authority: Authority,
}

impl<'a> Components<'a> {
    /// All names, in the order in which they start.
    pub(super) const NAMES: [&'static str; 8] = [
        "etcd",
        "kube-apiserver",
        "containerd",
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kube-proxy",
        "kube-router",
    ];

    pub(super) fn new(instance: &'a Instance, network: Network) -> Self {
        Self {
            instance,
            network,
            authority: authority(instance),
        }
    }

    /// Writes certificates, kubeconfigs and configuration files.
    pub(super) fn configure(&self) -> Result<()> {
        let node = self.network.node();
        self.authority.create()?;
        let names = [
            format!("IP:{node}"),
            format!("IP:{}", self.network.api_service()),
            "DNS:localhost".to_owned(),
            "DNS:kubernetes".to_owned(),
            "DNS:kubernetes.default".to_owned(),
            "DNS:kubernetes.default.svc".to_owned(),
            "DNS:kubernetes.default.svc.cluster.local".to_owned(),
        ];
        self.authority
            .issue("kube-apiserver", "/CN=kube-apiserver", &names)?;
        self.authority
            .issue("kubelet-client", "/O=system:masters/CN=kube-apiserver", &[])?;
        let names = [format!("DNS:{NODE}"), format!("IP:{node}")];
        self.authority
            .issue("node", &format!("/O=system:nodes/CN=system:node:{NODE}"), &names)?;
        for (name, subject) in USERS {
            self.authority.issue(name, subject, &[])?;
        }
        let server = self.control_plane().server();
        for name in USERS.map(|(name, _)| name).into_iter().chain(["node"]) {
            self.authority
                .write_kubeconfig(name, &server, &self.kubeconfig(name))?;
        }

        fs::create_dir_all(self.configuration("network"))?;
        for (name, text) in self.configuration_files()? {
            fs::write(self.configuration(name), text)?;
        }
        Ok(())
    }

    fn configuration_files(&self) -> Result<[(&'static str, String); 4]> {
        let directory = self.instance.directory().display().to_string();
        let containerd = template::render(
            include_str!("../../../cluster/node/containerd.toml"),
            &[
                ("directory", &directory),
                ("plugins", packages::network_plugins()?),
            ],
        )?;
        let pods = template::render(
            include_str!("../../../cluster/node/network.conflist"),
            &[("node_pods", &self.network.node_pods())],
        )?;
        Ok([
            ("containerd.toml", containerd),
            ("network/10-pods.conflist", pods),
            ("kubelet.yaml", self.kubelet_configuration()?),
            (DNS_OBJECTS, self.dns_objects()?),
        ])
    }

    /// Identifies what the cluster is started from: the programs, by the hash in their paths, their arguments and their configuration.
    pub(super) fn description(&self) -> Result<String> {
        let mut hash = Sha256::new();
        for name in Self::NAMES {
            for argument in self.command_line(name)? {
                hash.update(argument.as_encoded_bytes());
                hash.update([0]);
            }
        }
        hash.update(programs::program("coredns")?.as_os_str().as_encoded_bytes());
        for (_, text) in self.configuration_files()? {
            hash.update(Sha256::digest(text));
        }
        Ok(hexadecimal(&hash.finalize()))
    }

    /// The file with the objects that make the cluster's resolver run.
    pub(super) fn dns_objects_file(&self) -> PathBuf {
        self.configuration(DNS_OBJECTS)
    }

    fn kubelet_configuration(&self) -> Result<String> {
        template::render(
            include_str!("../../../cluster/node/kubelet.yaml"),
            &[
                ("pki", &self.instance.path("pki").display().to_string()),
                ("control_group", &self.instance.control_group()),
                ("dns", &self.network.dns_service().to_string()),
            ],
        )
    }

    fn dns_objects(&self) -> Result<String> {
        template::render(
            include_str!("../../../cluster/node/coredns.yaml"),
            &[("dns", &self.network.dns_service().to_string())],
        )
    }

    fn configuration(&self, name: &str) -> PathBuf {
        self.instance.path("configuration").join(name)
    }

    /// The administrator's kubeconfig is the one for people, and has its own place.
    fn kubeconfig(&self, user: &str) -> PathBuf {
        if user == "admin" {
            self.instance.kubeconfig()
        } else {
            self.configuration(&format!("{user}.kubeconfig"))
        }
    }

    fn control_plane(&self) -> ControlPlane<'_> {
        ControlPlane {
            authority: &self.authority,
            data: Path::new("/var/lib/etcd"),
            address: self.network.node(),
            port: 6443,
            etcd_ports: [2379, 2380],
            services: self.network.services(),
        }
    }

    /// How one of [`Self::NAMES`] is started.
    pub(super) fn command_line(&self, name: &str) -> Result<CommandLine> {
        let kubeconfig = |user: &str| format!("--kubeconfig={}", self.kubeconfig(user).display());
        let pki = |file: &str| self.authority.path(file).display().to_string();
        let pods = format!("--cluster-cidr={}", self.network.pods());
        let services = format!("--service-cluster-ip-range={}", self.network.services());
        let node = format!("--hostname-override={NODE}");
        let alone = "--leader-elect=false".to_owned();
        let inside_only = "--bind-address=127.0.0.1".to_owned();
        let arguments = match name {
            "etcd" => return self.control_plane().etcd(),
            "kube-apiserver" => {
                return self.control_plane().api_server(&[
                    "--enable-admission-plugins=NodeRestriction".to_owned(),
                    format!("--kubelet-client-certificate={}", pki("kubelet-client.crt")),
                    format!("--kubelet-client-key={}", pki("kubelet-client.key")),
                    "--kubelet-preferred-address-types=InternalIP".to_owned(),
                ]);
            }
            "containerd" => {
                let configuration = format!("--config={}", self.configuration("containerd.toml").display());
                return Ok(command_line(Path::new("containerd"), &[configuration]));
            }
            "kube-controller-manager" => vec![
                kubeconfig(name),
                format!(
                    "--service-account-private-key-file={}",
                    pki("service-accounts.key")
                ),
                format!("--root-ca-file={}", pki("ca.crt")),
                format!("--cluster-signing-cert-file={}", pki("ca.crt")),
                format!("--cluster-signing-key-file={}", pki("ca.key")),
                "--use-service-account-credentials=true".to_owned(),
                "--allocate-node-cidrs=true".to_owned(),
                pods,
                "--flex-volume-plugin-dir=/var/lib/kubelet/volume-plugins".to_owned(),
                alone,
                inside_only,
            ],
            "kube-scheduler" => vec![kubeconfig(name), alone, inside_only],
            "kubelet" => vec![
                format!("--config={}", self.configuration("kubelet.yaml").display()),
                kubeconfig("node"),
                node,
                format!("--node-ip={}", self.network.node()),
            ],
            "kube-proxy" => vec![
                kubeconfig(name),
                "--proxy-mode=iptables".to_owned(),
                pods,
                node,
                // These settings of the kernel belong to the machine.
                "--conntrack-max-per-core=0".to_owned(),
                "--conntrack-tcp-timeout-established=0".to_owned(),
                "--conntrack-tcp-timeout-close-wait=0".to_owned(),
            ],
            "kube-router" => vec![
                kubeconfig(name),
                "--run-firewall=true".to_owned(),
                "--run-router=false".to_owned(),
                "--run-service-proxy=false".to_owned(),
                node,
                services,
            ],
            other => anyhow::bail!("the cluster has no component `{other}`"),
        };
        Ok(command_line(&programs::program(name)?, &arguments))
    }
}

/// The certificates of a cluster.
pub(super) fn authority(instance: &Instance) -> Authority {
    Authority::at(instance.path("pki"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubelet_is_told_the_clusters_own_control_group_and_resolver() {
        let instance = Instance::of(Path::new("/home/a/codeworkspace"));
        let components = Components::new(&instance, "123".parse().unwrap());
        let configuration: serde_json::Value =
            serde_saphyr::from_str(&components.kubelet_configuration().unwrap()).unwrap();
        assert_eq!(
            configuration["cgroupRoot"],
            format!("/{}", instance.control_group())
        );
        assert_eq!(configuration["clusterDNS"], serde_json::json!(["10.123.64.10"]));
        assert_eq!(
            configuration["authentication"]["x509"]["clientCAFile"],
            format!("{}/pki/ca.crt", instance.directory().display())
        );
    }

    #[test]
    fn the_resolvers_service_has_the_address_that_kubelet_tells_pods() {
        let instance = Instance::of(Path::new("/home/a/codeworkspace"));
        let objects = Components::new(&instance, "123".parse().unwrap())
            .dns_objects()
            .unwrap();
        assert!(objects.contains("clusterIP: \"10.123.64.10\""), "{objects}");
    }
}
