//! The examples, applied with kubectl as a reader would.

use codeworkspace_api::{CodeRun, CodeWorkspace};
use kube::ResourceExt as _;

use crate::support::{End, Story, condition, end, kubectl, story};

async fn ran(story: &Story, name: &str) -> anyhow::Result<CodeRun> {
    let workspace = story.api::<CodeWorkspace>().get(name).await?;
    Ok(story.ran(&workspace).await?.1)
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn the_examples_do_what_they_say_and_leave_no_difference() {
    story(async |story| {
        kubectl(&[
            "apply",
            "--namespace",
            &story.namespace,
            "--filename",
            "examples/",
        ])?
        .success()?;
        for (name, stdout) in [
            ("typescript", "2 3 5 7 11 13 17 19 23 29\n"),
            ("github-override", "Welcome, reader!\n"),
            ("shell", "      3 the\n      2 dog\n"),
            ("configmap-root", "about.txt: About us\nindex.txt: Welcome\n42\n"),
            ("shared-bundle-user", "Hello again, neighbour!\n"),
            ("scrape-prices-csv", "kettle,21.50\nteapot,8.00\n"),
            (
                "send-templated-email",
                "goodbye.html welcome.html\n<p>Welcome, reader!</p>\n",
            ),
        ] {
            let run = ran(story, name).await?;
            assert_eq!(end(&run), End::SUCCEEDED, "{name}: {:?}", run.status);
            assert_eq!(run.status.unwrap().stdout.unwrap().tail, stdout, "{name}");
        }
        let hello = ran(story, "hello-python")
            .await?
            .status
            .unwrap()
            .stdout
            .unwrap()
            .tail;
        assert!(hello.starts_with("Hello from Python 3."), "{hello}");
        let by_hand = story.ended("on-demand-sum").await?;
        assert_eq!(by_hand.status.unwrap().stdout.unwrap().tail, "42\n");

        let shared = story.api::<CodeWorkspace>().get("shared-bundle").await?;
        let shared = story.looked_at(&shared).await?;
        assert_eq!(condition(&shared, "Ready").unwrap().status, "True");
        assert_eq!(shared.status.unwrap().last_run, None);
        let broken = story.api::<CodeWorkspace>().get("broken-sources").await?;
        let broken = story.looked_at(&broken).await?;
        assert_eq!(
            condition(&broken, "Ready").unwrap().reason,
            "SourceResolutionError"
        );

        let difference = kubectl(&["diff", "--namespace", &story.namespace, "--filename", "examples/"])?;
        // kubectl exits with 1 when something differs.
        assert_eq!(
            (difference.code, difference.stdout.as_str()),
            (Some(0), ""),
            "{difference:?}"
        );
        let workspaces = story.list::<CodeWorkspace>().await?;
        for workspace in &workspaces {
            assert_eq!(
                workspace.finalizers(),
                [] as [String; 0],
                "{}",
                workspace.name_any()
            );
        }
        assert_eq!(workspaces.len(), 11);
        Ok(())
    })
    .await;
}
