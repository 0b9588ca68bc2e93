//! The product on a cluster, installed as its users do it: images, then both charts with helm. Beside it stands the server that plays
//! GitHub, which only development has.

mod github_server;
mod tools;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::{Value, json};

pub(crate) use tools::Tools;

use crate::cluster::Cluster;
use crate::images::{self, BuiltImage};

/// Namespace and release name of the operator.
pub(crate) const OPERATOR_NAMESPACE: &str = "codeworkspace-system";
const OPERATOR: &str = "codeworkspace";
const DEFINITIONS: &str = "codeworkspace-crds";
/// Namespace of the server that plays GitHub.
const DEVELOPMENT_NAMESPACE: &str = "codeworkspace-dev";
/// The kinds that the product brings.
const KINDS: [&str; 6] = [
    "codeworkspaces.codeworkspace.dev",
    "coderuns.codeworkspace.dev",
    "runnertemplates.codeworkspace.dev",
    "secretinventories.codeworkspace.dev",
    "codeinterpreters.codeworkspace.dev",
    "codesessions.codeworkspace.dev",
];
/// How long helm waits for the operator to be ready.
const READY_TIMEOUT: &str = "3m";

/// Which cluster to install on, and how its images get there.
#[derive(clap::Args)]
// Other options are called so too, and clap tells groups apart by their names.
#[group(id = "installation")]
pub(crate) struct Options {
    /// Use this cluster instead of the checkout's own.
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<OsString>,
    /// Do not load the images: the given cluster has them already (`cargo xtask images` prints names and archives).
    #[arg(long)]
    images_loaded: bool,
    #[command(flatten)]
    images: images::Options,
}

/// What the operator's settings are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Looking at it: the settings that users get.
    Demo,
    /// Tests: short times.
    Test,
}

impl Purpose {
    fn values(self) -> &'static [&'static str] {
        match self {
            Self::Demo => &["dev/deploy/values.yaml"],
            Self::Test => &["dev/deploy/values.yaml", "dev/deploy/values-e2e.yaml"],
        }
    }
}

/// The product, installed.
pub(crate) struct Installation {
    tools: Tools,
    /// Whether the cluster belongs to this checkout.
    own: bool,
    /// Whether it may stay: the cluster is the checkout's own, or an earlier command had installed it already.
    may_stay: bool,
}

impl Installation {
    /// Brings everything onto the cluster. What is there already and unchanged stays.
    pub(crate) fn install(options: &Options, purpose: Purpose) -> Result<Self> {
        let steps = Steps::default();
        let cluster = Cluster::choose(options.kubeconfig.clone())?;
        let own = matches!(cluster, Cluster::Own(_));
        steps.say("the cluster");
        let tools = Tools::new(cluster.ensure_up()?)?;
        let may_stay = own || is_ours(&tools)?;
        steps.say("images");
        let images = images::build(&[], options.images)?;
        if !options.images_loaded {
            let there = images_of_nodes(&tools)?;
            for image in images.iter().filter(|image| !there.contains(&image.reference)) {
                steps.say(&format!("loading {}", image.reference));
                cluster.load_image(&image.archive)?;
            }
        }
        steps.say("the server that plays GitHub");
        let repositories = crate::checkout().join("dev/deploy/repositories");
        tools.apply(&github_server::objects(
            reference(&images, "github-server")?,
            &repositories,
        )?)?;
        tools.apply(&[namespace(OPERATOR_NAMESPACE)])?;
        steps.say("the charts");
        upgrade(&tools, DEFINITIONS, &[])?;
        upgrade(&tools, OPERATOR, &values(purpose, &images)?).inspect_err(|_| {
            eprintln!("{}", state_of_the_operator(&tools));
        })?;
        tools.kubectl(&[
            "rollout",
            "status",
            "deployment/github-server",
            "--namespace",
            DEVELOPMENT_NAMESPACE,
            "--timeout",
            READY_TIMEOUT,
        ])?;
        steps.say("installed");
        Ok(Self { tools, own, may_stay })
    }

    /// The installation that an earlier command left, to remove it.
    pub(crate) fn find(options: &Options) -> Result<Self> {
        let cluster = Cluster::choose(options.kubeconfig.clone())?;
        let tools = Tools::new(cluster.kubeconfig_path())?;
        let own = matches!(cluster, Cluster::Own(_));
        Ok(Self {
            own,
            may_stay: own || is_ours(&tools)?,
            tools,
        })
    }

    /// kubectl and helm for this cluster.
    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Whether the cluster belongs to this checkout.
    pub(crate) fn is_on_own_cluster(&self) -> bool {
        self.own
    }

    /// Leaves somebody else's cluster as it was found. The checkout's own keeps the installation, which saves time.
    pub(crate) fn leave(&self) -> Result<()> {
        if self.may_stay { Ok(()) } else { self.remove() }
    }

    /// Removes everything that was installed, every workspace of the cluster with it.
    pub(crate) fn remove(&self) -> Result<()> {
        for kind in KINDS {
            self.tools
                .kubectl(&["delete", "customresourcedefinition", kind, "--ignore-not-found"])?;
        }
        for release in [OPERATOR, DEFINITIONS] {
            self.tools.helm(&[
                "uninstall",
                release,
                "--namespace",
                OPERATOR_NAMESPACE,
                "--ignore-not-found",
                "--wait",
            ])?;
        }
        for name in [OPERATOR_NAMESPACE, DEVELOPMENT_NAMESPACE] {
            self.tools
                .kubectl(&["delete", "namespace", name, "--ignore-not-found"])?;
        }
        Ok(())
    }
}

/// Whether an earlier command installed the product here, which the namespace that only development has tells. Somebody else's
/// installation is not to be taken over or removed: that is an error.
fn is_ours(tools: &Tools) -> Result<bool> {
    let there = |kind: &str, name: &str| -> Result<bool> {
        let found = tools.kubectl(&["get", kind, name, "--ignore-not-found", "--output=name"])?;
        Ok(!found.trim().is_empty())
    };
    let ours = there("namespace", DEVELOPMENT_NAMESPACE)?;
    ensure!(
        ours || !there("customresourcedefinition", KINDS[0])?,
        "the product is installed on the cluster of KUBECONFIG={} already, and not by this command: use another cluster",
        tools.kubeconfig().display()
    );
    Ok(ours)
}

/// Names of the images that the nodes have. The name of one of ours changes with its content.
fn images_of_nodes(tools: &Tools) -> Result<BTreeSet<String>> {
    let names = tools.kubectl(&[
        "get",
        "nodes",
        "--output=jsonpath={range .items[*].status.images[*].names[*]}{@}{\"\\n\"}{end}",
    ])?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// Installs a chart, or brings it up to date, and waits until it is ready.
fn upgrade(tools: &Tools, chart: &str, values: &[String]) -> Result<()> {
    // helm refuses to go on where it was interrupted. Nothing of value is in the release itself: definitions stay.
    let releases = tools.helm(&["list", "--namespace", OPERATOR_NAMESPACE, "--pending", "--short"])?;
    if releases.lines().any(|release| release == chart) {
        tools.helm(&["uninstall", chart, "--namespace", OPERATOR_NAMESPACE, "--wait"])?;
    }
    let path = crate::checkout().join("charts").join(chart);
    let path = path.to_string_lossy();
    let mut arguments = vec![
        "upgrade",
        chart,
        &path,
        "--install",
        "--namespace",
        OPERATOR_NAMESPACE,
        "--wait",
        "--timeout",
        READY_TIMEOUT,
        "--reset-values",
    ];
    for file in values {
        arguments.extend(["--values", file]);
    }
    tools.helm(&arguments)?;
    Ok(())
}

/// Files of values, the later ones over the earlier ones.
fn values(purpose: Purpose, images: &[BuiltImage]) -> Result<Vec<String>> {
    let checkout = crate::checkout();
    let generated = checkout.join("target/xtask/images.json");
    if let Some(folder) = generated.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&generated, image_values(images)?.to_string())?;
    Ok(purpose
        .values()
        .iter()
        .map(|file| checkout.join(file))
        .chain([generated])
        .map(|path| path.to_string_lossy().into_owned())
        .collect())
}

/// The values that name the images of this checkout.
fn image_values(images: &[BuiltImage]) -> Result<Value> {
    Ok(json!({
        "image": reference(images, "operator")?,
        "runnerTemplates": {
            "python": {"image": reference(images, "python")?},
            "node": {"image": reference(images, "node")?},
            "interpreter": {"image": reference(images, "interpreter")?},
        },
    }))
}

fn reference<'a>(images: &'a [BuiltImage], name: &str) -> Result<&'a str> {
    images
        .iter()
        .find(|image| image.name == name)
        .map(|image| image.reference.as_str())
        .with_context(|| format!("the image `{name}` was not built"))
}

/// A namespace whose pods must pass the `restricted` level.
pub(crate) fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    })
}

/// What kubectl knows about an operator that does not become ready.
fn state_of_the_operator(tools: &Tools) -> String {
    let namespace = ["--namespace", OPERATOR_NAMESPACE];
    let questions: [&[&str]; 3] = [
        &["get", "pods", "--output=wide"],
        &["get", "events", "--sort-by=.lastTimestamp"],
        &[
            "logs",
            "--selector=app.kubernetes.io/name=codeworkspace",
            "--prefix",
            "--tail=30",
        ],
    ];
    questions
        .into_iter()
        .map(|question| {
            let arguments = [question, &namespace[..]].concat();
            // This is only told beside the error that led here.
            tools
                .kubectl(&arguments)
                .unwrap_or_else(|error| format!("{error:#}\n"))
        })
        .collect()
}

/// Says what is being done, and after how much time.
struct Steps(Instant);

impl Default for Steps {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Steps {
    fn say(&self, step: &str) {
        eprintln!("[{:>4} s] {step}", self.0.elapsed().as_secs());
    }
}

/// The path of a file or folder of the checkout, which must be there.
pub(crate) fn in_checkout(relative: &str) -> Result<String> {
    let path = crate::checkout().join(relative);
    ensure!(
        Path::new(&path).exists(),
        "{} is missing from the checkout",
        path.display()
    );
    Ok(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &'static str) -> BuiltImage {
        BuiltImage {
            name,
            reference: format!("codeworkspace.dev/{name}:dev-1"),
            archive: format!("/tmp/{name}.tar").into(),
        }
    }

    #[test]
    fn the_charts_get_the_images_of_this_checkout() {
        let images = ["python", "node", "interpreter", "operator", "github-server"].map(image);
        assert_eq!(
            image_values(&images).unwrap(),
            json!({
                "image": "codeworkspace.dev/operator:dev-1",
                "runnerTemplates": {
                    "python": {"image": "codeworkspace.dev/python:dev-1"},
                    "node": {"image": "codeworkspace.dev/node:dev-1"},
                    "interpreter": {"image": "codeworkspace.dev/interpreter:dev-1"},
                },
            })
        );
        let error = image_values(&images[..3]).unwrap_err().to_string();
        assert_eq!(error, "the image `operator` was not built");
    }

    #[test]
    fn tests_shorten_what_users_get() {
        assert!(Purpose::Test.values().starts_with(Purpose::Demo.values()));
        for file in Purpose::Test.values() {
            in_checkout(file).unwrap();
        }
    }
}
