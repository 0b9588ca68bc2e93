//! What a Dockerfile depends on: the images it starts from, the files it copies and the arguments it takes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

/// The dependencies of one Dockerfile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dockerfile {
    /// Names of images from elsewhere, as written, with arguments replaced by their defaults.
    pub(super) bases: BTreeSet<String>,
    /// Files and folders that come from the build context.
    pub(super) sources: BTreeSet<String>,
    /// Names of build arguments.
    pub(super) arguments: BTreeSet<String>,
}

impl Dockerfile {
    /// Reads the instructions that name a dependency. Forms whose dependencies would be missed are refused: an
    /// image that is not rebuilt after a change costs more than an instruction written another way.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut dockerfile = Self::default();
        let mut stages = BTreeSet::from(["scratch".to_owned()]);
        let mut defaults = BTreeMap::new();
        for instruction in instructions(text) {
            dockerfile
                .add(&instruction, &mut stages, &mut defaults)
                .with_context(|| format!("in the instruction `{instruction}`"))?;
        }
        Ok(dockerfile)
    }

    fn add(
        &mut self,
        instruction: &str,
        stages: &mut BTreeSet<String>,
        defaults: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        let mut words = instruction.split_whitespace();
        let keyword = words.next().unwrap_or_default().to_ascii_uppercase();
        let (flags, words): (Vec<_>, Vec<_>) = words.partition(|word| word.starts_with("--"));
        match keyword.as_str() {
            "ARG" => {
                for word in words {
                    let (name, default) = word.split_once('=').unwrap_or((word, ""));
                    self.arguments.insert(name.to_owned());
                    defaults.insert(name.to_owned(), default.to_owned());
                }
            }
            "FROM" => {
                let image = expand(words.first().context("it names no image")?, defaults)?;
                if !stages.contains(&image) {
                    self.bases.insert(image);
                }
                if let [_, keyword, stage] = words.as_slice()
                    && keyword.eq_ignore_ascii_case("AS")
                {
                    stages.insert((*stage).to_owned());
                }
            }
            "COPY" | "ADD" => self.add_copy(&flags, &words, stages)?,
            "RUN" if flags.iter().any(|flag| flag.starts_with("--mount=type=bind")) => {
                bail!("bind mounts are not followed: copy the files instead");
            }
            _ => {}
        }
        Ok(())
    }

    fn add_copy(&mut self, flags: &[&str], words: &[&str], stages: &BTreeSet<String>) -> Result<()> {
        if let Some(from) = flags.iter().find_map(|flag| flag.strip_prefix("--from=")) {
            if !stages.contains(from) {
                self.bases.insert(from.to_owned());
            }
            return Ok(());
        }
        if words
            .iter()
            .any(|word| word.starts_with(['[', '<']) || word.contains(['*', '?', '$']))
        {
            bail!("only plain paths are followed: name each file or folder");
        }
        let (_, sources) = words.split_last().context("it names no file")?;
        self.sources
            .extend(sources.iter().map(|source| (*source).to_owned()));
        Ok(())
    }
}

/// The instructions of a Dockerfile, each on one line and without comments.
fn instructions(text: &str) -> Vec<String> {
    let mut instructions = Vec::new();
    let mut current = String::new();
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (part, continues) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        current.push_str(part.trim());
        if continues {
            current.push(' ');
        } else {
            instructions.push(std::mem::take(&mut current));
        }
    }
    instructions
}

/// Replaces a whole `${NAME}` or `$NAME` by its default.
fn expand(word: &str, defaults: &BTreeMap<String, String>) -> Result<String> {
    let Some(name) = word.strip_prefix('$') else {
        return Ok(word.to_owned());
    };
    let name = name.trim_start_matches('{').trim_end_matches('}');
    defaults
        .get(name)
        .cloned()
        .with_context(|| format!("no ARG before it declares `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &[&str]) -> BTreeSet<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn everything_that_a_build_depends_on_is_found() {
        let text = "\
# FROM nothing
ARG TRUSTING_BASE=debian:trixie-slim
FROM ${TRUSTING_BASE} AS tools
COPY images/node/package.json \\
     # a comment between
     images/node/package-lock.json ./
FROM rust:1.95-trixie as build
ARG PROFILE=release
COPY --chmod=644 src src
RUN --mount=type=cache,target=/build/target cargo build
FROM build AS more
ADD LICENSE /
FROM scratch
COPY --from=tools /opt /opt
COPY --from=busybox:1 /bin/busybox /bin/
";
        assert_eq!(
            Dockerfile::parse(text).unwrap(),
            Dockerfile {
                bases: set(&["busybox:1", "debian:trixie-slim", "rust:1.95-trixie"]),
                sources: set(&[
                    "LICENSE",
                    "images/node/package-lock.json",
                    "images/node/package.json",
                    "src"
                ]),
                arguments: set(&["PROFILE", "TRUSTING_BASE"]),
            }
        );
    }

    #[test]
    fn what_could_hide_a_dependency_is_refused_and_quoted() {
        for instruction in [
            "COPY crates/* ./",
            "COPY [\"src\", \"src\"]",
            "COPY <<EOF /file",
            "COPY $FILES ./",
            "COPY",
            "FROM ${MISSING}",
            "RUN --mount=type=bind,source=src,target=/src make",
        ] {
            let error = format!("{:#}", Dockerfile::parse(instruction).unwrap_err());
            assert!(error.contains(instruction), "{error}");
        }
    }
}
