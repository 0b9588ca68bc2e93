//! What a workspace takes over from those that it refers to (AIP-26, "Inheritance semantics"): `runner`, `secrets` and `network`, and
//! nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    field::FieldError,
    language::Language,
    manifest::Manifest,
    network::Network,
    object::MOST_ITEMS,
    runner::{Limits, RunnerBlock, RunnerHandle},
    secrets::{MAX_SECRETS, Secrets},
};

/// Faults that are kept of everything that a workspace refers to.
const MOST_FAULTS: usize = 64;

const LANGUAGE: &str = "runner.needs.language";

/// The blocks of a workspace together with those of everything that it refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inherited {
    /// Scalars of the last one that says them, the workspace itself being the very last; `needs` of all; limits lowered to those of a
    /// sandbox.
    pub runner: RunnerBlock,
    /// The bindings of all, by name; the last one counts.
    pub secrets: Secrets,
    /// The hosts of all: what refers to others can add hosts and can't take any away.
    pub network: Network,
    /// Where each value comes from that is not the workspace's own, by its field (`runner.image`, `runner.needs.native[ffmpeg]`,
    /// `secrets.API_KEY`, `network.egress[api.example.com]`): `code.sources[1] > render-utils`.
    pub origins: BTreeMap<String, String>,
    /// What is wrong in the others' blocks, or does not fit together, and the way to where that is.
    faults: Vec<(Option<String>, FieldError)>,
    /// The first language that was named, and where.
    language: Option<(Language, Option<String>)>,
}

impl Inherited {
    /// Fills in the runner's defaults, as [`RunnerDefinition::resolve`](crate::runner::RunnerDefinition::resolve) does; an error about a
    /// value that was taken over says from where.
    pub fn resolve_runner(&self, run_language: Language) -> Result<RunnerHandle, Vec<FieldError>> {
        let explained = |error: FieldError| {
            let origin = error
                .field
                .strip_prefix(&*self.runner.field)
                .and_then(|rest| self.origins.get(&format!("runner{rest}")));
            match origin {
                Some(origin) => {
                    let message = format!("{}; it comes from `{origin}`", error.message);
                    FieldError::new(error.field, message)
                }
                None => error,
            }
        };
        self.runner
            .resolve(run_language)
            .map_err(|errors| errors.into_iter().map(explained).collect())
    }

    /// What is wrong in the blocks of what is referred to, or does not fit together. The workspace's own faults are in its manifest.
    pub fn errors(&self) -> Vec<FieldError> {
        let placed = |(way, error): &(Option<String>, FieldError)| match way {
            Some(way) => error.clone().within(way),
            None => error.clone(),
        };
        self.faults.iter().map(placed).collect()
    }

    /// Takes over what another workspace has, over what was taken before. `place` is where it is referred to.
    pub(crate) fn absorb(&mut self, other: Self, place: &str) {
        let from = |field: &str| match other.origins.get(field) {
            Some(origin) => format!("{place} > {origin}"),
            None => place.to_owned(),
        };
        for field in fields_of(&other) {
            // An entry of a list stays where it is, and so comes from where it was first.
            if !(field.ends_with(']') && self.origins.contains_key(&field)) {
                let origin = from(&field);
                self.origins.insert(field, origin);
            }
        }
        let below =
            |way: Option<String>| way.map_or_else(|| place.to_owned(), |way| format!("{place} > {way}"));
        // Some are enough to act on, and manifests that refer to each other multiply theirs.
        let room = MOST_FAULTS.saturating_sub(self.faults.len());
        let faults = other.faults.into_iter().take(room);
        self.faults
            .extend(faults.map(|(way, error)| (Some(below(way)), error)));
        if let Some((language, origin)) = other.language {
            self.name_language(language, Some(below(origin)));
        }
        self.merge(other.runner, other.secrets, &other.network);
    }

    /// Puts a manifest's own blocks over what it has taken over.
    pub(crate) fn finish(&mut self, manifest: &Manifest, is_top: bool) {
        let own_runner = match &manifest.runner {
            Ok(runner) => runner.clone(),
            Err(errors) => {
                if !is_top {
                    self.faults
                        .extend(errors.iter().map(|error| (None, error.clone())));
                }
                RunnerBlock::default()
            }
        };
        if !is_top {
            let errors = manifest.errors.iter();
            self.faults.extend(errors.map(|error| (None, error.clone())));
        }
        if let Some(language) = own_runner.needs.language {
            self.name_language(language, None);
        }
        let own = Self {
            runner: own_runner,
            secrets: manifest.secrets.clone(),
            network: manifest.network.clone(),
            ..Self::default()
        };
        for field in fields_of(&own) {
            self.origins.remove(&field);
        }
        self.merge(own.runner, own.secrets, &own.network);
        if let Some(sandbox) = &manifest.sandbox {
            self.lower(sandbox.limits);
        }
        self.bound();
        let present: BTreeSet<String> = fields_of(self).into_iter().collect();
        self.origins.retain(|field, _| present.contains(field));
    }
    fn merge(&mut self, runner: RunnerBlock, secrets: Secrets, network: &Network) {
        self.runner = runner.over(std::mem::take(&mut self.runner));
        self.secrets.bindings.extend(secrets.bindings);
        self.network.add(&network.egress);
    }

    /// One bundle is run by one language; `multi` goes with each.
    fn name_language(&mut self, language: Language, origin: Option<String>) {
        let place = |origin: &Option<String>| match origin {
            Some(origin) => format!("in `{origin}`"),
            None => "in the workspace itself".to_owned(),
        };
        match &self.language {
            _ if language == Language::Multi => {}
            None => self.language = Some((language, origin)),
            Some((first, _)) if *first == language => {}
            Some((first, first_origin)) => {
                let message = format!(
                    "is `{first}` {}, but `{language}` {}: files of both languages need `multi`",
                    place(first_origin),
                    place(&origin)
                );
                self.faults.push((None, FieldError::new(LANGUAGE, message)));
            }
        }
    }

    /// What is fine in each manifest may be too much of it together.
    fn bound(&mut self) {
        let needs = &mut self.runner.needs;
        for (field, list) in [
            ("runner.needs.native", &mut needs.native),
            ("runner.needs.npm", &mut needs.npm),
            ("runner.needs.pip", &mut needs.pip),
            ("network.egress", &mut self.network.egress),
        ] {
            if list.len() > MOST_ITEMS {
                let message = format!("has more than {MOST_ITEMS} entries with what is inherited");
                self.faults.push((None, FieldError::new(field, message)));
                list.truncate(MOST_ITEMS);
            }
        }
        let bindings = &mut self.secrets.bindings;
        if bindings.len() > MAX_SECRETS {
            let message = format!("has more than {MAX_SECRETS} entries with what is inherited");
            self.faults.push((None, FieldError::new("secrets", message)));
            if let Some(name) = bindings.keys().nth(MAX_SECRETS).cloned() {
                bindings.split_off(&name);
            }
        }
    }

    fn lower(&mut self, caps: Limits) {
        let before = self.runner.limits;
        self.runner.limits = before.lowered_to(caps);
        for ((field, old), (_, new)) in limit_fields(before)
            .into_iter()
            .zip(limit_fields(self.runner.limits))
        {
            if old != new {
                self.origins.remove(field);
            }
        }
    }
}

/// The fields that have a value, as the keys of [`Inherited::origins`].
fn fields_of(blocks: &Inherited) -> Vec<String> {
    let RunnerBlock {
        engine,
        image,
        needs,
        limits,
        ..
    } = &blocks.runner;
    let scalars = [
        ("runner.engine", engine.is_some()),
        ("runner.image", image.is_some()),
        (LANGUAGE, needs.language.is_some()),
    ];
    let limits = limit_fields(*limits).map(|(field, value)| (field, value.is_some()));
    let lists = [
        ("runner.needs.native", &needs.native),
        ("runner.needs.npm", &needs.npm),
        ("runner.needs.pip", &needs.pip),
        ("network.egress", &blocks.network.egress),
    ];
    let scalars = scalars
        .into_iter()
        .chain(limits)
        .filter(|(_, is_there)| *is_there)
        .map(|(field, _)| field.to_owned());
    let items = lists
        .into_iter()
        .flat_map(|(field, items)| items.iter().map(move |item| format!("{field}[{item}]")));
    let secrets = blocks
        .secrets
        .bindings
        .keys()
        .map(|name| format!("secrets.{name}"));
    scalars.chain(items).chain(secrets).collect()
}

fn limit_fields(limits: Limits) -> [(&'static str, Option<u64>); 5] {
    [
        ("runner.limits.memory_mb", limits.memory_mb),
        ("runner.limits.timeout_ms", limits.timeout_ms),
        ("runner.limits.cpu_ms", limits.cpu_ms),
        ("runner.limits.vcpus", limits.milli_vcpus),
        ("runner.limits.ephemeral_storage_mb", limits.ephemeral_storage_mb),
    ]
}

#[cfg(test)]
mod tests;
