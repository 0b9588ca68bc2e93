use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    fixtures::{path, report, tree},
    tree::FileTree,
};

fn run(block: &Value) -> Run {
    define_run(block).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn bundle() -> FileTree {
    tree(&[
        ("main.py", ""),
        ("src/tool.ts", ""),
        ("my tool.py", ""),
        ("build.sh", "#!/bin/sh"),
        ("--help.py", ""),
        ("Makefile", ""),
        ("v2/app.js", ""),
        ("current", "-> v2"),
        ("latest.js", "-> v2/app.js"),
        ("broken.js", "-> nowhere.js"),
    ])
}

fn resolve(block: &Value) -> Result<ResolvedRun, String> {
    resolve_with(block, &[])
}

fn resolve_with(block: &Value, tools: &[&str]) -> Result<ResolvedRun, String> {
    let tools: BTreeSet<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
    run(block)
        .resolve(&bundle(), "/workspace", &tools)
        .map_err(|error| error.to_string())
}

fn argv(block: &Value) -> Vec<String> {
    let resolved = resolve(block).unwrap();
    assert_eq!(resolved.warnings, [""; 0]);
    resolved.argv
}

#[test]
fn a_string_is_a_file_or_a_command_line() {
    for (text, form) in [
        ("tool.ts", Form::File),
        ("./src/index.ts", Form::File),
        ("'my tool.py'", Form::File),
        ("--help.py", Form::File),
        ("tool.py\n", Form::File),
        ("npm run build && node dist/tool.js", Form::Shell),
        ("tail -f /dev/null", Form::Shell),
        ("exit", Form::File),
        ("exit 3", Form::Shell),
        ("a|b", Form::Shell),
        ("${CMD}", Form::Shell),
    ] {
        assert_eq!(
            (run(&json!(text)).form(), run(&json!(text)).written),
            (form, Written::Text),
            "{text}"
        );
    }
}

#[test]
fn a_list_is_a_program_and_its_arguments() {
    let argv = ["python", "-c", "print(1); print(2)", "", " ", "a && b", "-x"];
    let expected = Command::Exec(argv.map(str::to_owned).to_vec());
    assert_eq!(
        run(&json!(argv)),
        Run {
            command: expected.clone(),
            written: Written::List
        }
    );
    assert_eq!(
        run(&json!({ "exec": argv })),
        Run {
            command: expected,
            written: Written::Object
        }
    );
}

#[test]
fn the_object_form_always_wins() {
    assert_eq!(
        run(&json!({ "file": "my; tool.py" })).command,
        Command::File(path("my; tool.py"))
    );
    assert_eq!(
        run(&json!({ "file": "./\"a\".py" })).command,
        Command::File(path("\"a\".py"))
    );
    assert_eq!(
        run(&json!({ "shell": "tool.py" })).command,
        Command::Shell("tool.py".to_owned())
    );
    assert_eq!(
        run(&json!({ "exec": ["tool.py"] })).command,
        Command::Exec(vec!["tool.py".to_owned()])
    );
}

#[test]
fn every_fault_is_named_with_its_field() {
    let long = "x ".repeat(70_000);
    insta::assert_snapshot!(report(
        &[
            json!(null),
            json!(3),
            json!(""),
            json!(" \n"),
            json!("../tool.py"),
            json!("/bin/true"),
            json!("src/"),
            json!("a\u{0}b c"),
            json!([]),
            json!([""]),
            json!(["python", 3, null, "a\u{0}"]),
            json!({}),
            json!({ "file": "a.py", "shell": "b" }),
            json!({ "file": null }),
            json!({ "file": "../a.py" }),
            json!({ "exec": "python tool.py" }),
            json!({ "exec": [] }),
            json!({ "shell": ["a"] }),
            json!({ "shell": " " }),
            json!({ "files": "a.py" }),
            json!({ "file": "a.py", "args": ["-x"] }),
            json!({ "kind": "tool", "name": "x", "run": "a.py" }),
        ],
        |block| define_run(block)
            .unwrap_err()
            .iter()
            .map(FieldError::to_string)
            .collect()
    ));
    for block in [json!(long), json!(["bash", "-c", long]), json!({ "shell": long })] {
        let errors = define_run(&block).unwrap_err();
        assert!(
            errors[0].message.starts_with("is 140000 bytes long"),
            "{errors:?}"
        );
    }
}

#[test]
fn a_list_of_nothing_but_faults_makes_no_flood_of_messages() {
    assert_eq!(define_run(&json!(vec![1; 1_000])).unwrap_err().len(), 16);
}

#[test]
fn a_files_extension_chooses_its_interpreter() {
    let names = ["a.ts", "a.tsx", "a.mts", "a.js", "a.mjs", "a.cjs", "a.py", "a.sh"];
    let files = tree(&names.map(|name| (name, "")));
    for (file, before, language) in [
        ("a.ts", &["npx", "--yes", "tsx"][..], Language::Node),
        ("a.tsx", &["npx", "--yes", "tsx"], Language::Node),
        ("a.mts", &["npx", "--yes", "tsx"], Language::Node),
        ("a.js", &["node"], Language::Node),
        ("a.mjs", &["node"], Language::Node),
        ("a.cjs", &["node"], Language::Node),
        ("a.py", &["python"], Language::Python),
        ("a.sh", &["bash"], Language::Multi),
    ] {
        let run = run(&json!(file));
        let mut argv: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        argv.push(format!("/workspace/{file}"));
        let expected = ResolvedRun {
            form: Form::File,
            argv,
            warnings: vec![],
        };
        assert_eq!(run.resolve(&files, "/workspace", &BTreeSet::new()), Ok(expected));
        assert_eq!(run.language(), Ok(language));
    }
}

#[test]
fn a_template_that_declares_tsx_runs_it_directly() {
    let resolved = resolve_with(&json!("src/tool.ts"), &["tsx", "typescript"]).unwrap();
    assert_eq!(resolved.argv, ["tsx", "/workspace/src/tool.ts"]);
}

#[test]
fn a_file_is_given_as_an_absolute_path_so_that_no_name_is_an_option() {
    assert_eq!(argv(&json!("--help.py")), ["python", "/workspace/--help.py"]);
    let resolved = run(&json!("main.py"))
        .resolve(&bundle(), "/code/", &BTreeSet::new())
        .unwrap();
    assert_eq!(resolved.argv, ["python", "/code/main.py"]);
}

#[test]
fn a_list_is_passed_on_as_it_is() {
    assert_eq!(
        argv(&json!(["python", "-m", "mytool"])),
        ["python", "-m", "mytool"]
    );
    assert_eq!(
        run(&json!(["python", "-m", "mytool"])).language(),
        Ok(Language::Multi)
    );
}

#[test]
fn a_command_line_goes_to_bash_whole() {
    let line = "npm run build && node dist/tool.js";
    assert_eq!(argv(&json!(line)), ["bash", "-c", line]);
    assert_eq!(argv(&json!({ "shell": line })), ["bash", "-c", line]);
    assert_eq!(argv(&json!({ "shell": "a\n  b\n" })), ["bash", "-c", "a\n  b\n"]);
    assert_eq!(run(&json!(line)).language(), Ok(Language::Multi));
}

#[test]
fn a_command_line_is_never_an_option_of_bash() {
    for line in ["-x; y", "+x; y"] {
        assert_eq!(argv(&json!(line)), ["bash", "-c", "--", line]);
    }
}

#[test]
fn links_lead_to_the_file() {
    assert_eq!(argv(&json!("latest.js")), ["node", "/workspace/latest.js"]);
    assert_eq!(
        argv(&json!("current/app.js")),
        ["node", "/workspace/current/app.js"]
    );
    assert!(
        resolve(&json!("broken.js"))
            .unwrap_err()
            .starts_with("`broken.js` is not in the bundle")
    );
}

#[test]
fn a_missing_file_names_those_that_may_have_been_meant() {
    let message = |text: &str| resolve(&json!(text)).unwrap_err();
    assert_eq!(
        message("mian.py"),
        "`mian.py` is not in the bundle; did you mean `main.py`?"
    );
    assert_eq!(
        message("tool.ts"),
        "`tool.ts` is not in the bundle; did you mean `src/tool.ts`?"
    );
    assert_eq!(message("other.py"), "`other.py` is not in the bundle");
    assert_eq!(
        message("src/main.py"),
        "`src/main.py` is not in the bundle; did you mean `main.py`?"
    );
}

#[test]
fn a_folder_is_no_file() {
    for folder in ["src", "current"] {
        assert_eq!(
            resolve(&json!(folder)),
            Err(format!("`{folder}` is a folder of the bundle, not a file"))
        );
    }
}

#[test]
fn another_extension_is_refused_with_those_that_work() {
    let rest = "has no extension that says how to run it (`.ts`, `.tsx`, `.mts`, `.js`, `.mjs`, `.cjs`, `.py` and \
                `.sh` do); a program is run by a list, as in";
    let message = |text: &str| resolve(&json!(text)).unwrap_err();
    assert_eq!(message("Makefile"), format!("`Makefile` {rest} `[\"Makefile\"]`"));
    assert_eq!(message("python"), format!("`python` {rest} `[\"python\"]`"));
    assert_eq!(
        message("main"),
        format!("`main` {rest} `[\"main\"]`; did you mean `main.py`?")
    );
    assert_eq!(
        message("main.PY"),
        format!("`main.PY` {rest} `[\"main.PY\"]`; did you mean `main.py`?")
    );
    assert_eq!(
        run(&json!("a.rb")).language(),
        Err(RunError::Extension {
            path: path("a.rb"),
            near: vec![]
        })
    );
}

#[test]
fn below_folders_that_an_install_step_makes_a_missing_file_is_only_warned_about() {
    for file in [
        "node_modules/x/cli.js",
        ".venv/bin/x.py",
        "packages/a/node_modules/x.js",
    ] {
        let resolved = resolve(&json!(file)).unwrap();
        let warning = format!("`{file}` is not in the bundle: it has to come from an install step");
        assert_eq!(resolved.warnings, [warning]);
        assert_eq!(resolved.argv.last(), Some(&format!("/workspace/{file}")));
    }
    for file in ["node_modules.js", "x/.venv.py"] {
        assert!(resolve(&json!(file)).is_err(), "{file}");
    }
}

#[test]
fn a_command_line_that_begins_with_a_file_gets_a_hint() {
    let warning = |text: &str| match &resolve(&json!(text)).unwrap().warnings[..] {
        [warning] => warning.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        warning("my tool.py"),
        "this is a shell command, though `my tool.py` is a file of the bundle: to run the file write \
         `{file: \"my tool.py\"}`"
    );
    assert_eq!(
        warning("./main.py --all"),
        "this is a shell command, though its first word `main.py` is a file of the bundle: to run the file with \
         arguments write `{exec: [\"python\", \"main.py\", …]}`, to keep the command `{shell: …}`"
    );
    assert!(
        warning("src/tool.ts>out").contains("`{exec: [\"npx\", \"--yes\", \"tsx\", \"src/tool.ts\", …]}`")
    );
    assert!(warning("Makefile all").contains("`{exec: [\"Makefile\", …]}`"));
}

#[test]
fn whoever_says_shell_or_begins_with_a_program_gets_no_hint() {
    for block in [
        json!({ "shell": "main.py --all" }),
        json!("python main.py"),
        json!("other.py --all"),
        json!("src x"),
    ] {
        assert_eq!(resolve(&block).unwrap().warnings, [""; 0], "{block}");
    }
}

proptest! {
    #[test]
    fn any_string_is_one_form_or_refused_without_panic(text in "[a-z.\"' /|;$`{(>&\\-\n]{0,16}") {
        match define_run(&json!(text)) {
            Ok(run) => {
                if let Ok(resolved) = run.resolve(&bundle(), "/workspace", &BTreeSet::new()) {
                    prop_assert!(!resolved.argv.is_empty());
                }
            }
            Err(errors) => prop_assert!(!errors.is_empty()),
        }
    }
}

#[test]
fn arguments_that_are_too_long_together_are_refused_with_both_numbers() {
    let arguments = |last: usize| json!(["python", "x".repeat(65_536), "x".repeat(last)]);
    assert_eq!(
        define_run(&arguments(65_530)).map(|run| run.form()),
        Ok(Form::Exec)
    );
    for (field, block) in [
        ("run", arguments(65_531)),
        ("run.exec", json!({ "exec": arguments(65_531) })),
    ] {
        assert_eq!(
            define_run(&block),
            Err(vec![FieldError::new(
                field,
                "has 131073 bytes in all its arguments; a command may have at most 131072: put the text into a file of the bundle",
            )])
        );
    }
}
