//! Builds the project's images from their Dockerfiles with buildah, without an image registry or a container engine.

mod bases;
mod dockerfile;
mod host;
mod inputs;
mod progress;
mod shelf;
mod store;
mod workshop;

use std::path::PathBuf;

use anyhow::{Context, Result};
use fs_err as fs;

use bases::Bases;
use dockerfile::Dockerfile;
use inputs::Inputs;
use store::Store;
use workshop::{Build, Workshop};

/// Which images to build, and how.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Names of images: operator, python, node, interpreter, github-server. All when none is given.
    names: Vec<String>,
    #[command(flatten)]
    options: Options,
}

/// How images are built. The default is what the development cluster gets.
#[derive(clap::Args, Clone, Copy, Default)]
#[group(id = "image-options")]
pub(crate) struct Options {
    /// Compile as for a release. Otherwise the images compile faster and run slower.
    #[arg(long)]
    release: bool,
    /// Make everything anew, the base images too. This is what brings in Debian's security updates.
    #[arg(long)]
    fresh: bool,
}

/// An image that was built, as an archive that a container runtime can load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuiltImage {
    /// The name to ask for it by, such as `operator`.
    pub(crate) name: &'static str,
    /// The full name in the archive, such as `codeworkspace.dev/operator:dev-0123456789ab`. It differs from that of every
    /// image with other content, so that a deployment that names it is rolled out after each change.
    pub(crate) reference: String,
    /// The archive, in the format of `docker save`.
    pub(crate) archive: PathBuf,
}

/// An image of the project.
#[derive(Debug, PartialEq, Eq)]
struct Recipe {
    name: &'static str,
    /// Relative to the checkout, which is the build context.
    dockerfile: &'static str,
}

const RECIPES: [Recipe; 5] = [
    Recipe {
        name: "python",
        dockerfile: "images/python/Dockerfile",
    },
    Recipe {
        name: "node",
        dockerfile: "images/node/Dockerfile",
    },
    Recipe {
        name: "interpreter",
        dockerfile: "images/interpreter/Dockerfile",
    },
    Recipe {
        name: "operator",
        dockerfile: "Dockerfile",
    },
    Recipe {
        name: "github-server",
        dockerfile: "dev/github-server/Dockerfile",
    },
];

/// The Cargo profile of images for development.
const QUICK: &str = "quick";
const RELEASE: &str = "release";

/// Builds the images and prints their names and archives.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let names: Vec<_> = arguments.names.iter().map(String::as_str).collect();
    for image in build(&names, arguments.options)? {
        println!("{}\t{}\t{}", image.name, image.reference, image.archive.display());
    }
    Ok(())
}

/// Builds the named images, or all when none is named. What has not changed since it was last built on this machine is not
/// built again.
pub(crate) fn build(names: &[&str], options: Options) -> Result<Vec<BuiltImage>> {
    let recipes = choose(names)?;
    let profile = if options.release { RELEASE } else { QUICK };
    let store = Store::of_this_user()?;
    if !options.fresh
        && let Some(images) = find_all(&recipes, &store, profile)?
    {
        return Ok(images);
    }
    host::prepare()?;
    let workshop = Workshop::open(store)?;
    if options.fresh {
        workshop.store.clear()?;
    }
    let bases = Bases::of_this_machine()?;
    let images = recipes
        .into_iter()
        .map(|recipe| recipe.build(&bases, profile, &workshop))
        .collect::<Result<_>>()?;
    workshop.store.prune()?;
    Ok(images)
}

/// The images, if none has to be built.
fn find_all(recipes: &[&Recipe], store: &Store, profile: &str) -> Result<Option<Vec<BuiltImage>>> {
    let bases = Bases::of_this_machine()?;
    let mut images = Vec::new();
    for recipe in recipes {
        match shelf::find(store, recipe.name, &recipe.read(&bases, profile)?.1)? {
            Some(image) => images.push(image),
            None => return Ok(None),
        }
    }
    Ok(Some(images))
}

/// The recipes of these names, in the order in which their results come out.
fn choose(names: &[&str]) -> Result<Vec<&'static Recipe>> {
    if names.is_empty() {
        return Ok(RECIPES.iter().collect());
    }
    names
        .iter()
        .map(|name| {
            RECIPES
                .iter()
                .find(|recipe| recipe.name == *name)
                .with_context(|| {
                    format!(
                        "there is no image `{name}`: there are {}",
                        RECIPES.map(|recipe| recipe.name).join(", ")
                    )
                })
        })
        .collect()
}

impl Recipe {
    /// Reads the Dockerfile; gives it with the hash of everything that the image is made of.
    fn read(&self, bases: &Bases, profile: &str) -> Result<(Dockerfile, String)> {
        let checkout = crate::checkout();
        let text = fs::read_to_string(checkout.join(self.dockerfile))?;
        let dockerfile = Dockerfile::parse(&text).with_context(|| self.dockerfile.to_owned())?;
        let mut inputs = Inputs::default().add(&text).add_path(checkout, ".dockerignore")?;
        for source in &dockerfile.sources {
            inputs = inputs.add_path(checkout, source.trim_end_matches('/'))?;
        }
        for base in &dockerfile.bases {
            inputs = inputs.add(
                bases
                    .reference(base)
                    .with_context(|| self.dockerfile.to_owned())?,
            );
        }
        for (name, value) in arguments(&dockerfile, bases, profile) {
            inputs = inputs.add(name).add(value);
        }
        Ok((dockerfile, inputs.hash()))
    }

    fn build(&self, bases: &Bases, profile: &str, workshop: &Workshop) -> Result<BuiltImage> {
        let (dockerfile, hash) = self.read(bases, profile)?;
        if let Some(image) = shelf::find(&workshop.store, self.name, &hash)? {
            workshop.progress.say(&format!("{}: unchanged", self.name));
            return Ok(image);
        }
        for base in &dockerfile.bases {
            bases.make(base, workshop)?;
        }
        let arguments = arguments(&dockerfile, bases, profile);
        if arguments.iter().any(|(name, _)| name == TRUSTING_BASE) {
            bases.make_trusting(workshop)?;
        }
        let contexts = dockerfile
            .bases
            .iter()
            .map(|base| Ok((base.clone(), bases::image(&bases.reference(base)?))));
        let id = workshop.build(&Build {
            name: self.name,
            dockerfile: &crate::checkout().join(self.dockerfile),
            context: crate::checkout(),
            tag: &format!("localhost/codeworkspace/{}", self.name),
            contexts: contexts.collect::<Result<_>>()?,
            arguments,
        })?;
        let image = shelf::put(workshop, self.name, &id)?;
        if self.read(bases, profile)?.1 == hash {
            shelf::note(&workshop.store, self.name, &hash, &id)?;
        } else {
            // Good enough to go on with, but nobody can tell what is in it.
            let message = "files were edited during the build, so the next one starts over";
            workshop.progress.say(&format!("{}: {message}", self.name));
        }
        workshop
            .progress
            .say(&format!("{}: built {}", self.name, image.reference));
        Ok(image)
    }
}

const TRUSTING_BASE: &str = "TRUSTING_BASE";

/// The build arguments that the Dockerfile declares and that we have a value for.
fn arguments(dockerfile: &Dockerfile, bases: &Bases, profile: &str) -> Vec<(String, String)> {
    [
        ("PROFILE", profile.to_owned()),
        (TRUSTING_BASE, bases.trusting_reference()),
    ]
    .into_iter()
    .filter(|(name, _)| dockerfile.arguments.contains(*name))
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_image_is_answered_with_those_there_are() {
        let error = choose(&["python", "pyhton"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no image `pyhton`: there are python, node, interpreter, operator, github-server"
        );
    }

    #[test]
    fn images_come_out_in_the_order_in_which_they_were_asked_for() {
        let names = |names: &[&str]| {
            choose(names)
                .unwrap()
                .iter()
                .map(|recipe| recipe.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&["operator", "python"]), ["operator", "python"]);
        assert_eq!(
            names(&[]),
            ["python", "node", "interpreter", "operator", "github-server"]
        );
    }

    #[test]
    fn every_dockerfile_can_be_built_without_a_registry() {
        let bases = Bases::of_this_machine().unwrap();
        for recipe in &RECIPES {
            recipe.read(&bases, QUICK).unwrap();
        }
    }

    #[test]
    fn the_profile_matters_only_to_images_that_compile_something() {
        let bases = Bases::of_this_machine().unwrap();
        let depends = |recipe: &Recipe| {
            recipe.read(&bases, QUICK).unwrap().1 != recipe.read(&bases, RELEASE).unwrap().1
        };
        let compiled: Vec<_> = RECIPES
            .iter()
            .filter(|recipe| depends(recipe))
            .map(|recipe| recipe.name)
            .collect();
        assert_eq!(compiled, ["operator", "github-server"]);
    }
}
