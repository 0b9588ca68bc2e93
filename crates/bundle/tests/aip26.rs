//! Every example of AIP-26, read from a workspace that holds them as they are printed.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail the test")]

use std::{fmt::Write, fs, path::Path, sync::Arc};

use codeworkspace_bundle::{
    Catalog, Entry, Expanded, Expansion, FileTree, Language, Lookup, Manifest, NodeKey, expand, read_manifest,
};

/// The folder `aip26` as the root of a workspace.
fn root() -> FileTree {
    let mut tree = FileTree::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aip26");
    add(&mut tree, &folder, "");
    tree
}

fn add(tree: &mut FileTree, folder: &Path, at: &str) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{at}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            add(tree, &entry.path(), &format!("{path}/"));
        } else {
            let contents = fs::read(entry.path()).unwrap().into();
            tree.insert(path.parse().unwrap(), Entry::from_contents(contents))
                .unwrap();
        }
    }
}

fn text_of(root: &FileTree, at: &str) -> String {
    let Some(Entry::File { contents, .. }) = root.get(at) else {
        unreachable!("{at} is one of the examples")
    };
    String::from_utf8(contents.to_vec()).unwrap()
}

fn read(root: &FileTree, at: &str) -> Manifest {
    read_manifest(root, &at.parse().unwrap()).unwrap().unwrap()
}

/// Expands a manifest of the root with what the root holds.
fn expanded(root: &FileTree, top: &Manifest) -> Expanded {
    let mut catalog = Catalog::new();
    loop {
        match expand(top, "top", &catalog) {
            Expansion::Complete(expanded) => return *expanded,
            Expansion::Wanted(wanted) => {
                for key in wanted {
                    let NodeKey { path, .. } = &key;
                    let manifest = read_manifest(root, path).unwrap().unwrap();
                    catalog.insert(key, Lookup::InRoot(Arc::new(manifest)));
                }
            }
        }
    }
}

/// What a manifest comes to: its sources, its command and the blocks that count.
fn outline(root: &FileTree, at: &str) -> String {
    let manifest = read(root, at);
    outline_of(root, &manifest)
}

fn outline_of(root: &FileTree, manifest: &Manifest) -> String {
    let expanded = expanded(root, manifest);
    let mut text = String::new();
    for leaf in &expanded.leaves {
        let source = leaf
            .source
            .as_ref()
            .map_or_else(|error| format!("! {error}"), |_| leaf.summary.clone());
        writeln!(text, "{}: {source}, below {}", leaf.path, leaf.base).unwrap();
    }
    let language = match &manifest.run {
        None => Language::Multi,
        Some(run) => {
            let run = run.as_ref().unwrap();
            writeln!(text, "run: {:?}", run.command).unwrap();
            run.language().unwrap()
        }
    };
    let inherited = &expanded.inherited;
    let runner = inherited.resolve_runner(language).unwrap();
    writeln!(text, "runner: {runner:?}").unwrap();
    writeln!(text, "secrets: {:?}", inherited.secrets.bindings).unwrap();
    writeln!(text, "egress: {:?}", inherited.network.egress).unwrap();
    writeln!(text, "recorded: {:?}", manifest.recorded).unwrap();
    for (field, origin) in &inherited.origins {
        writeln!(text, "{field} from {origin}").unwrap();
    }
    for warning in manifest
        .warnings
        .iter()
        .chain(expanded.leaves.iter().flat_map(|leaf| &leaf.warnings))
    {
        writeln!(text, "warning: {warning}").unwrap();
    }
    for error in manifest.errors.iter().cloned().chain(inherited.errors()) {
        writeln!(text, "error: {error}").unwrap();
    }
    text
}

#[test]
fn example_1_is_a_tool_of_inline_sources_for_a_sandbox() {
    insta::assert_snapshot!(outline(&root(), ".tools/render-pdf"));
}

#[test]
fn example_2_is_a_python_tool_with_a_list_of_arguments() {
    insta::assert_snapshot!(outline(&root(), ".tools/scrape-prices-csv"));
}

#[test]
fn example_3_lays_an_inline_file_over_a_repository() {
    insta::assert_snapshot!(outline(&root(), ".tools/fetch-customer-orders"));
}

#[test]
fn example_4_is_two_tools_that_share_a_code_workspace() {
    let root = root();
    let [invoice, receipt] = [".tools/render-invoice", ".tools/render-receipt"].map(|at| outline(&root, at));
    assert_eq!(invoice.replace("invoice", "receipt"), receipt);
    insta::assert_snapshot!(invoice);
    insta::assert_snapshot!(
        "example_4_the_shared_bundle",
        outline(&root, ".code-workspaces/render-utils")
    );
}

#[test]
fn example_5_takes_templates_of_the_workspace() {
    insta::assert_snapshot!(outline(&root(), ".tools/send-templated-email"));
}

#[test]
fn example_6_composes_two_upstreams_in_order() {
    let root = root();
    insta::assert_snapshot!(outline(&root, ".tools/quarterly-report"));
}

/// No text of YAML may begin with `@` (YAML 1.2, 5.3), so no parser reads that line; people will paste it all the same.
#[test]
fn example_6_as_it_is_printed_is_refused_with_what_to_write() {
    let mut root = root();
    let file = ".code-workspaces/finance-tools/manifest.yaml";
    let text = text_of(&root, file);
    let text = text.replace("\"@anthropic-ai/sdk@^0.72.0\"", "@anthropic-ai/sdk@^0.72.0");
    root.insert(file.parse().unwrap(), Entry::from_contents(text.into()))
        .unwrap();
    let error = read_manifest(&root, &"./code-workspaces/finance-tools".parse().unwrap()).unwrap_err();
    insta::assert_snapshot!(error);
}

#[test]
fn the_lean_example_names_a_registry_that_a_cluster_does_not_have() {
    let manifest = read(&root(), ".code/notion-search");
    let errors: Vec<_> = manifest.errors.iter().map(ToString::to_string).collect();
    let [error] = &errors[..] else {
        panic!("{errors:?}")
    };
    assert!(
        error.starts_with(
            "./.code/notion-search/CODE.md: sandbox.ref: sandbox_ref_unresolvable: `@agentik/python-mcp`"
        ),
        "{error}"
    );
}

#[test]
fn the_lean_example_composes_with_a_sandbox_file_beside_it() {
    let mut root = root();
    let file = ".code/notion-search/CODE.md";
    let text = text_of(&root, file);
    let text = text.replace("ref: \"@agentik/python-mcp\"", "file: ./SANDBOX.md");
    root.insert(file.parse().unwrap(), Entry::from_contents(text.into()))
        .unwrap();
    insta::assert_snapshot!(outline(&root, ".code/notion-search"));
}
