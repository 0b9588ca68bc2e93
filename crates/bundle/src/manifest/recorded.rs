use serde_json::{Map, Value};

use crate::quote::Escaped;

/// Links and capabilities that are kept of one manifest.
const MOST: usize = 64;

/// The fields of a lean module that link to other things, none of which is ever needed (AIP-26, "Soft links").
const LINKS: [&str; 5] = [
    "driver",
    "identity",
    "suggests_skills",
    "requires_tools",
    "references",
];

/// What a manifest says about itself. It is shown; it grants nothing, blocks nothing and is never taken over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// What it is, for people.
    pub description: Option<String>,
    /// The name of a module among all modules, in the lean form.
    pub id: Option<String>,
    /// Its version, in the lean form.
    pub version: Option<String>,
    /// Where it came from (AIP-26, `source.origin`). Never a reason to trust it.
    pub origin: Option<String>,
    /// `requiredCapabilities`, which this operator does not enforce.
    pub required_capabilities: Vec<String>,
    /// `driver`, `identity` and the soft links.
    pub links: Vec<Link>,
}

/// Something that a manifest points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where it stands: `requires_tools[0]`.
    pub field: String,
    /// What it points at, or `inline` for something that stands there itself.
    pub to: String,
}

impl Recorded {
    pub(super) fn read(map: &Map<String, Value>, is_lean: bool) -> Self {
        let text = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str)?;
            Some(Escaped(text).to_string())
        };
        let capabilities = map.get("requiredCapabilities").and_then(Value::as_array);
        let origin = map.get("source").and_then(|source| source.get("origin"));
        Self {
            description: text(map.get("description")),
            id: text(map.get("id")),
            version: text(map.get("version")),
            origin: text(origin.filter(|_| !is_lean)),
            required_capabilities: capabilities
                .into_iter()
                .flatten()
                .filter_map(|capability| text(Some(capability)))
                .take(MOST)
                .collect(),
            links: links(map),
        }
    }
}

fn links(map: &Map<String, Value>) -> Vec<Link> {
    let entries = LINKS
        .into_iter()
        .filter_map(|field| Some((field, map.get(field)?)))
        .flat_map(|(field, value)| match value {
            Value::Array(entries) => entries
                .iter()
                .enumerate()
                .map(|(index, entry)| (format!("{field}[{index}]"), entry))
                .collect(),
            other => vec![(field.to_owned(), other)],
        });
    entries
        .take(MOST)
        .map(|(field, entry)| Link {
            field,
            to: destination(entry),
        })
        .collect()
}

fn destination(entry: &Value) -> String {
    let text = ["ref", "file", "url", "name", "implements"]
        .iter()
        .find_map(|key| entry.get(key)?.as_str())
        .or_else(|| entry.as_str());
    text.map_or_else(|| "inline".to_owned(), |text| Escaped(text).to_string())
}
