mod objects;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{
    code::{LocalSource, Source, SourceKind},
    fixtures::{path, report, tree},
    language::Language,
    runner::{Engine, Limits},
    secrets::SecretSource,
    tree::FileTree,
};

/// The smallest manifest of each form.
const RICH: &str = "kind: code-workspace\nname: x\ncode: {sources: [{local: a.py}]}\n";
const LEAN: &str = "---\nschema: code/v2\nsource: {local: ./a.py}\n---\n# For people\n";

fn read_at(files: &[(&str, &str)], at: &str) -> Result<Option<Manifest>, ManifestError> {
    read_manifest(&tree(files), &at.parse().unwrap())
}

/// The manifest of the folder `x`.
fn read(files: &[(&str, &str)]) -> Manifest {
    read_at(files, "./x").unwrap().unwrap()
}

/// What is wrong with a manifest, whichever way it is reported.
fn faults(files: &[(&str, &str)]) -> Vec<String> {
    let manifest = match read_at(files, "./x") {
        Err(error) => return vec![error.to_string()],
        Ok(manifest) => manifest.unwrap(),
    };
    let code = match &manifest.code {
        Ok(code) => code.all_errors().cloned().collect(),
        Err(errors) => errors.clone(),
    };
    let run = manifest.run.into_iter().filter_map(Result::err).flatten();
    let runner = manifest.runner.err().into_iter().flatten();
    code.into_iter()
        .chain(run)
        .chain(runner)
        .chain(manifest.errors)
        .map(|error| error.to_string())
        .collect()
}

/// The texts of manifests with their faults, for snapshots.
fn fault_report(texts: &[&str]) -> String {
    texts
        .iter()
        .map(|text| format!("{text}\n  {}", faults(&[("x/manifest.yaml", text)]).join("\n  ")))
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn locals(manifest: &Manifest) -> Vec<String> {
    let code = manifest.code.as_ref().unwrap();
    let shown = |entry: &crate::code::SourceEntry| match &entry.source {
        Ok(Source::Local(LocalSource { pattern, .. })) => format!("{} {}", entry.field, pattern.path),
        other => panic!("{other:?}"),
    };
    code.sources.iter().map(shown).collect()
}

#[test]
fn a_folder_without_a_manifest_has_none() {
    assert_eq!(
        read_at(&[("x/README.md", ""), ("manifest.yaml", RICH)], "./x"),
        Ok(None)
    );
    assert_eq!(read_at(&[("x/manifest.yaml/y", "")], "./x"), Ok(None));
    assert_eq!(read_at(&[("x", "")], "./x"), Ok(None));
}

#[test]
fn the_rich_form_is_read_with_all_its_blocks() {
    let text = "
kind: code-workspace
name: render-utils
description: Shared HTML to PDF and image utilities
code:
  sources:
    - github: {repo: mycompany/render-utils, ref: v1.4.0}
    - local: {path: package-lock.json}
run: render.ts
runner:
  engine: sandbox
  needs: {language: node, native: [weasyprint, ffmpeg]}
  limits: {memory_mb: 2048, timeout_ms: 120000}
secrets:
  CLOUDINARY_KEY: {vault: cloudinary-api-key}
network:
  egress: [api.cloudinary.com]
requiredCapabilities: [finance]
source: {origin: workspace}
";
    let manifest = read(&[("x/manifest.yaml", text)]);
    let runner = manifest.runner.clone().unwrap();
    assert_eq!(
        (
            runner.engine,
            runner.needs.language,
            runner.needs.native,
            runner.limits.memory_mb
        ),
        (
            Some(Engine::Sandbox),
            Some(Language::Node),
            vec!["weasyprint".to_owned(), "ffmpeg".to_owned()],
            Some(2_048)
        )
    );
    let kinds: Vec<_> = manifest
        .code
        .as_ref()
        .unwrap()
        .sources
        .iter()
        .map(|entry| entry.kind)
        .collect();
    assert_eq!(kinds, [Some(SourceKind::Github), Some(SourceKind::Local)]);
    assert_eq!(
        manifest.secrets.bindings,
        [(
            "CLOUDINARY_KEY".to_owned(),
            SecretSource::Vault("cloudinary-api-key".to_owned())
        )]
        .into()
    );
    assert_eq!(manifest.network.egress, ["api.cloudinary.com"]);
    assert!(manifest.run.unwrap().is_ok());
    assert_eq!(
        (
            manifest.file,
            manifest.kind,
            manifest.name.as_deref(),
            manifest.base
        ),
        (
            Some(path("x/manifest.yaml")),
            ManifestKind::CodeWorkspace,
            Some("render-utils"),
            WorkspacePath::of(None)
        )
    );
    let recorded = Recorded {
        description: Some("Shared HTML to PDF and image utilities".to_owned()),
        origin: Some("workspace".to_owned()),
        required_capabilities: vec!["finance".to_owned()],
        ..Recorded::default()
    };
    assert_eq!(manifest.recorded, recorded);
    assert_eq!((manifest.errors, manifest.warnings), (vec![], vec![]));
}

#[test]
fn the_lean_form_composes_with_the_files_beside_it() {
    let code = "---
schema: code/v2
id: '@acme/code/notion-search'
version: 1.0.0
description: Notion search
source: {local: ./search.py}
run: python search.py
runner: {ref: ./RUNNER.md}
driver: {ref: ./DRIVER.md}
sandbox: {file: ./SANDBOX.yaml}
secrets: {ref: ./SECRETS.md}
identity: {ref: 'operator://current'}
network: {egress: [api.notion.com]}
suggests_skills:
  - {ref: ../skills/use-notion/SKILL.md}
requires_tools:
  - {ref: ../tools/auth-token/TOOL.md}
references:
  - {url: 'https://docs.notion.com/api'}
---
# For people
";
    let runner = "---\nschema: runner/v1\nid: x\nengine: sandbox\nneeds: {language: python}\n---\n";
    let sandbox =
        "provider: kubernetes\nconfig: {}\nlimits: {memory_mb: 512}\nnetwork: {egress: [auth.notion.com]}\n";
    let secrets = "---\nsecrets:\n  - {slug: notion-api-key, name: Notion, description: x}\n---\n";
    let manifest = read(&[
        ("x/CODE.md", code),
        ("x/RUNNER.md", runner),
        ("x/SANDBOX.yaml", sandbox),
        ("x/SECRETS.md", secrets),
        ("x/search.py", ""),
    ]);
    assert_eq!(manifest.base, "./x".parse().unwrap());
    assert_eq!(locals(&manifest), ["source ./search.py"]);
    let runner = manifest.runner.unwrap();
    assert_eq!(
        (runner.engine, runner.needs.language),
        (Some(Engine::Sandbox), Some(Language::Python))
    );
    assert_eq!(
        manifest.sandbox.unwrap().limits,
        Limits {
            memory_mb: Some(512),
            ..Limits::default()
        }
    );
    assert_eq!(
        manifest.secrets.bindings,
        [(
            "NOTION_API_KEY".to_owned(),
            SecretSource::Vault("notion-api-key".to_owned())
        )]
        .into()
    );
    assert_eq!(manifest.network.egress, ["api.notion.com", "auth.notion.com"]);
    let link = |field: &str, to: &str| Link {
        field: field.to_owned(),
        to: to.to_owned(),
    };
    let recorded = Recorded {
        description: Some("Notion search".to_owned()),
        id: Some("@acme/code/notion-search".to_owned()),
        version: Some("1.0.0".to_owned()),
        links: vec![
            link("driver", "./DRIVER.md"),
            link("identity", "operator://current"),
            link("suggests_skills[0]", "../skills/use-notion/SKILL.md"),
            link("requires_tools[0]", "../tools/auth-token/TOOL.md"),
            link("references[0]", "https://docs.notion.com/api"),
        ],
        ..Recorded::default()
    };
    assert_eq!(manifest.recorded, recorded);
    assert_eq!(manifest.errors, []);
    insta::assert_snapshot!(manifest.warnings.join("\n"));
}

#[test]
fn a_lean_module_may_list_several_sources() {
    let text = "---\nschema: code/v2\nsource: [{local: ./a.py}, {local: lib/}]\n---\n";
    assert_eq!(
        locals(&read(&[("x/CODE.md", text)])),
        ["source[0] ./a.py", "source[1] ./lib"]
    );
}

#[test]
fn the_head_says_the_form_and_not_the_name_of_the_file() {
    let lean = "schema: code/v2\nsource: {local: ./a.py}\n";
    assert_eq!(read(&[("x/manifest.yaml", lean)]).base, "./x".parse().unwrap());
    let rich = format!("---\n{RICH}---\n");
    assert_eq!(read(&[("x/CODE.md", &rich)]).base, WorkspacePath::of(None));
}

#[test]
fn a_module_without_fences_is_read_whole() {
    let text = "# .code/notion-search/CODE.md\nschema: code/v2\nsource: {local: ./a.py}\n";
    assert_eq!(locals(&read(&[("x/CODE.md", text)])), ["source ./a.py"]);
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_are_read() {
    let text = format!("\u{feff}{}", LEAN.replace('\n', "\r\n"));
    assert_eq!(locals(&read(&[("x/CODE.md", &text)])), ["source ./a.py"]);
}

#[test]
fn a_manifest_is_preferred_to_a_module_and_says_so() {
    let files = [("x/manifest.yaml", RICH), ("x/CODE.md", LEAN)];
    let manifest = read(&files);
    assert_eq!(manifest.file, Some(path("x/manifest.yaml")));
    assert_eq!(
        manifest.warnings,
        ["./x/CODE.md is not read, since `manifest.yaml` is beside it"]
    );
    for (at, file) in [
        ("./x/CODE.md", "x/CODE.md"),
        ("./x/manifest.yaml", "x/manifest.yaml"),
    ] {
        let manifest = read_at(&files, at).unwrap().unwrap();
        assert_eq!(
            (manifest.file, manifest.warnings),
            (Some(path(file)), vec![]),
            "{at}"
        );
    }
}

#[test]
fn the_root_itself_may_have_a_manifest() {
    let manifest = read_at(&[("CODE.md", LEAN)], "./").unwrap().unwrap();
    assert_eq!(
        (manifest.file, manifest.base),
        (Some(path("CODE.md")), WorkspacePath::of(None))
    );
}

#[test]
fn the_guides_spelling_without_a_dot_finds_the_conventional_folders() {
    for (file, text) in [
        ("code-workspaces/render-utils/manifest.yaml", RICH),
        (".code-workspaces/render-utils/manifest.yaml", RICH),
        (".code/render-utils/CODE.md", LEAN),
    ] {
        let manifest = read_at(&[(file, text)], "./code-workspaces/render-utils").unwrap();
        assert_eq!(manifest.unwrap().file, Some(path(file)));
    }
    assert_eq!(
        read_at(&[(".code/x/CODE.md", LEAN)], "./.code-workspaces/x"),
        Ok(None)
    );
}

#[test]
fn a_manifest_may_be_a_link() {
    let manifest = read(&[
        ("x/manifest.yaml", "-> ../shared/x.yaml"),
        ("shared/x.yaml", RICH),
    ]);
    assert_eq!(manifest.file, Some(path("x/manifest.yaml")));
}

#[test]
fn tools_and_workflows_are_used_with_a_warning() {
    for kind in ["tool", "workflow"] {
        let text =
            format!("kind: {kind}\ncode: ./y\nrun: a.py\ninputs: {{type: object}}\noutputsFiles: {{}}\n");
        let manifest = read(&[("x/manifest.yaml", &text)]);
        assert_eq!(manifest.errors, []);
        assert_eq!(
            manifest.warnings,
            [format!(
                "./x/manifest.yaml: is the manifest of a {kind}: its files, runner, secrets and network are taken over, its `run`, \
                 inputs and outputs are not"
            )]
        );
    }
}

#[test]
fn what_has_no_effect_is_a_warning() {
    let text = format!("{RICH}inputs: {{}}\nentry: a.py\nlicence: MIT\n");
    insta::assert_snapshot!(read(&[("x/manifest.yaml", &text)]).warnings.join("\n"));
}

#[test]
fn another_kind_is_a_kind_error_that_names_it() {
    for (text, kind) in [
        ("kind: skill\n", "skill"),
        (
            "kind: CodeWorkspace\napiVersion: codeworkspace.dev/v1alpha1\n",
            "CodeWorkspace",
        ),
        ("schema: sandbox/v1\n", "sandbox/v1"),
        ("schema: code/v1\n", "code/v1"),
    ] {
        let expected = ManifestError::Kind {
            file: path("x/manifest.yaml"),
            kind: kind.to_owned(),
        };
        assert_eq!(read_at(&[("x/manifest.yaml", text)], "./x"), Err(expected));
    }
    insta::assert_snapshot!(fault_report(&["kind: skill", "schema: code/v1"]));
}

#[test]
fn every_fault_is_named_with_its_file_and_field() {
    insta::assert_snapshot!(fault_report(&[
        "",
        "- kind: code-workspace",
        "kind: 3",
        "schema: []",
        "name: x",
        "kind: code-workspace",
        "kind: code-workspace\nentry: tool.ts",
        "kind: code-workspace\ncode: {sources: [{local: /etc}, {github: {repo: x, ref: main}}]}\nrun: [3]\nrunner: {engine: x}\n\
         secrets: {A: b}\nnetwork: {egress: [http://x]}\nsandbox: {provider: local, config: {}}\nruntime: {mode: x}",
        "schema: code/v2",
        "schema: code/v2\ncode: ./x",
        "schema: code/v2\nsource: {origin: workspace}",
        "schema: code/v2\nsource: ./search.py",
        "schema: code/v2\nsource: []",
        "schema: code/v2\nsource: {lokal: ./a}",
    ]));
}

#[test]
fn yaml_that_cannot_be_read_says_where() {
    insta::assert_snapshot!(fault_report(&[
        "kind: [",
        "kind: tool\nkind: code-workspace",
        "a: *unknown",
        "kind: code-workspace\n\tname: x",
        "kind: 'x",
        "--- \nkind: tool\n--- \nkind: tool",
        "a: !!int secret",
        "x: .nan",
    ]));
}

#[test]
fn a_fault_in_a_frontmatter_counts_lines_from_the_files_start() {
    insta::assert_snapshot!(
        [
            "---\nschema: code/v2\nid: [\n---\n",
            "---\nschema: code/v2\n",
            "# A module\n\nwithout: {any head",
        ]
        .map(|text| faults(&[("x/CODE.md", text)]).join("\n"))
        .join("\n\n")
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut root = FileTree::new();
    let file = crate::tree::Entry::from_contents(Bytes::from_static(b"kind: \xff"));
    root.insert(path("x/manifest.yaml"), file).unwrap();
    let error = read_manifest(&root, &"x".parse().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "./x/manifest.yaml: is not UTF-8 at byte 6");
}

#[test]
fn a_file_that_is_too_large_is_not_parsed() {
    let text = format!("{RICH}#{}\n", "x".repeat(MAX_MANIFEST_BYTES - RICH.len() - 2));
    assert_eq!(text.len(), MAX_MANIFEST_BYTES);
    assert_eq!(faults(&[("x/manifest.yaml", &text)]), [""; 0]);
    let [error] = &faults(&[("x/manifest.yaml", &format!("{text}#"))])[..] else {
        panic!("one error")
    };
    assert!(
        error.contains("262145 bytes") && error.contains("262144"),
        "{error}"
    );
}

#[test]
fn bombs_are_refused() {
    let lines =
        |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<Vec<_>>().join("\n");
    let doubled = lines(12, &|level| match level {
        0 => "a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned(),
        _ => format!(
            "a{level}: &a{level} [{}]",
            vec![format!("*a{}", level - 1); 10].join(", ")
        ),
    });
    let keys = (0..200)
        .map(|key| format!("k{key}: 1"))
        .collect::<Vec<_>>()
        .join(", ");
    let merged = lines(300, &|index| format!("m{index}: {{<<: [*b, *b], k: 1}}"));
    let nested = lines(200, &|depth| format!("{}a:", " ".repeat(depth)));
    let repeated = lines(5_000, &|index| format!("y{index}: *x"));
    for text in [
        doubled,
        format!("b: &b {{{keys}}}\n{merged}"),
        format!("{RICH}deep: {}{}", "[".repeat(5_000), "]".repeat(5_000)),
        nested,
        format!("{RICH}wide: [{}]", "a,".repeat(100_000)),
        format!("{RICH}x: &x {}\n{repeated}", "a".repeat(1_000)),
    ] {
        assert!(text.len() <= MAX_MANIFEST_BYTES, "{}", text.len());
        let [error] = &faults(&[("x/manifest.yaml", &text)])[..] else {
            panic!("one error for {}", &text[..60])
        };
        assert!(error.contains("is no YAML that can be read"), "{error}");
        assert!(error.len() < 300, "{error}");
    }
}

#[test]
fn words_that_old_yaml_took_for_booleans_are_words() {
    let text = format!("{RICH}secrets: {{ON: {{value: on}}, NO: {{value: no}}}}\n");
    let bindings = read(&[("x/manifest.yaml", &text)]).secrets.bindings;
    assert_eq!(bindings["ON"], SecretSource::Value("on".to_owned()));
    assert_eq!(bindings["NO"], SecretSource::Value("no".to_owned()));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_without_panic(bytes in any::<Vec<u8>>(), is_module in any::<bool>()) {
        let file = path(if is_module { "x/CODE.md" } else { "x/manifest.yaml" });
        let root = FileTree::of_file(file, bytes.into());
        prop_assert!(!matches!(read_manifest(&root, &"x".parse().unwrap()), Ok(None)));
    }

    #[test]
    fn any_text_like_yaml_is_read_or_refused_without_panic(
        head in prop::sample::select(vec!["kind: code-workspace\n", "schema: code/v2\n", "kind: tool\n", "---\nschema: code/v2\n"]),
        body in "((code|source|run|runner|secrets|sandbox|runtime|network|references): ?[\\[{&*!'\"a-z:, .@/-]{0,20}[\\]}]?\n ?){0,6}",
    ) {
        let root = tree(&[("x/CODE.md", &format!("{head}{body}")), ("x/RUNNER.md", &body)]);
        if let Err(error) = read_manifest(&root, &"x".parse().unwrap()) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
