//! The server that plays GitHub, reached through the API server's proxy.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

/// The Service, as the API server's proxy spells it.
const SERVICE: &str = "/api/v1/namespaces/codeworkspace-dev/services/github-server:api/proxy";
/// Owner of all repositories that stories make.
const OWNER: &str = "e2e";
/// Longest that a story waits for the operator to ask.
const PATIENCE: Duration = Duration::from_mins(1);

/// The server that plays GitHub.
pub struct Github {
    client: Client,
}

/// A repository of one story.
pub struct Repository {
    github: Github,
    name: String,
}

impl Github {
    /// The server of the cluster.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Makes an empty repository.
    pub async fn create(self, name: &str) -> Result<Repository> {
        self.control(
            Method::POST,
            "/repositories",
            &json!({"owner": OWNER, "name": name}),
        )
        .await?;
        Ok(Repository {
            github: self,
            name: name.to_owned(),
        })
    }

    /// Asks the server's own control.
    pub async fn control(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{SERVICE}/_control{path}"))
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())?;
        let answer = self
            .client
            .request_text(request)
            .await
            .with_context(|| format!("{path} {body}"))?;
        Ok(if answer.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&answer)?
        })
    }
}

impl Repository {
    /// The server that it is on.
    pub fn github(&self) -> &Github {
        &self.github
    }

    /// Its name, without the owner.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{OWNER}/{}", self.name)
    }

    async fn control(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let path = format!("/repositories/{OWNER}/{}/{path}", self.name);
        self.github.control(method, &path, body).await
    }

    /// Adds a commit to `main` and gives its id.
    pub async fn commit(&self, files: &[(&str, &str)]) -> Result<String> {
        let files: serde_json::Map<_, _> = files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), json!({"content": content})))
            .collect();
        let made = self
            .control(
                Method::POST,
                "commits",
                &json!({"branch": "main", "files": files}),
            )
            .await?;
        Ok(made["commit"].as_str().context("no commit id")?.to_owned())
    }

    /// Points a branch at a revision.
    pub async fn branch(&self, name: &str, target: &str) -> Result<()> {
        self.control(
            Method::PUT,
            &format!("branches/{name}"),
            &json!({"target": target}),
        )
        .await?;
        Ok(())
    }

    /// Hides the repository from those who have no access.
    pub async fn make_private(&self) -> Result<()> {
        self.control(Method::PUT, "visibility", &json!({"private": true}))
            .await?;
        Ok(())
    }

    /// Answers everything about this repository with a server's error.
    pub async fn break_down(&self) -> Result<()> {
        self.control(Method::PUT, "switches", &json!({"answer": {"status": 503}}))
            .await?;
        Ok(())
    }

    /// Answers truly again.
    pub async fn recover(&self) -> Result<()> {
        self.control(Method::DELETE, "switches", &Value::Null).await?;
        Ok(())
    }

    /// How often the operator asked where a branch or tag points.
    pub async fn look_ups(&self) -> Result<u64> {
        let requests = self
            .github
            .control(Method::GET, "/requests", &Value::Null)
            .await?;
        let count = &requests["repositories"][self.full_name()]["reference"];
        Ok(count.as_u64().unwrap_or_default())
    }

    /// How often the operator asked GitHub's API about it. Downloads are no part of that.
    pub async fn api_requests(&self) -> Result<u64> {
        let requests = self
            .github
            .control(Method::GET, "/requests", &Value::Null)
            .await?;
        let kinds = requests["repositories"][self.full_name()].as_object();
        let counted = kinds
            .into_iter()
            .flatten()
            .filter(|(kind, _)| *kind != "download");
        Ok(counted.filter_map(|(_, count)| count.as_u64()).sum())
    }

    /// Waits until the operator has asked so many times more.
    pub async fn look_ups_later(&self, more: u64) -> Result<()> {
        let wanted = self.look_ups().await? + more;
        let asked = async {
            while self.look_ups().await? < wanted {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            anyhow::Ok(())
        };
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(asked) => asked,
            Err(_) => bail!(
                "the operator did not look {} up {more} times more",
                self.full_name()
            ),
        }
    }
}
