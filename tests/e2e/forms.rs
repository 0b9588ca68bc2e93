//! `run` in each of its forms, on the images that the chart brings.

use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::support::{End, end, inline, story};

/// One way to say what runs.
struct Form {
    name: &'static str,
    sources: Vec<Value>,
    run: Value,
    runner: Value,
    /// What status says of it: form, argument list, template.
    resolved: (&'static str, Vec<&'static str>, &'static str),
    stdout: &'static str,
}

fn forms() -> Vec<Form> {
    let typescript = "const answer: number = 42;\nconsole.log(`typescript ${answer}`);\n";
    let arguments = "import sys\nprint(sys.argv[1:])\n";
    vec![
        Form {
            name: "python-file",
            sources: vec![inline("tool.py", "print('python')\n")],
            run: json!("tool.py"),
            runner: json!({}),
            resolved: ("file", vec!["python", "/workspace/tool.py"], "python"),
            stdout: "python\n",
        },
        Form {
            name: "typescript-file",
            sources: vec![inline("src/tool.ts", typescript)],
            run: json!("src/tool.ts"),
            runner: json!({"limits": {"memory_mb": 512}}),
            resolved: ("file", vec!["tsx", "/workspace/src/tool.ts"], "node"),
            stdout: "typescript 42\n",
        },
        Form {
            name: "javascript-file",
            sources: vec![inline("tool.js", "console.log('javascript')\n")],
            run: json!("tool.js"),
            runner: json!({}),
            resolved: ("file", vec!["node", "/workspace/tool.js"], "node"),
            stdout: "javascript\n",
        },
        Form {
            name: "shell-file",
            sources: vec![inline("tool.sh", "echo \"shell in $PWD\"\n")],
            run: json!("tool.sh"),
            runner: json!({}),
            resolved: ("file", vec!["bash", "/workspace/tool.sh"], "node"),
            stdout: "shell in /workspace\n",
        },
        Form {
            name: "list",
            sources: vec![inline("tool.py", arguments)],
            run: json!(["python3", "tool.py", "$HOME", "a b", "*"]),
            runner: json!({"engine": "sandbox", "image": "python"}),
            resolved: ("exec", vec!["python3", "tool.py", "$HOME", "a b", "*"], "python"),
            stdout: "['$HOME', 'a b', '*']\n",
        },
        Form {
            name: "shell-string",
            sources: vec![inline("words.txt", "b\na\n")],
            run: json!("sort words.txt | tr -d '\\n' && echo \" $(pwd)\""),
            runner: json!({}),
            resolved: (
                "shell",
                vec!["bash", "-c", "sort words.txt | tr -d '\\n' && echo \" $(pwd)\""],
                "node",
            ),
            stdout: "ab /workspace\n",
        },
        Form {
            name: "file-object",
            sources: vec![inline("a b & c.py", "print('odd name')\n")],
            run: json!({"file": "a b & c.py"}),
            runner: json!({}),
            resolved: ("file", vec!["python", "/workspace/a b & c.py"], "python"),
            stdout: "odd name\n",
        },
        Form {
            name: "exec-object",
            sources: vec![inline("tool.sh", "printf '%s|' \"$@\"\n")],
            run: json!({"exec": ["bash", "tool.sh", "$(HOME)", "two words"]}),
            runner: json!({}),
            resolved: ("exec", vec!["bash", "tool.sh", "$(HOME)", "two words"], "node"),
            stdout: "$(HOME)|two words|",
        },
        Form {
            name: "shell-object",
            sources: vec![inline("tool.sh", "echo executed\n")],
            run: json!({"shell": "bash tool.sh"}),
            runner: json!({}),
            resolved: ("shell", vec!["bash", "-c", "bash tool.sh"], "node"),
            stdout: "executed\n",
        },
    ]
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn every_form_of_run_does_what_status_says() {
    story(async |story| {
        let told = try_join_all(forms().into_iter().map(async |form| {
            let spec = json!({"code": {"sources": form.sources}, "run": form.run, "runner": form.runner});
            let (workspace, run) = story.ran(&story.apply(form.name, &spec).await?).await?;
            anyhow::Ok((form, workspace.status.unwrap(), run))
        }))
        .await?;
        for (form, status, run) in told {
            let command = status.run.unwrap();
            let template = status.runner.unwrap().template.unwrap();
            let (expected_form, argv, expected_template) = form.resolved;
            assert_eq!(
                (command.form.as_str(), command.argv, template.as_str()),
                (
                    expected_form,
                    argv.into_iter().map(str::to_owned).collect(),
                    expected_template
                ),
                "{}",
                form.name
            );
            assert_eq!(end(&run), End::SUCCEEDED, "{}: {:?}", form.name, run.status);
            assert_eq!(
                run.status.unwrap().stdout.unwrap().tail,
                form.stdout,
                "{}",
                form.name
            );
        }
        Ok(())
    })
    .await;
}
